"""The iterators of DALI's Paddle plugin."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dalify.base.errors import OutputMapError
from dalify.plugin.collate import Collation
from dalify.plugin.frameworks import framework
from dalify.plugin.generic_iterator import ClassificationIterator, GenericIterator
from dalify.plugin.paddle.tensors import as_paddle, of_sequences

paddle = framework("paddle")


class DALIGenericIterator(GenericIterator):
    """Returns per batch a list with one dictionary of Paddle tensors per pipeline; see `GenericIterator`.

    In addition to names, ``output_map`` accepts pairs of a name and a level of detail (LoD): an output with a level of
    1 or more is a ``DenseTensor`` of sequences.

    Example:
        >>> loader = DALIGenericIterator(pipe, ["images", ("words", 1)], reader_name="Reader")
        >>> for (batch,) in loader:
        ...     loss = model(batch["images"])
    """

    _levels: Sequence[int] = ()

    def _names_of(self, output_map: Sequence[Any]) -> Sequence[str]:
        pairs: list[Any] = [(entry, 0) if isinstance(entry, str) else tuple(entry) for entry in output_map]
        for entry in pairs:
            if len(entry) != 2 or not isinstance(entry[1], int) or entry[1] < 0:
                raise OutputMapError(
                    f"an entry of output_map must be a name, or a name and a level of detail from 0; got {entry!r}."
                )
        self._levels = [levels for _, levels in pairs]
        return [name for name, _ in pairs]

    def _collations_of(self, collate: Any) -> list[Collation]:
        chosen = super()._collations_of(collate)
        pairs = zip(self._levels, chosen, strict=True)
        return [functools.partial(of_sequences, levels) if levels else each for levels, each in pairs]

    def _tensor(self, array: Any) -> Any:
        return array if isinstance(array, paddle.base.core.DenseTensor) else as_paddle(array)


class DALIClassificationIterator(ClassificationIterator, DALIGenericIterator):
    """A ``DALIGenericIterator`` for pipelines with two outputs, named ``data`` and ``label``."""
