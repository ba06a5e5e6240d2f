"""SIMD building blocks that LLVM does not generate automatically in loops over interleaved channels.

Three or four channels are too few for the loop vectorizer, and numba does not run LLVM's SLP vectorizer. With explicit
vectors, the horizontal pass of a resample is twice as fast, and the split into planes nine times. The vectors are
generic LLVM vectors: every CPU supports them, in as many registers as necessary.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from dalify.base.compiling import intrinsic

__all__ = [
    "blend_four_pixels",
    "filter_four_values",
    "mix_sixteen_pixels",
    "split_sixteen_mirrored_pixels",
    "split_sixteen_pixels",
    "weighted_sum_of_four",
    "weighted_sum_of_four_taps",
    "weighted_sum_of_six_taps",
    "weighted_sum_of_two_taps",
]

_FLOAT_BYTES = 4
_LANES = 4
_PIXELS = 16
_RGB = 3
_JUST_BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))  # see `to_uint8`


def _fused(operation: Any, left: Any, right: Any) -> Any:
    """Emit an addition or multiplication that may become part of a fused multiply-add."""
    return operation(left, right, flags=("contract",))


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
    float32, index = ir.FloatType(), source.type
    lanes = ir.VectorType(float32, _LANES)
    nothing = ir.Constant(lanes, ir.Undefined)
    lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)

    def add_product(total: Any, source_address: Any, weight_address: Any) -> Any:
        weight = builder.load(builder.inttoptr(weight_address, float32.as_pointer()), align=_FLOAT_BYTES)
        single = builder.insert_element(nothing, weight, ir.Constant(ir.IntType(32), 0))
        repeated = builder.shuffle_vector(single, nothing, lane_zero)
        values = builder.load(builder.inttoptr(source_address, lanes.as_pointer()), align=_FLOAT_BYTES)
        product = _fused(builder.fmul, values, repeated)
        return _fused(builder.fadd, total, product)

    before = builder.block
    loop = builder.append_basic_block("taps")
    after = builder.append_basic_block("taps.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    # Two sums, because an addition must wait for the previous one.
    count, source_at, weight_at = builder.phi(index), builder.phi(index), builder.phi(index)
    even, odd = builder.phi(lanes), builder.phi(lanes)
    even_next = add_product(even, source_at, weight_at)
    second_weight = builder.add(weight_at, ir.Constant(index, _FLOAT_BYTES))
    odd_next = add_product(odd, builder.add(source_at, step), second_weight)
    count_next = builder.sub(count, ir.Constant(index, 1))
    source_next = builder.add(source_at, builder.add(step, step))
    weight_next = builder.add(weight_at, ir.Constant(index, 2 * _FLOAT_BYTES))
    zero = ir.Constant(lanes, [0.0] * _LANES)
    for phi, first, following in (
        (count, pairs, count_next),
        (source_at, source, source_next),
        (weight_at, weights, weight_next),
        (even, zero, even_next),
        (odd, zero, odd_next),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("!=", count_next, ir.Constant(index, 0)), loop, after)
    builder.position_at_end(after)
    total = builder.fadd(even_next, odd_next)
    builder.store(total, builder.inttoptr(target, lanes.as_pointer()), align=_FLOAT_BYTES)
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
    float32, index = ir.FloatType(), source.type
    lanes = ir.VectorType(float32, _LANES)
    nothing = ir.Constant(lanes, ir.Undefined)
    lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)
    sums: list[Any] = [None, None]
    for tap in range(taps):
        address = builder.add(weights, ir.Constant(index, tap * _FLOAT_BYTES))
        weight = builder.load(builder.inttoptr(address, float32.as_pointer()), align=_FLOAT_BYTES)
        single = builder.insert_element(nothing, weight, ir.Constant(ir.IntType(32), 0))
        repeated = builder.shuffle_vector(single, nothing, lane_zero)
        values = builder.load(builder.inttoptr(source, lanes.as_pointer()), align=_FLOAT_BYTES)
        product = _fused(builder.fmul, values, repeated)
        total = sums[tap % 2]
        sums[tap % 2] = product if total is None else _fused(builder.fadd, total, product)
        source = builder.add(source, step)
    total = builder.fadd(*sums)
    builder.store(total, builder.inttoptr(target, lanes.as_pointer()), align=_FLOAT_BYTES)
    return context.get_dummy_value()


@intrinsic
def filter_four_values(typing_context: Any, source: Any, offsets: Any, weights: Any, pairs: Any, target: Any) -> Any:
    """Store four sums ``target[i] = sum over k of weights[k, i] * row[offsets[i] + k]``, in float32.

    For use inside numba functions. All arguments are ``uintp``: `source`, the address of a row of float32; `offsets`,
    of four ``uintp``: where the first value of each sum lies in that row, in bytes; `weights`, of float32 [taps, 4];
    `pairs`, half the number of taps, at least 1; `target`, of four float32, to fill. Products are added in the order of
    the taps.
    """
    address = types.uintp
    return types.void(address, address, address, address, address), _generate_filter


def _generate_filter(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, offsets, weights, pairs, target = arguments
    float32, int32, index = ir.FloatType(), ir.IntType(32), source.type
    lanes, pair = ir.VectorType(float32, _LANES), ir.VectorType(float32, 2)

    def load(address: Any, kind: Any, align: int) -> Any:
        return builder.load(builder.inttoptr(address, kind.as_pointer()), align=align)

    def shuffle(left: Any, right: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(int32, len(places)), places))

    size = index.width // 8
    starts = [
        builder.add(source, load(builder.add(offsets, ir.Constant(index, size * i)), index, size)) for i in range(4)
    ]
    before = builder.block
    loop = builder.append_basic_block("filter")
    after = builder.append_basic_block("filter.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    count, step, weights_at, total = builder.phi(index), builder.phi(index), builder.phi(index), builder.phi(lanes)
    a, b, c, d = (load(builder.add(at, step), pair, _FLOAT_BYTES) for at in starts)
    left, right = shuffle(a, b, [0, 1, 2, 3]), shuffle(c, d, [0, 1, 2, 3])
    sums = total
    for tap in range(2):
        values = shuffle(left, right, [tap, 2 + tap, 4 + tap, 6 + tap])
        at = builder.add(weights_at, ir.Constant(index, tap * _LANES * _FLOAT_BYTES))
        sums = _fused(builder.fadd, sums, _fused(builder.fmul, values, load(at, lanes, _FLOAT_BYTES)))
    count_next = builder.sub(count, ir.Constant(index, 1))
    step_next = builder.add(step, ir.Constant(index, 2 * _FLOAT_BYTES))
    weights_next = builder.add(weights_at, ir.Constant(index, 2 * _LANES * _FLOAT_BYTES))
    for phi, first, following in (
        (count, pairs, count_next),
        (step, ir.Constant(index, 0), step_next),
        (weights_at, weights, weights_next),
        (total, ir.Constant(lanes, [0.0] * _LANES), sums),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("!=", count_next, ir.Constant(index, 0)), loop, after)
    builder.position_at_end(after)
    builder.store(sums, builder.inttoptr(target, lanes.as_pointer()), align=_FLOAT_BYTES)
    return context.get_dummy_value()


@intrinsic
def blend_four_pixels(typing_context: Any, source: Any, offsets: Any, weights: Any, taps: Any, target: Any) -> Any:
    """Store four RGB pixels of uint8, weighted sums of `taps` neighboring pixels of float32, rounded half to even.

    For use inside numba functions. All arguments are ``uintp``: `source`, the address of a row of interleaved RGB,
    readable one float beyond the last pixel that is used; `offsets`, of four ``uintp``: where the first tap of each
    pixel lies in that row, in bytes; `weights`, of float32 [taps, 4 pixels, 4], each repeated four times; `taps`, at
    least 1; `target`, of 12 bytes, to fill. Sums must be within the range of an int32.
    """
    address = types.uintp
    return types.void(address, address, address, address, address), _generate_blend


def _generate_blend(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, offsets, weights, taps, target = arguments
    float32, int32, index = ir.FloatType(), ir.IntType(32), source.type
    pixel, block = ir.VectorType(float32, _LANES), ir.VectorType(float32, 4 * _LANES)
    integers = ir.VectorType(int32, 4 * _LANES)

    def load(address: Any, kind: Any, align: int) -> Any:
        return builder.load(builder.inttoptr(address, kind.as_pointer()), align=align)

    def join(left: Any, right: Any, lanes: int) -> Any:
        return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(int32, lanes), list(range(lanes))))

    def constant(kind: Any, value: float) -> Any:
        return ir.Constant(kind, [value] * (4 * _LANES))

    size = index.width // 8
    pixels_at = [
        builder.add(source, load(builder.add(offsets, ir.Constant(index, size * i)), index, size)) for i in range(4)
    ]
    before = builder.block
    loop = builder.append_basic_block("blend")
    after = builder.append_basic_block("blend.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    count, step, weights_at, total = builder.phi(index), builder.phi(index), builder.phi(index), builder.phi(block)
    a, b, c, d = (load(builder.add(at, step), pixel, _FLOAT_BYTES) for at in pixels_at)
    values = join(join(a, b, 2 * _LANES), join(c, d, 2 * _LANES), 4 * _LANES)
    product = _fused(builder.fmul, values, load(weights_at, block, _FLOAT_BYTES))
    total_next = _fused(builder.fadd, total, product)
    count_next = builder.sub(count, ir.Constant(index, 1))
    step_next = builder.add(step, ir.Constant(index, _RGB * _FLOAT_BYTES))
    weights_next = builder.add(weights_at, ir.Constant(index, 4 * _LANES * _FLOAT_BYTES))
    for phi, first, following in (
        (count, taps, count_next),
        (step, ir.Constant(index, 0), step_next),
        (weights_at, weights, weights_next),
        (total, constant(block, 0.0), total_next),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("!=", count_next, ir.Constant(index, 0)), loop, after)
    builder.position_at_end(after)
    rounds = builder.module.declare_intrinsic("llvm.rint.v16f32", fnty=ir.FunctionType(block, [block]))
    whole = builder.fptosi(builder.call(rounds, [total_next]), integers)
    least, largest = constant(integers, 0), constant(integers, 255)
    whole = builder.select(builder.icmp_signed(">", whole, least), whole, least)
    whole = builder.select(builder.icmp_signed("<", whole, largest), whole, largest)
    octets = ir.VectorType(ir.IntType(8), 4 * _LANES)
    narrow: Any = builder.trunc(whole, octets)
    kept = [_LANES * i + channel for i in range(4) for channel in range(_RGB)]
    places = ir.Constant(ir.VectorType(int32, len(kept)), kept)
    packed = builder.shuffle_vector(narrow, ir.Constant(octets, ir.Undefined), places)
    builder.store(packed, builder.inttoptr(target, packed.type.as_pointer()), align=1)
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
    float32, int32, index = ir.FloatType(), ir.IntType(32), source.type
    packed = ir.VectorType(ir.IntType(8), _RGB * _PIXELS)
    integers, floats = ir.VectorType(int32, _PIXELS), ir.VectorType(float32, _PIXELS)

    def repeated(value: Any) -> Any:
        nothing = ir.Constant(floats, ir.Undefined)
        single = builder.insert_element(nothing, value, ir.Constant(int32, 0))
        return builder.shuffle_vector(single, nothing, ir.Constant(integers, [0] * _PIXELS))

    def number(array: Any, channel: int) -> Any:
        address = builder.add(array, ir.Constant(index, _FLOAT_BYTES * channel))
        return repeated(builder.load(builder.inttoptr(address, float32.as_pointer()), align=_FLOAT_BYTES))

    pixels = builder.load(builder.inttoptr(source, packed.as_pointer()), align=1)
    shifts = repeated(shift)
    for channel, target in enumerate(targets):
        places = ir.Constant(integers, [_RGB * pixel + channel for pixel in order])
        narrow = builder.shuffle_vector(pixels, ir.Constant(packed, ir.Undefined), places)
        values = builder.sitofp(builder.zext(narrow, integers), floats)
        centered = builder.fsub(values, number(mean, channel))
        scaled = _fused(builder.fmul, centered, number(multiplier, channel))
        shifted = _fused(builder.fadd, scaled, shifts)
        builder.store(shifted, builder.inttoptr(target, floats.as_pointer()), align=_FLOAT_BYTES)
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
    float32, int32 = ir.FloatType(), ir.IntType(32)
    packed, octets = ir.VectorType(ir.IntType(8), _RGB * _PIXELS), ir.VectorType(ir.IntType(8), _PIXELS)
    integers, floats = ir.VectorType(int32, _PIXELS), ir.VectorType(float32, _PIXELS)

    def shuffle(left: Any, right: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(int32, len(places)), places))

    def constant(value: float) -> Any:
        return ir.Constant(floats, [value] * _PIXELS)

    def number(place: int) -> Any:
        nothing = ir.Constant(floats, ir.Undefined)
        single = builder.insert_element(nothing, builder.extract_value(matrix, place), ir.Constant(int32, 0))
        return shuffle(single, nothing, [0] * _PIXELS)

    pixels = builder.load(builder.inttoptr(source, packed.as_pointer()), align=1)
    channels: list[Any] = []
    for channel in range(_RGB):
        places = [_RGB * pixel + channel for pixel in range(_PIXELS)]
        narrow = shuffle(pixels, ir.Constant(packed, ir.Undefined), places)
        channels.append(builder.sitofp(builder.zext(narrow, integers), floats))
    mixed: list[Any] = []
    for channel in range(_RGB):
        total: Any = None
        first = (_RGB + 1) * channel
        for place, values in enumerate(channels, first):
            product = builder.fmul(number(place), values)
            total = product if total is None else builder.fadd(total, product)
        total = builder.fadd(total, number(first + _RGB))
        for limit, comparison in ((0.0, ">"), (255.0, "<")):
            total = builder.select(builder.fcmp_ordered(comparison, total, constant(limit)), total, constant(limit))
        whole = builder.fptosi(builder.fadd(total, constant(_JUST_BELOW_HALF)), integers)
        mixed.append(builder.trunc(whole, octets))
    both = shuffle(mixed[0], mixed[1], list(range(2 * _PIXELS)))
    third = shuffle(mixed[2], ir.Constant(octets, ir.Undefined), list(range(2 * _PIXELS)))
    result = shuffle(both, third, [_PIXELS * channel + pixel for pixel in range(_PIXELS) for channel in range(_RGB)])
    builder.store(result, builder.inttoptr(target, packed.as_pointer()), align=1)
    return context.get_dummy_value()
