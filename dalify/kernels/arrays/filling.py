"""Fills each sample of a chunk with one value, or with a sample that is broadcast to its shape."""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import saturate_cast_samples
from dalify.kernels.arrays.strided import copy_strided


def fill_samples(out: Samples, values: np.ndarray) -> None:
    """Fill each sample with a number.

    Args:
        out: output.
        values: one number for each sample, [N], of the element type of `out`.
    """
    if out.dense is not None:
        out.dense[...] = values.reshape(-1, *[1] * out.ndim)
    else:
        _fill_each(out.addresses, out.shapes.prod(1), np.ascontiguousarray(values).view(f"u{values.itemsize}"))


@njit(nogil=True, cache=True)
def _fill_each(out_at, sizes, values):
    for n in range(len(out_at)):
        out, value = array_at(out_at[n], (sizes[n],), values), values[n]
        for i in range(out.size):
            out[i] = value


def repeat_samples(out: Samples, x: Samples) -> None:
    """Broadcast the samples of `x` to the shapes of `out`; elements are converted as by `saturate_cast`."""
    if x.dtype != out.dtype:
        source = x
        x = (
            Samples.empty(x.shapes, out.dtype)
            if x.dense is None
            else Samples.of_dense(np.empty(x.dense.shape, out.dtype))
        )
        saturate_cast_samples(x, source)
    if x.dense is not None and x.ndim == 0:
        fill_samples(out, x.dense)
        return
    strides = np.zeros_like(out.shapes)
    if x.ndim:
        strides[:, -x.ndim :] = x.steps() * (x.shapes != 1)
    copy_strided(out, Samples(x.addresses, out.shapes, x.dtype, x, strides))
