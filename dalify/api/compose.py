"""``ops.Compose``, which chains operators. It is not an operator itself and creates no node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError


class Chain:
    """A chain of operators, created by ``ops.Compose``.

    Args:
        links: at least one callable on graph values.
    """

    def __init__(self, links: Sequence[Callable[..., Any]]) -> None:
        self._links = tuple(links)

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Call the first link with all arguments, and each further one with the outputs of the previous one.

        Several outputs become several inputs. CPU data are copied to the GPU for GPU operators.
        """
        result = self._links[0](*inputs, **arguments)
        for link in self._links[1:]:
            result = link(*result) if isinstance(result, (list, tuple)) else link(result)
        return result

    def __repr__(self) -> str:
        return f"Compose({list(self._links)})"


def compose(op_list: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Chain operators: ``op_list[-1](… op_list[0](inputs))``.

    Args:
        op_list: operators, chains or functions of graph values; all outputs of one are inputs of the next.

    Returns:
        a callable like an operator; a single item is returned unchanged.

    Raises:
        ArgumentTypeError: not a list, or an item that is not callable.
        ArgumentValueError: an empty list.

    Example:
        >>> prepare = ops.Compose([ops.decoders.Image(), ops.Resize(size=224)])  # doctest: +SKIP
        >>> images = prepare(encoded)  # doctest: +SKIP
    """
    if not isinstance(op_list, (list, tuple)):
        raise ArgumentTypeError.here(f"Compose requires a list of operators; got {op_list!r}.")
    if not op_list:
        raise ArgumentValueError.here("Compose requires at least one operator.")
    for item in op_list:
        if not callable(item):
            raise ArgumentTypeError.here(f"Compose requires operators; got {item!r}.", hint="ops.Resize(size=224)")
    return op_list[0] if len(op_list) == 1 else Chain(op_list)
