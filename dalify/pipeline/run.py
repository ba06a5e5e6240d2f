"""Runs a pipeline: schedules, returns and checks batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.base.errors import (
    DTypeError,
    LayoutError,
    PipelineStateError,
    ShapeError,
)
from dalify.data import Batch, DALIDataType, PipelineAPIType, TensorListCPU, TensorListGPU, tensor_list
from dalify.graph import DataNode
from dalify.pipeline.context import PipelineContext
from dalify.pipeline.engine_builder import EngineBuilder, PipelineEngine
from dalify.pipeline.taps import Taps
from dalify.pipeline.waiting import Calling

TensorList = TensorListCPU | TensorListGPU


class Run:
    """The run of a pipeline.

    Args:
        context: the pipeline; a subclass may override its ``iter_setup`` and ``feed_input``.
        taps: values that it keeps.
        builder: builder of the engine.

    Attributes:
        is_exhausted: True if a source has ended; batches may still be in progress.
        has_delivered: True if this epoch of the external sources has returned a batch, an error, or its end.
        next_epoch: number of the first epoch from which no iterator has returned a batch.
        api: the API through which batches were requested; None before the first request.
        checks_api: True if only one API may be used.
    """

    def __init__(self, context: PipelineContext, taps: Taps, builder: EngineBuilder) -> None:
        self._context = context
        self._taps = taps
        self._builder = builder
        self.is_exhausted = False
        self.has_delivered = False
        self.next_epoch = 0
        self.api: PipelineAPIType | None = None
        self.checks_api = True
        self._shared: tuple[TensorList, ...] | None = None

    def run(self, inputs: Mapping[str, Any]) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration and schedule further ones.

        Args:
            inputs: data for external sources, by name.

        Raises:
            StopIteration: a source has ended.
        """
        with self._builder.lock:
            self._enter_api(PipelineAPIType.BASIC)
            if inputs:
                self._feed_inputs(inputs)
            self._schedule_ahead()
            return self._collect()

    def next_outputs(self) -> tuple[TensorList, ...]:
        """Return the outputs of the next iteration for an iterator, which may be mixed with other APIs."""
        with self._builder.lock:
            self.api = PipelineAPIType.ITERATOR if self.api is None else self.api
            self._schedule_ahead()
            return self._collect()

    def schedule(self) -> None:
        """Schedule an iteration without waiting, and in the first call prefetched ones; no effect at the end."""
        with self._builder.lock:
            self._enter_api(PipelineAPIType.SCHEDULED)
            engine = self._builder.engine()
            if not (self.has_delivered or engine.scheduled):
                self._schedule_up_to(engine, self._builder.depth)
            elif not self.is_exhausted:
                self._schedule_one()

    def share_outputs(self) -> tuple[TensorList, ...]:
        """Wait for the oldest scheduled iteration; return its outputs and keep them until ``release_outputs``.

        Raises:
            StopIteration: nothing is scheduled, because a source has ended.
        """
        with self._builder.lock:
            self._enter_api(PipelineAPIType.SCHEDULED)
            self._shared = self._collect()
            return self._shared

    def release_outputs(self) -> None:
        """Release the last outputs of ``share_outputs``."""
        self._shared = None

    def prefetch(self) -> None:
        """Schedule batches, unless a fed source has no data."""
        with self._builder.lock:
            if not _is_starved(self._builder.engine()):
                self._schedule_ahead()

    def feed(self, data_node: str | DataNode, data: Any, layout: str | None) -> None:
        """Feed a batch to an external source.

        Raises:
            UnknownInputError: there is no such external source.
            PipelineStateError: the external source has a ``source``.
        """
        source = data_node.edge.node if isinstance(data_node, DataNode) else data_node
        self._builder.engine().feed(source, data, layout)

    def feed_count(self, name: str) -> int:
        """Return the number of batches that the first run takes from an external source if they have been fed.

        Raises:
            UnknownInputError: there is no such external source.
        """
        self._builder.engine().check_input(name)
        return self._builder.depth

    def reset(self) -> None:
        """Begin the next epoch of all external sources; no effect if this one has not returned anything."""
        with self._builder.lock:
            engine = self._builder.engine()
            if not self.has_delivered:
                return
            self.has_delivered = False
            engine.reset_sources()
            self.is_exhausted = False
            self._shared = None

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch of the readers, and the next one of external sources that have returned something."""
        with self._builder.lock:
            engine = self._builder.engine()
            if self.has_delivered or self._builder.readers():
                engine.start_epoch(epoch, is_next=self.has_delivered)
                self.is_exhausted = self.has_delivered = False
            self._shared = None

    def begin_at(self, *, is_exhausted: bool, has_delivered: bool) -> None:
        """Set the attributes for another position of the engine."""
        self.is_exhausted = is_exhausted
        self.has_delivered = has_delivered
        self.next_epoch = 0
        self.api = None  # no API has been used since
        self._shared = None

    @property
    def is_empty(self) -> bool:
        """Whether no batch is in progress."""
        return self._builder.built is None or self._builder.is_closed or not self._builder.engine().scheduled

    @property
    def is_at_end(self) -> bool:
        """Whether a source has ended and no batch is in progress."""
        return self.is_exhausted and not self._builder.engine().scheduled

    def _enter_api(self, api: PipelineAPIType) -> None:
        if self.checks_api and self.api is not None and api is not self.api:
            raise PipelineStateError(
                f"two APIs of this pipeline cannot be mixed: {_API_NAMES[self.api]} before, {_API_NAMES[api]} now.",
                hint="Use one of them, or call pipe.enable_api_check(False) to disable this check; prefetched batches "
                "are then returned in the order in which they were scheduled.",
            )
        self.api = api

    def _feed_inputs(self, inputs: Mapping[str, Any]) -> None:
        # Data fed now would be returned several batches later. An unknown name is an error of feed_input.
        if self._builder.engine().scheduled and {feed.name for feed in self._builder.externals()}.issuperset(inputs):
            raise PipelineStateError(
                "run(name=data) is not possible while batches are prefetched.",
                hint="Feed every external_source of the pipeline in run(), or set prefetch_queue_depth=1.",
            )
        for name, data in inputs.items():
            self._context.pipeline().feed_input(name, data)

    def _schedule_ahead(self) -> None:
        """Schedule batches until the prefetch depth is reached or the data end."""
        engine = self._builder.engine()
        depth = self._builder.depth
        if depth > 1:  # otherwise, nothing is prefetched
            depth = engine.depth_for_threads(depth)
        self._schedule_up_to(engine, depth)

    def _schedule_up_to(self, engine: PipelineEngine, depth: int) -> None:
        while (scheduled := engine.scheduled) < depth and not self.is_exhausted:
            if scheduled and _is_starved(engine):
                return
            self._schedule_one()

    def _schedule_one(self) -> None:
        try:
            self._context.pipeline().iter_setup()
            engine = self._builder.engine()
            with Calling(self._builder):
                engine.schedule()
            if self._builder.is_closed:  # by another thread, which may not have discarded this batch
                engine.discard()
        except StopIteration:
            self.is_exhausted = True

    def _collect(self) -> tuple[TensorList, ...]:
        engine = self._builder.engine()
        if self.is_exhausted and not engine.scheduled:
            self.has_delivered = True
            raise StopIteration
        try:
            outputs = engine.collect()
            if self._context.options.taps:
                outputs = self._taps.keep(self._builder.graph(), outputs)
        except Exception:
            self.has_delivered = True
            raise
        self.has_delivered = True
        self._check_outputs(outputs)
        return tuple(tensor_list(batch) for batch in outputs)

    def _check_outputs(self, outputs: tuple[Batch, ...]) -> None:
        options = self._context.options
        if options.output_dtype is None and options.output_ndim is None and options.output_layout is None:
            return
        for index, batch in enumerate(outputs):
            for what, found, kind in (
                ("dtype", batch.dtype, DTypeError),
                ("ndim", batch.ndim, ShapeError),
                ("layout", batch.layout, LayoutError),
            ):
                wanted = options.expected(what, index)
                if wanted is not None and wanted != found:
                    raise kind(
                        f"output {index} has {what} {_format_value(found)}, but "
                        f"output_{what} is {_format_value(wanted)}.",
                        line=self._context.line,
                    )


def _is_starved(pipeline_engine: PipelineEngine) -> bool:
    """Return whether a fed source has no data, so that no further batch can be prefetched."""
    for engine in pipeline_engine.engines:
        for feed in engine.feeds.externals:
            if feed.source is None and not feed.fed_count and not feed.repeats:
                return True
    return False


_API_NAMES = {
    PipelineAPIType.BASIC: "run()",
    PipelineAPIType.SCHEDULED: "schedule_run() and share_outputs()",
    PipelineAPIType.ITERATOR: "an iterator of a plugin",
}


def _format_value(value: Any) -> str:
    return value.text if isinstance(value, DALIDataType) else repr(value)
