"""Return data filled with ones."""

from __future__ import annotations

import numpy as np

from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.axes import check_layout
from dalify.kernels.arrays.filling import fill_samples
from dalify.kernels.random.random_shapes import requested_shape
from dalify.registry import VARIES, Shaping, Spec, operator


@operator
def ones(
    *, dtype: DALIDataType = DALIDataType.INT32, layout: str | None = None, shape: Shaping[list[int]] | None = None
) -> Spec:
    """Return data filled with ones.

    Args:
        dtype: element type.
        layout: one letter for each dimension.
        shape: shape of one sample; by default a scalar.

    Returns:
        ones.

    Raises:
        LayoutError: the layout does not match the shape.

    Example:
        >>> mask = fn.ones(shape=[3, 4])  # doctest: +SKIP
    """
    extents = requested_shape(() if shape is None else shape, is_known=shape is not VARIES)
    ndim = len(layout) if extents is None and layout else None
    check_layout(layout or "", ndim if extents is None else len(extents))
    return Spec(dtype, ndim, layout or "", extents)


@ones.cpu_samples
def _(out: Samples) -> None:
    fill_samples(out, np.ones(len(out), out.dtype))


@ones.gpu_samples
def _(out: DeviceSamples) -> None:
    out.block.fill_(1)
