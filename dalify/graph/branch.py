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

__all__ = ["Branch", "current_branch", "entered", "is_within"]


class Branch:
    """One side of a condition.

    Args:
        condition: the value, one boolean per sample, that decides.
        taken: whether this is the side for true samples.
        parent: the branch in which the condition stands; None for the whole batch.
        line: the user's line of the condition.
    """

    __slots__ = ("condition", "depth", "line", "parent", "taken")

    def __init__(self, condition: Edge, taken: bool, parent: Branch | None, line: SourceLine | None) -> None:
        self.condition = condition
        self.taken = taken
        self.parent = parent
        self.line = line
        self.depth: int = 1 if parent is None else parent.depth + 1

    def __repr__(self) -> str:
        """Return the side and the line of the condition."""
        return f"<{'true' if self.taken else 'false'} branch of {self.line}>"


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
