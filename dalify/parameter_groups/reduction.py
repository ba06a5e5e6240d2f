"""The axes of a reduction, and the kernels of reductions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.axes import check_mean, chosen_axes, reduced_spec
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce import reduced_dtype
from dalify.registry import KernelOperator, Parameters, Spec


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

    def result_around(self, x: Spec, mean: Spec, name: str) -> Spec:
        """Return the output spec of a deviation from a mean, which is checked; see `result`."""
        result = self.result(x, name)
        check_mean(mean, result)
        return result


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


def attach_deviation(
    operator: KernelOperator, deviate: Callable[..., None], deviate_torch: Callable[..., None]
) -> None:
    """Attach the kernels of an operator with the inputs data and mean, the group ``reduced``, and ``ddof``.

    Args:
        operator: the operator.
        deviate: fills results on the CPU; see `dalify.kernels.arrays.reduce`.
        deviate_torch: fills results on the device.
    """

    @operator.cpu_samples
    def _(out: Samples, x: Samples, mean: Samples, *, reduced: ReducedAxes, ddof: int, spec: Spec) -> None:
        deviate(out, x, mean, reduced.of(spec), ddof)

    @operator.gpu_samples
    @on_padded
    def _(
        out: torch.Tensor,
        x: torch.Tensor,
        mean: torch.Tensor,
        *,
        reduced: ReducedAxes,
        ddof: int,
        spec: Spec,
        extents: np.ndarray,
    ) -> None:
        deviate_torch(out, x, mean, reduced.of(spec), ddof, extents)
