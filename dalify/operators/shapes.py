"""The shape of each sample, as data."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import IntegerRangeError
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import Spec, operator


@operator
def shapes(x: Spec, /, *, dtype: DALIDataType = DALIDataType.INT64) -> Spec:
    """Return the shape of each sample. ``node.shape()`` is the recommended form.

    Args:
        x: any data.
        dtype: type of the result.

    Returns:
        a vector of as many integers as `x` has dimensions, on the device of `x`.

    Raises:
        IntegerRangeError: an extent is out of the range of the type.

    Example:
        >>> height = fn.shapes(images)[0]  # doctest: +SKIP
    """
    return Spec(dtype, 1, "", None if x.shape is None else (len(x.shape),))


@shapes.cpu_samples
def _(out: Samples, x: Samples) -> None:
    assert out.dense is not None, "dalify bug: shapes of different numbers of axes"
    if out.dtype.kind in "iu":
        too_large = np.flatnonzero((x.shapes > np.iinfo(out.dtype).max).any(axis=1))
        if len(too_large):
            first = int(too_large[0])
            text = f"the extents {tuple(x.shapes[first].tolist())} are out of the range of {out.dtype}."
            raise IntegerRangeError(text, sample=first, hint="Write fn.shapes(x, dtype=types.INT64).")
    out.dense[...] = x.shapes.astype(out.dtype)


@shapes.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples) -> None:
    out.dense.copy_(uploaded(x.shapes, out.device, np.int64))
