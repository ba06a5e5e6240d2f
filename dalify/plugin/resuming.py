"""Saving and restoring the state of an iterator.

It consists of the states of its pipelines, each of which contains the counters of the iterator. So the list of DALI's
``checkpoints()`` and the dictionary of ``state_dict()`` have the same content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dalify.base.deprecation import warn_at_line
from dalify.base.errors import CheckpointError
from dalify.pipeline import Pipeline
from dalify.pipeline.state import dumps
from dalify.plugin.epochs import Epochs

__all__ = ["ResumableIterator"]


class ResumableIterator:
    """Mixin of iterators that saves and restores states."""

    _pipelines: Sequence[Pipeline]
    _epochs: Epochs
    _reader_name: str | None
    _epoch: int
    _delivered: int
    _is_over: bool
    _may_be_exhausted: bool
    _reported: Counter[int]
    _prepares: bool
    _continues = False  # the next ``for`` loop continues in the middle of an epoch

    def _prepare(self) -> None:
        if self._prepares:
            for pipeline in self._pipelines:
                pipeline.prepare()

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the consumer, after any batch, as JSON data; see ``Pipeline.state_dict``."""
        counters = {
            "epoch": self._epoch,
            "delivered": self._delivered,
            "is_over": self._is_over,
            "may_be_exhausted": self._may_be_exhausted,
            "epochs": self._epochs.state(),
        }
        return {"pipelines": [pipeline.state_dict(counters) for pipeline in self._pipelines]}

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Continue at the position of a ``state_dict()``, also in the middle of an epoch.

        The next ``for`` loop returns the rest of that epoch. With another number of shards the rest of the epoch is
        divided among the new shards; ``len()`` then counts the batches before and the remaining ones.

        Args:
            state: result of ``state_dict()``, of this or another process; to continue with another number of shards,
                the list of the states of all processes, saved after the same batch. See ``Pipeline.load_state_dict``.

        Raises:
            CheckpointError: the state belongs to other pipelines or to an iterator with other options.
        """
        if isinstance(state, Sequence) and not isinstance(state, (str, bytes)):
            of_all = [item for each in state for item in _pipelines_of(each)]
            for pipeline in self._pipelines:
                pipeline.load_state_dict(of_all)
        else:
            saved = _pipelines_of(state)
            if len(saved) != len(self._pipelines):
                raise CheckpointError(
                    f"the checkpoint has {len(saved)} pipelines, the iterator has {len(self._pipelines)}.",
                    hint="To continue with another number of shards, pass the list of the states of all processes.",
                )
            for pipeline, item in zip(self._pipelines, saved, strict=True):
                pipeline.load_state_dict(item)
        self._take_counters()
        self._reported.clear()
        self._prepare()

    def checkpoints(self) -> list[bytes]:
        """Return ``state_dict()`` as one string per pipeline, for ``Pipeline(checkpoint=...)``."""
        return [dumps(state) for state in self.state_dict()["pipelines"]]

    def _take_counters(self) -> None:
        """Restore the counters in the states of the pipelines.

        Raises:
            CheckpointError: the states were not saved together, or by an iterator with other options.
        """
        found = [pipeline.iterator_state for pipeline in self._pipelines]
        counters = found[0]
        if any(item != counters for item in found):
            raise CheckpointError(
                "the checkpoints of the pipelines were not saved together.",
                hint="Restore all pipelines from one result of checkpoints(), in its order.",
            )
        if counters is None:
            if any(each.is_restored_from_checkpoint and not each.has_run for each in self._pipelines):
                warn_at_line(
                    "the pipelines were restored from checkpoints without an iterator: the first epoch of the iterator "
                    "begins at this position. Save iterator.checkpoints() instead of pipe.checkpoint().",
                    UserWarning,
                )
            return
        left = self._pipelines[0].remaining_of_epochs(self._reader_name) if self._reader_name else {}
        if left and counters["epochs"]["counts"] != self._epochs.state()["counts"]:
            self._epochs.divide(counters["epochs"], counters["delivered"], left)
        else:
            self._epochs.restore(counters["epochs"])
        self._epoch = counters["epoch"]
        self._delivered = counters["delivered"]
        self._is_over = counters["is_over"]
        self._may_be_exhausted = counters["may_be_exhausted"]
        self._continues = not self._is_over


def _pipelines_of(state: Any) -> Sequence[Mapping[str, Any]]:
    saved = state.get("pipelines") if isinstance(state, Mapping) else None
    if not isinstance(saved, Sequence) or isinstance(saved, (str, bytes)):
        raise CheckpointError("not a state of an iterator.", hint="Pass the result of its state_dict().")
    return saved
