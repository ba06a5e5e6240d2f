"""A constant of the graph: the same value for every sample."""

from __future__ import annotations

from dalify.data.batch import array_dtype
from dalify.registry import Spec, operator


@operator
def _literal(*, value: object, layout: str = "") -> Spec:
    """Give every sample the same value.

    Args:
        value: a numpy array. The executor repeats it without copying.
        layout: its layout.
    """
    return Spec(array_dtype(value), layout=layout, shape=value.shape)  # pyright: ignore[reportAttributeAccessIssue]
