"""``ops.Compose``: operators one after the other, as one.

Beside ``classes`` because it is no operator: nothing of it is seen in a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.source_line import SourceLine

__all__ = ["Chain", "compose"]


class Chain:
    """Operators that are called one after the other; ``ops.Compose`` makes it.

    Args:
        links: at least one callable of graph values.
    """

    def __init__(self, links: Sequence[Callable[..., Any]]) -> None:
        self._links = tuple(links)

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Call the first with everything that is given, and each further one with what the one before it returned.

        Several outputs become as many inputs. What lies on the CPU is copied where an operator of the GPU reads it.
        """
        result = self._links[0](*inputs, **arguments)
        for link in self._links[1:]:
            result = link(*result) if isinstance(result, (list, tuple)) else link(result)
        return result

    def __repr__(self) -> str:
        """Return the links in their order."""
        return f"Compose({list(self._links)})"


def compose(op_list: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Chain operators: ``op_list[-1](… op_list[0](inputs))``.

    Args:
        op_list: operators, chains or functions of graph values; all outputs of one are inputs of the next.

    Returns:
        what is called like an operator; of a single one itself.

    Raises:
        ArgumentTypeError: no list, or something in it that cannot be called.
        ArgumentValueError: an empty list.

    Example:
        >>> prepare = ops.Compose([ops.decoders.Image(), ops.Resize(size=224)])  # doctest: +SKIP
        >>> images = prepare(encoded)  # doctest: +SKIP
    """
    line = SourceLine.capture()
    if not isinstance(op_list, (list, tuple)):
        raise ArgumentTypeError(f"Compose takes a list of operators; got {op_list!r}.", line=line)
    if not op_list:
        raise ArgumentValueError("Compose needs at least one operator.", line=line)
    for item in op_list:
        if not callable(item):
            raise ArgumentTypeError(f"Compose takes operators; got {item!r}.", line=line, hint="ops.Resize(size=224)")
    return op_list[0] if len(op_list) == 1 else Chain(op_list)
