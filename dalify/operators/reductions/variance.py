"""Variance along axes."""

from __future__ import annotations

from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.reduce_torch import variance_torch
from dalify.parameter_groups.reduction import ReducedAxes, attach_deviation
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
    return reduced.result_around(x, mean, "variance")


attach_deviation(variance, reduce.variance, variance_torch)
