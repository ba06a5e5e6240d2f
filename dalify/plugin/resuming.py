"""How an iterator tells where it stands, and continues from there.

The states of its pipelines, plus a few counters of its own, which travel inside each of them: so a list of DALI's
``checkpoints()`` and one dictionary for ``torch.save`` are two forms of the same thing.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dalify.base.errors import CheckpointError
from dalify.pipeline import Pipeline
from dalify.pipeline.state import dumps
from dalify.plugin.epochs import Epochs

__all__ = ["ResumableIterator"]


class ResumableIterator:
    """The part of an iterator that saves and restores states."""

    _pipelines: Sequence[Pipeline]
    _epochs: Epochs
    _reader_name: str | None
    _epoch: int
    _delivered: int
    _is_over: bool
    _may_be_exhausted: bool
    _reported: Counter[int]
    _continues = False  # the next ``for`` loop goes on in the middle of an epoch

    def _prepare(self) -> None:
        raise AssertionError("dalify bug: an iterator that prepares nothing")

    def state_dict(self) -> dict[str, Any]:
        """Return where the consumer stands, after any batch, as plain data for JSON; see ``Pipeline.state_dict``."""
        counters = {
            "epoch": self._epoch,
            "delivered": self._delivered,
            "is_over": self._is_over,
            "may_be_exhausted": self._may_be_exhausted,
            "epochs": self._epochs.state(),
        }
        return {"pipelines": [pipeline.state_dict(counters) for pipeline in self._pipelines]}

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Continue where an iterator was when ``state_dict()`` was called, also in the middle of an epoch.

        The next ``for`` loop gives the rest of that epoch, the one after it the next. With another number of shards the
        rest of the epoch is divided anew: ``len()`` then counts the batches before and those that are left.

        Args:
            state: what ``state_dict()`` returned, here or in another process; to go on with another number of shards,
                the list of the states of all processes, taken after the same batch. See ``Pipeline.load_state_dict``.

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
                    f"the checkpoint was made with {len(saved)} pipelines, the iterator has {len(self._pipelines)}.",
                    hint="To go on with another number of shards, pass the list of the states of all processes.",
                )
            for pipeline, item in zip(self._pipelines, saved, strict=True):
                pipeline.load_state_dict(item)
        self._take_counters()
        self._reported.clear()
        self._prepare()

    def checkpoints(self) -> list[bytes]:
        """Return ``state_dict()`` as one text for each pipeline, to be passed as its ``checkpoint=...``."""
        return [dumps(state) for state in self.state_dict()["pipelines"]]

    def _take_counters(self) -> None:
        """Take over what the iterator before has left in the states of the pipelines.

        Raises:
            CheckpointError: the states are not from one moment, or from an iterator with other options.
        """
        found = [pipeline.iterator_state for pipeline in self._pipelines]
        counters = found[0]
        if any(item != counters for item in found):
            raise CheckpointError(
                "the checkpoints of the pipelines were not made together.",
                hint="Restore all pipelines from one list that checkpoints() returned, in its order.",
            )
        if counters is None:
            if any(each.is_restored_from_checkpoint and not each.has_run for each in self._pipelines):
                warnings.warn(
                    "the pipelines were restored from checkpoints that no iterator made: the iterator counts the "
                    "batches of its first epoch from here. Save iterator.checkpoints() instead of pipe.checkpoint().",
                    stacklevel=4,
                )
            return
        left = self._pipelines[0].left_of_epochs(self._reader_name) if self._reader_name else {}
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
        raise CheckpointError("this is no state of an iterator.", hint="Pass what its state_dict() returned.")
    return saved
