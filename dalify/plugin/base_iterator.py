"""The base class of the iterators of all frameworks: epochs, resets, several pipelines in lockstep.

The options and the samples of every epoch are those of DALI. Unlike DALI, an iterator can end an epoch early: after a
``break``, the next ``for`` loop (or ``reset()``) begins the next epoch at its first sample. DALI would continue the old
one.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Generic, NoReturn, TypeVar, cast

import numpy as np

from dalify.base.deprecation import warn_at_line, warn_deprecated
from dalify.base.errors import (
    ArgumentTypeError,
    BadSampleWarning,
    IteratorArgumentError,
    NotAPipelineError,
    OutputMapError,
    PartialBatchError,
    option_error_text,
)
from dalify.base.first_error import FirstError
from dalify.data import TensorListCPU, TensorListGPU
from dalify.pipeline import Pipeline
from dalify.plugin.epochs import Epochs, LastBatchPolicy, OpenEpochs, ReaderEpochs, SizedEpochs
from dalify.plugin.private_fields import PrivateFields
from dalify.plugin.resuming import ResumableIterator

__all__ = ["BaseIterator", "LastBatchPolicy", "checked_names"]

T = TypeVar("T")
_SHOWN_BAD_SAMPLES = 5
Outputs = tuple[TensorListCPU | TensorListGPU, ...]


class BaseIterator(ResumableIterator, PrivateFields, Generic[T]):
    """An iterator over the batches of one or more pipelines. Frameworks add the conversion of a batch.

    Args:
        pipelines: one pipeline, or several that run in lockstep.
        size: samples of an epoch, over all pipelines; -1: from the reader, or until the sources end.
        reader_name: name of the reader that determines the size of an epoch.
        auto_reset: whether the next epoch begins automatically: True, "yes", False, None or "no". A new ``for`` loop
            always begins it.
        fill_last_batch: deprecated; True is FILL, False is PARTIAL.
        last_batch_padded: with ``size``: the reader pads the last batch.
        last_batch_policy: what to do with a partial last batch.
        prepare_first_batch: start computing the first batches immediately.
        fresh_epochs: begin every epoch at the first sample of the shard, so that ``len()`` never changes and no sample
            moves to the next epoch; otherwise, and in DALI, samples that fill the last batch are missing from the next
            epoch.

    Attributes:
        batch_size: samples in a batch of one pipeline.

    Raises:
        NotAPipelineError: not a pipeline.
        IteratorArgumentError: arguments out of range, or mutually exclusive arguments.
        PipelineStateError: no reader has that name.
    """

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
        self._pipelines = _checked_pipelines(pipelines)
        self.batch_size = self._pipelines[0].max_batch_size
        self._resets_itself = _checked_auto_reset(auto_reset)
        self._prepares = prepare_first_batch
        self._fresh_epochs = fresh_epochs
        for pipeline in self._pipelines:
            pipeline.build()
        # After another iterator, the next epoch; batches of `run` before do not count.
        self._epoch = max(pipeline.next_epoch for pipeline in self._pipelines)
        for pipeline in self._pipelines:
            if pipeline.has_run:
                pipeline.start_epoch(self._epoch)
        self._policy = _checked_policy(fill_last_batch, last_batch_policy)
        self._is_padded = last_batch_padded
        self._reader_name = reader_name
        self._epochs = self._counted(int(size), reader_name, self._policy, last_batch_padded)
        if self._epoch:
            self._epochs.restart(self._epoch)
        self._is_sized = self._epochs.batches is not None
        self._delivered = 0  # batches of this epoch
        self._is_over = False  # the epoch has ended, and the next one has not begun
        self._reported: Counter[int] = Counter()  # number of reported bad samples, by pipeline
        # The last epoch ended by its number of batches, so the sources may be exhausted when this one begins.
        self._may_be_exhausted = False
        self._take_counters()
        self._prepare()

    def _counted(self, size: int, reader_name: str | None, policy: LastBatchPolicy, is_padded: bool) -> Epochs:
        if size == 0:
            raise IteratorArgumentError(
                "size must not be 0.", hint="Omit it, or specify the reader: reader_name='Reader'."
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

    # -- iteration -----------------------------------------------------------------------------------------------------

    def _convert(self, outputs: Outputs, count: int, valid: np.ndarray[Any, np.dtype[np.bool_]]) -> T:
        """Convert the outputs of one pipeline to the framework.

        Args:
            outputs: outputs of one batch.
            count: number of samples to return.
            valid: which of them are real; see ``Pipeline.valid``.
        """
        raise AssertionError("dalify bug: an iterator without _convert")

    def __iter__(self) -> BaseIterator[T]:
        """Begin an epoch, unless this one has not begun yet or was just restored, and return the iterator itself."""
        if not self._continues:
            self.reset()
        self._continues = False
        return self

    def __next__(self) -> list[T]:
        """Return the next batch of each pipeline.

        Raises:
            StopIteration: the epoch is over.
            Exception: an error in this batch; the next call returns the next batch.
        """
        self._continues = False
        if self._is_over:
            raise StopIteration
        if self._delivered == self._epochs.batches:
            self._end()
        outputs = self._fetch()
        number = self._delivered
        self._delivered += 1
        batches: list[T] = []
        for index, item in enumerate(outputs):
            count = min(self._epochs.kept(index, number), len(item[0]) if item else 0)
            if count == 0 and isinstance(self._epochs, SizedEpochs):
                break  # a previous pipeline ended the epoch
            batches.append(self._convert(item, count, self._pipelines[index].valid[:count]))
        return batches

    def next(self) -> list[T]:
        """Return the next batch of each pipeline, like ``next(iterator)``."""
        return self.__next__()

    def _fetch(self) -> list[Outputs]:
        try:
            outputs = self._fetch_once()
        except StopIteration:
            if self._is_sized and self._delivered == 0 and self._may_be_exhausted:
                # The previous epoch ended with the last batch of the source, whose end is only detected now.
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
        for pipeline in self._pipelines:
            pipeline.next_epoch = self._epoch + 1
            try:
                outputs.append(pipeline.next_outputs())
            except StopIteration:
                raise
            except Exception as error:
                failure.record(error)
        if failure:
            self._delivered += 1  # the batch is lost in all pipelines, so that they stay in lockstep
            failure.raise_first()
        return outputs

    def _output_name(self, index: int) -> str:
        """Return the name of an output for messages."""
        return str(index)

    def _check_sizes(self, outputs: list[Outputs]) -> None:
        for items in outputs:
            for index, item in enumerate(items):
                if len(item) != self.batch_size:
                    raise PartialBatchError(
                        f"the output {self._output_name(index)} has {len(item)} samples instead of {self.batch_size}; "
                        "with size or reader_name all batches must be full.",
                        hint="Omit size and reader_name: the epoch then lasts until the source ends.",
                    )

    # -- epochs --------------------------------------------------------------------------------------------------------

    def _end(self) -> NoReturn:
        """End the epoch."""
        self._is_over = True
        self._report_bad_samples()
        if self._resets_itself:
            self._begin_next()
        raise StopIteration

    def _report_bad_samples(self) -> None:
        found: list[Any] = []
        count = 0
        for number, pipeline in enumerate(self._pipelines):
            new = max(0, pipeline.bad_count - self._reported[number])
            self._reported[number] = pipeline.bad_count
            count += new
            found += pipeline.bad_samples()[-new:] if new else []
        if not count:
            return
        first = "".join(f"\n  {sample}" for sample in found[:_SHOWN_BAD_SAMPLES])
        more = f"\n  ... and {count - _SHOWN_BAD_SAMPLES} more" if count > _SHOWN_BAD_SAMPLES else ""
        samples = "1 sample" if count == 1 else f"{count} samples"
        text = f"{samples} of epoch {self._epoch} could not be used; pipe.bad_samples() lists them:{first}{more}"
        warn_at_line(text, BadSampleWarning)

    def reset(self) -> None:
        """Begin the next epoch, after the end of this one or within it; no effect before its first batch."""
        self._continues = False
        self._counted_by_subclass = 0
        if self._is_over or (self._delivered and self._delivered == self._epochs.batches):
            self._begin_next()
        elif self._delivered:
            self.set_epoch(self._epoch + 1)

    def _begin_next(self) -> None:
        """Begin the next epoch after the end of this one."""
        if self._fresh_epochs and self._is_sized:
            self.set_epoch(self._epoch + 1)
            return
        if self._delivered == self._epochs.batches:
            for _ in range(self._epochs.surplus):
                self._skip()
            self._may_be_exhausted = True
        self._epochs.advance()
        self._epoch += 1
        if not self._is_sized or any(pipeline.is_at_end for pipeline in self._pipelines):
            self._reset_sources()
        self._delivered = 0
        self._is_over = False
        self._prepare()

    def _skip(self) -> None:
        for pipeline in self._pipelines:
            # The batch is dropped; if the sources ended with the epoch, there is none.
            with suppress(Exception):
                pipeline.next_outputs()

    def _reset_sources(self) -> None:
        for pipeline in self._pipelines:
            pipeline.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch at its first sample, at any position of the current one.

        Args:
            epoch: number of the epoch, from 0; it determines the order of shuffled readers and the shards.
        """
        for pipeline in self._pipelines:
            pipeline.start_epoch(epoch)
        self._epochs.restart(epoch)
        self._epoch = epoch
        self._delivered = 0
        self._is_over = False
        self._may_be_exhausted = False
        self._prepare()

    def _prepare(self) -> None:
        if self._prepares:
            for pipeline in self._pipelines:
                pipeline.prepare()

    # -- properties ----------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """Number of the current epoch, from 0."""
        return self._epoch

    @property
    def size(self) -> int:
        """Number of samples of the current epoch, as in DALI: per pipeline with ``reader_name``, otherwise `size`."""
        return self._epochs.samples

    def __len__(self) -> int:
        """Return the number of batches of the current epoch; after its end, of the one that the next loop begins.

        Raises:
            TypeError: the number is not known without size and reader_name.
        """
        epochs = self._epochs
        if self._is_over:
            epochs = copy.copy(epochs)
            epochs.restart(self._epoch + 1) if self._fresh_epochs else epochs.advance()
        if epochs.batches is None:
            raise ArgumentTypeError(
                "without size and reader_name the number of batches is not known.",
                hint="Specify the reader: fn.readers.file(..., name='Reader') and reader_name='Reader'.",
            )
        return epochs.batches


def _checked_pipelines(pipelines: Pipeline | Sequence[Pipeline]) -> list[Pipeline]:
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
    if value is None or value is False or value == "no":
        return False
    if value is True or value == "yes":
        return True
    raise IteratorArgumentError(option_error_text("auto_reset", value, ("yes", "no", True, False)))


def _checked_policy(fill: bool | None, policy: LastBatchPolicy) -> LastBatchPolicy:
    if fill is not None:
        warn_deprecated("fill_last_batch is now last_batch_policy=LastBatchPolicy.FILL or LastBatchPolicy.PARTIAL.")
        return LastBatchPolicy.FILL if fill else LastBatchPolicy.PARTIAL
    if not isinstance(policy, LastBatchPolicy):
        raise IteratorArgumentError(option_error_text("last_batch_policy", policy, LastBatchPolicy))
    return policy


def checked_names(names: Sequence[str], pipelines: Pipeline | Sequence[Pipeline]) -> tuple[str, ...]:
    """Return the names of the outputs.

    Raises:
        OutputMapError: a name twice, or more or fewer names than a pipeline has outputs.
    """
    if isinstance(names, str):
        raise OutputMapError(
            f"output_map must be a list of names; got {names!r}.", hint=f"Write output_map=[{names!r}]."
        )
    duplicates = sorted({name for name in names if list(names).count(name) > 1})
    if duplicates:
        raise OutputMapError(
            f"output_map has duplicate names: {', '.join(map(repr, duplicates))}. Each output needs a unique name."
        )
    for pipeline in _checked_pipelines(pipelines):
        if pipeline.num_outputs != len(names):
            raise OutputMapError(
                f"the pipeline has {pipeline.num_outputs} outputs, but output_map has {len(names)} names: "
                f"{', '.join(names)}.",
                hint="Specify one name per output, in the order in which the pipeline returns them.",
            )
    return tuple(names)
