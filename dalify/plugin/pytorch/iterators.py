"""The iterators of DALI's PyTorch plugin.

They differ in what an output becomes: one tensor, a list of tensors, or a sparse tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.pipeline import Pipeline
from dalify.plugin.base_iterator import BaseIterator, LastBatchPolicy, Outputs, checked_names
from dalify.plugin.pytorch.collate import COLLATIONS, Pad, collations, sparse

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "DALIRaggedIterator"]


_OF_TAGS = {"dense": COLLATIONS["dense"], "sparse_list": COLLATIONS["list"], "sparse_coo": sparse}


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
        collate: what an output becomes: ``dense`` (one tensor ``[N, ...]``), ``pad`` (filled with zeros to the largest
            sample) or ``Pad(value, multiple)``, ``list``, ``nested`` (a nested tensor of torch) or ``packed`` (values
            and offsets); one for all, or a dictionary by the names of the outputs, dense where it has none.
        valid_name: name of a further value, bool ``[N]``: which samples are there in their own right, and no padding or
            in the place of one that could not be read; none where None.

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
        collate: Mapping[str, str | Pad] | str | Pad | None = None,
        valid_name: str | None = None,
    ) -> None:
        self.output_map = list(checked_names(output_map, pipelines))
        self._output_categories = set(self.output_map)
        self._collations = collations(collate, self.output_map)
        if valid_name in self.output_map:
            raise ArgumentValueError(f"valid_name={valid_name!r} is the name of an output already.")
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

    def _convert(self, outputs: Outputs, count: int, valid: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Any]:
        batch = {
            name: collate(name, output, count)
            for name, collate, output in zip(self.output_map, self._collations, outputs, strict=True)
        }
        if self._valid_name is not None:
            batch[self._valid_name] = torch.from_numpy(valid)
        return batch


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
        collate: what an output becomes, see ``DALIGenericIterator``.
        valid_name: name of a further value, see ``DALIGenericIterator``.
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
        valid_name: name of a further value, see ``DALIGenericIterator``.
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
                raise ArgumentValueError(option_error_text("output_types", tag, _OF_TAGS))
        if len(tags) != len(output_map):
            raise ArgumentValueError(f"output_types has {len(tags)} entries for {len(output_map)} outputs.")
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
