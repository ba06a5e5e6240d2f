"""The shape of each sample, as data."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import IntegerRangeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
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


@shapes.cpu
def _(out: np.ndarray, _x: np.ndarray, *, spec: Spec) -> None:
    if out.dtype.kind in "iu" and max(spec.shape or (), default=0) > np.iinfo(out.dtype).max:
        raise IntegerRangeError(
            f"the extents {spec.shape} are out of the range of {out.dtype}.", hint="dtype=types.INT64"
        )
    out[...] = np.asarray(spec.shape, out.dtype)


@shapes.gpu
def _(out: torch.Tensor, _x: torch.Tensor, *, spec: Spec) -> None:
    out[...] = uploaded(spec.shape, out.device, np.int64)
