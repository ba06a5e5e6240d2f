"""Permute the samples of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError
from dalify.base.wording import counted
from dalify.data import Batch, Samples
from dalify.data.batch import block_offsets
from dalify.kernels.arrays.joined import copy_samples
from dalify.kernels.arrays.upload_torch import selected_samples
from dalify.registry import Memory, PerSample, Spec, Vectors, operator


@operator
def permute_batch(x: Spec, /, *, indices: PerSample[list[int]]) -> Spec:
    """Rearrange the samples of a batch.

    Args:
        x: any data.
        indices: index of the input sample for each output sample, 0 to batch size - 1: one integer per sample (as
            returned by ``fn.batch_permutation``), or a list as long as the batch. Repetitions and omissions are
            allowed.

    Returns:
        the samples, with their layout and origin.

    Raises:
        ArgumentValueError: the list is not as long as the batch.
        IndexingError: an index is out of range.

    Example:
        >>> pairs = fn.permute_batch(images, indices=fn.batch_permutation())  # doctest: +SKIP
    """
    return x.replace(shape=None)


def _sources(x, indices):
    rows = np.asarray(indices, np.int64)
    chosen = rows[:, 0] if rows.shape[1] == 1 else rows[0]
    if len(chosen) != len(x):
        raise ArgumentValueError(
            f"indices has {counted(len(chosen), 'entry')}; the batch has {counted(len(x), 'sample')}."
        )
    wrong = (chosen < 0) | (chosen >= len(x))
    if wrong.any():
        raise IndexingError(f"indices contains {chosen[wrong][0]}, but the batch has samples 0 to {len(x) - 1}.")
    return chosen


@permute_batch.cpu_batch
def _(x: Batch, *, indices: Vectors, memory: Memory) -> Any:
    chosen = _sources(x, indices)
    origins = None if x.origins is None else [x.origins[index] for index in chosen.tolist()]
    if x.dense is not None:
        found = memory(0, len(x), x.dense.shape[1:])
        np.take(x.dense, chosen, axis=0, out=found, mode="clip")
        return Batch(found, None, x.layout, x.device, origins, x.dtype)
    source = Samples.of_batch(x).take(chosen)
    offsets, size_bytes = block_offsets(source.shapes, source.dtype.itemsize)
    block = np.empty(size_bytes, np.uint8)
    copy_samples(Samples(offsets + block.__array_interface__["data"][0], source.shapes, source.dtype, block), source)
    result = Batch(None, None, x.layout, x.device, origins, x.dtype, (block, offsets, source.shapes))
    result.is_lasting = True
    return result


@permute_batch.gpu_batch
def _(x: Batch, *, indices: Vectors) -> Any:
    return selected_samples(x, _sources(x, indices))
