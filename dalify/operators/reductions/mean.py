"""Mean along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce_torch import mean_torch
from dalify.parameter_groups.reduction import ReducedAxes
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


@mean.cpu_samples
def _(out: Samples, x: Samples, *, reduced: ReducedAxes, spec: Spec) -> None:
    reduce.mean(out, x, reduced.of(spec))


@mean.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, reduced: ReducedAxes, spec: Spec, extents: np.ndarray) -> None:
    mean_torch(out, x, reduced.of(spec), extents)
