"""Variance along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import Samples
from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.axes import check_mean
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce_torch import variance_torch
from dalify.parameter_groups.reduction import ReducedAxes
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def variance(x: Spec, mean: Spec, /, *, reduced: ReducedAxes, ddof: int = 0) -> Spec:
    """Compute the variance around a given mean along axes.

    Args:
        x: data of any type.
        mean: center of the deviations: one number per sample, or one for each result, such as the result of
            ``fn.reductions.mean`` with the same axes (with or without ``keep_dims``).
        ddof: delta degrees of freedom: the divisor is the number of elements minus `ddof`; 1 for an unbiased estimate.

    Returns:
        variances: FLOAT, or FLOAT64 of FLOAT64.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.
        ShapeError: `mean` has neither one element nor one for each result.

    Example:
        >>> variance = fn.reductions.variance(images, fn.reductions.mean(images))  # doctest: +SKIP
    """
    result = reduced.result(x, "variance")
    check_mean(mean, result)
    return result


@variance.cpu_samples
def _(out: Samples, x: Samples, mean: Samples, *, reduced: ReducedAxes, ddof: int, spec: Spec) -> None:
    reduce.variance(out, x, mean, reduced.of(spec), ddof)


@variance.gpu_samples
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
    variance_torch(out, x, mean, reduced.of(spec), ddof, extents)
