"""Values of nodes while a pipeline function runs operator by operator, in debug mode.

Alone because ``DataNode`` shows values that rooms above it compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalify.graph.node import Edge

__all__ = ["batch_of_samples", "shown_value", "watched"]

_GIVE: ContextVar[Callable[[Sequence[Any]], Edge] | None] = ContextVar("dalify_give_batch", default=None)
_SHOW: ContextVar[Callable[[Edge], Any] | None] = ContextVar("dalify_show_value", default=None)


@contextmanager
def watched(show: Callable[[Edge], Any], give: Callable[[Sequence[Any]], Edge]) -> Iterator[None]:
    """Let nodes show their values meanwhile, and let users give samples where a graph value is wanted.

    Args:
        show: from an edge to what users see: a tensor list, or None where a branch has no samples.
        give: from the samples of a batch to an edge.
    """
    token, other = _SHOW.set(show), _GIVE.set(give)
    try:
        yield
    finally:
        _GIVE.reset(other)
        _SHOW.reset(token)


def batch_of_samples(samples: Sequence[Any]) -> Edge | None:
    """Return a graph value with these samples; None while the samples are not known."""
    give = _GIVE.get()
    return None if give is None else give(samples)


def shown_value(edge: Edge) -> tuple[bool, Any]:
    """Return whether values are known now, and the value."""
    show = _SHOW.get()
    return (False, None) if show is None else (True, show(edge))
