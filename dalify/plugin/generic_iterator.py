"""The base class of the iterators of all frameworks: named outputs and collation.

The options and the samples of every epoch are those of DALI. Unlike DALI, an iterator can end an epoch early: after a
``break``, the next ``for`` loop (or ``reset()``) begins the next epoch at its first sample, whereas DALI continues the
current epoch. Subclasses convert arrays to tensors of a framework.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Concatenate, ParamSpec, cast

import numpy as np

from dalify.base.errors import (
    ArgumentTypeError,
    IteratorArgumentError,
    OutputMapError,
    short_repr,
)
from dalify.base.wording import counted
from dalify.data import to_host
from dalify.pipeline import Pipeline
from dalify.plugin.collate import COLLATIONS, Collation, Packed, Pad, collations
from dalify.plugin.epoch_run import Outputs
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.pipeline_iterator import PipelineIterator, checked_pipelines

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


class GenericIterator(PipelineIterator):
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
        pipelines = checked_pipelines(pipelines)
        self.output_map = _checked_names(self._names_of(_listed(output_map)), pipelines)
        self._output_categories = set(self.output_map)
        self._collations = self._collations_of(collate)
        if not isinstance(valid_name, str | None):
            raise ArgumentTypeError(f"valid_name must be a name or None; got {short_repr(valid_name)}.")
        if valid_name in self.output_map:
            raise IteratorArgumentError(f"valid_name={valid_name!r} is already the name of an output.")
        self._valid_name = valid_name
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            fresh_epochs=fresh_epochs,
        )

    # -- iteration -----------------------------------------------------------------------------------------------------

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
