"""Return data filled with zeros."""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.parameter_groups.filling import NewShape, attach_filling
from dalify.registry import Spec, operator


@operator
def zeros(*, dtype: DALIDataType = DALIDataType.INT32, new: NewShape) -> Spec:
    """Return data filled with zeros.

    Args:
        dtype: element type.

    Returns:
        zeros.

    Raises:
        LayoutError: the layout does not match the shape.

    Example:
        >>> mask = fn.zeros(shape=[3, 4])  # doctest: +SKIP
    """
    return new.result(dtype)


attach_filling(zeros, 0)
