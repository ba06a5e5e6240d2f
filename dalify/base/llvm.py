"""Emits LLVM instructions for intrinsics: memory access by address, vectors, and loops.

Addresses are integers. `builder` is the ``IRBuilder`` of the function in which the instructions are placed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]

_LANE = ir.IntType(32)
_UNDEFINED = cast("Any", ir).Undefined


def constant(kind: Any, value: float) -> Any:
    """Return a constant of a type; for a vector type, with the value in all lanes."""
    lanes: int | None = getattr(kind, "count", None)
    return ir.Constant(kind, value if lanes is None else [value] * lanes)


def offset(builder: Any, address: Any, size_bytes: int) -> Any:
    """Return an address plus a number of bytes, which may be negative."""
    return builder.add(address, ir.Constant(address.type, size_bytes)) if size_bytes else address


def load(builder: Any, address: Any, kind: Any, align: int = 1) -> Any:
    """Return the value of a type at an address, which is a multiple of `align`."""
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=align)


def store(builder: Any, value: Any, address: Any, align: int = 1) -> None:
    """Store a value at an address, which is a multiple of `align`."""
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=align)


def shuffle(builder: Any, one: Any, other: Any, lanes: Sequence[int]) -> Any:
    """Return a vector of lanes of two vectors, numbered from the first lane of `one`; `other` may be None."""
    other = ir.Constant(one.type, _UNDEFINED) if other is None else other
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_LANE, len(lanes)), list(lanes)))


def repeat(builder: Any, value: Any, count: int) -> Any:
    """Return a vector of `count` lanes with the value in all of them."""
    nothing = ir.Constant(ir.VectorType(value.type, count), _UNDEFINED)
    return shuffle(builder, builder.insert_element(nothing, value, ir.Constant(_LANE, 0)), None, [0] * count)


def clamp(builder: Any, value: Any, low: int, high: int) -> Any:
    """Return signed integers, limited to a range."""
    least, largest = constant(value.type, low), constant(value.type, high)
    value = builder.select(builder.icmp_signed("<", value, least), least, value)
    return builder.select(builder.icmp_signed(">", value, largest), largest, value)


def count_down(builder: Any, count: Any, starts: Sequence[Any], emit: Callable[..., Sequence[Any]]) -> Sequence[Any]:
    """Emit a loop; return the values after it.

    Args:
        builder: see the module.
        count: number of iterations, an integer of at least 1.
        starts: values at the start of the first iteration.
        emit: emits an iteration, in one block: called with the values at its start, it returns those at its end.
    """
    before = builder.block
    block, after = builder.append_basic_block("loop"), builder.append_basic_block("loop.end")
    builder.branch(block)
    builder.position_at_end(block)
    left, *values = (builder.phi(start.type) for start in (count, *starts))
    ends = emit(*values)
    less = builder.sub(left, ir.Constant(count.type, 1))
    for value, start, end in zip((left, *values), (count, *starts), (less, *ends), strict=True):
        value.add_incoming(start, before)
        value.add_incoming(end, block)
    builder.cbranch(builder.icmp_unsigned("!=", less, ir.Constant(count.type, 0)), block, after)
    builder.position_at_end(after)
    return ends
