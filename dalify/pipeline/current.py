"""The stack of pipelines that are being defined in this thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from dalify.base.errors import PipelineStateError

if TYPE_CHECKING:
    from dalify.pipeline.pipeline import Pipeline

__all__ = ["pop_current", "push_current", "top"]

_local = threading.local()


def push_current(pipeline: Pipeline) -> None:
    """Push a pipeline; it becomes the current one."""
    stack: list[Pipeline] = _local.__dict__.setdefault("stack", [])
    stack.append(pipeline)


def pop_current() -> None:
    """Pop the current pipeline; the previous one becomes current.

    Raises:
        PipelineStateError: there is no current pipeline.
    """
    stack: list[Pipeline] = _local.__dict__.setdefault("stack", [])
    if not stack:
        raise PipelineStateError("there is no current pipeline to pop.")
    stack.pop()


def top() -> Pipeline | None:
    """Return the current pipeline, or None."""
    stack: list[Pipeline] = _local.__dict__.get("stack", [])
    return stack[-1] if stack else None
