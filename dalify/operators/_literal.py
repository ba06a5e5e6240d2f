"""A constant in the graph: the same value for every sample."""

from __future__ import annotations

from dalify.data import array_dtype
from dalify.registry import Spec, structural


@structural
def _literal(*, value: object, layout: str = "") -> Spec:
    """Return the same value for every sample.

    Args:
        value: a NumPy array. The executor broadcasts it without copying.
        layout: its layout.
    """
    return Spec(array_dtype(value), layout=layout, shape=value.shape)  # pyright: ignore[reportAttributeAccessIssue]
