"""The shape of data that are filled with one number, and the kernels that fill it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.axes import check_layout
from dalify.kernels.arrays.filling import fill_samples
from dalify.kernels.random.random_shapes import requested_shape
from dalify.registry import VARIES, KernelOperator, Parameters, Shaping, Spec


@dataclass(slots=True)
class NewShape(Parameters):
    """Shape and layout of new data.

    Attributes:
        layout: one letter for each dimension.
        shape: shape of one sample; by default a scalar.
    """

    layout: str | None = None
    shape: Shaping[list[int]] | None = None

    def result(self, dtype: DALIDataType) -> Spec:
        """Return the spec of the data; raise a LayoutError if the layout does not match the shape."""
        layout = self.layout or ""
        extents = requested_shape(() if self.shape is None else self.shape, is_known=self.shape is not VARIES)
        ndim = len(layout) if extents is None and layout else None
        check_layout(layout, ndim if extents is None else len(extents))
        return Spec(dtype, ndim, layout, extents)


def attach_filling(operator: KernelOperator, value: int) -> None:
    """Attach the kernels of an operator that returns one number everywhere; the values of its inputs are ignored."""

    @operator.cpu_samples
    def _(out: Samples, *_like: Samples) -> None:
        fill_samples(out, np.full(len(out), value, out.dtype))

    @operator.gpu_samples
    def _(out: DeviceSamples, *_like: DeviceSamples) -> None:
        out.block.fill_(value)
