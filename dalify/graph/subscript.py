"""Convert Python's index syntax to the arguments of the indexing operator."""

from __future__ import annotations

import math
import operator as python_operator
from typing import Any, cast

from dalify.base.errors import ArgumentTypeError
from dalify.base.narrow import is_list_or_tuple, is_tuple
from dalify.graph.expression import Expression, NewAxis


def index_entries(index: Any, kind: type, wanted: str) -> tuple[tuple[tuple[Any, ...], ...], list[Any]]:
    """Return an index as an argument of ``tensor_subscript``, and the graph values in it, its additional inputs.

    Args:
        index: the user's index.
        kind: class of graph values.
        wanted: description of allowed entries, for the error.

    Returns:
        for each entry ``("at", i)``, ``("slice", start, stop, step)``, ``("newaxis", letter or None)`` or
        ``("ellipsis",)``, where ``("node", k)`` in place of a number is the k-th value; and the values.

    Raises:
        ArgumentTypeError: an entry is not an integer, slice, value, newaxis or Ellipsis.
    """
    values: list[Any] = []

    def number(item: Any) -> Any:
        if item is None:
            return None
        if isinstance(item, kind):
            values.append(item)
            return ("node", len(values) - 1)
        if isinstance(item, Expression):  # a constant: fractions are truncated, as in DALI
            item = item.as_argument()
            item = int(item) if isinstance(item, float) and math.isfinite(item) else item
        try:
            return python_operator.index(item)
        except TypeError:
            raise ArgumentTypeError.here(
                f"an index must be an integer, a slice, {wanted}; got {item!r} of type {type(item).__name__}.",
                hint="For several elements use a slice, or fn.stack(x[0], x[2])." if is_list_or_tuple(item) else "",
            ) from None

    entries: list[tuple[Any, ...]] = []
    items: tuple[Any, ...] = index if is_tuple(index) else (index,)
    for item in items:
        if isinstance(item, slice):
            bounds = cast("slice[Any, Any, Any]", item)
            entries.append(("slice", number(bounds.start), number(bounds.stop), number(bounds.step)))
        elif item is Ellipsis:
            entries.append(("ellipsis",))
        elif item is None or isinstance(item, NewAxis):
            entries.append(("newaxis", None if item is None else item.name))
        else:
            entries.append(("at", number(item)))
    return tuple(entries), values
