"""One SIMD building block that LLVM does not find by itself: four neighbouring channels times one weight.

Images have three or four interleaved channels, too few for the loop vectoriser and, with numba, out of reach of LLVM's
other one. Spelled as vectors of four floats, the horizontal pass of a resample runs about twice as fast. The vectors
are
generic LLVM ones, so every processor with or without such registers can run them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["weighted_sum_of_four"]

_FLOAT_BYTES = 4
_LANES = 4


@intrinsic
def weighted_sum_of_four(
    typing_context: Any, source: Any, weights: Any, pairs: Any, step: Any, target: Any
) -> tuple[Any, Any]:
    """Store ``target[0:4] = sum over k of weights[k] * source[k * step : k * step + 4]``, in float32.

    For use inside numba functions. All arguments are ``uintp``: addresses of float32 arrays, which the caller keeps
    alive and
    large enough; `pairs`, half the number of weights (at least 1); `step`, the distance of two taps in bytes.
    """
    signature = types.void(types.uintp, types.uintp, types.uintp, types.uintp, types.uintp)
    return signature, _generate


def _generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
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
        product = builder.fmul(values, repeated, flags=("contract",))  # pyright: ignore[reportCallIssue] -- the decorator hides it
        return builder.fadd(total, product, flags=("contract",))  # pyright: ignore[reportCallIssue]

    before = builder.block
    loop = builder.append_basic_block("taps")
    after = builder.append_basic_block("taps.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    # Two sums, because an addition has to wait for the one before it.
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
