"""How the parts of a pipeline reach it."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from dalify.base.errors import PipelineStateError

__all__ = ["OwningPipeline", "PipelineReference"]


class OwningPipeline(Protocol):
    """The methods of a pipeline that its parts call, because a subclass of the user may override them."""

    def build(self) -> None:
        """See ``Pipeline``, like the other methods."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None: ...

    def define_graph(self) -> Any: ...  # noqa: D102

    def feed_input(self, data_node: str, data: Any, /) -> None: ...  # noqa: D102

    def iter_setup(self) -> None: ...  # noqa: D102


class PipelineReference:
    """A weak reference to the pipeline that owns some parts.

    A strong reference would be a cycle: a pipeline is freed, and its threads end, as soon as the user drops it.

    Args:
        pipeline: the owner of the parts.
    """

    def __init__(self, pipeline: OwningPipeline) -> None:
        self.point_to(pipeline)

    def __call__(self) -> OwningPipeline:
        """Return the pipeline.

        Raises:
            PipelineStateError: a ``__del__`` method uses it, of an object that is collected together with it.
        """
        pipeline = self._pipeline()
        if pipeline is None:
            raise PipelineStateError("the pipeline is being freed: a __del__ method can only close it.")
        return pipeline

    def point_to(self, pipeline: OwningPipeline) -> None:
        """Refer to another pipeline, which takes over the parts."""
        self._pipeline = weakref.ref(pipeline)
