"""Access to single samples by address in compiled loops over a chunk (`dalify.data.samples`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage] -- numba's documentation has it there
from numba.core import cgutils
from numba.extending import intrinsic

from dalify.base.compiling import njit

__all__ = ["array_at", "copy_bytes", "flat_at"]

# numba is not typed.
_cgutils: Any = cgutils
_carray: Any = carray


@intrinsic
def _pointer(typing_context: Any, address: Any, like: Any) -> tuple[Any, Any]:
    """Return an address as a pointer to the element type of the array `like`."""
    pointer = types.CPointer(like.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return pointer(address, like), generate


@intrinsic
def copy_bytes(typing_context: Any, target: Any, source: Any, size_bytes: Any) -> tuple[Any, Any]:
    """Copy memory from one address to another; with ``memcpy``, which numba does not generate for loops over slices."""

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        byte = ir.IntType(8).as_pointer()
        to, from_ = (builder.inttoptr(address, byte) for address in arguments[:2])
        _cgutils.raw_memcpy(builder, to, from_, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def array_at(address: int, shape: tuple[Any, ...], like: np.ndarray) -> np.ndarray:
    """Return an array of the element type of `like`, C-contiguous, of memory that the caller keeps alive.

    Args:
        address: int64, address of the first element.
        shape: tuple of int64.
        like: array with the element type of the result.
    """
    return _carray(_pointer(address, like), shape)  # pyright: ignore[reportCallIssue] -- numba gives the typing context


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def flat_at(address: int, shape: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return all elements of a sample as one dimension; see `array_at`. The shape is an array of int64."""
    size = np.int64(1)
    for extent in shape:
        size *= extent
    return array_at(address, (size,), like)
