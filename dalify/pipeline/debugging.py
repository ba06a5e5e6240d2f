"""Debug mode: a pipeline whose function runs for every batch, operator by operator, with the values of the batch.

Breakpoints, ``print(node)`` and ``node.get()`` work in the function. Each source is a separate pipeline, so that
shuffling, epochs and feeding work as in other pipelines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dalify.base.errors import BatchSizeError, CheckpointError, GraphError, PipelineStateError, UnknownInputError
from dalify.base.wording import counted
from dalify.data import Batch, batch_of
from dalify.executor.engine import Engine
from dalify.executor.options import PRECISIONS, PipelineOptions
from dalify.graph import Edge, Graph, Node, evaluating
from dalify.immediate.debug import Interpreter, OtherBatchSize
from dalify.passes import Report, narrow
from dalify.pipeline.context import PipelineContext
from dalify.pipeline.engine_builder import EngineBuilder, PipelineEngine
from dalify.pipeline.graph_definition import output_edges, returned_values
from dalify.pipeline.parts import Parts
from dalify.pipeline.pipeline import Pipeline, parts_of
from dalify.pipeline.waiting import Calling

_IN_DEBUG_MODE: dict[str, Any] = {"prefetch_queue_depth": 1, "taps": (), "processes": 0}


class _Source(Pipeline):
    """A pipeline that consists of one reader or external source.

    Args:
        node: the source.
        label: its name, or operator and occurrence; the order of shuffling depends on it.
        options: options of the debugged pipeline.
        seed: seed of the debugged pipeline.
    """

    def __init__(self, node: Node, label: str, options: Mapping[str, Any], seed: int) -> None:
        given: dict[str, Any] = {**options, "seed": seed}
        super().__init__(**given)
        node = replace(node, name=label, branch=None)
        parts_of(self).definition.take(Graph(tuple(Edge(node, output) for output in range(node.output_count))))
        self.node = node

    def next_batches(self) -> list[Batch]:
        """Return the next batch of each output."""
        return [batch_of(item) for item in self.run()]


class _Runner(PipelineEngine):
    """Runs the function of a pipeline instead of an engine.

    Attributes:
        seed: seed of the pipeline.
        edges: edges of the outputs of the last run.
    """

    def __init__(self, options: PipelineOptions, function: Callable[[], Any], given: Mapping[str, Any]) -> None:
        self._options = options
        self._function = function
        self._given = given
        self.seed = 0
        self.sources: dict[str, _Source] = {}
        self._current: dict[str, list[Batch]] = {}  # batches of the sources for this run
        self._waiting: dict[str, list[tuple[Any, Any]]] = {}  # data fed before the function has created the source
        self._ready: list[tuple[Batch, ...]] = []  # outputs of runs in advance
        self._number = 0
        self._scheduled = 0
        self.edges: tuple[Edge, ...] = ()
        self._valid = np.ones(0, np.bool_)
        self._thread: int | None = None  # that runs the function

    @property
    def valid(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """See ``Engine``."""
        return self._valid

    @property
    def scheduled(self) -> int:
        """Number of batches that were scheduled and not collected."""
        return self._scheduled

    @property
    def engines(self) -> list[Engine]:
        """The engines of the sources that the function has created."""
        return [engine for source in self.sources.values() for engine in parts_of(source).builder.engine().engines]

    def depth_for_threads(self, depth: int) -> int:
        """Return the depth unchanged, because nothing is prefetched."""
        return depth

    def check_input(self, name: str) -> None:
        """Accept any name, because sources may be fed before the function has created them."""

    def state(self) -> dict[str, Any]:
        """Raise an error, because in debug mode there is no state to save.

        Raises:
            CheckpointError: always.
        """
        raise _no_state()

    def feed(self, source: str | Node, data: Any, layout: str | None) -> None:
        """Feed data to a source by its name, also before the function has created it."""
        name = source.name if isinstance(source, Node) else source
        if name is None:
            raise PipelineStateError.here(
                "in debug mode sources are fed by name.", hint="Write fn.external_source(name='images')."
            )
        known = self.sources.get(name)
        if known is not None:
            known.feed_input(name, data, layout)
        elif self._number or self._ready:
            raise UnknownInputError(f"the pipeline has no external_source {name!r}.")
        else:
            self._waiting.setdefault(name, []).append((data, layout))

    def schedule(self) -> None:
        """Schedule the next batch of all sources.

        Raises:
            StopIteration: a source is exhausted.
        """
        if not self._ready:
            self._current = {label: source.next_batches() for label, source in self.sources.items()}
        self._scheduled += 1

    def collect(self) -> tuple[Batch, ...]:
        """Run the function and return its outputs."""
        self._scheduled = max(0, self._scheduled - 1)
        if self._ready:
            return self._ready.pop(0)
        return self._run()

    def run_ahead(self) -> None:
        """Run the function once to find its sources; the batch is kept for the consumer."""
        if not self._number and not self._ready:
            self._ready.append(self._run())

    def computes_in(self, thread: threading.Thread) -> bool:
        """Return whether a thread runs the function."""
        return self._thread == thread.ident

    def _run(self) -> tuple[Batch, ...]:
        self._thread = threading.get_ident()
        try:
            with Calling(self):
                return self._computed()
        finally:
            self._thread = None

    def _computed(self) -> tuple[Batch, ...]:
        sizes = {len(batches[0]) for batches in self._current.values() if batches}
        count = sizes.pop() if len(sizes) == 1 else self._options.batch_size
        number, self._number = self._number, self._number + 1
        for _ in range(2):
            interpreter = Interpreter(self._batches_of, count, number, self.seed)
            try:
                with evaluating(interpreter):
                    edges = tuple(output_edges(returned_values(self._function())))
                    outputs = tuple(interpreter.output(edge) for edge in self._narrowed(edges))
                break
            except OtherBatchSize as other:
                count = other.count
                if count > self._options.batch_size:
                    raise BatchSizeError(
                        f"the fed batch has {counted(count, 'sample')}; max_batch_size is {self._options.batch_size}."
                    ) from None
        else:
            raise PipelineStateError(
                "the sources returned batches of different sizes.",
                hint="All must return the same number of samples; in debug mode readers always return batch_size.",
            )
        self.edges = edges
        self._current = {}
        valid = [source.valid for source in self.sources.values()]
        self._valid = np.logical_and.reduce([np.ones(count, np.bool_), *(item for item in valid if len(item) == count)])
        return outputs

    def _narrowed(self, edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
        dtype = PRECISIONS[self._options.precision]
        return edges if dtype is None else narrow(Graph(edges), Report(), dtype, len(edges)).outputs

    def _batches_of(self, node: Node, label: str) -> list[Batch]:
        source = self.sources.get(label)
        if source is None:
            source = self.sources[label] = self._new_source(node, label)
        elif source.node.operator is not node.operator:
            raise GraphError(
                f"{label!r} was {source.node.operator.public_name} in the previous run and is "
                f"{node.operator.public_name} now.",
                line=node.line,
                hint="Readers and external sources must be the same in every run.",
            )
        found = self._current.get(label)
        if found is None:
            found = self._current[label] = source.next_batches()
        return found

    def _new_source(self, node: Node, label: str) -> _Source:
        if any(True for _ in node.edges()):
            raise GraphError(
                "debug mode cannot run a reader whose arguments are graph values.",
                line=node.line,
                operator=node.operator.public_name,
            )
        source = _Source(node, label, self._given, self.seed)
        for data, layout in self._waiting.pop(label, ()):
            source.feed_input(label, data, layout)
        return source

    def discard(self) -> None:
        """Drop batches that were scheduled and not collected."""
        self._current = {}
        self._ready.clear()
        self._scheduled = 0

    def reset_sources(self) -> None:
        """Begin the next epoch of all external sources."""
        self.discard()
        for source in self.sources.values():
            source.reset()

    def start_epoch(self, epoch: int, *, is_next: bool = True) -> None:
        """Begin an epoch of all sources."""
        self.discard()
        for source in self.sources.values():
            source.start_epoch(epoch)

    def close(self) -> None:
        """Close the sources."""
        for source in self.sources.values():
            source.close()


class _RunnerBuilder(EngineBuilder):
    """Returns the runner instead of an engine; there is no graph before the first run."""

    def __init__(self, runner: _Runner, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._runner = runner

    def graph(self) -> Graph:
        self.find_sources()
        return Graph(self._runner.edges)

    def computes_in(self, thread: threading.Thread) -> bool:
        return self._runner.computes_in(thread)

    def engine(self) -> _Runner:
        if self.is_closed:
            raise PipelineStateError("the pipeline has been closed.", line=self._context.line)
        self._runner.seed = self.seed
        return self._runner

    def find_sources(self) -> None:
        self.engine().run_ahead()

    def build(self) -> None:
        pass

    def start_at(self, state: dict[str, Any]) -> None:
        raise _no_state()

    def close(self) -> None:
        self.is_closed = True
        self._runner.close()


class DebugPipeline(Pipeline):
    """A pipeline that runs its function for every batch; created by ``@pipeline_def(debug=True)``.

    Random numbers, shuffling and results equal those of the pipeline without ``debug``, as long as the function makes
    the same calls in every run and no random operator is pruned. Nothing is prefetched. States cannot
    be saved; decoders raise errors regardless of ``on_error``.

    Args:
        function: returns the outputs.
        options: arguments of ``Pipeline``.
    """

    def __init__(self, function: Callable[[], Any], **options: Any) -> None:
        self._function = function
        super().__init__(**{**options, **_IN_DEBUG_MODE})

    def _new_parts(self, context: PipelineContext) -> Parts:
        own = ("output_dtype", "output_ndim", "output_layout", "checkpoint")
        given = {name: value for name, value in context.options.given().items() if name not in own}
        self._runner = _Runner(context.options, self._function, given)
        return Parts.of(context, partial(_RunnerBuilder, self._runner))

    def explain(self) -> str:
        """Raise an error: in debug mode there are no passes and no plan.

        Raises:
            PipelineStateError: always.
        """
        raise PipelineStateError.here(
            "a pipeline in debug mode has nothing to explain: its operators run one by one when they are called.",
            hint="Omit debug=True.",
        )


def _no_state() -> CheckpointError:
    return CheckpointError.here("a pipeline in debug mode has no state to save or load.", hint="Omit debug=True.")
