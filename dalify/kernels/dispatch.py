"""Decides whether operators run Triton kernels or torch kernels on a device.

A test kernel runs on each device first, because Triton needs a C compiler, Python's headers, a folder for its cache,
and a GPU that it supports. Triton has no CPU backend; with ``TRITON_INTERPRET=1`` its kernels run in its interpreter on
torch's CPU device, for tests. ``DALIFY_TRITON=0`` disables Triton kernels.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from dalify.base.optional import LazyModule, require, torch
from dalify.data.device_samples import DeviceSamples

_Function = TypeVar("_Function", bound=Callable[..., None])

_VARIABLE = "DALIFY_TRITON"
_INTERPRETER_VARIABLE = "TRITON_INTERPRET"
_PACKAGE = "triton"
_INSTALL = "dalify[triton]"
_KERNELS = "dalify.kernels.triton"
_DTYPES = frozenset(["uint8", "int8", "uint16", "int16", "int32", "float16", "bfloat16", "float32"])
# Kernels compute positions within a sample in 32 bits.
_MAX_ELEMENTS = 2**31 - 2**16
_LIMIT_OF_SAMPLES = 2**31


class UnsupportedError(Exception):
    """A Triton kernel does not support its arguments. Raised before anything is launched."""


def reason_against(device: str) -> str | None:
    """Return why Triton kernels are not used on a torch device, for `explain()`; None if they are used."""
    if os.environ.get(_VARIABLE, "").lower() in ("0", "off", "false"):
        return f"{_VARIABLE} switches Triton off"
    kind = device.split(":")[0]
    is_interpreted = os.environ.get(_INTERPRETER_VARIABLE) == "1"
    if kind != ("cpu" if is_interpreted else "cuda"):  # torch calls AMD's devices cuda, too
        return f"Triton's interpreter has no device {kind!r}" if is_interpreted else f"Triton has no device {kind!r}"
    return _why_not(device)


@functools.cache
def _why_not(device: str) -> str | None:
    """Return why Triton does not work on a device; None if a test kernel works. Waits for the device."""
    if importlib.util.find_spec(_PACKAGE) is None:
        return f"Triton is not installed: pip install '{_INSTALL}'"
    try:
        numbers = torch.arange(4, dtype=torch.uint8, device=device)[None]
        if str(numbers.device) != device:  # with the index of the device, as tensors have it
            return _why_not(str(numbers.device))
        out = torch.zeros_like(numbers, dtype=torch.float32)
        pointwise = require(_module_of("pointwise"))
        pointwise.saturate_cast_samples(DeviceSamples.of_dense(out), DeviceSamples.of_dense(numbers))
        is_right = out.tolist() == numbers.tolist()
    except Exception as error:  # compilers, drivers and other versions of Triton raise any exception
        text = str(error).strip().split("\n", 1)[0]
        return f"Triton does not work: {text or type(error).__name__}"
    return None if is_right else "Triton does not work: it converts numbers wrongly"


def _module_of(name: str) -> LazyModule:
    """Return a module of Triton kernels, imported at first use, because these modules import this one."""
    return LazyModule(f"{_KERNELS}.{name}", "running Triton kernels", _INSTALL)


def prefer_triton(module: str, name: str) -> Callable[[_Function], _Function]:
    """Replace a torch kernel by a Triton kernel for the calls that the Triton kernel supports.

    The second argument is the input, or a sequence of inputs. The torch kernel runs if an input is not `DeviceSamples`,
    or if the Triton kernel raises `UnsupportedError`.

    Args:
        module: module in `dalify.kernels.triton`, imported at the first use.
        name: name of the function, which has the parameters of the torch kernel.
    """
    kernels = _module_of(module)

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def called(out: Any, x: Any, *arguments: Any, **options: Any) -> None:
            inputs: Sequence[Any] = cast(Sequence[Any], x) if isinstance(x, (list, tuple)) else (x,)
            are_samples = all(isinstance(samples, DeviceSamples) for samples in inputs)
            if are_samples and reason_against(str(out.device)) is None and _are_supported(out, *inputs):
                try:
                    getattr(require(kernels), name)(out, x, *arguments, **options)
                except UnsupportedError:
                    pass  # tried again for the next chunk, so that results do not depend on previous chunks
                else:
                    return
            function(out, x, *arguments, **options)

        return cast(_Function, called)

    return decorate


def _are_supported(*all_samples: DeviceSamples) -> bool:
    """Return whether Triton kernels support the element types and sizes of the samples."""
    return all(
        str(samples.dtype).removeprefix("torch.") in _DTYPES
        and len(samples) < _LIMIT_OF_SAMPLES
        and samples.shapes.prod(1).max(initial=0) <= _MAX_ELEMENTS
        for samples in all_samples
    )
