"""The shape of each sample, as data: ``node.shape()``."""

from __future__ import annotations

from dalify.data import DALIDataType, Samples
from dalify.registry import Spec, operator


@operator(stands_for=".shape()")
def _shape(x: Spec, /, *, dtype: DALIDataType = DALIDataType.INT64) -> Spec:
    """Return the shape of each sample.

    Args:
        x: any data.
        dtype: type of the result.

    Returns:
        one vector of ``ndim`` integers per sample, on the CPU.
    """
    return Spec(dtype, 1, "", None if x.shape is None else (len(x.shape),))


@_shape.cpu_samples
def _(out: Samples, x: Samples) -> None:
    assert out.dense is not None, "dalify bug: shapes of different numbers of axes"
    out.dense[...] = x.shapes.astype(out.dtype)
