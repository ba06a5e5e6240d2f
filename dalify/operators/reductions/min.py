"""Minimum along axes."""

from __future__ import annotations

from dalify.kernels.arrays.reduce import minimum
from dalify.kernels.arrays.reduce_torch import minimum_torch
from dalify.parameter_groups.reduction import ReducedAxes, attach_reduction
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def min(x: Spec, /, *, reduced: ReducedAxes) -> Spec:
    """Compute the minimum along axes.

    Args:
        x: data of any type.

    Returns:
        minima, of the type of `x`. NaN is ignored; the minimum of no elements is the maximum of the type.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> darkest = fn.reductions.min(images)  # doctest: +SKIP
    """
    return reduced.result(x, "min")


attach_reduction(min, minimum, minimum_torch)
