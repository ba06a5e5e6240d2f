"""The stack of pipelines that are being defined in this thread."""

from __future__ import annotations

from dalify.base.context_stack import ContextStack
from dalify.base.errors import PipelineStateError

__all__ = ["pop_current", "push_current", "top"]

_pipelines: ContextStack[object] = ContextStack()


def push_current(pipeline: object) -> None:
    """Push a pipeline; it becomes the current one."""
    _pipelines.chosen.append(pipeline)


def pop_current() -> None:
    """Pop the current pipeline; the previous one becomes current.

    Raises:
        PipelineStateError: there is no current pipeline.
    """
    if not _pipelines.chosen:
        raise PipelineStateError("there is no current pipeline to pop.")
    _pipelines.chosen.pop()


def top() -> object | None:
    """Return the current pipeline, or None."""
    return _pipelines.innermost
