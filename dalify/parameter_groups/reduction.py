"""The axes of a reduction."""

from __future__ import annotations

from dataclasses import dataclass

from dalify.data import DALIDataType
from dalify.kernels.arrays.axes import chosen_axes, reduced_spec
from dalify.kernels.arrays.reduce import reduced_dtype
from dalify.registry import Parameters, Spec

__all__ = ["ReducedAxes"]


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
