"""Root mean square along axes."""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.kernels.arrays import reduce
from dalify.kernels.arrays.reduce_torch import rms_torch
from dalify.parameter_groups.reduction import ReducedAxes, attach_reduction
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


attach_reduction(rms, reduce.rms, rms_torch)
