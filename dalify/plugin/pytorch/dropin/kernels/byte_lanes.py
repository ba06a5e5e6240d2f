"""Weighted sums of bytes in 32-bit integers, with SIMD that LLVM does not generate automatically.

The sums are Pillow's: weights with 22 fractional bits, half a unit added, shifted, clamped to a byte. The vectors are
generic LLVM vectors: every CPU supports them, in as many registers as necessary.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["COLUMNS", "FRACTION_BITS", "weighted_columns", "weighted_pixel"]

FRACTION_BITS = 22
COLUMNS = 32
_PIXEL_PAIR_BYTES = 6
_PAIR_LANES = 8
_INT32_BYTES = 4

_BYTE, _INT32 = ir.IntType(8), ir.IntType(32)


def _splat(kind: ir.VectorType, value: int) -> ir.Constant:
    return ir.Constant(kind, [value] * kind.count)


def _to_bytes(builder: ir.IRBuilder, total: Any, lanes: int) -> Any:
    wide = ir.VectorType(_INT32, lanes)
    shifted = builder.ashr(total, _splat(wide, FRACTION_BITS))
    low, high = _splat(wide, 0), _splat(wide, 255)
    shifted = builder.select(builder.icmp_signed("<", shifted, low), low, shifted)
    shifted = builder.select(builder.icmp_signed(">", shifted, high), high, shifted)
    return builder.trunc(shifted, ir.VectorType(_BYTE, lanes))


@intrinsic
def weighted_pixel(typing_context: Any, source: Any, weights: Any, pairs: Any, target: Any) -> tuple[Any, Any]:
    """Store one RGB pixel: the weighted sum of `2 * pairs` neighboring pixels.

    For use inside numba functions. All arguments are ``uintp``: the address of the first pixel, from which
    ``6 * pairs + 2`` bytes are read; that of the weights, int32, four times each; the number of pairs, at least 1; and
    the address of the result, where four bytes are written, of which the last is undefined.
    """
    return types.void(types.uintp, types.uintp, types.uintp, types.uintp), _generate_pixel


def _generate_pixel(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, weights, pairs, target = arguments
    index = source.type
    packed, wide = ir.VectorType(_BYTE, _PAIR_LANES), ir.VectorType(_INT32, _PAIR_LANES)
    half = ir.VectorType(_INT32, _PAIR_LANES // 2)
    places = ir.Constant(wide, [0, 1, 2, 2, 3, 4, 5, 5])

    before = builder.block
    loop, after = builder.append_basic_block("pairs"), builder.append_basic_block("pairs.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    count, source_at, weight_at = builder.phi(index), builder.phi(index), builder.phi(index)
    total = builder.phi(wide)
    pixels = builder.load(builder.inttoptr(source_at, packed.as_pointer()), align=1)
    spread = builder.shuffle_vector(pixels, ir.Constant(packed, ir.Undefined), places)
    factors = builder.load(builder.inttoptr(weight_at, wide.as_pointer()), align=_INT32_BYTES)
    total_next = builder.add(total, builder.mul(builder.zext(spread, wide), factors))
    count_next = builder.sub(count, ir.Constant(index, 1))
    source_next = builder.add(source_at, ir.Constant(index, _PIXEL_PAIR_BYTES))
    weight_next = builder.add(weight_at, ir.Constant(index, _PAIR_LANES * _INT32_BYTES))
    for phi, first, following in (
        (count, pairs, count_next),
        (source_at, source, source_next),
        (weight_at, weights, weight_next),
        (total, _splat(wide, 0), total_next),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("==", count_next, ir.Constant(index, 0)), after, loop)
    builder.position_at_end(after)
    nothing = ir.Constant(wide, ir.Undefined)
    even = builder.shuffle_vector(total_next, nothing, ir.Constant(half, [0, 1, 2, 3]))
    odd = builder.shuffle_vector(total_next, nothing, ir.Constant(half, [4, 5, 6, 7]))
    total_of_both = builder.add(builder.add(even, odd), _splat(half, 1 << (FRACTION_BITS - 1)))
    narrow = _to_bytes(builder, total_of_both, _PAIR_LANES // 2)
    builder.store(narrow, builder.inttoptr(target, narrow.type.as_pointer()), align=1)
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
    source, stride, weights, number, target = arguments
    index = source.type
    packed, wide = ir.VectorType(_BYTE, COLUMNS), ir.VectorType(_INT32, COLUMNS)
    nothing = ir.Constant(wide, ir.Undefined)

    before = builder.block
    loop, after = builder.append_basic_block("rows"), builder.append_basic_block("rows.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    count, source_at, weight_at = builder.phi(index), builder.phi(index), builder.phi(index)
    total = builder.phi(wide)
    row = builder.load(builder.inttoptr(source_at, packed.as_pointer()), align=1)
    weight = builder.load(builder.inttoptr(weight_at, _INT32.as_pointer()), align=_INT32_BYTES)
    single = builder.insert_element(nothing, weight, ir.Constant(_INT32, 0))
    factors = builder.shuffle_vector(single, nothing, _splat(wide, 0))
    total_next = builder.add(total, builder.mul(builder.zext(row, wide), factors))
    count_next = builder.sub(count, ir.Constant(index, 1))
    source_next = builder.add(source_at, stride)
    weight_next = builder.add(weight_at, ir.Constant(index, _INT32_BYTES))
    for phi, first, following in (
        (count, number, count_next),
        (source_at, source, source_next),
        (weight_at, weights, weight_next),
        (total, _splat(wide, 1 << (FRACTION_BITS - 1)), total_next),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("==", count_next, ir.Constant(index, 0)), after, loop)
    builder.position_at_end(after)
    narrow = _to_bytes(builder, total_next, COLUMNS)
    builder.store(narrow, builder.inttoptr(target, narrow.type.as_pointer()), align=1)
    return context.get_dummy_value()
