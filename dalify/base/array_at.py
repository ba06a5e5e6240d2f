"""Access to single samples by address in compiled loops over a chunk (`dalify.data.samples`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dalify.base.compiling import njit

__all__ = ["array_at", "copy_bytes", "flat_at"]

# numba is not typed.
_cgutils: Any = cgutils


def _array_at(typing_context: Any, address: Any, shape: Any, like: Any) -> tuple[Any, Any]:
    found = types.Array(like.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        extents = [
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(_cgutils.unpack_tuple(builder, arguments[1]), signature.args[1], strict=True)
        ]
        size_bytes = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(found.dtype)))
        strides = [size_bytes]
        for extent in reversed(extents[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        array = context.make_array(found)(context, builder)
        pointer = builder.inttoptr(arguments[0], context.get_data_type(found.dtype).as_pointer())
        context.populate_array(array, data=pointer, shape=extents, strides=strides, itemsize=size_bytes, meminfo=None)
        return array._getvalue()

    return found(address, shape, like), generate


# `array_at(address, shape, like)` returns an array of the element type of the array `like`, C-contiguous, of memory
# that the caller keeps alive: `address` (int64) is its first element, `shape` a tuple of integers. It is an intrinsic
# because numba would compile ``carray`` and a function that calls it for each element type and number of dimensions.
array_at: Any = intrinsic(_array_at)


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
def flat_at(address: int, shape: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return all elements of a sample as one dimension; see `array_at`. The shape is an array of int64."""
    size = np.int64(1)
    for extent in shape:
        size *= extent
    return array_at(address, (size,), like)
