"""Sum along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce import total
from dalify.kernels.arrays.reduce_torch import total_torch
from dalify.parameter_groups.reduction import ReducedAxes
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def sum(x: Spec, /, *, reduced: ReducedAxes, dtype: DALIDataType | None = None) -> Spec:
    """Compute the sum along axes.

    Args:
        x: data of any type.
        dtype: type of the sums; integers wrap on overflow.

    Returns:
        sums: UINT64 or INT64 for integers (BOOL counts as unsigned), otherwise FLOAT or FLOAT64; see `dtype`.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> counts = fn.reductions.sum(masks, axis_names="HW")  # doctest: +SKIP
    """
    return reduced.result(x, "sum", dtype)


@sum.cpu_samples
def _(out: Samples, x: Samples, *, reduced: ReducedAxes, spec: Spec) -> None:
    total(out, x, reduced.of(spec))


@sum.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, reduced: ReducedAxes, spec: Spec, extents: np.ndarray) -> None:
    total_torch(out, x, reduced.of(spec), extents)
