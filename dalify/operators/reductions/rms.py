"""Root mean square along axes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.reduce_torch import rms_torch
from dalify.parameter_groups.reduction import ReducedAxes
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def rms(x: Spec, /, *, reduced: ReducedAxes, dtype: DALIDataType | None = None) -> Spec:
    """Compute the root mean square along axes.

    Args:
        x: data of any type.
        dtype: type of the results; integers are truncated and saturated.

    Returns:
        root mean squares: FLOAT, or FLOAT64 of FLOAT64; see `dtype`.

    Raises:
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> loudness = fn.reductions.rms(audio)  # doctest: +SKIP
    """
    return reduced.result(x, "rms", dtype)


@rms.cpu_samples
def _(out: Samples, x: Samples, *, reduced: ReducedAxes, spec: Spec) -> None:
    reduce.rms(out, x, reduced.of(spec))


@rms.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, reduced: ReducedAxes, spec: Spec, extents: np.ndarray) -> None:
    rms_torch(out, x, reduced.of(spec), extents)
