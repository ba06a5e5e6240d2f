"""``autoserialize`` for model repositories of the Triton server: serializes the marked pipeline of a module."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from types import ModuleType
from typing import Any, TypeVar

from dalify.base.errors import ArgumentTypeError, PipelineStateError

__all__ = ["autoserialize", "invoke_autoserialize"]

Function = TypeVar("Function", bound=Callable[..., Any])


def autoserialize(dali_pipeline: Function) -> Function:
    """Mark the pipeline of a module for ``invoke_autoserialize``.

    Args:
        dali_pipeline: a function decorated with ``pipeline_def``; it must be callable without arguments.

    Raises:
        ArgumentTypeError: the argument is not a pipeline function.

    Example:
        >>> @autoserialize
        ... @pipeline_def(batch_size=256, num_threads=4)
        ... def preprocessing():
        ...     return fn.decoders.image(fn.external_source(name="DALI_INPUT_0"))
    """
    if not getattr(dali_pipeline, "_is_pipeline_def", False):
        raise ArgumentTypeError(
            "autoserialize requires the result of pipeline_def.", hint="Place @autoserialize above @pipeline_def(...)."
        )
    dali_pipeline._is_autoserialize = True  # pyright: ignore[reportFunctionMemberAccess] -- DALI's mark
    return dali_pipeline


def invoke_autoserialize(head_module: ModuleType, filename: str | PathLike[str]) -> None:
    """Serialize the marked pipeline of a module into a file for ``Pipeline.deserialize(filename=...)``.

    Args:
        head_module: module with the marked function.
        filename: path of the file.

    Raises:
        PipelineStateError: no pipeline is marked, or more than one.
        SerializationError: the pipeline has Python functions.
    """
    marked = {id(item): item for item in vars(head_module).values() if getattr(item, "_is_autoserialize", False)}
    if len(marked) != 1:
        names = ", ".join(item.__name__ for item in marked.values()) or "none"
        raise PipelineStateError(
            f"one pipeline of the module {head_module.__name__} must be marked with autoserialize; found: {names}."
        )
    (function,) = marked.values()
    function().serialize(filename=filename)
