"""Operators as functions: ``fn.resize(images, size=224)``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dalify.base.errors import ShapeError
from dalify.graph import DataNode, call
from dalify.registry import Operator, Reader


def apply_operator(operator: Operator, inputs: tuple[Any, ...], arguments: dict[str, Any]) -> Any:
    """Call an operator on graph values, or, if an input is a list of graph values, on each entry.

    Returns:
        the result of ``graph.call``. For lists of graph values, a list of the results; for an operator with several
        outputs, one list per output.

    Raises:
        ShapeError: lists of different lengths.
    """
    lengths = {len(value) for value in inputs if _is_node_list(value)}
    if not lengths:
        result = call(operator, inputs, arguments)
        return to_user_outputs(operator, [result] if isinstance(result, DataNode) else result or [], arguments)
    if len(lengths) > 1:
        raise ShapeError(
            f"lists of inputs must have equal lengths; got lengths {sorted(lengths)}.", operator=operator.public_name
        )
    results = [
        call(operator, tuple(value[index] if _is_node_list(value) else value for value in inputs), arguments)
        for index in range(lengths.pop())
    ]
    if not isinstance(results[0], list):
        return results
    return [list(output) for output in zip(*results, strict=True)]  # pyright: ignore[reportArgumentType]


def to_user_outputs(operator: Operator, results: list[Any], arguments: Mapping[str, Any]) -> Any:
    """Convert the outputs of an operator to the return value for users: None, one output, or a list."""
    if isinstance(operator, Reader) and operator.arrange_function is not None:
        return operator.arrange_function(results, arguments)
    count = operator.parameters.get("num_outputs")
    if len(results) == 1 and count is not None and count.default is None and arguments.get("num_outputs") is not None:
        return results  # a specified number of outputs is always a list, even of one
    return results[0] if len(results) == 1 else (results or None)


def _is_node_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, DataNode) for item in value)


def make_function(
    operator: Operator, public_name: str, function: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Create the function of an operator, with its signature and documentation.

    Args:
        operator: the operator.
        public_name: public name of the function.
        function: its implementation; by default it creates a node.
    """

    def make_nodes(*inputs: Any, **arguments: Any) -> Any:
        return apply_operator(operator, inputs, arguments)

    function = function or make_nodes
    function.__name__ = function.__qualname__ = public_name.rpartition(".")[2]
    function.__module__ = f"dalify.{public_name.rpartition('.')[0]}"
    function.__doc__ = operator.doc
    parameters = [*input_parameters(operator), *keyword_parameters(operator)]
    signature = inspect.Signature(sorted(parameters, key=lambda item: item.kind))
    function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    function.operator = operator  # pyright: ignore[reportFunctionMemberAccess]
    return function


def input_parameters(operator: Operator) -> list[inspect.Parameter]:
    """Return the inputs as parameters of a function."""
    kinds = inspect.Parameter
    return [
        kinds(item.name, kinds.VAR_POSITIONAL)
        if item.is_variadic
        else kinds(item.name, kinds.POSITIONAL_ONLY, default=None if item.is_optional else kinds.empty)
        for item in operator.inputs
    ]


def keyword_parameters(operator: Operator) -> list[inspect.Parameter]:
    """Return the arguments as parameters of a function, positional ones first."""
    kinds = inspect.Parameter
    parameters: list[inspect.Parameter] = []
    for item in sorted(operator.parameters.values(), key=lambda parameter: not parameter.is_positional):
        if item.name.startswith("_"):
            continue
        kind = kinds.POSITIONAL_OR_KEYWORD if item.is_positional else kinds.KEYWORD_ONLY
        default = kinds.empty if item.is_required else item.default
        parameters.append(kinds(item.name, kind, default=default, annotation=item.annotation))
    names = {item.name for item in parameters}
    common = {"device": None, "name": None, "preserve": False, "bytes_per_sample_hint": 0, "seed": -1}
    if not operator.takes_seed:
        del common["seed"]
    parameters += [
        kinds(name, kinds.KEYWORD_ONLY, default=value) for name, value in common.items() if name not in names
    ]
    return parameters
