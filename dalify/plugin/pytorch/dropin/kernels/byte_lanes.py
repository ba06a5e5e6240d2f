"""Weighted sums of bytes in 32-bit integers, with SIMD that LLVM does not generate automatically.

The sums are Pillow's: weights with 22 fractional bits, half a unit added, shifted, clamped to a byte. The vectors are
generic LLVM vectors: every CPU supports them, in as many registers as necessary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from dalify.base.compiling import intrinsic

__all__ = ["COLUMNS", "FRACTION_BITS", "weighted_columns", "weighted_pixel"]

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

    For use inside numba functions. All arguments are ``uintp``: the address of the first pixel, from which
    ``6 * pairs + 2`` bytes are read; that of the weights, int32, four times each; the number of pairs, at least 1; and
    the address of the result, where four bytes are written, of which the last is undefined.
    """
    return types.void(types.uintp, types.uintp, types.uintp, types.uintp), _generate_pixel


def _generate_pixel(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, weights, pairs, target = arguments
    wide, half = ir.VectorType(_INT32, _PAIR_LANES), ir.VectorType(_INT32, _PAIR_LANES // 2)

    def product(source: Any, weights: Any) -> Any:
        pixels = _load(builder, source, ir.VectorType(_BYTE, _PAIR_LANES), 1)
        order = ir.Constant(wide, [0, 1, 2, 2, 3, 4, 5, 5])
        spread = builder.shuffle_vector(pixels, ir.Constant(pixels.type, ir.Undefined), order)
        return builder.mul(builder.zext(spread, wide), _load(builder, weights, wide, _INT32_BYTES))

    strides = ir.Constant(source.type, _PIXEL_PAIR_BYTES), _PAIR_LANES * _INT32_BYTES
    total = _sum(builder, product, pairs, _splat(wide, 0), (source, weights), strides)
    undefined = ir.Constant(wide, ir.Undefined)
    even = builder.shuffle_vector(total, undefined, ir.Constant(half, [0, 1, 2, 3]))
    odd = builder.shuffle_vector(total, undefined, ir.Constant(half, [4, 5, 6, 7]))
    _store_bytes(builder, builder.add(builder.add(even, odd), _splat(half, _HALF)), target)
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
    undefined = ir.Constant(wide, ir.Undefined)

    def product(source: Any, weights: Any) -> Any:
        weight = _load(builder, weights, _INT32, _INT32_BYTES)
        single = builder.insert_element(undefined, weight, ir.Constant(_INT32, 0))
        factors = builder.shuffle_vector(single, undefined, _splat(wide, 0))
        return builder.mul(builder.zext(_load(builder, source, ir.VectorType(_BYTE, COLUMNS), 1), wide), factors)

    total = _sum(builder, product, count, _splat(wide, _HALF), (source, weights), (stride, _INT32_BYTES))
    _store_bytes(builder, total, target)
    return context.get_dummy_value()


def _splat(kind: ir.VectorType, value: int) -> ir.Constant:
    return ir.Constant(kind, [value] * kind.count)


def _load(builder: ir.IRBuilder, address: Any, kind: Any, align: int) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=align)


def _sum(
    builder: ir.IRBuilder,
    product: Callable[[Any, Any], Any],
    count: Any,
    start: ir.Constant,
    addresses: tuple[Any, Any],
    strides: tuple[Any, int],
) -> Any:
    """Generate a loop that adds `count` products, of the values at two addresses, to a constant; return the sum."""
    index = count.type
    before = builder.block
    loop, after = builder.append_basic_block("taps"), builder.append_basic_block("taps.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    number, source, weights, total = (builder.phi(kind) for kind in (index, index, index, start.type))
    total_next = builder.add(total, product(source, weights))
    number_next = builder.sub(number, ir.Constant(index, 1))
    for phi, first, following in (
        (number, count, number_next),
        (source, addresses[0], builder.add(source, strides[0])),
        (weights, addresses[1], builder.add(weights, ir.Constant(index, strides[1]))),
        (total, start, total_next),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("==", number_next, ir.Constant(index, 0)), after, loop)
    builder.position_at_end(after)
    return total_next


def _store_bytes(builder: ir.IRBuilder, total: Any, target: Any) -> None:
    """Round sums down to integers, clamp them to bytes, and store them."""
    wide = total.type
    shifted = builder.ashr(total, _splat(wide, FRACTION_BITS))
    low, high = _splat(wide, 0), _splat(wide, 255)
    shifted = builder.select(builder.icmp_signed("<", shifted, low), low, shifted)
    shifted = builder.select(builder.icmp_signed(">", shifted, high), high, shifted)
    packed = ir.VectorType(_BYTE, wide.count)
    builder.store(builder.trunc(shifted, packed), builder.inttoptr(target, packed.as_pointer()), align=1)
