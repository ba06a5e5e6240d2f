"""The iterators of DALI's PyTorch plugin.

They differ in what an output becomes: one tensor, a list of tensors, or a sparse tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dalify.base.errors import ArgumentValueError, ShapeError, option_error_text
from dalify.data import TensorListCPU, TensorListGPU
from dalify.pipeline import Pipeline
from dalify.plugin.base_iterator import BaseIterator, LastBatchPolicy, Outputs, checked_names
from dalify.plugin.pytorch.tensors import tensor_of

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "DALIRaggedIterator"]


class DALIGenericIterator(BaseIterator[dict[str, Any]]):
    """Gives, for every batch, a list with one dictionary of torch tensors per pipeline.

    The tensors view the memory of the pipeline's outputs. They may be kept: memory is used again when nobody holds it
    any more. ``for batch in iterator`` is one epoch; the next loop is the next one, also after a ``break``.

    Args:
        pipelines: one pipeline, or a list of pipelines.
        output_map: names of the outputs, in their order.
        size: samples of an epoch, over all pipelines; better name the reader.
        reader_name: name of the reader, as given to it: size, shards and padding are asked of it.
        auto_reset: whether the next epoch begins by itself: True, "yes", False, None or "no".
        fill_last_batch: old way to say last_batch_policy.
        dynamic_shape: accepted; shapes may always change.
        last_batch_padded: with ``size``: the reader has ``pad_last_batch=True``.
        last_batch_policy: FILL, DROP or PARTIAL.
        prepare_first_batch: begin to compute the first batches at once.
        fresh_epochs: begin every epoch at the first sample of the shard; see ``BaseIterator``.

    Raises:
        ArgumentValueError: names that do not fit the outputs, or arguments that exclude each other.
        ShapeError: (in an epoch) the samples of an output have different shapes.

    Example:
        >>> loader = DALIGenericIterator(pipe, ["images", "labels"], reader_name="Reader")
        >>> for (batch,) in loader:
        ...     model(batch["images"])
    """

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
    ) -> None:
        self.output_map = checked_names(output_map, pipelines)
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

    def _convert(self, outputs: Outputs) -> dict[str, Any]:
        return {
            name: self._tensor(index, name, output)
            for index, (name, output) in enumerate(zip(self.output_map, outputs, strict=True))
        }

    def _tensor(self, index: int, name: str, output: TensorListCPU | TensorListGPU) -> Any:
        return _dense(name, output)

    def _cut(self, batch: dict[str, Any], count: int) -> dict[str, Any]:
        return {name: value[:count] for name, value in batch.items()}


class DALIClassificationIterator(DALIGenericIterator):
    """A ``DALIGenericIterator`` for pipelines with two outputs, which it calls ``data`` and ``label``.

    Args:
        pipelines: one pipeline, or a list of pipelines.
        size: samples of an epoch, over all pipelines; better name the reader.
        reader_name: name of the reader, as given to it.
        auto_reset: whether the next epoch begins by itself.
        fill_last_batch: old way to say last_batch_policy.
        dynamic_shape: accepted; shapes may always change.
        last_batch_padded: with ``size``: the reader has ``pad_last_batch=True``.
        last_batch_policy: FILL, DROP or PARTIAL.
        prepare_first_batch: begin to compute the first batches at once.
        fresh_epochs: begin every epoch at the first sample of the shard.
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
        )


class DALIRaggedIterator(DALIGenericIterator):
    """A ``DALIGenericIterator`` for outputs whose samples differ in shape.

    Args:
        pipelines: one pipeline, or a list of pipelines.
        output_map: names of the outputs, in their order.
        size: samples of an epoch, over all pipelines; better name the reader.
        reader_name: name of the reader, as given to it.
        output_types: per output ``DENSE_TAG`` (one tensor ``[N, ...]``), ``SPARSE_LIST_TAG`` (a list of N tensors) or
            ``SPARSE_COO_TAG`` (one sparse tensor ``[N, longest, ...]`` of samples with at least one dimension); all
            dense by default.
        auto_reset: whether the next epoch begins by itself.
        fill_last_batch: old way to say last_batch_policy.
        dynamic_shape: accepted; shapes may always change.
        last_batch_padded: with ``size``: the reader has ``pad_last_batch=True``.
        last_batch_policy: FILL, DROP or PARTIAL.
        prepare_first_batch: begin to compute the first batches at once.
        fresh_epochs: begin every epoch at the first sample of the shard.
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
    ) -> None:
        tags = (self.DENSE_TAG, self.SPARSE_LIST_TAG, self.SPARSE_COO_TAG)
        self._tags = tuple(output_types) if output_types is not None else (self.DENSE_TAG,) * len(output_map)
        for tag in self._tags:
            if tag not in tags:
                raise ArgumentValueError(option_error_text("output_types", tag, tags))
        if len(self._tags) != len(output_map):
            raise ArgumentValueError(f"output_types has {len(self._tags)} entries for {len(output_map)} outputs.")
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
        )

    def _tensor(self, index: int, name: str, output: TensorListCPU | TensorListGPU) -> Any:
        tag = self._tags[index]
        if tag == self.DENSE_TAG:
            return _dense(name, output)
        tensors = [tensor_of(sample) for sample in output]
        return tensors if tag == self.SPARSE_LIST_TAG else _sparse(name, tensors)


def _dense(name: str, output: TensorListCPU | TensorListGPU) -> torch.Tensor:
    if not output.is_dense_tensor():
        shapes = output.shape()
        odd = next(index for index, shape in enumerate(shapes) if tuple(shape) != tuple(shapes[0]))
        raise ShapeError(
            f"the samples of the output {name!r} have different shapes and cannot be one tensor: "
            f"sample 0 is {tuple(shapes[0])}, sample {odd} is {tuple(shapes[odd])}.",
            hint="Bring them to one size in the pipeline with fn.resize, fn.crop or fn.pad, or use DALIRaggedIterator "
            "with output_types: SPARSE_LIST_TAG gives a list of tensors.",
        )
    return tensor_of(output.as_tensor())


def _sparse(name: str, tensors: list[torch.Tensor]) -> torch.Tensor:
    """Return a sparse tensor of shape ``[N, longest, ...]``, sparse in its first two dimensions."""
    if any(tensor.ndim == 0 for tensor in tensors):
        raise ShapeError(f"the samples of the output {name!r} are single values, which SPARSE_COO_TAG cannot join.")
    lengths = torch.tensor([len(tensor) for tensor in tensors])
    rows = torch.repeat_interleave(torch.arange(len(tensors)), lengths)
    columns = torch.cat([torch.arange(length) for length in lengths.tolist()])
    values = torch.cat(tensors)
    size = (len(tensors), int(lengths.max()), *values.shape[1:])
    return torch.sparse_coo_tensor(torch.stack([rows, columns]).to(values.device), values, size, check_invariants=False)
