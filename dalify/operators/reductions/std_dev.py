"""Standard deviation along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Array
from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.axes import check_center
from dalify.kernels.arrays.reduce_torch import std_dev_torch
from dalify.parameter_groups.reduction import ReducedAxes
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def std_dev(x: Spec, mean: Spec, /, *, reduced: ReducedAxes, ddof: int = 0) -> Spec:
    """Compute the standard deviation from a given mean along axes.

    Args:
        x: data of any type.
        mean: center of the deviations: one number per sample, or one for each result, such as the result of
            ``fn.reductions.mean`` with the same axes (with or without ``keep_dims``).
        ddof: delta degrees of freedom: the divisor is the number of elements minus `ddof`; 1 for an unbiased estimate.

    Returns:
        standard deviations: FLOAT, or FLOAT64 of FLOAT64.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.
        ShapeError: `mean` has neither one element nor one for each result.

    Example:
        >>> deviation = fn.reductions.std_dev(images, fn.reductions.mean(images))  # doctest: +SKIP
    """
    result = reduced.result(x, "std_dev")
    check_center(mean, result)
    return result


@std_dev.cpu
@std_dev.gpu
def _(out: Array, x: Array, mean: Array, *, reduced: ReducedAxes, ddof: int, spec: Spec) -> None:
    compute: Any = reduce.std_dev if isinstance(x, np.ndarray) else std_dev_torch
    compute(out, x, mean, reduced.of(spec), ddof)
