"""Compiles Triton kernels for NVIDIA and AMD GPUs, without a GPU, and prints the name and the result of each.

It also prints instructions that do not round like the CPU.

In a process of its own, because Triton decides at import whether kernels are interpreted.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import dalify.kernels.triton
from dalify import types
from dalify.data.device_samples import DeviceSamples

TARGETS = {"cubin": GPUTarget("cuda", 90, 32), "hsaco": GPUTarget("hip", "gfx942", 64)}
OPTIONS = ("num_warps",)
# Instructions that do not round like the CPU: a slash in a kernel is div.full, instead of tl.div_rn.
_INEXACT = re.compile(r"\b(?:div\.full|fma|\w+\.approx)[\w.]*")
POINTERS = {torch.int64: "*i64", torch.int32: "*i32", torch.float32: "*fp32"}


def compile_launch(kernel: Any, device: Any, programs: int, *arguments: Any, **constants: Any) -> None:
    """Compile a kernel for the arguments of a launch."""
    signature = {}
    for name, value in zip(kernel.arg_names, arguments, strict=False):
        is_number = isinstance(value, (int, float))
        signature[name] = ("fp32" if isinstance(value, float) else "i32") if is_number else POINTERS[value.dtype]
    options = {"enable_fp_fusion": False} | {name: constants.pop(name) for name in OPTIONS if name in constants}
    signature |= dict.fromkeys(constants, "constexpr")
    for result, target in TARGETS.items():
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        compiled = triton.compile(source, target=target, options=options)
        print(kernel.__name__, result, len(compiled.asm[result]) > 0)
        for instruction in set(_INEXACT.findall(compiled.asm.get("ptx", ""))):
            print(kernel.__name__, result, instruction)


def samples(dtype: str, shape: tuple[int, ...] = (8, 6, 3)) -> DeviceSamples:
    """Return two samples in the memory of torch's CPU device."""
    return DeviceSamples.of_dense(torch.zeros((2, *shape), dtype=getattr(torch, dtype)))


def main() -> None:
    """Compile all kernels."""
    modules = {}
    for info in pkgutil.iter_modules(dalify.kernels.triton.__path__):
        module = modules[info.name] = importlib.import_module(f"dalify.kernels.triton.{info.name}")
        if hasattr(module, "launch"):
            module.launch = compile_launch
    zeros, ones, size = np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), 6.0)
    start = np.zeros((2, 3), np.int64)
    filters = {"min_filter": int(types.INTERP_TRIANGULAR), "mag_filter": int(types.INTERP_CUBIC)}
    modules["windows"].normalize_samples(
        samples("float32", (3, 8, 6)), samples("uint8"), "HWC", "CHW", start, zeros[0], zeros[:, :1], ones[:, :1],
        {"scale": 1.0, "shift": 0.0, "fill_values": [0.0]},
    )  # fmt: skip
    modules["windows"].normalize_samples(
        samples("float16"), samples("uint8"), "HWC", "HWC", start, zeros[0], zeros[:, :1], ones[:, :1],
        {"scale": 1.0, "shift": 0.0, "fill_values": [0.0]},
    )  # fmt: skip
    modules["windows"].copy_windows(samples("int32"), samples("int32"), np.zeros((2, 3), np.int64))
    modules["windows"].transpose_axes(samples("uint8", (3, 8, 6)), samples("uint8"), (2, 0, 1))
    modules["joining"].join_samples(samples("bfloat16", (8, 12, 3)), [samples("bfloat16"), samples("bfloat16")], 1)
    modules["resampling"].resample(samples("uint8", (4, 5, 3)), samples("uint8"), zeros, size, **filters)
    modules["resampling"].resample(samples("float16", (4, 5, 3)), samples("bfloat16"), zeros, size, **filters)
    modules["resampling"].resample(samples("uint8", (4, 5, 3)), samples("uint8"), zeros, size)
    modules["resampling"].resample_normalized(
        samples("float32", (3, 4, 5)), samples("uint8"), "CHW", zeros, size,
        {"interp_type": None, "min_filter": None, "mag_filter": None, "antialias": True},
        {"mirror": zeros[0], "mean": zeros[:, :1], "std": ones[:, :1], "scale": 1.0, "shift": 0.0},
    )  # fmt: skip
    modules["pointwise"].scale_shift(samples("int32"), samples("uint16"), ones[0], zeros[0])
    modules["pointwise"].saturate_cast_samples(samples("bfloat16"), samples("float16"))
    modules["pointwise"].apply_matrix(samples("uint8"), samples("int8"), np.ones((2, 3, 3)), np.zeros((2, 3)))
    for rows, nearest, fill in ((2, False, None), (3, True, 1.0)):
        modules["warping"].warp_2d(
            samples("uint8"), samples("uint8"), np.ones((2, rows, 3)), nearest=nearest, fill_value=fill
        )
    modules["convolution"].convolve_samples(samples("uint8"), samples("uint8"), [[np.ones(3)] * 2] * 2, 0)
    modules["erasing"].erase_regions(
        samples("int16"), samples("int16"), np.zeros((2, 1, 2, 3), np.int64), np.zeros((2, 3)), 2
    )


if __name__ == "__main__":
    main()
