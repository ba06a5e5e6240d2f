"""Builds the engine of a pipeline at first use, and owns it."""

from __future__ import annotations

import copy
import itertools
import os
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from dalify.base.errors import DalifyError, PipelineStateError, locating
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule
from dalify.executor.options import EngineSetup
from dalify.graph import Graph, Node
from dalify.pipeline.context import PipelineContext
from dalify.pipeline.graph_definition import GraphDefinition
from dalify.pipeline.taps import Taps
from dalify.pipeline.waiting import WaitingLock, calls_functions

if TYPE_CHECKING:
    import numpy as np

    from dalify.data import Batch
    from dalify.executor.engine import Engine
    from dalify.executor.feeds import ExternalFeed, ReaderFeed
    from dalify.executor.remote import BatchService
    from dalify.pipeline import build as building
    from dalify.pipeline import state as saving
else:
    # Imported at first use, because passes, executor and sources are half of the package.
    building = LazyModule("dalify.pipeline.build", "building a pipeline")
    saving = LazyModule("dalify.pipeline.state", "saving the state of a pipeline")

_numbers = itertools.count()


class PipelineEngine(Protocol):
    """Interface of an object that computes batches: an engine, or in debug mode the user's function.

    ``Engine`` describes the members.
    """

    @property
    def valid(self) -> np.ndarray[Any, np.dtype[np.bool_]]: ...  # noqa: D102
    @property
    def scheduled(self) -> int:
        """See ``Engine``, like the other members."""
        ...

    @property
    def engines(self) -> Sequence[Engine]: ...  # noqa: D102
    def depth_for_threads(self, depth: int) -> int: ...  # noqa: D102
    def check_input(self, name: str) -> None: ...  # noqa: D102
    def feed(self, source: str | Node, data: Any, layout: str | None) -> None: ...  # noqa: D102
    def schedule(self) -> None: ...  # noqa: D102
    def collect(self) -> tuple[Batch, ...]: ...  # noqa: D102
    def discard(self) -> None: ...  # noqa: D102
    def state(self) -> dict[str, Any]: ...  # noqa: D102
    def reset_sources(self) -> None: ...  # noqa: D102
    def start_epoch(self, epoch: int, *, is_next: bool) -> None: ...  # noqa: D102


class EngineBuilder:
    """Builds the engine of a pipeline at first use, and owns it.

    Args:
        context: the pipeline; a subclass may override its ``build``.
        definition: its graph.
        taps: values that it keeps.

    Attributes:
        seed: seed of all random numbers, 64 bits.
        name: prefix of the names of the threads.
        built: the graph after all passes and the engine; None before the first use.
        initial_state: saved state at which the next engine starts; None for the first batch.
        restore_error: the error of a state that was restored in part, so that the engine cannot run; None without one.
        service: computes batches instead of worker processes; None without one.
        is_closed: True if the pipeline was closed and cannot run.
    """

    def __init__(self, context: PipelineContext, definition: GraphDefinition, taps: Taps) -> None:
        self._context = context
        self._definition = definition
        self._taps = taps
        seed = context.options.seed
        self.seed = seed if seed is not None else int.from_bytes(os.urandom(8)) >> 1
        self.name = f"dalify-{next(_numbers)}"
        self._depth = context.options.depth  # computed once, because each batch needs it
        self.built: building.Built | None = None
        self.initial_state: dict[str, Any] | None = None
        self.restore_error: DalifyError | None = None
        self.service: BatchService | None = None
        self.is_closed = False

    @property
    def depth(self) -> int:
        """Number of batches in progress at the same time."""
        if self.service is None or self.built is None or self.built.engine.remote is None:
            return self._depth
        options = self._context.options
        if not (options.exec_pipelined and options.exec_async):  # one batch is requested at a time
            return self._depth
        return self._depth - 1 + self.built.engine.remote.in_progress

    @property
    def lock(self) -> ForkLock | WaitingLock:
        """The lock that is held while the engine is built and runs, and while a state is saved or loaded.

        Raises:
            PipelineStateError: this thread computes a batch, for which the thread that holds the lock waits.
        """
        self.check_caller()
        thread = threading.current_thread()
        if calls_functions(thread):
            return WaitingLock(self._context.lock, self, thread)
        return self._context.lock

    def computes_in(self, thread: threading.Thread) -> bool:
        """Return whether a thread computes a batch, for which the consumer waits."""
        return self.built is not None and self.built.engine.computes_in(thread)

    def check_caller(self) -> None:
        """Check that the caller is not a function that the pipeline calls.

        Raises:
            PipelineStateError: this thread computes a batch.
        """
        if self.computes_in(threading.current_thread()):
            raise PipelineStateError(
                "the function uses the pipeline that is calling it, and would wait for itself.",
                hint="Use a second pipeline, or call the method between batches.",
            )

    def graph(self) -> Graph:
        """Return the graph as the user defined it."""
        return self._definition.graph()

    def engine(self) -> PipelineEngine:
        """Return the engine; build it if necessary.

        Raises:
            PipelineStateError: the pipeline was closed.
            CheckpointError: a state was restored in part.
        """
        if self.is_closed:
            raise PipelineStateError(
                "the pipeline has been closed.", line=self._context.line, hint="Create a new pipeline to run it again."
            )
        if self.restore_error is not None:
            # A copy, because a raised exception keeps the frames of its caller alive.
            raise copy.copy(self.restore_error)
        if self.built is None:
            self._context.pipeline().build()
        assert self.built is not None, "dalify bug: build did not build"
        return self.built.engine

    def find_sources(self) -> None:
        """Find the sources; in debug mode, this runs the function once."""

    def externals(self) -> list[ExternalFeed]:
        """Return the external sources; in debug mode those that the function has created."""
        return [feed for engine in self.engine().engines for feed in engine.feeds.externals]

    def readers(self) -> list[ReaderFeed]:
        """Return the readers; in debug mode those that the function has created."""
        return [feed for engine in self.engine().engines for feed in engine.feeds.readers.values()]

    def build(self) -> None:
        """Build the engine if there is none.

        Raises:
            DalifyError: the graph cannot run, or the initial state belongs to another graph.
        """
        options = self._context.options
        with self.lock:
            if self.built is not None:
                return
            graph = self.graph()
            with locating(self._context.line):
                options.check_output_count(len(graph.outputs))
                tapped = self._taps.added_to(graph)
                if self.initial_state is not None:
                    saving.check_graph(self.initial_state, graph, options.batch_size)
            setup = EngineSetup(
                options=options, seed=self.seed, name=self.name, service=self.service, state=self.initial_state
            )
            self.built = building.build(tapped, len(graph.outputs), setup)
            self.initial_state = None
            weakref.finalize(self._context.pipeline(), self.built.engine.close, wait=False)

    def start_at(self, state: dict[str, Any]) -> None:
        """Close the engine if there is one; the next one starts at a saved state."""
        if self.built is not None:
            self.built.engine.close()
        self.built = self.restore_error = None
        self.initial_state = state

    def close(self) -> None:
        """Stop the threads and worker processes; there is no other engine afterwards."""
        self.is_closed = True
        if self.built is not None:
            self.built.engine.close()
