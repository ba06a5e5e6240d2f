"""The iterators of DALI's PyTorch plugin.

They convert an output to one tensor, a list of tensors, or a sparse tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dalify.base.errors import IteratorArgumentError, OutputMapError, option_error_text
from dalify.pipeline import Pipeline
from dalify.plugin.base_iterator import LastBatchPolicy
from dalify.plugin.collate import COLLATIONS, Collation
from dalify.plugin.generic_iterator import ClassificationIterator, GenericIterator
from dalify.plugin.pytorch.joining import nested, sparse
from dalify.plugin.pytorch.tensors import as_tensor

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "DALIRaggedIterator"]


_KNOWN: dict[str, Collation] = {**COLLATIONS, "nested": nested}
_OF_TAGS = {"dense": COLLATIONS["dense"], "sparse_list": COLLATIONS["list"], "sparse_coo": sparse}


class DALIGenericIterator(GenericIterator):
    """Returns per batch a list with one dictionary of torch tensors per pipeline; see `GenericIterator`.

    ``collate`` also accepts ``nested``, which returns a nested tensor.

    Example:
        >>> loader = DALIGenericIterator(pipe, ["images", "labels"], reader_name="Reader")
        >>> for (batch,) in loader:
        ...     model(batch["images"])
    """

    _known_collations = _KNOWN

    def _tensor(self, array: Any) -> torch.Tensor:
        return as_tensor(array)


class DALIClassificationIterator(ClassificationIterator, DALIGenericIterator):
    """A ``DALIGenericIterator`` for pipelines with two outputs, named ``data`` and ``label``."""


class DALIRaggedIterator(DALIGenericIterator):
    """A ``DALIGenericIterator`` for outputs whose samples differ in shape.

    `output_types` has for each output ``DENSE_TAG`` (one tensor ``[N, ...]``), ``SPARSE_LIST_TAG`` (a list of N
    tensors) or ``SPARSE_COO_TAG`` (one sparse tensor ``[N, longest, ...]`` of samples with at least one dimension); all
    are dense by default. The other arguments are those of ``DALIGenericIterator``.
    """

    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        fresh_epochs: bool = False,
        valid_name: str | None = None,
    ) -> None:
        tags = tuple(output_types) if output_types is not None else (self.DENSE_TAG,) * len(output_map)
        for tag in tags:
            if tag not in _OF_TAGS:
                raise IteratorArgumentError(option_error_text("output_types", tag, _OF_TAGS))
        if len(tags) != len(output_map):
            raise OutputMapError(f"output_types has {len(tags)} entries for {len(output_map)} outputs.")
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            fresh_epochs=fresh_epochs,
            valid_name=valid_name,
        )
        self._collations = [_OF_TAGS[tag] for tag in tags]
