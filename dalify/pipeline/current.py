"""The stack of pipelines that are being defined in this thread."""

from __future__ import annotations

import threading

from dalify.base.errors import PipelineStateError

__all__ = ["pop_current", "push_current", "top"]

_local = threading.local()


def push_current(pipeline: object) -> None:
    """Push a pipeline; it becomes the current one."""
    stack: list[object] = _local.__dict__.setdefault("stack", [])
    stack.append(pipeline)


def pop_current() -> None:
    """Pop the current pipeline; the previous one becomes current.

    Raises:
        PipelineStateError: there is no current pipeline.
    """
    stack: list[object] = _local.__dict__.setdefault("stack", [])
    if not stack:
        raise PipelineStateError("there is no current pipeline to pop.")
    stack.pop()


def top() -> object | None:
    """Return the current pipeline, or None."""
    stack: list[object] = _local.__dict__.get("stack", [])
    return stack[-1] if stack else None
