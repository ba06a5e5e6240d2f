"""The iterators of DALI's PyTorch plugin.

They convert an output to one tensor, a list of tensors, or a nested or sparse tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dalify.base.errors import IteratorArgumentError, OutputMapError, ShapeError, option_error_text
from dalify.base.wording import counted
from dalify.data import TensorListCPU, TensorListGPU, shared_tensor
from dalify.pipeline import Pipeline
from dalify.plugin.collate import COLLATIONS, Collation, arrays_of, empty_dense
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.generic_iterator import ClassificationIterator, GenericIterator


def _nested(name: str, output: TensorListCPU | TensorListGPU, count: int) -> torch.Tensor:
    """Return a nested tensor of torch: jagged if only the first axis differs, otherwise strided."""
    tensors = _tensors(output, count)
    if not tensors:
        offsets = torch.zeros(1, dtype=torch.int64)
        return torch.nested.nested_tensor_from_jagged(
            shared_tensor(empty_dense(output)), offsets, min_seqlen=0, max_seqlen=0
        )
    is_jagged = tensors[0].ndim > 0 and len({tensor.shape[1:] for tensor in tensors}) == 1
    return torch.nested.nested_tensor(tensors, layout=torch.jagged if is_jagged else torch.strided)


def _sparse(name: str, output: TensorListCPU | TensorListGPU, count: int) -> torch.Tensor:
    """Return a sparse tensor of shape ``[N, longest, ...]``, sparse in its first two dimensions.

    Raises:
        ShapeError: a sample has no axes.
    """
    tensors = _tensors(output, count)
    if not tensors:
        return shared_tensor(empty_dense(output)).to_sparse()
    if any(tensor.ndim == 0 for tensor in tensors):
        raise ShapeError(f"the samples of the output {name!r} are single values, which SPARSE_COO_TAG cannot join.")
    lengths = torch.tensor([len(tensor) for tensor in tensors])
    rows = torch.repeat_interleave(torch.arange(len(tensors)), lengths)
    columns = torch.cat([torch.arange(length) for length in lengths.tolist()])
    values = torch.cat(tensors)
    size = (len(tensors), int(lengths.max()), *values.shape[1:])
    return torch.sparse_coo_tensor(torch.stack([rows, columns]).to(values.device), values, size, check_invariants=False)


def _tensors(output: TensorListCPU | TensorListGPU, count: int) -> list[Any]:
    return [shared_tensor(array) for array in arrays_of(output, count)]


_KNOWN: dict[str, Collation] = {**COLLATIONS, "nested": _nested}
_OF_TAGS = {"dense": COLLATIONS["dense"], "sparse_list": COLLATIONS["list"], "sparse_coo": _sparse}


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
        return shared_tensor(array)


class DALIClassificationIterator(ClassificationIterator, DALIGenericIterator):
    """A ``DALIGenericIterator`` for pipelines with two outputs, named ``data`` and ``label``."""


class DALIRaggedIterator(DALIGenericIterator):
    """A ``DALIGenericIterator`` for outputs whose samples differ in shape.

    `output_types` has for each output ``DENSE_TAG`` (one tensor ``[N, ...]``), ``SPARSE_LIST_TAG`` (a list of N
    tensors) or ``SPARSE_COO_TAG`` (one sparse tensor ``[N, longest, ...]`` of samples with at least one dimension); all
    are dense by default. See ``DALIGenericIterator`` for the other arguments.
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
            raise OutputMapError(
                f"output_types has {counted(len(tags), 'entry')} for {counted(len(output_map), 'output')}."
            )
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
