"""Decides whether operators run Triton kernels or torch kernels on a device.

Triton has no CPU backend; with ``TRITON_INTERPRET=1`` its kernels run in its interpreter on torch's CPU device, for
tests. ``DALIFY_TRITON=0`` switches Triton kernels off.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar, cast

from dalify.base.optional import LazyModule, require
from dalify.data.device_samples import DeviceSamples

__all__ = ["UnsupportedError", "prefer_triton", "reason_against"]

_Function = TypeVar("_Function", bound=Callable[..., None])

_VARIABLE = "DALIFY_TRITON"
_INTERPRETER_VARIABLE = "TRITON_INTERPRET"
_PACKAGE = "triton"
_DTYPES = frozenset(["uint8", "int8", "uint16", "int16", "int32", "float16", "bfloat16", "float32"])
# Kernels compute positions within a sample in 32 bits.
_MAX_ELEMENTS = 2**31 - 2**16
_LIMIT_OF_SAMPLES = 2**31


class UnsupportedError(Exception):
    """A Triton kernel does not support its arguments: the torch kernel has to. Raised before anything is launched."""


def reason_against(device: str) -> str | None:
    """Return why Triton kernels are not used on a torch device, for `explain()`; None if they are."""
    if os.environ.get(_VARIABLE, "").lower() in ("0", "off", "false"):
        return f"{_VARIABLE} switches Triton off"
    kind = device.split(":")[0]
    is_interpreted = os.environ.get(_INTERPRETER_VARIABLE) == "1"
    if kind != ("cpu" if is_interpreted else "cuda"):  # torch calls AMD's devices cuda, too
        return f"Triton's interpreter has no device {kind!r}" if is_interpreted else f"Triton has no device {kind!r}"
    if not _is_installed():
        return "Triton is not installed: pip install 'dalify[triton]'"
    return None


@functools.cache
def _is_installed() -> bool:
    return importlib.util.find_spec(_PACKAGE) is not None


def prefer_triton(module: str, name: str) -> Callable[[_Function], _Function]:
    """Make a torch kernel run a Triton kernel instead, where there is one for its arguments.

    The second argument is the input, or a sequence of inputs. Those that are not `DeviceSamples` are left to torch, and
    so is what the Triton kernel rejects with `UnsupportedError`.

    Args:
        module: in `dalify.kernels.triton`, imported at the first use.
        name: of the function, which has the parameters of the torch kernel.
    """
    kernels: ModuleType = LazyModule(f"dalify.kernels.triton.{module}", "running Triton kernels", "dalify[triton]")

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def called(out: Any, x: Any, *arguments: Any, **options: Any) -> None:
            inputs: Sequence[Any] = cast(Sequence[Any], x) if isinstance(x, (list, tuple)) else (x,)
            are_samples = all(isinstance(samples, DeviceSamples) for samples in inputs)
            if are_samples and reason_against(str(out.device)) is None and _are_supported(out, *inputs):
                try:
                    getattr(require(kernels), name)(out, x, *arguments, **options)
                except UnsupportedError:
                    pass  # tried again for the next chunk: results must not depend on the chunks before
                else:
                    return
            function(out, x, *arguments, **options)

        return cast(_Function, called)

    return decorate


def _are_supported(*all_samples: DeviceSamples) -> bool:
    """Return whether Triton kernels read and write these element types, and can compute places in the samples."""
    return all(
        str(samples.dtype).removeprefix("torch.") in _DTYPES
        and len(samples) < _LIMIT_OF_SAMPLES
        and samples.shapes.prod(1).max(initial=0) <= _MAX_ELEMENTS
        for samples in all_samples
    )
