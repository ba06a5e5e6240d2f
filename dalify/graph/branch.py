"""The branch of a condition in which a node was created.

Tracing only records the branch of a node; ``passes/split_branches.py`` inserts splits and merges afterwards, from
these records. So code that creates nodes does not depend on conditions.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalify.base.source_line import SourceLine
    from dalify.graph.node import Edge

__all__ = ["Branch", "current_branch", "entered", "is_within"]


class Branch:
    """One side of a condition, or one branch of a choice among many (``choice.py``).

    Args:
        condition: the condition, one boolean per sample; of a choice, one integer per sample.
        taken: whether this is the side for true samples; of a choice, the number of the branch, not a bool.
        parent: the branch that contains the condition; None for the whole batch.
        line: the user's line of the condition.
        is_open: created by `split`, not by an ``if``: nodes that read its values belong to it, wherever they are
            created.
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
    """Return the branch that is currently traced in this thread; None outside of conditions."""
    return _CURRENT.get()


@contextmanager
def entered(branch: Branch | None) -> Generator[None]:
    """Make a branch the current one; nodes created inside the ``with`` block record it."""
    token = _CURRENT.set(branch)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def is_within(inner: Branch | None, outer: Branch | None) -> bool:
    """Return whether ``inner`` is ``outer`` or nested inside it."""
    while inner is not outer:
        if inner is None:
            return False
        inner = inner.parent
    return True
