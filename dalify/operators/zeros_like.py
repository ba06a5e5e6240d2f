"""Return zeros in the shape of other data."""

from __future__ import annotations

import numpy as np

from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.filling import fill_samples
from dalify.registry import Spec, operator


@operator
def zeros_like(data_like: Spec, /, *, dtype: DALIDataType | None = None) -> Spec:
    """Return zeros in the shape of other data.

    Args:
        data_like: any data; its values are ignored.
        dtype: element type, by default the type of `data_like`.

    Returns:
        zeros, in the shape and layout of `data_like`.

    Example:
        >>> mask = fn.zeros_like(images, dtype=types.BOOL)  # doctest: +SKIP
    """
    return data_like.replace(dtype=data_like.dtype if dtype is None else dtype)


@zeros_like.cpu_samples
def _(out: Samples, _like: Samples) -> None:
    fill_samples(out, np.zeros(len(out), out.dtype))


@zeros_like.gpu_samples
def _(out: DeviceSamples, _like: DeviceSamples) -> None:
    out.block.fill_(0)
