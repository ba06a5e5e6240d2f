"""Minimum along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce import minimum
from dalify.kernels.arrays.reduce_torch import minimum_torch
from dalify.parameter_groups.reduction import ReducedAxes
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


@min.cpu_samples
def _(out: Samples, x: Samples, *, reduced: ReducedAxes, spec: Spec) -> None:
    minimum(out, x, reduced.of(spec))


@min.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, reduced: ReducedAxes, spec: Spec, extents: np.ndarray) -> None:
    minimum_torch(out, x, reduced.of(spec), extents)
