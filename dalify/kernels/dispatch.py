"""Decides whether operators run Triton kernels or torch kernels on a device.

Triton has no CPU backend; with ``TRITON_INTERPRET=1`` its kernels run in its interpreter on torch's CPU device, for
tests. ``DALIFY_TRITON=0`` switches Triton kernels off.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from dalify.base.optional import LazyModule, require
from dalify.data.samples import NoDeviceKernelError, Samples

__all__ = ["also_on_device", "reason_against", "supports"]

_VARIABLE = "DALIFY_TRITON"
_INTERPRETER_VARIABLE = "TRITON_INTERPRET"
_PACKAGE = "triton"
_DTYPES = frozenset(["uint8", "int8", "uint16", "int16", "int32", "float16", "bfloat16", "float32"])
# Kernels compute positions within a sample in 32 bits.
_MAX_ELEMENTS = 2**31 - 2**16
_LIMIT_OF_ADDRESSES = 2**31


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


def supports(dtypes: list[np.dtype[Any]]) -> bool:
    """Return whether Triton kernels read and write these element types."""
    return all(str(dtype) in _DTYPES for dtype in dtypes)


def also_on_device(module: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a kernel for ``(out, x, ...)`` of `Samples` run the Triton kernel of its name where they are on a device.

    Args:
        module: in `dalify.kernels.triton`, imported at the first use.
    """
    kernels: ModuleType = LazyModule(f"dalify.kernels.triton.{module}", "running Triton kernels", "dalify[triton]")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(out: Any, x: Any, *arguments: Any, **options: Any) -> Any:
            if not isinstance(x, Samples) or x.device is None:
                return function(out, x, *arguments, **options)
            sizes = [samples.shapes.prod(1).max(initial=0) for samples in (out, x)]
            if max(sizes) > _MAX_ELEMENTS or len(x) >= _LIMIT_OF_ADDRESSES or not supports([out.dtype, x.dtype]):
                raise NoDeviceKernelError
            return getattr(require(kernels), function.__name__)(out, x, *arguments, **options)

        return called

    return decorate
