"""The base class of the iterators of all frameworks: epochs, named outputs, collation.

The options and the samples of every epoch are those of DALI. Unlike DALI, an iterator can end an epoch early: after a
``break``, the next ``for`` loop (or ``reset()``) begins the next epoch at its first sample, whereas DALI continues the
current epoch. Subclasses convert arrays to tensors of a framework.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, cast

import numpy as np

from dalify.base.deprecation import warn_at_line, warn_deprecated
from dalify.base.errors import (
    ArgumentTypeError,
    IteratorArgumentError,
    NotAPipelineError,
    OutputMapError,
    as_switch,
    option_error_text,
    short_repr,
)
from dalify.base.fork_lock import ForkLock
from dalify.base.wording import counted
from dalify.data import to_host
from dalify.pipeline import Pipeline
from dalify.plugin.collate import COLLATIONS, Collation, Packed, Pad, collations
from dalify.plugin.epoch_run import EpochRun, Outputs
from dalify.plugin.epochs import Epochs, LastBatchPolicy, OpenEpochs, ReaderEpochs, SizedEpochs
from dalify.plugin.private_fields import PrivateFields

__all__ = ["ClassificationIterator", "GenericIterator", "naming_the_output", "without_output_map"]

_Options = ParamSpec("_Options")


@contextmanager
def naming_the_output(name: str) -> Iterator[None]:
    """Add the name of an output as a note to exceptions; exceptions of frameworks must keep their type."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This was the output {name!r} of the pipeline.")
        raise


class GenericIterator(PrivateFields):
    """Returns per batch a list with one dictionary of arrays per pipeline.

    The arrays are views of the pipeline's outputs. They stay valid, because memory is reused only when it has no views.
    ``for batch in iterator`` is one epoch; the next loop is the next epoch, also after a ``break``. Several
    threads may call ``next(iterator)``: each batch is returned to one of them.

    Args:
        pipelines: one pipeline, or a list of pipelines.
        output_map: names of the outputs, in their order.
        size: number of samples in an epoch, over all pipelines; prefer `reader_name`. -1: from the reader, or until
            the sources end.
        reader_name: name of the reader that determines size, shards and padding.
        auto_reset: whether the next epoch starts automatically: True, "yes", False, None or "no". A new ``for`` loop
            always starts it.
        fill_last_batch: deprecated; True is FILL, False is PARTIAL.
        dynamic_shape: accepted but ignored: shapes can always change.
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
        self.output_map = _checked_names(self._names_of(_listed(output_map)), self._pipelines)
        self._output_categories = set(self.output_map)
        self._collations = self._collations_of(collate)
        for option, name in (("reader_name", reader_name), ("valid_name", valid_name)):
            if not isinstance(name, str | None):
                raise ArgumentTypeError(f"{option} must be a name or None; got {short_repr(name)}.")
        if valid_name in self.output_map:
            raise IteratorArgumentError(f"valid_name={valid_name!r} is already the name of an output.")
        self._valid_name = valid_name
        self.batch_size = self._pipelines[0].max_batch_size
        resets_itself = _checked_auto_reset(auto_reset)
        for pipeline in self._pipelines:
            pipeline.build()
        self._policy = _checked_policy(fill_last_batch, last_batch_policy)
        self._is_padded = as_switch("last_batch_padded", last_batch_padded)
        self._free_lock = ForkLock()
        self._run = EpochRun(
            self._pipelines,
            self._counted(int(size), reader_name, self._policy, self._is_padded),
            self.output_map,
            reader_name,
            resets_itself=resets_itself,
            starts_fresh=as_switch("fresh_epochs", fresh_epochs),
            prepares=as_switch("prepare_first_batch", prepare_first_batch),
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
            if not self._run.continues:
                self.reset()
            self._run.continues = False
        return self

    def __next__(self) -> list[dict[str, Any]]:
        """Return the next batch of each pipeline.

        Raises:
            StopIteration: the epoch is over.
            Exception: an error in this batch; the next call returns the next batch.
        """
        with self._lock:
            batches = [
                (outputs, count, pipeline.valid[:count])
                for (outputs, count), pipeline in zip(self._run.next_batches(), self._pipelines, strict=False)
            ]
        return [self._convert(*batch) for batch in batches]

    def next(self) -> Any:
        """Return the result of ``next(iterator)``."""
        return next(self)

    # -- conversion ----------------------------------------------------------------------------------------------------

    def _names_of(self, output_map: Sequence[Any]) -> Sequence[str]:
        """Return the names of the outputs."""
        return output_map

    def _collations_of(self, collate: Any) -> list[Collation]:
        """Return the collation of each output."""
        return collations(collate, self.output_map, self._known_collations)

    def _tensor(self, array: Any) -> Any:
        """Return the framework's tensor for a NumPy array, or for a torch tensor on a device."""
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


def without_output_map(
    base: Callable[Concatenate[Any, Any, Any, _Options], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, Any, _Options], None]]:
    """Return a decorator that sets the signature of a constructor to that of ``base`` without ``output_map``."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate[Any, Any, _Options], None]:
        signature = inspect.signature(base)
        others = [item for item in signature.parameters.values() if item.name != "output_map"]
        init.__signature__ = signature.replace(parameters=others)  # pyright: ignore[reportFunctionMemberAccess]
        return init

    return decorate


class ClassificationIterator(GenericIterator):
    """A `GenericIterator` for pipelines with two outputs, named ``data`` and ``label``.

    See `GenericIterator` for the other arguments.
    """

    @without_output_map(GenericIterator.__init__)
    def __init__(self, pipelines: Any, *rest: Any, **options: Any) -> None:
        super().__init__(pipelines, ["data", "label"], *rest, **options)


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


def _listed(names: object) -> list[Any]:
    """Return the entries of an output map.

    Raises:
        OutputMapError: a string.
        ArgumentTypeError: not a list of names.
    """
    text = f"output_map must be a list of names; got {short_repr(names)}."
    if isinstance(names, str):
        raise OutputMapError(text, hint=f"Write output_map=[{short_repr(names)}].")
    try:
        return list(cast("Any", names))
    except Exception:  # no iterable, or of the user's class
        raise ArgumentTypeError(text, hint='For instance: output_map=["data", "label"].') from None


def _checked_names(names: Sequence[str], pipelines: list[Pipeline]) -> list[str]:
    """Return the names of the outputs.

    Raises:
        ArgumentTypeError: an entry is no name.
        OutputMapError: a name occurs twice, or a pipeline has another number of outputs.
    """
    try:
        duplicates = sorted(name for name in set(names) if list(names).count(name) > 1)
    except Exception:  # names are the keys of batches
        raise ArgumentTypeError(f"output_map must be a list of names; got {short_repr(names)}.") from None
    if duplicates:
        raise OutputMapError(
            f"output_map has duplicate names: {', '.join(map(repr, duplicates))}. Each output needs a unique name."
        )
    for pipeline in pipelines:
        if pipeline.num_outputs != len(names):
            raise OutputMapError(
                f"the pipeline has {counted(pipeline.num_outputs, 'output')}, but output_map has "
                f"{counted(len(names), 'name')}: {', '.join(map(str, names))}.",
                hint="Specify one name per output, in the order in which the pipeline returns them.",
            )
    return list(names)
