"""Return data filled with ones."""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.parameter_groups.filling import NewShape, attach_filling
from dalify.registry import Spec, operator


@operator
def ones(*, dtype: DALIDataType = DALIDataType.INT32, new: NewShape) -> Spec:
    """Return data filled with ones.

    Args:
        dtype: element type.

    Returns:
        ones.

    Raises:
        LayoutError: the layout does not match the shape.

    Example:
        >>> mask = fn.ones(shape=[3, 4])  # doctest: +SKIP
    """
    return new.result(dtype)


attach_filling(ones, 1)
