"""Which branch of a condition a node was made in.

A node only remembers its branch while the function is traced; ``passes/split_branches.py`` inserts the splitting and
merging afterwards, from these notes alone. So no maker of nodes has to know about conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalify.base.source_line import SourceLine
    from dalify.graph.node import Edge

__all__ = ["PREDICATE_INPUTS", "Branch", "current_branch", "entered", "is_within"]

# What carries out a branch, and which of its inputs tells the samples apart: that one lies on the CPU.
PREDICATE_INPUTS = {"_conditional.split": 1, "_conditional.merge": 0, "_conditional.join": 0}


class Branch:
    """One side of a condition, or one branch of a choice between many (``choice.py``).

    Args:
        condition: the value, one boolean per sample, that decides; of a choice, one integer.
        taken: whether this is the side for true samples; of a choice, the number of the branch, which is no bool.
        parent: the branch in which the condition stands; None for the whole batch.
        line: the user's line of the condition.
        is_open: made by a function, not by an ``if``: what is made of its values belongs to it, wherever that happens.
    """

    __slots__ = ("condition", "depth", "is_open", "line", "parent", "taken")

    def __init__(
        self,
        condition: Edge,
        taken: bool | int,
        parent: Branch | None,
        line: SourceLine | None,
        is_open: bool = False,
    ) -> None:
        self.condition = condition
        self.taken = taken
        self.parent = parent
        self.line = line
        self.is_open = is_open
        self.depth: int = 1 if parent is None else parent.depth + 1

    def __repr__(self) -> str:
        """Return the side and the line of the condition."""
        side = f"{'true' if self.taken else 'false'}" if isinstance(self.taken, bool) else f"number {self.taken}"
        return f"<{side} branch of {self.line}>"


_CURRENT: ContextVar[Branch | None] = ContextVar("dalify_branch", default=None)


def current_branch() -> Branch | None:
    """Return the branch that is traced now in this thread; None outside all conditions."""
    return _CURRENT.get()


@contextmanager
def entered(branch: Branch | None) -> Iterator[None]:
    """Make a branch the current one; nodes made meanwhile remember it."""
    token = _CURRENT.set(branch)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def is_within(inner: Branch | None, outer: Branch | None) -> bool:
    """Tell whether ``inner`` is ``outer`` or lies inside it."""
    while inner is not outer:
        if inner is None:
            return False
        inner = inner.parent
    return True
