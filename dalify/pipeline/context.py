"""The state that the parts of a pipeline share."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from dalify.base.errors import PipelineStateError
from dalify.base.fork_lock import ForkLock
from dalify.base.source_line import SourceLine
from dalify.executor.options import PipelineOptions


class OwningPipeline(Protocol):
    """The methods of a pipeline that its parts call, because the user's subclass may override them."""

    def build(self) -> None:
        """See ``Pipeline``, like the other methods."""
        ...

    def __enter__(self) -> Any: ...
    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None: ...
    def define_graph(self) -> Any: ...  # noqa: D102
    def feed_input(self, data_node: str, data: Any, /) -> None: ...  # noqa: D102
    def iter_setup(self) -> None: ...  # noqa: D102


class PipelineContext:
    """The state that the parts of a pipeline share.

    The reference to the pipeline is weak, so that there is no cycle: a pipeline is freed, and its threads end, when the
    user deletes the last reference.

    Attributes:
        options: options of the pipeline.
        line: the user's line that created it.
        lock: held while the engine is built and runs, and while a state is saved or loaded.
    """

    def __init__(self, pipeline: OwningPipeline, options: PipelineOptions, line: SourceLine | None) -> None:
        self.options = options
        self.line = line
        self.lock = ForkLock()
        self.point_to(pipeline)

    def pipeline(self) -> OwningPipeline:
        """Return the pipeline.

        Raises:
            PipelineStateError: a ``__del__`` method uses the pipeline while it is freed.
        """
        pipeline = self._pipeline()
        if pipeline is None:
            raise PipelineStateError("the pipeline is being freed: a __del__ method can only close it.")
        return pipeline

    def point_to(self, pipeline: OwningPipeline) -> None:
        """Refer to another pipeline, which uses the parts from now on."""
        self._pipeline = weakref.ref(pipeline)
