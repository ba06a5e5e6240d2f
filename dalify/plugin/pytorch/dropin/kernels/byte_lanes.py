"""Weighted sums of bytes in 32-bit integers, with SIMD that LLVM does not generate automatically.

The sums are Pillow's: weights with 22 fractional bits, half a unit added, shifted, clamped to a byte. They use generic
LLVM vectors, which every CPU supports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from dalify.base.compiling import intrinsic
from dalify.base.llvm import clamp, constant, count_down, load, offset, repeat, shuffle, store

FRACTION_BITS = 22
COLUMNS = 32
_PIXEL_PAIR_BYTES = 6
_PAIR_LANES = 8
_INT32_BYTES = 4

_BYTE, _INT32 = ir.IntType(8), ir.IntType(32)
_HALF = 1 << (FRACTION_BITS - 1)


@intrinsic
def weighted_pixel(typing_context: Any, source: Any, weights: Any, pairs: Any, target: Any) -> tuple[Any, Any]:
    """Store one RGB pixel: the weighted sum of `2 * pairs` neighboring pixels.

    For use inside numba functions. All arguments are ``uintp``: the address of the first pixel (``6 * pairs + 2`` bytes
    are read), the address of the weights (int32, four times each), the number of pairs, at least 1, and the address of
    the result (four bytes are written; the last one is undefined).
    """
    return types.void(types.uintp, types.uintp, types.uintp, types.uintp), _generate_pixel


def _generate_pixel(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, weights, pairs, target = arguments
    wide, half = ir.VectorType(_INT32, _PAIR_LANES), ir.VectorType(_INT32, _PAIR_LANES // 2)

    def product(source: Any, weights: Any) -> Any:
        pixels = load(builder, source, ir.VectorType(_BYTE, _PAIR_LANES))
        spread = shuffle(builder, pixels, None, [0, 1, 2, 2, 3, 4, 5, 5])
        return builder.mul(builder.zext(spread, wide), load(builder, weights, wide, _INT32_BYTES))

    strides = ir.Constant(source.type, _PIXEL_PAIR_BYTES), _PAIR_LANES * _INT32_BYTES
    total = _sum(builder, product, pairs, constant(wide, 0), (source, weights), strides)
    even, odd = shuffle(builder, total, None, range(4)), shuffle(builder, total, None, range(4, 8))
    _store_bytes(builder, builder.add(builder.add(even, odd), constant(half, _HALF)), target)
    return context.get_dummy_value()


@intrinsic
def weighted_columns(
    typing_context: Any, source: Any, stride: Any, weights: Any, count: Any, target: Any
) -> tuple[Any, Any]:
    """Store 32 bytes: each is the weighted sum of `count` bytes in a column.

    For use inside numba functions. All arguments are ``uintp``: the address of the first row's 32 bytes, the distance
    of two rows in bytes, the address of the weights (int32, one per row), their number, at least 1, and the address of
    the 32 bytes for the result.
    """
    return types.void(types.uintp, types.uintp, types.uintp, types.uintp, types.uintp), _generate_columns


def _generate_columns(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, stride, weights, count, target = arguments
    wide = ir.VectorType(_INT32, COLUMNS)

    def product(source: Any, weights: Any) -> Any:
        factors = repeat(builder, load(builder, weights, _INT32, _INT32_BYTES), COLUMNS)
        return builder.mul(builder.zext(load(builder, source, ir.VectorType(_BYTE, COLUMNS)), wide), factors)

    total = _sum(builder, product, count, constant(wide, _HALF), (source, weights), (stride, _INT32_BYTES))
    _store_bytes(builder, total, target)
    return context.get_dummy_value()


def _sum(
    builder: ir.IRBuilder,
    product: Callable[[Any, Any], Any],
    count: Any,
    start: ir.Constant,
    addresses: tuple[Any, Any],
    strides: tuple[Any, int],
) -> Any:
    """Generate a loop that adds `count` products of the values at two addresses to `start`; return the sum."""

    def add_product(source: Any, weights: Any, total: Any) -> list[Any]:
        total = builder.add(total, product(source, weights))
        return [builder.add(source, strides[0]), offset(builder, weights, strides[1]), total]

    return count_down(builder, count, (*addresses, start), add_product)[-1]


def _store_bytes(builder: ir.IRBuilder, total: Any, target: Any) -> None:
    """Round sums down to integers, clamp them to bytes, and store them."""
    wide = total.type
    shifted = clamp(builder, builder.ashr(total, constant(wide, FRACTION_BITS)), 0, 255)
    store(builder, builder.trunc(shifted, ir.VectorType(_BYTE, wide.count)), target)
