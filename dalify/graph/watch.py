"""Values of nodes while a pipeline function runs operator by operator, in debug mode.

Alone because ``DataNode`` shows values that rooms above it compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalify.graph.node import Edge

__all__ = ["shown_value", "watched"]

_SHOW: ContextVar[Callable[[Edge], Any] | None] = ContextVar("dalify_show_value", default=None)


@contextmanager
def watched(show: Callable[[Edge], Any]) -> Iterator[None]:
    """Let nodes show their values meanwhile.

    Args:
        show: from an edge to what users see: a tensor list, or None where a branch has no samples.
    """
    token = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(token)


def shown_value(edge: Edge) -> tuple[bool, Any]:
    """Return whether values are known now, and the value."""
    show = _SHOW.get()
    return (False, None) if show is None else (True, show(edge))
