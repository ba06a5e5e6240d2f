"""Sum along axes."""

from __future__ import annotations

from dalify.base.errors import DTypeError
from dalify.data import DALIDataType
from dalify.kernels.arrays.reduce import total
from dalify.kernels.arrays.reduce_torch import total_torch
from dalify.parameter_groups.reduction import ReducedAxes, attach_reduction
from dalify.registry import Spec, operator


@operator(alphabetical=True)
def sum(x: Spec, /, *, reduced: ReducedAxes, dtype: DALIDataType | None = None) -> Spec:
    """Compute the sum along axes.

    Args:
        x: data of any type.
        dtype: type of the sums; integers wrap on overflow. Sums of floats are floats.

    Returns:
        sums: UINT64 or INT64 for integers (BOOL counts as unsigned), otherwise FLOAT or FLOAT64; see `dtype`.

    Raises:
        DTypeError: `dtype` is an integer type, and the data are floats.
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> counts = fn.reductions.sum(masks, axis_names="HW")  # doctest: +SKIP
    """
    if x.dtype is not None and dtype is not None and x.dtype.is_float and not dtype.is_float:
        raise DTypeError(  # the sums would be those of the truncated values
            f"the data are {x.dtype.text}, so dtype must be a float type; got {dtype.text}.",
            hint=f"Convert the sums: fn.cast(fn.reductions.sum(x), dtype=types.{dtype.name}).",
        )
    return reduced.result(x, "sum", dtype)


attach_reduction(sum, total, total_torch)
