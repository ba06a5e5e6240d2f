"""Maximum along axes."""

from __future__ import annotations

from dalify.kernels.arrays.reduce import maximum
from dalify.kernels.arrays.reduce_torch import maximum_torch
from dalify.parameter_groups.reduction import ReducedAxes, attach_reduction
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def max(x: Spec, /, *, reduced: ReducedAxes) -> Spec:
    """Compute the maximum along axes.

    Args:
        x: data of any type.

    Returns:
        maxima, of the type of `x`. NaN is ignored; the maximum of no elements is the minimum of the type.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> brightest = fn.reductions.max(images)  # doctest: +SKIP
    """
    return reduced.result(x, "max")


attach_reduction(max, maximum, maximum_torch)
