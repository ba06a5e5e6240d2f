"""How a pipeline tells where it stands, and continues from there.

Alone because it is one subject with one rule: a state describes what the consumer has received, not what was begun
ahead for him.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from dalify.base.errors import CheckpointError, DalifyError
from dalify.base.optional import LazyModule
from dalify.base.source_line import SourceLine
from dalify.graph import Graph
from dalify.pipeline.options import PipelineOptions

if TYPE_CHECKING:
    from dalify.base.fork_lock import ForkLock
    from dalify.executor.engine import Engine
    from dalify.pipeline import state as saving
    from dalify.pipeline.build import Built
else:
    saving = LazyModule("dalify.pipeline.state", "saving the state of a pipeline")

__all__ = ["Resumable"]


Saved = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Resumable:
    """The part of ``Pipeline`` that saves and restores states."""

    _options: PipelineOptions
    _line: SourceLine | None
    _lock: ForkLock
    _seed: int
    _built: Built | None
    _at_end: bool
    _has_delivered: bool
    next_epoch: int
    _api: Any
    _shared: Any
    _restoring: dict[str, Any] | None = None  # a state, until there is an engine to restore
    _is_restored = False
    _iterator_state: dict[str, Any] | None = None
    _refusal: DalifyError | None = None  # of a state that was taken over in part: nothing may be run from there
    _description: dict[str, str] | None = None

    def _engine(self) -> Engine:
        raise AssertionError("dalify bug: a pipeline without engine")

    def _graph(self) -> Graph:
        raise AssertionError("dalify bug: a pipeline without graph")

    def build(self) -> None:
        """Check the graph and make it ready to run."""
        raise AssertionError("dalify bug: a pipeline that cannot be built")

    def state_dict(self, iterator: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return where the consumer stands, after any batch, as some hundred bytes of plain data for JSON.

        What comes after ``load_state_dict`` is bit for bit what would have come otherwise, also with another number of
        threads, another prefetch depth or device. Saving takes the same time at any batch, and so does loading for
        readers and for callables that are told which sample is wanted. An iterable is asked again for the items before,
        unless it has ``state_dict()`` and ``load_state_dict(state)`` of its own. Not included: what Python functions in
        the graph keep, and batches that were fed by hand.

        Args:
            iterator: what an iterator adds, see ``iterator_state``.

        Raises:
            CheckpointError: the ``state_dict()`` of a user's source gives what JSON cannot hold.

        Example:
            >>> state = pipe.state_dict()
            >>> other.load_state_dict(state)  # goes on where pipe is
        """
        with self._lock:
            engine = self._engine()
            if self._description is None:
                self._description = saving.describe(self._graph())
            state = {
                "format": saving.FORMAT,
                "batch_size": self._options.batch_size,
                "seed": self._seed,
                "graph": self._description,
                "at_end": self._at_end and not engine.scheduled,
                **engine.state(),
            }
            return saving.sealed(state if iterator is None else {**state, "iterator": dict(iterator)})

    def load_state_dict(self, state: Saved) -> None:
        """Continue where a pipeline of the same graph was when ``state_dict()`` was called.

        Batches under way are dropped. What is no state, or one of another graph, is refused before anything changes.

        A run may go on with another ``num_shards``: the samples that no shard has read in this epoch are divided anew,
        and each is read once.

        Args:
            state: what ``state_dict()`` returned, here or in another process. To go on with another number of shards,
                the list of the states of all shards, taken after the same batch, in any order; every new shard gets the
                same list. One state is enough where the order is common to all (no ``random_shuffle``).

        Raises:
            CheckpointError: a state of another graph, batch size or seed, of other data, or one that was changed.
        """
        with self._lock:
            self._take(state)
            self.build()

    def checkpoint(self, filename: str | PathLike[str] | None = None) -> bytes:
        """Return ``state_dict()`` as JSON text, for ``Pipeline(checkpoint=...)``.

        Args:
            filename: where to write it as well. A crash leaves the old file or the new one, never half of one.
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
        """What an iterator added to the state that the pipeline continues from; None where nothing was added."""
        return self._iterator_state

    def _opened(self, saved: Saved | bytes | str) -> dict[str, Any]:
        if isinstance(saved, (Mapping, str, bytes)):
            return saving.opened(saved)
        if not isinstance(saved, Sequence):
            raise CheckpointError(
                f"this is no checkpoint: {type(saved).__name__}.",
                hint="Pass what checkpoint() or state_dict() of a pipeline returned.",
            )
        states = [saving.opened(item) for item in saved]
        if not states:
            raise CheckpointError("an empty list holds no state.")
        shard = saving.shard_of(self._graph())
        state = saving.merged(states, shard)
        if self._options.seed is not None and saving.divides(state, shard):
            state["seed"] = self._options.seed  # it need not be that of the old shard whose place this one takes
        return state

    def _take(self, saved: Saved | bytes | str) -> None:
        """Continue from a state now, or keep it for when the engine is built."""
        try:
            state = self._opened(saved)
            if self._options.seed not in (None, state["seed"]):
                raise CheckpointError(
                    f"the checkpoint was made with seed={state['seed']}, the pipeline has seed={self._options.seed}.",
                    hint="Give the same seed, or none: then that of the checkpoint is used.",
                )
            if self._built is not None:
                saving.check_graph(state, self._graph(), self._options.batch_size)
                self._restore(self._built.engine, state)
            else:
                self._restoring = state
        except DalifyError as error:
            error.locate(line=self._line)
            raise
        self._seed = state["seed"]
        self._at_end = state["at_end"]
        self._has_delivered = self._at_end or any(source and source.get("iteration") for source in state["sources"])
        self.next_epoch = 0
        self._iterator_state = state.get("iterator")
        self._is_restored = True
        self._api = None  # nothing was run since
        self._shared = None

    def _restore(self, engine: Engine, state: dict[str, Any]) -> None:
        if state["seed"] == self._seed and engine.feeds.can_restore:
            try:
                engine.restore(state)
            except DalifyError as error:
                self._refusal = copy.copy(error)
                raise
            self._refusal = None
            return
        # Seeds are part of what was built, and processes that walk an iterable cannot go back.
        if engine.feeds.are_spent:
            raise CheckpointError(
                "a source has given items that it cannot give again, and for this checkpoint all must begin anew.",
                hint="Pass the checkpoint to the pipeline's constructor, or load it before the first batch.",
            )
        engine.close()
        self._built = self._refusal = None
        self._restoring = state

    def _state_for_build(self) -> dict[str, Any] | None:
        """Return the state that the engine has to begin from."""
        state = self._restoring
        if state is not None:
            try:
                saving.check_graph(state, self._graph(), self._options.batch_size)
            except DalifyError as error:
                error.locate(line=self._line)
                raise
        return state
