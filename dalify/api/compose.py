"""``ops.Compose``, which chains operators. It is not an operator itself and creates no node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from dalify.base.errors import ArgumentTypeError


class Chain:
    """A chain of operators, created by ``ops.Compose``.

    Args:
        links: callables on graph values; chains among them are replaced by their links.
    """

    def __init__(self, links: Sequence[Callable[..., Any]]) -> None:
        nested = (link._links if isinstance(link, Chain) else (link,) for link in links)
        self._links: tuple[Callable[..., Any], ...] = tuple(chain.from_iterable(nested))

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Call the first link with all arguments, and each further one with the outputs of the previous one.

        Several outputs become several inputs, or a list at the end. CPU data are copied to the GPU for GPU operators.
        """
        values: Sequence[Any] = inputs
        for link in self._links:
            result = link(*values, **arguments)
            values, arguments = result if isinstance(result, (list, tuple)) else (result,), {}
        return values[0] if len(values) == 1 else list(values)

    def __repr__(self) -> str:
        return f"Compose({list(self._links)})"


def compose(op_list: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Chain operators: ``op_list[-1](… op_list[0](inputs))``.

    Args:
        op_list: operators, chains or functions of graph values; all outputs of one are inputs of the next.

    Returns:
        a callable like an operator; a single item is returned unchanged. Without items, it returns its inputs.

    Raises:
        ArgumentTypeError: not a list, or an item that is not callable.

    Example:
        >>> prepare = ops.Compose([ops.decoders.Image(), ops.Resize(size=224)])  # doctest: +SKIP
        >>> images = prepare(encoded)  # doctest: +SKIP
    """
    if not isinstance(op_list, (list, tuple)):
        raise ArgumentTypeError.here(f"Compose requires a list of operators; got {op_list!r}.")
    for item in op_list:
        if not callable(item):
            raise ArgumentTypeError.here(f"Compose requires operators; got {item!r}.", hint="ops.Resize(size=224)")
    return op_list[0] if len(op_list) == 1 else Chain(op_list)
