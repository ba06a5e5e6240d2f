"""Weighted sums of rows with explicit SIMD, for compiled loops.

LLVM's vectorizer generates equally fast loops, but compiling them takes three times as long.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from dalify.base.compiling import intrinsic
from dalify.base.llvm import load, offset, repeat, store

_cgutils: Any = cgutils  # numba is not typed

WIDE = 16  # columns that `wide_sum_of_rows` computes
_GROUP = 4  # rows that are added to the sum together
_FLOAT_BYTES = 4


def _signature(like: Any) -> Any:
    return types.void(types.uintp, types.uintp, types.uintp, types.uintp, types.uintp, like)


@intrinsic
def sum_of_rows(
    typing_context: Any, source: Any, pitch: Any, weights: Any, rows: Any, target: Any, like: Any
) -> tuple[Any, Any]:
    """Store the weighted sum of a column of some rows, in float32.

    For use inside numba functions. All arguments but the last are ``uintp``: `source`, the address of the first
    element; `pitch`, the distance of two rows in bytes; `weights`, the address of one float32 for each row; `rows`,
    their number, at least 1; `target`, the address of the sum. `like` is an array of the element type, uint8 or
    float32. The first group has 1 to 4 rows, all others have 4.
    """
    return _signature(like), partial(_generate, 1)


@intrinsic
def wide_sum_of_rows(
    typing_context: Any, source: Any, pitch: Any, weights: Any, rows: Any, target: Any, like: Any
) -> tuple[Any, Any]:
    """`sum_of_rows` for 16 neighboring columns."""
    return _signature(like), partial(_generate, WIDE)


def _generate(lanes: int, context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
    source, pitch, weights, rows, target, _ = arguments
    index, float32 = source.type, ir.FloatType()
    floats, integers = ir.VectorType(float32, lanes), ir.VectorType(ir.IntType(32), lanes)
    is_float = signature.args[-1].dtype == types.float32
    packed = ir.VectorType(float32 if is_float else ir.IntType(8), lanes)

    def number(value: int) -> Any:
        return ir.Constant(index, value)

    def operands(row_at: Any, weight_at: Any) -> tuple[Any, Any]:
        values = load(builder, row_at, packed, _FLOAT_BYTES if is_float else 1)
        if not is_float:
            values = builder.uitofp(builder.zext(values, integers), floats)
        return repeat(builder, load(builder, weight_at, float32, _FLOAT_BYTES), lanes), values

    # Explicit fused multiply-adds, so that the code here, and not LLVM, determines which products are rounded.
    kind = ir.FunctionType(floats, [floats] * 3)
    fused = _cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{lanes}f32")

    def group(row_at: Any, weight_at: Any, count: int) -> Any:
        pairs: list[tuple[Any, Any]] = []
        for _ in range(count):
            pairs.append(operands(row_at, weight_at))
            row_at, weight_at = builder.add(row_at, pitch), offset(builder, weight_at, _FLOAT_BYTES)
        if count == 1:
            return builder.fmul(*pairs[0])
        total = builder.call(fused, [*pairs[0], builder.fmul(*pairs[1])])
        if count == 3:
            return builder.call(fused, [*pairs[2], total])
        if count == _GROUP:
            return builder.fadd(total, builder.call(fused, [*pairs[2], builder.fmul(*pairs[3])]))
        return total

    first = builder.add(builder.and_(builder.sub(rows, number(1)), number(_GROUP - 1)), number(1))
    loop, after = builder.append_basic_block("rows"), builder.append_basic_block("rows.end")
    starts: list[tuple[Any, Any]] = []
    blocks = [builder.append_basic_block(f"rows.{count}") for count in range(1, _GROUP + 1)]
    choice = builder.switch(first, blocks[-1])
    for count, block in enumerate(blocks, 1):
        if count < _GROUP:
            choice.add_case(number(count), block)
        builder.position_at_end(block)
        starts.append((group(source, weights, count), block))
        builder.branch(loop)
    builder.position_at_end(loop)
    total, done = builder.phi(floats), builder.phi(index)
    body = builder.append_basic_block("rows.four")
    for value, block in starts:
        total.add_incoming(value, block)
        done.add_incoming(first, block)
    builder.cbranch(builder.icmp_unsigned("<", done, rows), body, after)
    builder.position_at_end(body)
    row_at = builder.add(source, builder.mul(done, pitch))
    weight_at = builder.add(weights, builder.mul(done, number(_FLOAT_BYTES)))
    total.add_incoming(builder.fadd(total, group(row_at, weight_at, _GROUP)), body)
    done.add_incoming(builder.add(done, number(_GROUP)), body)
    builder.branch(loop)
    builder.position_at_end(after)
    store(builder, total, target, _FLOAT_BYTES)
    return context.get_dummy_value()
