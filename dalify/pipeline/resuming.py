"""Saving and restoring the state of a pipeline.

A state describes which batches the consumer has received, not which were prefetched.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from dalify.base.errors import CheckpointError, DalifyError
from dalify.base.optional import LazyModule

if TYPE_CHECKING:
    from dalify.executor.engine import Engine
    from dalify.pipeline import state as saving
    from dalify.pipeline.parts import Parts
else:
    saving = LazyModule("dalify.pipeline.state", "saving the state of a pipeline")

__all__ = ["Resumable"]


Saved = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Resumable:
    """Mixin of ``Pipeline`` that saves and restores states."""

    _parts: Parts
    _is_restored = False
    _iterator_state: dict[str, Any] | None = None
    _description: dict[str, str] | None = None

    if TYPE_CHECKING:  # defined by the classes that use the mixin

        def build(self) -> None:
            """Check and build the graph."""
            ...

    def state_dict(self, iterator: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the position of the consumer, after any batch, as a few hundred bytes of JSON data.

        The batches after ``load_state_dict`` are bit for bit the same as without interruption, also with another
        number of threads, prefetch depth or device. The time to save does not depend on the position, nor does the
        time to load for readers and for callables with an argument. An iterable is iterated again up to the position,
        unless it has ``state_dict()`` and ``load_state_dict(state)``. Not included: state of Python functions in the
        graph, and fed batches.

        Args:
            iterator: state of an iterator, see ``iterator_state``.

        Raises:
            CheckpointError: the ``state_dict()`` of a user's source returns data that JSON cannot represent.

        Example:
            >>> state = pipe.state_dict()
            >>> other.load_state_dict(state)  # continues at the position of pipe
        """
        with self._parts.lock:
            engine = self._parts.builder.engine()
            if self._description is None:
                self._description = saving.describe(self._parts.builder.graph())
            state = {
                "format": saving.FORMAT,
                "batch_size": self._parts.options.batch_size,
                "seed": self._parts.builder.seed,
                "graph": self._description,
                "at_end": self._parts.run.is_exhausted and not engine.scheduled,
                **engine.state(),
            }
            return saving.sealed(state if iterator is None else {**state, "iterator": dict(iterator)})

    def load_state_dict(self, state: Saved) -> None:
        """Continue at the position of a state of a pipeline with the same graph.

        Batches in progress are dropped. Invalid states and states of another graph are rejected before anything
        changes.

        A run may continue with another ``num_shards``: the samples that no shard has read in this epoch are divided
        among the new shards, and each is read once.

        Args:
            state: result of ``state_dict()``, of this or another process. To continue with another number of shards,
                the list of the states of all shards, saved after the same batch, in any order; every new shard loads
                the same list. One state is enough if all shards have the same order (no ``random_shuffle``).

        Raises:
            CheckpointError: a state of another graph, batch size, seed or data, or one that was modified.
        """
        with self._parts.lock:
            self._take(state)
            self.build()

    def checkpoint(self, filename: str | PathLike[str] | None = None) -> bytes:
        """Return ``state_dict()`` as JSON text, for ``Pipeline(checkpoint=...)``.

        Args:
            filename: path of a file to which it is also written. The file is replaced atomically.
        """
        text = saving.dumps(self.state_dict())
        if filename is not None:
            saving.write(filename, text)
        return text

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether the pipeline continues from a saved state."""
        return self._is_restored

    @property
    def iterator_state(self) -> dict[str, Any] | None:
        """State of the iterator in the loaded state, or None."""
        return self._iterator_state

    def _opened(self, saved: Saved | bytes | str) -> dict[str, Any]:
        if isinstance(saved, (Mapping, str, bytes)):
            return saving.opened(saved)
        if not isinstance(saved, Sequence):
            raise CheckpointError(
                f"not a checkpoint: {type(saved).__name__}.",
                hint="Pass the result of checkpoint() or state_dict() of a pipeline.",
            )
        states = [saving.opened(item) for item in saved]
        if not states:
            raise CheckpointError("the list of states is empty.")
        shard = saving.shard_of(self._parts.builder.graph())
        state = saving.merged(states, shard)
        if self._parts.options.seed is not None and saving.divides(state, shard):
            state["seed"] = self._parts.options.seed  # it may differ from that of the old shard
        return state

    def _take(self, saved: Saved | bytes | str) -> None:
        """Restore a state now, or store it until the engine is built."""
        try:
            state = self._opened(saved)
            seed = self._parts.options.seed
            if seed not in (None, state["seed"]):
                raise CheckpointError(
                    f"the checkpoint was made with seed={state['seed']}, the pipeline has seed={seed}.",
                    hint="Use the same seed, or omit it to use that of the checkpoint.",
                )
            if self._parts.builder.built is not None:
                saving.check_graph(state, self._parts.builder.graph(), self._parts.options.batch_size)
                self._restore(self._parts.builder.built.engine, state)
            else:
                self._parts.builder.start_at(state)
        except DalifyError as error:
            error.locate(line=self._parts.line)
            raise
        self._parts.builder.seed = state["seed"]
        self._parts.run.begin_at(
            is_exhausted=state["at_end"],
            has_delivered=state["at_end"] or any(source and source.get("iteration") for source in state["sources"]),
        )
        self._iterator_state = state.get("iterator")
        self._is_restored = True

    def _restore(self, engine: Engine, state: dict[str, Any]) -> None:
        if state["seed"] == self._parts.builder.seed and engine.feeds.can_restore:
            try:
                engine.restore(state)
            except DalifyError as error:
                self._parts.builder.refusal = copy.copy(error)
                raise
            self._parts.builder.refusal = None
            return
        # Seeds are part of the built graph, and processes cannot rewind an iterable.
        if engine.feeds.are_spent:
            raise CheckpointError(
                "this checkpoint requires a source to restart, but it cannot return its previous items again.",
                hint="Pass the checkpoint to the pipeline's constructor, or load it before the first batch.",
            )
        self._parts.builder.start_at(state)
