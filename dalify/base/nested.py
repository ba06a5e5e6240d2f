"""Functions on nested tuples, lists and dictionaries: pipeline outputs, branch results, batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

__all__ = ["leaves", "map_leaves", "structure_text"]


def leaves(value: object) -> Iterator[object]:
    """Yield the leaves of nested tuples, lists and dictionaries, in order."""
    if isinstance(value, (list, tuple)):
        for item in cast("list[object]", value):
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in cast("dict[object, object]", value).values():
            yield from leaves(item)
    else:
        yield value


def map_leaves(function: Callable[..., object], value: Any, *others: Any) -> Any:
    """Apply a function to the leaves of structures of the same form and return the results in that form."""
    if isinstance(value, (list, tuple)):
        kind: Callable[..., object] = type(cast("list[object]", value))
        items = [map_leaves(function, *rest) for rest in zip(cast("list[object]", value), *others, strict=True)]
        return kind(*items) if hasattr(kind, "_fields") else kind(items)  # named tuples take their fields separately
    if isinstance(value, dict):
        table = cast("dict[object, object]", value)
        return {key: map_leaves(function, item, *(other[key] for other in others)) for key, item in table.items()}
    return function(value, *others)


def structure_text(value: object) -> str:
    """Describe a nested structure without its data, e.g. ``{'image': *, 'boxes': [*, *]}``."""
    if isinstance(value, dict):
        inner = ", ".join(
            f"{key!r}: {structure_text(item)}" for key, item in cast("dict[object, object]", value).items()
        )
        return "{" + inner + "}"
    if isinstance(value, (list, tuple)):
        items = [structure_text(item) for item in cast("list[object]", value)]
        if isinstance(value, list):
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return "None" if value is None else "*"
