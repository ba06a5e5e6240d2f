"""The base class of the iterators of all frameworks: epochs, named outputs, collation, one tensor per output.

The options and the samples of every epoch are those of DALI. Unlike DALI, an iterator can end an epoch early: after a
``break``, the next ``for`` loop (or ``reset()``) begins the next epoch at its first sample. DALI would continue the old
one. The iterator of a framework converts an array to a tensor. The default is a NumPy array.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, NoReturn, Self, cast

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
from dalify.data.exchange import to_host
from dalify.pipeline import Pipeline
from dalify.plugin.collate import COLLATIONS, Collation, Packed, Pad, collations
from dalify.plugin.epochs import Epochs, LastBatchPolicy, OpenEpochs, ReaderEpochs, SizedEpochs
from dalify.plugin.private_fields import PrivateFields
from dalify.plugin.resuming import ResumableIterator

__all__ = ["ClassificationIterator", "GenericIterator", "Outputs", "naming_the_output"]

Outputs = tuple[TensorListCPU | TensorListGPU, ...]
_SHOWN_BAD_SAMPLES = 5


@contextmanager
def naming_the_output(name: str) -> Iterator[None]:
    """Add the name of an output to exceptions as a note, because exceptions of frameworks must keep their type."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This was the output {name!r} of the pipeline.")
        raise


class GenericIterator(ResumableIterator, PrivateFields):
    """Returns per batch a list with one dictionary of arrays per pipeline.

    The arrays are views of the pipeline's outputs. They stay valid: memory is reused only when no view of it exists.
    ``for batch in iterator`` is one epoch; the next loop is the next epoch, also after a ``break``.

    Args:
        pipelines: one pipeline, or a list of pipelines.
        output_map: names of the outputs, in their order.
        size: number of samples in an epoch, over all pipelines; prefer `reader_name`. -1: from the reader, or until
            the sources end.
        reader_name: name of the reader that determines size, shards and padding.
        auto_reset: whether the next epoch starts automatically: True, "yes", False, None or "no". A new ``for`` loop
            always starts it.
        fill_last_batch: deprecated; True is FILL, False is PARTIAL.
        dynamic_shape: accepted without effect; shapes can always change.
        last_batch_padded: with ``size``: the reader has ``pad_last_batch=True``.
        last_batch_policy: FILL, DROP or PARTIAL.
        prepare_first_batch: start to compute the first batches immediately.
        fresh_epochs: start every epoch at the first sample of the shard, so that ``len()`` never changes and no sample
            moves to the next epoch; otherwise, and in DALI, samples that fill the last batch are missing from the next
            epoch.
        collate: the form of an output: ``dense`` (one array ``[N, ...]``), ``pad`` (filled with zeros to the largest
            sample) or ``Pad(value, multiple)``, ``list`` or ``packed`` (values and offsets); one for all, or a
            dictionary by output name, with ``dense`` as the default.
        valid_name: name of an additional value, bool ``[N]``: which samples are real, not padding or replacements of
            bad samples; None: no such value.

    Attributes:
        batch_size: samples in a batch of one pipeline.

    Raises:
        NotAPipelineError: not a pipeline.
        OutputMapError: the names do not match the outputs.
        IteratorArgumentError: arguments are out of range or mutually exclusive.
        PipelineStateError: no reader has that name.
        ShapeError: (in an epoch) the samples of an output have different shapes.
    """

    _known_collations: ClassVar[Mapping[str, Collation]] = COLLATIONS

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        fresh_epochs: bool = False,
        collate: Mapping[str, str | Pad] | str | Pad | None = None,
        valid_name: str | None = None,
    ) -> None:
        self._pipelines = _checked_pipelines(pipelines)
        self.output_map = _checked_names(self._names_of(output_map), self._pipelines)
        self._output_categories = set(self.output_map)
        self._collations = self._collations_of(collate)
        if valid_name in self.output_map:
            raise IteratorArgumentError(f"valid_name={valid_name!r} is already the name of an output.")
        self._valid_name = valid_name
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

    def __iter__(self) -> Self:
        """Begin an epoch, unless this one has not begun yet or was just restored, and return the iterator itself."""
        if not self._continues:
            self.reset()
        self._continues = False
        return self

    def __next__(self) -> list[dict[str, Any]]:
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
        batches: list[dict[str, Any]] = []
        for index, item in enumerate(outputs):
            count = min(self._epochs.kept(index, number), len(item[0]) if item else 0)
            if count == 0 and isinstance(self._epochs, SizedEpochs):
                break  # a previous pipeline ended the epoch
            batches.append(self._convert(item, count, self._pipelines[index].valid[:count]))
        return batches

    def next(self) -> list[dict[str, Any]]:
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

    def _check_sizes(self, outputs: list[Outputs]) -> None:
        for items in outputs:
            for index, item in enumerate(items):
                if len(item) != self.batch_size:
                    raise PartialBatchError(
                        f"the output {self.output_map[index]!r} has {len(item)} samples instead of {self.batch_size}; "
                        "with size or reader_name all batches must be full.",
                        hint="Omit size and reader_name: the epoch then lasts until the source ends.",
                    )

    # -- conversion ----------------------------------------------------------------------------------------------------

    def _names_of(self, output_map: Sequence[Any]) -> Sequence[str]:
        """Return the names of the outputs."""
        return output_map

    def _collations_of(self, collate: Any) -> list[Collation]:
        """Return the collation of each output."""
        return collations(collate, self.output_map, self._known_collations)

    def _tensor(self, array: Any) -> Any:
        """Return the framework's tensor for an array of NumPy, or of torch on a device."""
        return array if isinstance(array, np.ndarray) else to_host(array)

    def _convert(self, outputs: Outputs, count: int, valid: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Any]:
        batch: dict[str, Any] = {}
        for name, collate, output in zip(self.output_map, self._collations, outputs, strict=True):
            collated = collate(name, output, count)
            with naming_the_output(name):
                batch[name] = self._tensors(collated)
        if self._valid_name is not None:
            batch[self._valid_name] = self._tensor(valid)
        return batch

    def _tensors(self, collated: Any) -> Any:
        if isinstance(collated, list):
            return [self._tensor(array) for array in collated]
        if isinstance(collated, Packed):
            return Packed(self._tensor(collated.values), self._tensor(collated.offsets))
        return self._tensor(collated)

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


class ClassificationIterator(GenericIterator):
    """A `GenericIterator` for pipelines with two outputs, named ``data`` and ``label``.

    The other arguments are those of `GenericIterator`.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        fresh_epochs: bool = False,
        collate: Mapping[str, str | Pad] | str | Pad | None = None,
        valid_name: str | None = None,
    ) -> None:
        super().__init__(
            pipelines,
            ["data", "label"],
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            fresh_epochs=fresh_epochs,
            collate=collate,
            valid_name=valid_name,
        )


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


def _checked_names(names: Sequence[str], pipelines: list[Pipeline]) -> list[str]:
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
    for pipeline in pipelines:
        if pipeline.num_outputs != len(names):
            raise OutputMapError(
                f"the pipeline has {pipeline.num_outputs} outputs, but output_map has {len(names)} names: "
                f"{', '.join(names)}.",
                hint="Specify one name per output, in the order in which the pipeline returns them.",
            )
    return list(names)
