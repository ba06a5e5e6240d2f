"""Return zeros in the shape of other data."""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.parameter_groups.filling import attach_filling
from dalify.registry import Spec, operator


@operator
def zeros_like(data_like: Spec, /, *, dtype: DALIDataType | None = None) -> Spec:
    """Return zeros in the shape of other data.

    Args:
        data_like: any data; its values are ignored.
        dtype: element type, by default the type of `data_like`.

    Returns:
        zeros, in the shape and layout of `data_like`.

    Example:
        >>> mask = fn.zeros_like(images, dtype=types.BOOL)  # doctest: +SKIP
    """
    return data_like.replace(dtype=data_like.dtype if dtype is None else dtype)


attach_filling(zeros_like, 0)
