"""Mean along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.axes import chosen_axes, reduced_spec
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce_torch import mean_torch
from dalify.registry import Spec, operator


@operator
def mean(
    x: Spec,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | None = None,
    keep_dims: bool = False,
) -> Spec:
    """Compute the mean along axes.

    Args:
        x: data of any type.
        axes: axes to reduce, by default all; negative axes count from the end.
        axis_names: the axes as letters of the layout, instead of `axes`.
        dtype: type of the means; integers are truncated and saturated.
        keep_dims: keep the reduced axes, with extent 1 and their letter.

    Returns:
        arithmetic means: FLOAT, or FLOAT64 of FLOAT64; see `dtype`.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> level = fn.reductions.mean(images, axis_names="HW")  # doctest: +SKIP
    """
    chosen = chosen_axes(x, axes, axis_names)
    assert x.dtype is not None, "dalify bug: a reduction of unknown type"
    return reduced_spec(x, chosen, reduce.reduced_dtype("mean", x.dtype, dtype), keep_dims=keep_dims)


@mean.cpu
def _(out: np.ndarray, x: np.ndarray, *, axes: tuple[int, ...] | None, axis_names: str | None, spec: Spec) -> None:
    reduce.mean(out, x, chosen_axes(spec, axes, axis_names))


@mean.gpu_samples
@on_padded
def _(
    out: torch.Tensor,
    x: torch.Tensor,
    *,
    axes: tuple[int, ...] | None,
    axis_names: str | None,
    spec: Spec,
    extents: np.ndarray,
) -> None:
    mean_torch(out, x, chosen_axes(spec, axes, axis_names), extents)
