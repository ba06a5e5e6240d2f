"""Maximum along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce import maximum
from dalify.kernels.arrays.reduce_torch import maximum_torch
from dalify.parameter_groups.reduction import ReducedAxes
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


@max.cpu_samples
def _(out: Samples, x: Samples, *, reduced: ReducedAxes, spec: Spec) -> None:
    maximum(out, x, reduced.of(spec))


@max.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, reduced: ReducedAxes, spec: Spec, extents: np.ndarray) -> None:
    maximum_torch(out, x, reduced.of(spec), extents)
