"""Standard deviation along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.axes import check_center, chosen_axes, reduced_spec
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce_torch import std_dev_torch
from dalify.registry import Spec, operator


@operator
def std_dev(
    x: Spec,
    mean: Spec,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: bool = False,
) -> Spec:
    """Compute the standard deviation from a given mean along axes.

    Args:
        x: data of any type.
        mean: center of the deviations: one number per sample, or one for each result, such as the result of
            ``fn.reductions.mean`` with the same axes (with or without ``keep_dims``).
        axes: axes to reduce, by default all; negative axes count from the end.
        axis_names: the axes as letters of the layout, instead of `axes`.
        ddof: delta degrees of freedom: the divisor is the number of elements minus `ddof`; 1 for an unbiased estimate.
        keep_dims: keep the reduced axes, with extent 1 and their letter.

    Returns:
        standard deviations: FLOAT, or FLOAT64 of FLOAT64.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.
        ShapeError: `mean` has neither one element nor one for each result.

    Example:
        >>> deviation = fn.reductions.std_dev(images, fn.reductions.mean(images))  # doctest: +SKIP
    """
    chosen = chosen_axes(x, axes, axis_names)
    assert x.dtype is not None, "dalify bug: a reduction of unknown type"
    result = reduced_spec(x, chosen, reduce.reduced_dtype("std_dev", x.dtype), keep_dims=keep_dims)
    check_center(mean, result)
    return result


@std_dev.cpu
def _(
    out: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray,
    *,
    axes: tuple[int, ...] | None,
    axis_names: str | None,
    ddof: int,
    spec: Spec,
) -> None:
    reduce.std_dev(out, x, mean, chosen_axes(spec, axes, axis_names), ddof)


@std_dev.gpu_samples
@on_padded
def _(
    out: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    *,
    axes: tuple[int, ...] | None,
    axis_names: str | None,
    ddof: int,
    spec: Spec,
    extents: np.ndarray,
) -> None:
    std_dev_torch(out, x, mean, chosen_axes(spec, axes, axis_names), ddof, extents)
