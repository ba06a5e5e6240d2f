"""Private attributes of DALI's iterators that subclasses and training scripts use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import NoDataError
from dalify.pipeline import Pipeline
from dalify.plugin.epoch_run import EpochRun
from dalify.plugin.epochs import LastBatchPolicy, OpenEpochs, ReaderEpochs

__all__ = ["PrivateFields"]


def _of_reader(attribute: str) -> property:
    """Return a property that reads an attribute of ``ReaderEpochs``; AttributeError without a reader."""

    def value(iterator: PrivateFields) -> Any:
        if not isinstance(iterator._run.epochs, ReaderEpochs):
            raise AttributeError("only an iterator with reader_name has shards.")
        return getattr(iterator._run.epochs, attribute)

    return property(value)


class PrivateFields:
    """Mixin with these attributes and methods; only ``_counter`` and attributes without a property can be set.

    A subclass written for DALI defines ``__next__`` with these methods, in this order: ``_get_outputs``,
    ``_schedule_runs``, ``_advance_and_check_drop_last``, ``_remove_padded``. Here, ``_get_outputs`` does everything.
    """

    batch_size: int
    _pipelines: list[Pipeline]
    _run: EpochRun
    _policy: LastBatchPolicy
    _is_padded: bool
    _counted_by_subclass = 0
    _first_batch: Any = None  # a batch that the constructor of a subclass has requested
    _prepare_first_batch: bool
    _ever_scheduled = False
    _ever_consumed = False
    _counts: Sequence[int] = ()  # of samples of the last batch that belong to the epoch, by pipeline

    @property
    def _pipes(self) -> Sequence[Pipeline]:
        """The pipelines."""
        return self._pipelines

    @property
    def _num_gpus(self) -> int:
        """The number of pipelines."""
        return len(self._pipelines)

    @property
    def _auto_reset(self) -> str:
        return "yes" if self._run.resets_itself else "no"

    @property
    def _reader_name(self) -> str | None:
        """Name of the reader that determines the epochs."""
        return self._run.reader_name

    @property
    def _size(self) -> int:
        """Number of samples of the epoch; old training scripts compute the number of batches from it."""
        return self._run.epochs.samples

    @property
    def _counter(self) -> int:
        """Number of returned samples of the epoch, including those that the previous epoch returned.

        Subclasses that override ``__next__`` increase it themselves.
        """
        return self._counted_here() + self._counted_by_subclass

    @_counter.setter
    def _counter(self, value: int) -> None:
        self._counted_by_subclass = value - self._counted_here()

    def _counted_here(self) -> int:
        if isinstance(self._run.epochs, ReaderEpochs):
            return int(min(self._counter_per_gpu)) + self._run.delivered * self.batch_size
        return self._run.delivered * self.batch_size * len(self._pipelines)

    @property
    def _last_batch_policy(self) -> LastBatchPolicy:
        return LastBatchPolicy.FILL if isinstance(self._run.epochs, OpenEpochs) else self._policy

    @property
    def _last_batch_padded(self) -> bool:
        reader = self._run.epochs
        return reader.is_padded if isinstance(reader, ReaderEpochs) else self._is_padded

    def _schedule_runs(self, release_outputs: bool = True) -> None:
        """Do nothing: batches are scheduled in advance."""

    def _advance_and_check_drop_last(self, dry_run: bool = False, end_iteration: bool = True) -> bool:
        """Return False: the last batch need not be dropped."""
        return False

    def _remove_padded(self) -> tuple[Any, Any]:
        """Return whether and how many samples of the last batch belong to the epoch, by pipeline; (False, -1): all."""
        if self._last_batch_policy is not LastBatchPolicy.PARTIAL:
            return False, -1
        left = np.array(self._counts, np.int64)
        return left < self.batch_size, left

    def _report_no_data_in_pipeline(self) -> None:
        """Raise an error if the first batch is missing.

        Raises:
            NoDataError: the pipelines were not restored from a checkpoint, which may be at the end of an epoch.
        """
        if not any(pipeline.is_restored_from_checkpoint for pipeline in self._pipelines):
            raise NoDataError(
                "the pipelines have returned no batch.",
                hint="With LastBatchPolicy.DROP, an epoch may have fewer samples than a batch.",
            )

    _size_no_pad: Any = _of_reader("size")
    _shards_num: Any = _of_reader("shards")
    _shards_id: Any = _of_reader("shard_ids")
    _is_stick_to_shard: Any = _of_reader("stick_to_shard")
    _shard_sizes_per_gpu: Any = _of_reader("sizes")
    _counter_per_gpu: Any = _of_reader("ahead")
