"""Runs the pipelines of an iterator and saves the position of their consumer.

A state consists of the states of the pipelines, which all contain the counters of the iterator. So the list of DALI's
``checkpoints()`` and the dictionary of ``state_dict()`` have the same content.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

from dalify.base.deprecation import warn_at_line
from dalify.base.errors import BadSampleWarning, CheckpointError, PartialBatchError
from dalify.base.first_error import FirstError
from dalify.base.wording import counted
from dalify.data import TensorListCPU, TensorListGPU
from dalify.pipeline import Pipeline
from dalify.plugin.epochs import Epochs, SizedEpochs

__all__ = ["EpochRun", "Outputs"]

Outputs = tuple[TensorListCPU | TensorListGPU, ...]
_SHOWN_BAD_SAMPLES = 5


@dataclass(eq=False, repr=False)
class EpochRun:
    """Runs built pipelines together, epoch after epoch: each returns one batch per step.

    Args:
        pipelines: built pipelines with the same batch size.
        epochs: counts the batches of an epoch.
        names: names of the outputs, for error messages.
        reader_name: name of the reader that determines the epochs; None without one.
        resets_itself: begin the next epoch when one has ended.
        starts_fresh: begin every epoch at the first sample of the shard.
        prepares: start to compute the first batches of an epoch immediately.

    Attributes:
        epoch: number of the current epoch, from 0.
        delivered: number of batches of this epoch that were returned.
        continues: True if the next loop continues in the middle of an epoch.

    Raises:
        CheckpointError: the pipelines were restored from states that were not saved together, or by an iterator with
            other options.
    """

    pipelines: Sequence[Pipeline]
    epochs: Epochs
    names: Sequence[str]
    reader_name: str | None
    _: KW_ONLY
    resets_itself: bool
    starts_fresh: bool
    prepares: bool

    def __post_init__(self) -> None:
        # After another iterator, its next epoch. Earlier batches of `Pipeline.run` are not counted.
        self.epoch = max(pipeline.next_epoch for pipeline in self.pipelines)
        for pipeline in self.pipelines:
            if pipeline.has_run:
                pipeline.start_epoch(self.epoch)
        if self.epoch:
            self.epochs.restart(self.epoch)
        self.delivered = 0
        self.continues = False
        self._is_over = False  # the epoch has ended, and the next one has not begun
        # The last epoch ended by its number of batches, so the sources may be exhausted when this one begins.
        self._may_be_exhausted = False
        self._reported: Counter[int] = Counter()  # number of reported bad samples, by pipeline
        self._take_counters()
        self._prepare()

    @property
    def _is_sized(self) -> bool:
        return self.epochs.batches is not None

    @property
    def length(self) -> int | None:
        """Number of batches of the current epoch, or of the next one after its end; None if unknown."""
        epochs = self.epochs
        if self._is_over:
            epochs = copy.copy(epochs)
            epochs.restart(self.epoch + 1) if self.starts_fresh else epochs.advance()
        return epochs.batches

    # -- batches -------------------------------------------------------------------------------------------------------

    def next_batches(self) -> list[tuple[Outputs, int]]:
        """Return for each pipeline its outputs and the number of their samples that belong to the epoch.

        Pipelines after the end of the epoch are omitted.

        Raises:
            StopIteration: the epoch is over.
            Exception: an error in this batch; the next call returns the next batch.
        """
        batches = list(zip(*self.next_outputs(), strict=True))
        if isinstance(self.epochs, SizedEpochs):  # a previous pipeline may have ended the epoch
            return list(itertools.takewhile(lambda batch: batch[1], batches))
        return batches

    def next_outputs(self) -> tuple[list[Outputs], list[int]]:
        """Return the outputs of each pipeline, and for each the number of samples that belong to the epoch.

        Raises:
            StopIteration: the epoch is over.
            Exception: an error in this batch; the next call returns the next batch.
        """
        self.continues = False
        if self._is_over:
            raise StopIteration
        if self.delivered == self.epochs.batches:
            self._end()
        outputs = self._fetch()
        number = self.delivered
        self.delivered += 1
        sizes = [len(item[0]) if item else 0 for item in outputs]
        return outputs, [min(self.epochs.kept(index, number), size) for index, size in enumerate(sizes)]

    def _fetch(self) -> list[Outputs]:
        try:
            outputs = self._fetch_once()
        except StopIteration:
            if self._is_sized and self.delivered == 0 and self._may_be_exhausted:
                # The previous epoch ended with the last batch of the source; its end is detected only now.
                self._may_be_exhausted = False
                self._reset_sources()
                return self._fetch()
            self._end()
        self._may_be_exhausted = False
        if self._is_sized:
            self._check_sizes(outputs)
        return outputs

    def _fetch_once(self) -> list[Outputs]:
        outputs: list[Outputs] = []
        failure = FirstError()
        for pipeline in self.pipelines:
            pipeline.next_epoch = self.epoch + 1
            try:
                outputs.append(pipeline.next_outputs())
            except StopIteration:
                raise
            except Exception as error:
                failure.record(error)
        if failure:
            self.delivered += 1  # the batch is lost in all pipelines, so that their positions stay equal
            failure.raise_first()
        return outputs

    def _check_sizes(self, outputs: list[Outputs]) -> None:
        size = self.pipelines[0].max_batch_size
        for items in outputs:
            for index, item in enumerate(items):
                if len(item) != size:
                    raise PartialBatchError(
                        f"the output {self.names[index]!r} has {counted(len(item), 'sample')} instead of {size}; "
                        "with size or reader_name all batches must be full.",
                        hint="Omit size and reader_name: the epoch then lasts until the source ends.",
                    )

    # -- epochs --------------------------------------------------------------------------------------------------------

    def _end(self) -> NoReturn:
        """End the epoch and raise StopIteration."""
        self._is_over = True
        self._report_bad_samples()
        if self.resets_itself:
            self._begin_next()
        raise StopIteration

    def _report_bad_samples(self) -> None:
        found: list[Any] = []
        count = 0
        for number, pipeline in enumerate(self.pipelines):
            new = max(0, pipeline.bad_count - self._reported[number])
            self._reported[number] = pipeline.bad_count
            count += new
            found += pipeline.bad_samples()[-new:] if new else []
        if not count:
            return
        first = "".join(f"\n  {sample}" for sample in found[:_SHOWN_BAD_SAMPLES])
        more = f"\n  ... and {count - _SHOWN_BAD_SAMPLES} more" if count > _SHOWN_BAD_SAMPLES else ""
        samples = counted(count, "sample")
        text = f"{samples} of epoch {self.epoch} could not be used; pipe.bad_samples() lists them:{first}{more}"
        warn_at_line(text, BadSampleWarning)

    def reset(self) -> None:
        """Begin the next epoch, after the end of this one or within it; no effect before its first batch."""
        self.continues = False
        if self._is_over or (self.delivered and self.delivered == self.epochs.batches):
            self._begin_next()
        elif self.delivered:
            self.set_epoch(self.epoch + 1)

    def _begin_next(self) -> None:
        """Begin the next epoch after the end of this one."""
        if self.starts_fresh and self._is_sized:
            self.set_epoch(self.epoch + 1)
            return
        if self.delivered == self.epochs.batches:
            for _ in range(self.epochs.surplus):
                self._skip()
            self._may_be_exhausted = True
        self.epochs.advance()
        self.epoch += 1
        if not self._is_sized or any(pipeline.is_at_end for pipeline in self.pipelines):
            self._reset_sources()
        self.delivered = 0
        self._is_over = False
        self._prepare()

    def _skip(self) -> None:
        for pipeline in self.pipelines:
            # The batch is dropped; if the sources ended with the epoch, there is none.
            with suppress(Exception):
                pipeline.next_outputs()

    def _reset_sources(self) -> None:
        for pipeline in self.pipelines:
            pipeline.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch at its first sample, at any position of the current one.

        Args:
            epoch: number of the epoch, from 0; it determines the order of shuffled readers and the shards.
        """
        for pipeline in self.pipelines:
            pipeline.start_epoch(epoch)
        self.epochs.restart(epoch)
        self.epoch = epoch
        self.delivered = 0
        self._is_over = False
        self._may_be_exhausted = False
        self._prepare()

    def _prepare(self) -> None:
        if self.prepares:
            for pipeline in self.pipelines:
                pipeline.prepare()

    # -- states --------------------------------------------------------------------------------------------------------

    def state(self) -> list[dict[str, Any]]:
        """Return the states of the pipelines at the position of the consumer, as JSON-ready data."""
        counters = {
            "epoch": self.epoch,
            "delivered": self.delivered,
            "is_over": self._is_over,
            "may_be_exhausted": self._may_be_exhausted,
            "epochs": self.epochs.state(),
        }
        return [pipeline.state_dict(counters) for pipeline in self.pipelines]

    def restore(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Continue at the position of the state of an iterator, or of the states of all processes.

        Raises:
            CheckpointError: the state belongs to other pipelines or to an iterator with other options.
        """
        if isinstance(state, Sequence) and not isinstance(state, (str, bytes)):
            of_all = [item for each in state for item in _pipelines_of(each)]
            for pipeline in self.pipelines:
                pipeline.load_state_dict(of_all)
        else:
            saved = _pipelines_of(state)
            if len(saved) != len(self.pipelines):
                raise CheckpointError(
                    f"the checkpoint has {counted(len(saved), 'pipeline')}, the iterator has {len(self.pipelines)}.",
                    hint="To continue with another number of shards, pass the list of the states of all processes.",
                )
            for pipeline, item in zip(self.pipelines, saved, strict=True):
                pipeline.load_state_dict(item)
        self._take_counters()
        self._reported.clear()
        self._prepare()

    def _take_counters(self) -> None:
        """Restore the counters from the states of the pipelines.

        Raises:
            CheckpointError: the states were not saved together, or by an iterator with other options.
        """
        found = [pipeline.iterator_state for pipeline in self.pipelines]
        counters = found[0]
        if any(item != counters for item in found):
            raise CheckpointError(
                "the checkpoints of the pipelines were not saved together.",
                hint="Restore all pipelines from one result of checkpoints(), in its order.",
            )
        if counters is None:
            if any(each.is_restored_from_checkpoint and not each.has_run for each in self.pipelines):
                warn_at_line(
                    "the pipelines were restored from checkpoints without an iterator: the first epoch of the iterator "
                    "begins at this position. Save iterator.checkpoints() instead of pipe.checkpoint().",
                    UserWarning,
                )
            return
        left = self.pipelines[0].remaining_of_epochs(self.reader_name) if self.reader_name else {}
        if left and counters["epochs"]["counts"] != self.epochs.state()["counts"]:
            self.epochs.divide(counters["epochs"], counters["delivered"], left)
        else:
            self.epochs.restore(counters["epochs"])
        self.epoch = counters["epoch"]
        self.delivered = counters["delivered"]
        self._is_over = counters["is_over"]
        self._may_be_exhausted = counters["may_be_exhausted"]
        self.continues = not self._is_over


def _pipelines_of(state: Any) -> Sequence[Mapping[str, Any]]:
    saved = state.get("pipelines") if isinstance(state, Mapping) else None
    if not isinstance(saved, Sequence) or isinstance(saved, (str, bytes)):
        raise CheckpointError("not a state of an iterator.", hint="Pass the result of its state_dict().")
    return saved
