"""The iterator over the batches of pipelines, without names and conversion of the outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self, cast

import numpy as np

from dalify.base.deprecation import warn_at_line, warn_deprecated
from dalify.base.errors import (
    ArgumentTypeError,
    IteratorArgumentError,
    NotAPipelineError,
    as_switch,
    option_error_text,
    short_repr,
)
from dalify.base.fork_lock import ForkLock
from dalify.pipeline import Pipeline
from dalify.plugin.epoch_run import EpochRun, Outputs
from dalify.plugin.epochs import Epochs, LastBatchPolicy, OpenEpochs, ReaderEpochs, SizedEpochs
from dalify.plugin.private_fields import PrivateFields

__all__ = ["PipelineIterator", "checked_pipelines"]


class PipelineIterator(PrivateFields):
    """Returns per batch a list with the outputs of each pipeline, as tensor lists.

    This is the base class of all iterators, and ``_DaliBaseIterator`` of DALI. A subclass may define ``__next__`` with
    the private methods of DALI that `PrivateFields` lists. See `GenericIterator` for the arguments.

    Attributes:
        batch_size: samples in a batch of one pipeline.

    Raises:
        NotAPipelineError: not a pipeline.
        IteratorArgumentError: arguments are out of range or mutually exclusive.
        PipelineStateError: no reader has that name.
    """

    output_map: Sequence[str] = ()  # a subclass may set it before it calls this constructor

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        fresh_epochs: bool = False,
    ) -> None:
        self._pipelines = checked_pipelines(pipelines)
        if not isinstance(reader_name, str | None):
            raise ArgumentTypeError(f"reader_name must be a name or None; got {short_repr(reader_name)}.")
        self.batch_size = self._pipelines[0].max_batch_size
        resets_itself = _checked_auto_reset(auto_reset)
        for pipeline in self._pipelines:
            pipeline.build()
        self._policy = _checked_policy(fill_last_batch, last_batch_policy)
        self._is_padded = as_switch("last_batch_padded", last_batch_padded)
        self._prepare_first_batch = as_switch("prepare_first_batch", prepare_first_batch)
        self._free_lock = ForkLock()
        self._run = EpochRun(
            self._pipelines,
            self._counted(int(size), reader_name, self._policy, self._is_padded),
            self.output_map or [str(number) for number in range(self._pipelines[0].num_outputs)],
            reader_name,
            resets_itself=resets_itself,
            starts_fresh=as_switch("fresh_epochs", fresh_epochs),
            prepares=self._prepare_first_batch,
        )

    def _counted(self, size: int, reader_name: str | None, policy: LastBatchPolicy, is_padded: bool) -> Epochs:
        if size == 0 or size < -1:
            raise IteratorArgumentError(
                f"size must be positive, or -1 if it is not known; got {size}.",
                hint="Omit it, or specify the reader: reader_name='Reader'.",
            )
        if reader_name:
            if size > 0 or is_padded:
                name = "size" if size > 0 else "last_batch_padded"
                raise IteratorArgumentError(
                    f"{name} and reader_name are mutually exclusive: the reader determines {name}."
                )
            metas = [pipeline.reader_meta(reader_name) for pipeline in self._pipelines]
            return ReaderEpochs(metas, self.batch_size, policy)
        if size > 0:
            if not any(pipeline.has_only_sources for pipeline in self._pipelines):
                warn_at_line(
                    "size does not take shards and padding into account: samples may be missing "
                    "or returned twice. Please set `reader_name`, for instance reader_name='Reader', instead of size "
                    "and last_batch_padded, and use that name for the reader.",
                    UserWarning,
                )
            return SizedEpochs(size, self.batch_size, len(self._pipelines), policy, is_padded)
        if policy is not LastBatchPolicy.FILL and all(pipeline.has_endless_data for pipeline in self._pipelines):
            warn_at_line(
                f"without size and reader_name the iterator never ends, so last_batch_policy={policy} has no effect; "
                "specify the reader, for instance reader_name='Reader', and use that name for the reader.",
                UserWarning,
            )
        return OpenEpochs(self.batch_size)

    @property
    def _lock(self) -> ForkLock:
        """The lock that is held while batches are requested.

        Raises:
            PipelineStateError: a pipeline calls this function, and the thread that holds the lock waits for it.
        """
        for pipeline in self._pipelines:
            pipeline.check_caller()
        return self._free_lock

    # -- iteration -----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Self:
        """Begin an epoch, unless this one has not begun yet or was just restored, and return the iterator itself."""
        with self._lock:
            if not self._run.continues and self._first_batch is None:
                self.reset()
            self._run.continues = False
        return self

    def __next__(self) -> Any:
        """Return the outputs of each pipeline.

        Raises:
            StopIteration: the epoch is over.
            Exception: an error in this batch; the next call returns the next batch.
        """
        return self._get_outputs()

    def _get_outputs(self) -> list[Outputs]:
        """Return the outputs of each pipeline, as tensor lists.

        Raises:
            StopIteration: the epoch is over; a batch that is dropped is not returned.
            Exception: an error in this batch; the next call returns the next batch.
        """
        with self._lock:
            outputs, self._counts = self._run.next_outputs()
        return outputs

    def _end_iteration(self) -> NoReturn:
        """End the epoch early."""
        if self._run.resets_itself:
            self.reset()
        raise StopIteration

    def next(self) -> Any:
        """Return the result of ``next(iterator)``."""
        return next(self)

    # -- epochs --------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Begin the next epoch, after the end of this one or within it; no effect before its first batch."""
        with self._lock:
            self._counted_by_subclass = 0
            self._run.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch at its first sample, at any position of the current one.

        Args:
            epoch: number of the epoch, from 0; it determines the order of shuffled readers and the shards.
        """
        with self._lock:
            self._run.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the consumer, after any batch, as JSON data; see ``Pipeline.state_dict``."""
        with self._lock:
            return {"pipelines": self._run.state()}

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
        with self._lock:
            self._run.restore(state)

    def checkpoints(self) -> list[bytes]:
        """Return ``state_dict()`` as one string per pipeline, for ``Pipeline(checkpoint=...)``."""
        return [json.dumps(state, separators=(",", ":")).encode() for state in self.state_dict()["pipelines"]]

    @property
    def epoch(self) -> int:
        """Number of the current epoch, from 0."""
        return self._run.epoch

    @property
    def size(self) -> int:
        """Number of samples of the current epoch, as in DALI: per pipeline with ``reader_name``, otherwise `size`."""
        return self._run.epochs.samples

    def __len__(self) -> int:
        """Return the number of batches of the current epoch; after its end, of the epoch that the next loop begins.

        Raises:
            TypeError: the number is not known without size and reader_name.
        """
        length = self._run.length
        if length is None:
            raise ArgumentTypeError(
                "without size and reader_name the number of batches is not known.",
                hint="Specify the reader: fn.readers.file(..., name='Reader') and reader_name='Reader'.",
            )
        return length


def checked_pipelines(pipelines: Pipeline | Sequence[Pipeline]) -> list[Pipeline]:
    """Return a list of the pipelines.

    Raises:
        NotAPipelineError: there is none, or an object of another class.
        IteratorArgumentError: the batch sizes differ.
    """
    found: list[Pipeline] = list(pipelines) if isinstance(pipelines, (list, tuple)) else [cast("Pipeline", pipelines)]
    if not found:
        raise NotAPipelineError("an iterator requires at least one pipeline.")
    for pipeline in found:
        if not isinstance(pipeline, Pipeline):
            made = " Call the function to create one." if getattr(pipeline, "_is_pipeline_def", False) else ""
            raise NotAPipelineError(f"an iterator requires pipelines; got {type(pipeline).__name__}.{made}")
    sizes = sorted({pipeline.max_batch_size for pipeline in found})
    if len(sizes) > 1:
        raise IteratorArgumentError(
            f"all pipelines of an iterator must have the same batch size; got {', '.join(map(str, sizes))}."
        )
    return found


def _checked_auto_reset(value: bool | str | None) -> bool:
    if value is None or isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(cast("object", value), str) and value in ("yes", "no"):
        return value == "yes"
    raise IteratorArgumentError(option_error_text("auto_reset", value, ("yes", "no", True, False)))


def _checked_policy(fill: bool | None, policy: LastBatchPolicy) -> LastBatchPolicy:
    if fill is not None:
        warn_deprecated("fill_last_batch is now last_batch_policy=LastBatchPolicy.FILL or LastBatchPolicy.PARTIAL.")
        return LastBatchPolicy.FILL if as_switch("fill_last_batch", fill) else LastBatchPolicy.PARTIAL
    if not isinstance(policy, LastBatchPolicy):
        raise IteratorArgumentError(option_error_text("last_batch_policy", policy, LastBatchPolicy))
    return policy
