"""Access to single samples by address in compiled loops over a chunk (`dalify.data.samples`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]
from numba import types
from numba.core import cgutils

from dalify.base.compiling import intrinsic, njit
from dalify.base.llvm import load, offset, store

# numba is not typed.
_cgutils: Any = cgutils

_BYTE, _WIDE = ir.IntType(8), ir.IntType(64)
_PAIR = ir.VectorType(_WIDE, 2)


def _extents_and_strides(context: Any, builder: Any, kind: Any, shape: Any, shape_type: Any) -> tuple[Any, Any, Any]:
    """Return extents, strides in bytes, and element size of a C-contiguous array, as LLVM values."""
    extents = [
        context.cast(builder, value, found, types.intp)
        for value, found in zip(_cgutils.unpack_tuple(builder, shape), shape_type, strict=True)
    ]
    size_bytes = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size_bytes]
    for extent in reversed(extents[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    return extents, strides, size_bytes


def _array_at(typing_context: Any, address: Any, shape: Any, like: Any) -> tuple[Any, Any]:
    found = types.Array(like.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        extents, strides, size_bytes = _extents_and_strides(context, builder, found, arguments[1], signature.args[1])
        array = context.make_array(found)(context, builder)
        pointer = builder.inttoptr(arguments[0], context.get_data_type(found.dtype).as_pointer())
        context.populate_array(array, data=pointer, shape=extents, strides=strides, itemsize=size_bytes, meminfo=None)
        return array._getvalue()

    return found(address, shape, like), generate


# `array_at(address, shape, like)` returns a C-contiguous array with the dtype of the array `like` of memory that the
# caller keeps alive: `address` (int64) is that of the first element, `shape` is a tuple of integers. It is an
# intrinsic, because numba would compile ``carray`` and its caller for each dtype and number of dimensions.
array_at: Any = intrinsic(_array_at)


def _new_array(typing_context: Any, shape: Any, dtype: Any) -> tuple[Any, Any]:
    found = types.Array(dtype.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        extents, strides, size_bytes = _extents_and_strides(context, builder, found, arguments[0], signature.args[0])
        alignment = context.get_preferred_array_alignment(found.dtype)
        memory = context.nrt.meminfo_alloc_aligned(builder, builder.mul(strides[0], extents[0]), alignment)
        array = context.make_array(found)(context, builder)
        pointer = builder.bitcast(context.nrt.meminfo_data(builder, memory), array.data.type)
        context.populate_array(array, data=pointer, shape=extents, strides=strides, itemsize=size_bytes, meminfo=memory)
        return array._getvalue()

    return found(shape, dtype), generate


# `new_array(shape, dtype)` is ``np.empty`` for compiled functions, without checks: `shape` is a tuple of nonnegative
# integers, and the array fits into memory. For ``np.empty``, numba compiles two functions that check the extents for
# each dtype and number of dimensions.
new_array: Any = intrinsic(_new_array)


@intrinsic
def byte_at(typing_context: Any, address: Any) -> tuple[Any, Any]:
    """Return the byte at an address, as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return builder.zext(load(builder, arguments[0], _BYTE), _WIDE)

    return types.int64(types.int64), generate


@intrinsic
def pair_at(typing_context: Any, address: Any) -> tuple[Any, Any]:
    """Return the big-endian 16-bit integer at an address, as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        places = arguments[0], offset(builder, arguments[0], 1)
        high, low = (builder.zext(load(builder, place, _BYTE), _WIDE) for place in places)
        return builder.or_(builder.shl(high, ir.Constant(_WIDE, 8)), low)

    return types.int64(types.int64), generate


@intrinsic
def copy_bytes(typing_context: Any, target: Any, source: Any, size_bytes: Any) -> tuple[Any, Any]:
    """Copy memory between addresses with ``memcpy``, which numba does not generate for loops over slices."""

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        to, from_ = (builder.inttoptr(address, _BYTE.as_pointer()) for address in arguments[:2])
        _cgutils.raw_memcpy(builder, to, from_, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def copy_wide(typing_context: Any, target: Any, source: Any) -> tuple[Any, Any]:
    """Copy 16 bytes between addresses; they may overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        store(builder, load(builder, arguments[1], _PAIR), arguments[0])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def flat_at(address: int, shape: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return all elements of a sample as a 1-D array; see `array_at`. The shape is an array of int64."""
    size = np.int64(1)
    for extent in shape:
        size *= extent
    return array_at(address, (size,), like)
