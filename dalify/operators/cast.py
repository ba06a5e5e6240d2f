"""Convert the element type."""

from __future__ import annotations

import numpy as np

from dalify.data import DALIDataType, DeviceSamples
from dalify.kernels.arrays.convert import saturate_cast, saturate_cast_samples_torch
from dalify.registry import Spec, operator


@operator
def cast(x: Spec, /, *, dtype: DALIDataType) -> Spec:
    """Convert elements to another type.

    Floats are rounded half away from zero to integers; values out of range are saturated. NaN becomes the minimum of
    int32 and int64, 2**63 in uint64, and 0 in other integer types. Floats are rounded before they are converted to
    booleans: 0.3 is False, -0.5 is True. Values are not rescaled.

    Args:
        x: any data.
        dtype: type of the result.

    Returns:
        same shape and layout.

    Example:
        >>> labels = fn.cast(labels, dtype=types.INT64)  # doctest: +SKIP
    """
    return x.replace(dtype=dtype)


@cast.cpu_elements
def _(out: np.ndarray, x: np.ndarray) -> None:
    saturate_cast(out, x)


@cast.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples) -> None:
    saturate_cast_samples_torch(out, x)
