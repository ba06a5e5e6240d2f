"""Permute the samples of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError
from dalify.data import Batch
from dalify.kernels.arrays.upload_torch import selected_samples
from dalify.registry import PerSample, Spec, Vectors, operator


@operator(batchwise=True)
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
        raise ArgumentValueError(f"indices has {len(chosen)} entries; the batch has {len(x)} samples.")
    wrong = (chosen < 0) | (chosen >= len(x))
    if wrong.any():
        raise IndexingError(f"indices contains {chosen[wrong][0]}, but the batch has samples 0 to {len(x) - 1}.")
    return chosen


@permute_batch.cpu
def _(x: Batch, *, indices: Vectors) -> Any:
    # As a list, samples are not copied until the output batch is assembled.
    return Batch(None, x.samples, x.layout, x.device, x.origins, x.dtype).take(_sources(x, indices))


@permute_batch.gpu
def _(x: Batch, *, indices: Vectors) -> Any:
    return selected_samples(x, _sources(x, indices))
