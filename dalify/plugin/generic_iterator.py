"""The base class of iterators that return dictionaries: named outputs, collation, and one tensor per output.

The iterator of a framework converts an array to a tensor. The default is a NumPy array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from dalify.base.errors import IteratorArgumentError
from dalify.data.exchange import to_host
from dalify.pipeline import Pipeline
from dalify.plugin.base_iterator import BaseIterator, LastBatchPolicy, Outputs, checked_names
from dalify.plugin.collate import COLLATIONS, Collation, Packed, Pad, collations

__all__ = ["ClassificationIterator", "GenericIterator", "naming_the_output"]


@contextmanager
def naming_the_output(name: str) -> Iterator[None]:
    """Add the name of an output to exceptions as a note, because exceptions of frameworks must keep their type."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This was the output {name!r} of the pipeline.")
        raise


class GenericIterator(BaseIterator[dict[str, Any]]):
    """Returns per batch a list with one dictionary of arrays per pipeline.

    The arrays are views of the pipeline's outputs. They stay valid: memory is reused only when no view of it exists.
    ``for batch in iterator`` is one epoch; the next loop is the next epoch, also after a ``break``.

    Args:
        pipelines: one pipeline, or a list of pipelines.
        output_map: names of the outputs, in their order.
        size: number of samples in an epoch, over all pipelines; prefer `reader_name`.
        reader_name: name of the reader that determines size, shards and padding.
        auto_reset: whether the next epoch starts automatically: True, "yes", False, None or "no".
        fill_last_batch: deprecated; use `last_batch_policy`.
        dynamic_shape: accepted without effect; shapes can always change.
        last_batch_padded: with ``size``: the reader has ``pad_last_batch=True``.
        last_batch_policy: FILL, DROP or PARTIAL.
        prepare_first_batch: start to compute the first batches immediately.
        fresh_epochs: start every epoch at the first sample of the shard; see ``BaseIterator``.
        collate: the form of an output: ``dense`` (one array ``[N, ...]``), ``pad`` (filled with zeros to the largest
            sample) or ``Pad(value, multiple)``, ``list`` or ``packed`` (values and offsets); one for all, or a
            dictionary by output name, with ``dense`` as the default.
        valid_name: name of an additional value, bool ``[N]``: which samples are real, not padding or replacements of
            bad samples; None: no such value.

    Raises:
        OutputMapError: the names do not match the outputs.
        IteratorArgumentError: arguments are out of range or mutually exclusive.
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
        self.output_map = list(checked_names(self._names_of(output_map), pipelines))
        self._output_categories = set(self.output_map)
        self._collations = self._collations_of(collate)
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

    def _names_of(self, output_map: Sequence[Any]) -> Sequence[str]:
        """Return the names of the outputs."""
        return output_map

    def _output_name(self, index: int) -> str:
        return repr(self.output_map[index])

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
