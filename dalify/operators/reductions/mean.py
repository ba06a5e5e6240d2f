"""Mean along axes."""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.reduce_torch import mean_torch
from dalify.parameter_groups.reduction import ReducedAxes, attach_reduction
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def mean(x: Spec, /, *, reduced: ReducedAxes, dtype: DALIDataType | None = None) -> Spec:
    """Compute the mean along axes.

    Args:
        x: data of any type.
        dtype: type of the means; integers are truncated and saturated.

    Returns:
        arithmetic means: FLOAT, or FLOAT64 of FLOAT64; see `dtype`.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> level = fn.reductions.mean(images, axis_names="HW")  # doctest: +SKIP
    """
    return reduced.result(x, "mean", dtype)


attach_reduction(mean, reduce.mean, mean_torch)
