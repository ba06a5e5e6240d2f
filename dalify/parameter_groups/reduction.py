"""The axes of a reduction, and the kernels of reductions that have no other arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.axes import chosen_axes, reduced_spec
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce import reduced_dtype
from dalify.registry import KernelOperator, Parameters, Spec

__all__ = ["ReducedAxes", "attach_reduction"]


@dataclass(slots=True)
class ReducedAxes(Parameters):
    """Which axes are reduced.

    Attributes:
        axes: axes to reduce, by default all; negative axes count from the end.
        axis_names: the axes as letters of the layout, instead of `axes`.
        keep_dims: keep the reduced axes, with extent 1 and their letter.
    """

    axes: list[int] | None = None
    axis_names: str | None = None
    keep_dims: bool = False

    def of(self, x: Spec) -> tuple[int, ...]:
        """Return the axes of data that are reduced; see `chosen_axes`."""
        return chosen_axes(x, self.axes, self.axis_names)

    def result(self, x: Spec, name: str, dtype: DALIDataType | None = None) -> Spec:
        """Return the output spec.

        Args:
            x: spec of the data.
            name: name of the reduction; see `reduced_dtype`.
            dtype: the user's element type, if the operator has such an argument.
        """
        axes = self.of(x)
        assert x.dtype is not None, "dalify bug: a reduction of unknown type"
        return reduced_spec(x, axes, reduced_dtype(name, x.dtype, dtype), keep_dims=self.keep_dims)


def attach_reduction(operator: KernelOperator, reduce: Callable[..., None], reduce_torch: Callable[..., None]) -> None:
    """Attach the kernels of an operator with one input and the group `ReducedAxes` under the name ``reduced``.

    Args:
        operator: the operator.
        reduce: fills results on the CPU; see `dalify.kernels.arrays.reduce`.
        reduce_torch: fills results on the device.
    """

    @operator.cpu_samples
    def _(out: Samples, x: Samples, *, reduced: ReducedAxes, spec: Spec) -> None:
        reduce(out, x, reduced.of(spec))

    @operator.gpu_samples
    @on_padded
    def _(out: torch.Tensor, x: torch.Tensor, *, reduced: ReducedAxes, spec: Spec, extents: np.ndarray) -> None:
        reduce_torch(out, x, reduced.of(spec), extents)
