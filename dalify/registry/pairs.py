"""Pairs of operators that cost less together: declared by the first one, applied by passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from dalify.data.spec import Spec

PairKind = Literal["moves", "narrows", "merges"]
"""How the two operators are changed.

``moves``: the arguments that the first one takes are removed from the second one, because the first one does that work.
``narrows``: the first one computes only what the second one reads; the second one is not changed, and both draw the
same random numbers. ``merges``: one operator does the work of both.
"""

PairCondition = Callable[[Mapping[str, Any], Mapping[str, Any], Spec, str], bool]
"""Whether a pair applies.

It receives the specified arguments of the first and of the second operator (VARIES for graph values), the spec of the
first input and the device of the first operator. Branches, devices and uses of the value between the two are checked by
the pass.
"""


class Pair(NamedTuple):
    """How an operator is changed if only one other operator reads its result.

    Attributes:
        into: name of the operator that takes its place, or the place of both.
        takes: arguments of the second operator that it also gets.
        keeps: its own arguments that are kept; None for all.
        adds: further arguments.
        applies: the condition.
    """

    into: str
    takes: tuple[str, ...]
    keeps: tuple[str, ...] | None
    adds: Mapping[str, Any]
    applies: PairCondition
