"""Values of nodes in debug mode.

Upper layers register functions that compute the values that ``DataNode`` shows.
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
    """Inside the ``with`` block, nodes show their values, and lists of samples are accepted as graph values.

    Args:
        show: returns the tensor list of an edge, or None if its branch has no samples.
        give: creates an edge from the samples of a batch.
    """
    token, other = _SHOW.set(show), _GIVE.set(give)
    try:
        yield
    finally:
        _GIVE.reset(other)
        _SHOW.reset(token)


def batch_of_samples(samples: Sequence[Any]) -> Edge | None:
    """Return a graph value with these samples; None outside of debug mode."""
    give = _GIVE.get()
    return None if give is None else give(samples)


def shown_value(edge: Edge) -> tuple[bool, Any]:
    """Return whether values are known, and the value."""
    show = _SHOW.get()
    return (False, None) if show is None else (True, show(edge))
