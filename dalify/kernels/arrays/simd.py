"""SIMD building blocks that LLVM does not generate automatically in loops over interleaved channels.

Three or four channels are too few for the loop vectorizer, and numba does not run LLVM's SLP vectorizer. With explicit
vectors, the horizontal pass of resampling is twice as fast, and the split into planes nine times. Generic LLVM vectors
work on every CPU.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from dalify.base.compiling import intrinsic
from dalify.base.llvm import clamp, constant, count_down, load, offset, repeat, shuffle, store

_FLOAT_BYTES = 4
_LANES = 4
_PIXELS = 16
_SUMS = 32
_RGB = 3
_FLOAT, _INT, _BYTE = ir.FloatType(), ir.IntType(32), ir.IntType(8)
_TWO, _FOUR = ir.VectorType(_FLOAT, 2), ir.VectorType(_FLOAT, _LANES)
_JUST_BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))  # see `to_uint8`


def _fused(operation: Any, left: Any, right: Any) -> Any:
    """Emit an addition or multiplication that may become part of a fused multiply-add."""
    return operation(left, right, flags=("contract",))


def _product(builder: Any, source: Any, weight_at: Any) -> Any:
    """Emit the product of four numbers and one weight."""
    weight = repeat(builder, load(builder, weight_at, _FLOAT, _FLOAT_BYTES), _LANES)
    return _fused(builder.fmul, load(builder, source, _FOUR, _FLOAT_BYTES), weight)


def _addresses(builder: Any, source: Any, offsets: Any) -> list[Any]:
    """Emit four addresses: `source` plus the offsets in bytes that are stored at `offsets`."""
    size = source.type.width // 8
    return [
        builder.add(source, load(builder, offset(builder, offsets, size * number), source.type, size))
        for number in range(4)
    ]


@intrinsic
def weighted_sum_of_four(
    typing_context: Any, source: Any, weights: Any, pairs: Any, step: Any, target: Any
) -> tuple[Any, Any]:
    """Store ``target[0:4] = sum over k of weights[k] * source[k * step : k * step + 4]``, in float32.

    For use inside numba functions. All arguments are ``uintp``: addresses of float32 arrays, which the caller keeps
    alive and large enough; `pairs`, half the number of weights (at least 1); `step`, the distance of two taps in bytes.
    """
    signature = types.void(types.uintp, types.uintp, types.uintp, types.uintp, types.uintp)
    return signature, _generate_sum


def _generate_sum(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, weights, pairs, step, target = arguments

    def add_pair(source_at: Any, weight_at: Any, even: Any, odd: Any) -> list[Any]:
        second = builder.add(source_at, step)
        even = _fused(builder.fadd, even, _product(builder, source_at, weight_at))
        odd = _fused(builder.fadd, odd, _product(builder, second, offset(builder, weight_at, _FLOAT_BYTES)))
        return [builder.add(second, step), offset(builder, weight_at, 2 * _FLOAT_BYTES), even, odd]

    # Two independent sums, because each addition waits for the previous addition to the same sum.
    zero = constant(_FOUR, 0.0)
    *_, even, odd = count_down(builder, pairs, (source, weights, zero, zero), add_pair)
    store(builder, builder.fadd(even, odd), target, _FLOAT_BYTES)
    return context.get_dummy_value()


_SUM_SIGNATURE = types.void(types.uintp, types.uintp, types.uintp, types.uintp)


@intrinsic
def weighted_sum_of_two_taps(typing_context: Any, source: Any, weights: Any, step: Any, target: Any) -> tuple[Any, Any]:
    """`weighted_sum_of_four` for one pair of weights, without a loop."""
    return _SUM_SIGNATURE, partial(_generate_short_sum, 2)


@intrinsic
def weighted_sum_of_four_taps(
    typing_context: Any, source: Any, weights: Any, step: Any, target: Any
) -> tuple[Any, Any]:
    """`weighted_sum_of_four` for two pairs of weights, without a loop."""
    return _SUM_SIGNATURE, partial(_generate_short_sum, 4)


@intrinsic
def weighted_sum_of_six_taps(typing_context: Any, source: Any, weights: Any, step: Any, target: Any) -> tuple[Any, Any]:
    """`weighted_sum_of_four` for three pairs of weights, without a loop."""
    return _SUM_SIGNATURE, partial(_generate_short_sum, 6)


def _generate_short_sum(
    taps: int, context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]
) -> Any:
    source, weights, step, target = arguments
    sums: list[Any] = [None, None]
    for tap in range(taps):
        product = _product(builder, source, offset(builder, weights, tap * _FLOAT_BYTES))
        total = sums[tap % 2]
        sums[tap % 2] = product if total is None else _fused(builder.fadd, total, product)
        source = builder.add(source, step)
    store(builder, builder.fadd(*sums), target, _FLOAT_BYTES)
    return context.get_dummy_value()


@intrinsic
def filter_four_values(typing_context: Any, source: Any, offsets: Any, weights: Any, pairs: Any, target: Any) -> Any:
    """Store four sums ``target[i] = sum over k of weights[k, i] * row[offsets[i] + k]``, in float32.

    For use inside numba functions. All arguments are ``uintp``: `source`, the address of a row of float32; `offsets`,
    of four ``uintp``, the offset of the first value of each sum in that row in bytes; `weights`, of float32 [taps, 4];
    `pairs`, half the number of taps, at least 1; `target`, of four float32, to fill. Products are added in the order of
    the taps.
    """
    address = types.uintp
    return types.void(address, address, address, address, address), _generate_filter


def _generate_filter(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, offsets, weights, pairs, target = arguments
    starts = _addresses(builder, source, offsets)

    def add_pair(step: Any, weights_at: Any, total: Any) -> list[Any]:
        a, b, c, d = (load(builder, builder.add(at, step), _TWO, _FLOAT_BYTES) for at in starts)
        left, right = shuffle(builder, a, b, range(4)), shuffle(builder, c, d, range(4))
        for tap in range(2):
            values = shuffle(builder, left, right, [tap, 2 + tap, 4 + tap, 6 + tap])
            factors = load(builder, offset(builder, weights_at, tap * _LANES * _FLOAT_BYTES), _FOUR, _FLOAT_BYTES)
            total = _fused(builder.fadd, total, _fused(builder.fmul, values, factors))
        return [
            offset(builder, step, 2 * _FLOAT_BYTES), offset(builder, weights_at, 2 * _LANES * _FLOAT_BYTES), total
        ]  # fmt: skip

    begin = ir.Constant(source.type, 0), weights, constant(_FOUR, 0.0)
    *_, total = count_down(builder, pairs, begin, add_pair)
    store(builder, total, target, _FLOAT_BYTES)
    return context.get_dummy_value()


@intrinsic
def blend_four_pixels(typing_context: Any, source: Any, offsets: Any, weights: Any, taps: Any, target: Any) -> Any:
    """Store four RGB pixels of uint8, weighted sums of `taps` neighboring pixels of float32, rounded half to even.

    For use inside numba functions. All arguments are ``uintp``: `source`, the address of a row of interleaved RGB,
    readable one float beyond the last pixel that is used; `offsets`, of four ``uintp``, the offset of the first tap of
    each pixel in that row in bytes; `weights`, of float32 [taps, 4 pixels, 4], each repeated four times; `taps`, at
    least 1; `target`, of 12 bytes, to fill. Sums must be within the range of an int32.
    """
    address = types.uintp
    return types.void(address, address, address, address, address), _generate_blend


def _generate_blend(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, offsets, weights, taps, target = arguments
    lanes = 4 * _LANES
    block, octets = ir.VectorType(_FLOAT, lanes), ir.VectorType(_BYTE, lanes)
    starts = _addresses(builder, source, offsets)

    def add_tap(step: Any, weights_at: Any, total: Any) -> list[Any]:
        a, b, c, d = (load(builder, builder.add(at, step), _FOUR, _FLOAT_BYTES) for at in starts)
        left, right = (shuffle(builder, *pair, range(2 * _LANES)) for pair in ((a, b), (c, d)))
        values = shuffle(builder, left, right, range(lanes))
        product = _fused(builder.fmul, values, load(builder, weights_at, block, _FLOAT_BYTES))
        total = _fused(builder.fadd, total, product)
        return [offset(builder, step, _RGB * _FLOAT_BYTES), offset(builder, weights_at, lanes * _FLOAT_BYTES), total]

    begin = ir.Constant(source.type, 0), weights, constant(block, 0.0)
    *_, total = count_down(builder, taps, begin, add_tap)
    rounds = builder.module.declare_intrinsic("llvm.rint.v16f32", fnty=ir.FunctionType(block, [block]))
    whole = builder.fptosi(builder.call(rounds, [total]), ir.VectorType(_INT, lanes))
    narrow = builder.trunc(clamp(builder, whole, 0, 255), octets)
    kept = [_LANES * i + channel for i in range(4) for channel in range(_RGB)]
    store(builder, shuffle(builder, narrow, None, kept), target)
    return context.get_dummy_value()


_SPLIT_SIGNATURE = types.void(
    types.uintp, types.uintp, types.uintp, types.float32, types.uintp, types.uintp, types.uintp
)


@intrinsic
def split_sixteen_pixels(
    typing_context: Any, source: Any, mean: Any, multiplier: Any, shift: Any, red: Any, green: Any, blue: Any
) -> tuple[Any, Any]:
    """Store ``(pixel - mean) * multiplier + shift`` of 16 interleaved RGB pixels of uint8 in three float32 rows.

    For use inside numba functions. `shift` is a float32, all others are ``uintp`` addresses: `source` of 48 bytes,
    `mean` and `multiplier` of 3 floats, `red`, `green` and `blue` of 16 floats each, to fill.
    """
    return _SPLIT_SIGNATURE, partial(_generate_split, range(_PIXELS))


@intrinsic
def split_sixteen_mirrored_pixels(
    typing_context: Any, source: Any, mean: Any, multiplier: Any, shift: Any, red: Any, green: Any, blue: Any
) -> tuple[Any, Any]:
    """`split_sixteen_pixels` with the pixels in reverse order."""
    return _SPLIT_SIGNATURE, partial(_generate_split, range(_PIXELS - 1, -1, -1))


def _generate_split(
    order: range, context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]
) -> Any:
    source, mean, multiplier, shift, *targets = arguments
    integers, floats = ir.VectorType(_INT, _PIXELS), ir.VectorType(_FLOAT, _PIXELS)

    def number(array: Any, channel: int) -> Any:
        value = load(builder, offset(builder, array, _FLOAT_BYTES * channel), _FLOAT, _FLOAT_BYTES)
        return repeat(builder, value, _PIXELS)

    pixels = load(builder, source, ir.VectorType(_BYTE, _RGB * _PIXELS))
    shifts = repeat(builder, shift, _PIXELS)
    for channel, target in enumerate(targets):
        narrow = shuffle(builder, pixels, None, [_RGB * pixel + channel for pixel in order])
        values = builder.sitofp(builder.zext(narrow, integers), floats)
        centered = builder.fsub(values, number(mean, channel))
        scaled = _fused(builder.fmul, centered, number(multiplier, channel))
        store(builder, _fused(builder.fadd, scaled, shifts), target, _FLOAT_BYTES)
    return context.get_dummy_value()


@intrinsic
def mix_sixteen_pixels(typing_context: Any, source: Any, matrix: Any, target: Any) -> tuple[Any, Any]:
    """Store the product of a matrix and 16 interleaved RGB pixels of uint8, rounded half up, NaN as 0.

    For use inside numba functions. `source` is the address of 48 bytes, and `target` that of 48 bytes to fill, which
    may be the same; both are ``uintp``. `matrix` is a tuple of 12 float32: for each output channel the factors of the
    input channels, and a constant. Products are added from left to right, the constant last.
    """
    return types.void(types.uintp, types.UniTuple(types.float32, _RGB * (_RGB + 1)), types.uintp), _generate_mix


def _generate_mix(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, matrix, target = arguments
    octets = ir.VectorType(_BYTE, _PIXELS)
    integers, floats = ir.VectorType(_INT, _PIXELS), ir.VectorType(_FLOAT, _PIXELS)

    def number(place: int) -> Any:
        return repeat(builder, builder.extract_value(matrix, place), _PIXELS)

    pixels = load(builder, source, ir.VectorType(_BYTE, _RGB * _PIXELS))
    channels: list[Any] = []
    for channel in range(_RGB):
        narrow = shuffle(builder, pixels, None, [_RGB * pixel + channel for pixel in range(_PIXELS)])
        channels.append(builder.sitofp(builder.zext(narrow, integers), floats))
    mixed: list[Any] = []
    for channel in range(_RGB):
        total: Any = None
        first = (_RGB + 1) * channel
        for place, values in enumerate(channels, first):
            product = builder.fmul(number(place), values)
            total = product if total is None else builder.fadd(total, product)
        total = builder.fadd(total, number(first + _RGB))
        for limit, comparison in ((constant(floats, 0.0), ">"), (constant(floats, 255.0), "<")):
            total = builder.select(builder.fcmp_ordered(comparison, total, limit), total, limit)
        whole = builder.fptosi(builder.fadd(total, constant(floats, _JUST_BELOW_HALF)), integers)
        mixed.append(builder.trunc(whole, octets))
    both = shuffle(builder, mixed[0], mixed[1], range(2 * _PIXELS))
    third = shuffle(builder, mixed[2], None, range(2 * _PIXELS))
    order = [_PIXELS * channel + pixel for pixel in range(_PIXELS) for channel in range(_RGB)]
    store(builder, shuffle(builder, both, third, order), target)
    return context.get_dummy_value()


@intrinsic
def symmetric_sums(
    typing_context: Any, rows: Any, weights: Any, pairs: Any, shift: Any, target: Any, like: Any
) -> tuple[Any, Any]:
    """Store 32 sums of one element of each row, weighted with a symmetric kernel.

    For use inside numba functions. The first five arguments are ``uintp``: `rows`, the address of the addresses of rows
    of float32, first the row of the middle weight, then for each of the other weights the two rows with this weight;
    `weights`, of the float32 weights, the middle one first; `pairs`, the number of the other weights, at least 1;
    `shift`, the distance of the first elements from the start of the rows in bytes; `target`, of 32 results, with the
    dtype of the array `like`, float32 or uint8. Results of uint8 are rounded half to even and saturated.
    """
    address = types.uintp
    return types.void(*[address] * 5, like), partial(_generate_symmetric, like.dtype)


def _generate_symmetric(
    dtype: Any, context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]
) -> Any:
    rows, weights, pairs, shift, target, _ = arguments
    block = ir.VectorType(_FLOAT, _SUMS)

    def weight(at: Any) -> Any:
        return repeat(builder, load(builder, at, _FLOAT, _FLOAT_BYTES), _SUMS)

    def add_pair(rows_at: Any, weight_at: Any, total: Any) -> list[Any]:
        one, other = (_block_of_row(builder, offset(builder, rows_at, 8 * place), shift) for place in range(2))
        product = _fused(builder.fmul, _fused(builder.fadd, one, other), weight(weight_at))
        total = _fused(builder.fadd, total, product)
        return [offset(builder, rows_at, 16), offset(builder, weight_at, _FLOAT_BYTES), total]

    middle = _fused(builder.fmul, _block_of_row(builder, rows, shift), weight(weights))
    begin = offset(builder, rows, 8), offset(builder, weights, _FLOAT_BYTES), middle
    *_, total = count_down(builder, pairs, begin, add_pair)
    _store_block(builder, total, target, block, dtype)
    return context.get_dummy_value()


@intrinsic
def store_row(typing_context: Any, rows: Any, shift: Any, target: Any, like: Any) -> tuple[Any, Any]:
    """`symmetric_sums` with a kernel of a single weight, which is 1."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
        rows, shift, target, _ = arguments
        block = ir.VectorType(_FLOAT, _SUMS)
        _store_block(builder, _block_of_row(builder, rows, shift), target, block, like.dtype)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.uintp, like), generate


def _block_of_row(builder: Any, row_at: Any, shift: Any) -> Any:
    """Emit the elements of a row whose address is stored at `row_at`."""
    row = load(builder, row_at, shift.type, shift.type.width // 8)
    return load(builder, builder.add(row, shift), ir.VectorType(_FLOAT, _SUMS), _FLOAT_BYTES)


def _store_block(builder: Any, values: Any, target: Any, block: Any, dtype: Any) -> None:
    """Store float32 values as float32, or as uint8, rounded half to even and saturated; NaN as 0."""
    if dtype == types.float32:
        store(builder, values, target, _FLOAT_BYTES)
        return
    for limit, comparison in ((constant(block, 0.0), ">"), (constant(block, 255.0), "<")):
        values = builder.select(builder.fcmp_ordered(comparison, values, limit), values, limit)
    rounds = builder.module.declare_intrinsic(f"llvm.rint.v{_SUMS}f32", fnty=ir.FunctionType(block, [block]))
    whole = builder.fptosi(builder.call(rounds, [values]), ir.VectorType(_INT, _SUMS))
    store(builder, builder.trunc(whole, ir.VectorType(_BYTE, _SUMS)), target)
