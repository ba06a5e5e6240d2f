"""The branch of a condition in which nodes are created.

Tracing only records the branch of a node; ``passes/split_branches.py`` inserts splits and merges afterwards, from
these records. So code that creates nodes does not depend on conditions.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from dalify.base.context_stack import Assigned
from dalify.graph.node import Branch

_CURRENT: ContextVar[Branch | None] = ContextVar("dalify_branch", default=None)


def current_branch() -> Branch | None:
    """Return the branch that is currently traced in this thread; None outside of conditions."""
    return _CURRENT.get()


def entered(branch: Branch | None) -> AbstractContextManager[None]:
    """Make a branch the current one; nodes created inside the ``with`` block record it."""
    return Assigned(_CURRENT, branch)


def is_within(inner: Branch | None, outer: Branch | None) -> bool:
    """Return whether ``inner`` is ``outer`` or nested inside it."""
    while inner is not outer:
        if inner is None:
            return False
        inner = inner.parent
    return True
