"""``ndd.checkpoint``: saving and restoring the state of a program of dynamic mode."""

from __future__ import annotations

from dalify.experimental.dynamic.context import EvalContext
from dalify.experimental.dynamic.states import Checkpoint

__all__ = ["Checkpoint", "current"]


def current() -> Checkpoint:
    """Return the checkpoint of the current context."""
    return EvalContext.current().checkpoint
