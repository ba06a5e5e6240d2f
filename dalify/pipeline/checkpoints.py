"""Saves and restores the state of a pipeline.

A state describes the position of the consumer; prefetched batches are not counted.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from dalify.base.errors import CheckpointError, DalifyError, locating
from dalify.base.optional import LazyModule
from dalify.base.whole_files import write_file
from dalify.pipeline.context import PipelineContext
from dalify.pipeline.engine_builder import EngineBuilder
from dalify.pipeline.run import Run

if TYPE_CHECKING:
    from dalify.executor import assembly
    from dalify.executor.engine import Engine
    from dalify.pipeline import state as saving
else:
    assembly = LazyModule("dalify.executor.assembly", "building a pipeline")
    saving = LazyModule("dalify.pipeline.state", "saving the state of a pipeline")

Saved = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Checkpoints:
    """Saves and restores the state of a pipeline.

    Args:
        context: the pipeline; a subclass may override its ``build``.
        builder: builder of the graph and the engine.
        run: run of the pipeline.

    Attributes:
        is_restored: True if a state was loaded.
        iterator_state: state of the iterator in the loaded state; None without one.
    """

    def __init__(self, context: PipelineContext, builder: EngineBuilder, run: Run) -> None:
        self._context = context
        self._builder = builder
        self._run = run
        self.is_restored = False
        self.iterator_state: dict[str, Any] | None = None
        self._description: dict[str, str] | None = None

    def state(self, iterator: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the position of the consumer as JSON-ready data.

        Raises:
            CheckpointError: JSON cannot represent the state of a user's source.
        """
        with self._builder.lock:
            engine = self._builder.engine()
            position = engine.state()
            if self._description is None:
                self._description = saving.describe(self._builder.graph())
            state = {
                "format": saving.FORMAT,
                "batch_size": self._context.options.batch_size,
                "seed": self._builder.seed,
                "graph": self._description,
                "at_end": self._run.is_exhausted and not engine.scheduled,
                **position,
            }
            return saving.sealed(state if iterator is None else {**state, "iterator": dict(iterator)})

    def load(self, saved: Saved) -> None:
        """Build the engine at a state, or continue there.

        Raises:
            CheckpointError: see ``take``.
        """
        with self._builder.lock:
            self.take(saved)
            self._context.pipeline().build()

    def take(self, saved: Saved | bytes | str) -> None:
        """Restore a state now or, if there is no engine yet, when the engine is built.

        Args:
            saved: a state, its text, or the states of all shards.

        Raises:
            CheckpointError: the state belongs to another graph, batch size or seed, or was modified.
        """
        builder = self._builder
        options = self._context.options
        with locating(self._context.line):
            state = self._opened(saved)
            if options.seed not in (None, state["seed"]):
                raise CheckpointError(
                    f"the checkpoint was made with seed={state['seed']}, but the pipeline has seed={options.seed}.",
                    hint="Use the same seed, or omit seed= to use the seed of the checkpoint.",
                )
            if builder.built is not None:
                saving.check_graph(state, builder.graph(), options.batch_size)
                self._restore(builder.built.engine, state)
            else:
                builder.start_at(state)
        builder.seed = state["seed"]
        self._run.begin_at(
            is_exhausted=state["at_end"],
            has_delivered=state["at_end"] or any(source and source.get("iteration") for source in state["sources"]),
        )
        self.iterator_state = state.get("iterator")
        self.is_restored = True

    def _opened(self, saved: Saved | bytes | str) -> dict[str, Any]:
        if isinstance(saved, (Mapping, str, bytes)):
            return saving.opened(saved)
        if not isinstance(cast("object", saved), Sequence):
            raise CheckpointError(
                f"not a checkpoint: {type(saved).__name__}.",
                hint="Pass the result of checkpoint() or state_dict() of a pipeline.",
            )
        states = [saving.opened(item) for item in saved]
        if not states:
            raise CheckpointError("the list of states is empty.")
        shard = assembly.shard_of(self._builder.graph())
        state = saving.merged(states, shard)
        if self._context.options.seed is not None and saving.divides(state, shard):
            state["seed"] = self._context.options.seed  # it may differ from the seed of the old shard
        return state

    def _restore(self, engine: Engine, state: dict[str, Any]) -> None:
        builder = self._builder
        if state["seed"] == builder.seed and engine.feeds.can_restore:
            try:
                engine.restore(state)
            except DalifyError as error:
                builder.restore_error = copy.copy(error)
                raise
            builder.restore_error = None
            return
        # Seeds are part of the built graph, and processes cannot rewind an iterable.
        if engine.feeds.have_unrepeatable_items:
            raise CheckpointError(
                "to load this checkpoint, a source must restart, but it cannot return its previous items again.",
                hint="Pass the checkpoint to the pipeline's constructor, or load it before the first batch.",
            )
        builder.start_at(state)


def text_of(state: Mapping[str, Any], filename: str | PathLike[str] | None) -> bytes:
    """Return a state as JSON text; if a file name is given, also replace the file by it atomically."""
    text = json.dumps(state, separators=(",", ":")).encode()
    if filename is not None:
        write_file(filename, text, is_durable=True)
    return text
