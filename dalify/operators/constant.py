"""Return the same data for every sample."""

from __future__ import annotations

import math

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.wording import counted
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.axes import check_layout
from dalify.kernels.arrays.convert import saturate_cast
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import Spec, operator


@operator
def constant(
    *,
    dtype: DALIDataType | None = None,
    fdata: list[float] | None = None,
    idata: list[int] | None = None,
    layout: str = "",
    shape: list[int] | None = None,
) -> Spec:
    """Return the same values for every sample. ``types.Constant`` is a shorthand for it.

    Args:
        dtype: element type; by default FLOAT for `fdata` and INT32 for `idata`. Values are rounded and saturated.
        fdata: the values, as floats.
        idata: the values, as integers.
        layout: one letter for each dimension.
        shape: shape of a sample; by default one dimension with all values. A single value fills any shape.

    Returns:
        the values.

    Raises:
        ArgumentValueError: neither or both of `fdata` and `idata`.
        ShapeError: the number of values does not match the shape.
        LayoutError: the layout does not match the shape.

    Example:
        >>> mean = fn.constant(fdata=[0.485, 0.456, 0.406])  # doctest: +SKIP
    """
    if (fdata is None) == (idata is None):
        raise ArgumentValueError("specify the values as either fdata or idata.")
    count = len(fdata or idata or ())
    extents = (count,) if shape is None else tuple(shape)
    if count not in (1, math.prod(extents)):
        raise ShapeError(f"{counted(count, 'value')} do not match the shape {extents}.")
    check_layout(layout, len(extents))
    default = DALIDataType.INT32 if fdata is None else DALIDataType.FLOAT
    return Spec(default if dtype is None else dtype, None, layout, extents)


def _value(out: Samples | DeviceSamples, dtype: DALIDataType | None, fdata: object, idata: object) -> np.ndarray:
    assert dtype is not None, "dalify bug: a kernel without the type of its output"
    values = np.asarray(fdata, np.float32) if fdata is not None else np.asarray(idata, np.int64)
    typed = np.empty(values.shape, dtype.numpy)
    saturate_cast(typed, values)
    shape = out.shapes[0]
    return np.broadcast_to(typed.reshape(()), shape) if len(typed) == 1 else typed.reshape(shape)


@constant.cpu_samples
def _(out: Samples, *, fdata: tuple[float, ...] | None, idata: tuple[int, ...] | None, out_spec: Spec) -> None:
    assert out.dense is not None, "dalify bug: constants of different shapes"
    np.copyto(out.dense, _value(out, out_spec.dtype, fdata, idata))


@constant.gpu_samples
def _(out: DeviceSamples, *, fdata: tuple[float, ...] | None, idata: tuple[int, ...] | None, out_spec: Spec) -> None:
    out.dense.copy_(uploaded(_value(out, out_spec.dtype, fdata, idata), out.device))
