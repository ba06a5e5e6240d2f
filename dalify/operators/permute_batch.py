"""Exchange samples within a batch."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError
from dalify.data import Batch
from dalify.registry import PerSample, Spec, operator


@operator(batchwise=True)
def permute_batch(x: Spec, /, *, indices: PerSample[list[int]]) -> Spec:
    """Put other samples of the batch in each sample's place.

    Args:
        x: any data.
        indices: for each place the number of the sample that goes there, 0 to batch size - 1: one integer per sample
            (as ``fn.batch_permutation`` gives), or a list as long as the batch. Repetitions and omissions are allowed.

    Returns:
        the samples, with their layout and origin.

    Raises:
        ArgumentValueError: a list that is not as long as the batch.
        IndexingError: there is no sample of that number.

    Example:
        >>> pairs = fn.permute_batch(images, indices=fn.batch_permutation())  # doctest: +SKIP
    """
    return x.replace(shape=None)


def _chosen(x, indices):
    rows = np.asarray(indices, np.int64)
    chosen = rows[:, 0] if rows.shape[1] == 1 else rows[0]
    if len(chosen) != len(x):
        raise ArgumentValueError(f"indices has {len(chosen)} entries; the batch has {len(x)} samples.")
    wrong = (chosen < 0) | (chosen >= len(x))
    if wrong.any():
        raise IndexingError(f"there is no sample {chosen[wrong][0]}: the batch has samples 0 to {len(x) - 1}.")
    return chosen


@permute_batch.cpu
def _(x, *, indices):
    # In a list nothing is copied, until the results go where they stay.
    return Batch(None, x.samples, x.layout, x.device, x.origins, x.dtype).take(_chosen(x, indices))


@permute_batch.gpu
def _(x, *, indices):
    return x.take(_chosen(x, indices))
