"""Create graph nodes from calls of operators.

This does not require a current pipeline: a graph is found by walking back from its outputs. The pipeline that is being
traced records nodes only to find sinks (``preserve=True``, side effects) and to report pruned nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DalifyError,
    DeviceError,
    GraphError,
    option_error_text,
)
from dalify.base.source_line import SourceLine
from dalify.data.dtypes import DALIDataType
from dalify.graph import datanode
from dalify.graph.branch import Branch, current_branch, entered, is_within
from dalify.graph.constants import constant_array
from dalify.graph.datanode import DataNode, Expression
from dalify.graph.evaluator import current_evaluator
from dalify.graph.node import DEVICES, Edge, Node
from dalify.graph.specs import edge_spec
from dalify.graph.subscript import subscript
from dalify.registry import RANDOM_STATE, Operator, catalog
from dalify.registry.legacy import RETIRED_ARGUMENTS

__all__ = [
    "apply",
    "arithmetic",
    "call",
    "constant",
    "is_promotable",
    "logical_not",
    "make_node",
    "merge",
    "split",
    "transfer",
]


def call(operator: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> DataNode | list[DataNode] | None:
    """Create a node for one call of an operator, and pass it to the active evaluator.

    Args:
        operator: the operator.
        inputs: positional arguments: nodes, or numbers and arrays that become constants.
        arguments: keyword arguments of the user.

    Returns:
        one DataNode, a list of several, or None for an operator without outputs.

    Raises:
        DalifyError: wrong number of inputs, unknown or unusable arguments; with the user's line.
    """
    node = make_node(operator, inputs, arguments, current_evaluator().node_made)
    results = [DataNode(Edge(node, output)) for output in range(node.output_count)]
    return results[0] if len(results) == 1 else (results or None)


def make_node(
    operator: Operator,
    inputs: Sequence[Any],
    arguments: Mapping[str, Any],
    made: Callable[[Node], None] | None = None,
) -> Node:
    """Return a new node for one call of an operator.

    Args:
        operator: the operator.
        inputs: positional arguments: nodes, or numbers and arrays that become constants.
        arguments: keyword arguments of the user.
        made: receives the node; its errors name the call, too.

    Raises:
        DalifyError: wrong number of inputs, unknown or unusable arguments; with the user's line.
    """
    line = SourceLine.capture()
    try:
        node = _make_node(operator, inputs, arguments, line)
        if made is not None:
            made(node)
    except DalifyError as error:
        error.locate(line=line, operator=operator.public_name)
        raise
    return node


def _make_node(operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any], line: SourceLine | None) -> Node:
    given = dict(given)
    name = given.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"name must be a string; got {name!r}.")
    device = given.pop("device", None)
    preserve = bool(given.pop("preserve", False))
    given.pop("bytes_per_sample_hint", None)
    seed = _seed(operator, given.pop("seed", None), line) if "seed" not in operator.parameters else None
    inputs = _positional(operator, inputs, given)
    _check_given(operator, inputs)
    edges = tuple(None if value is None else _input(operator, value) for value in inputs)
    arguments = _arguments(operator, given, line)
    if device is None:
        device = "gpu" if any(edge is not None and edge.device == "gpu" for edge in edges) else "cpu"
    _check_device(operator, device, edges)
    read = [edge for edge in (*edges, *arguments.values()) if isinstance(edge, Edge)]
    branch = _followed(read)
    if not read:
        # Nodes without inputs (random numbers, readers, constants) run for the whole batch: every sample then gets the
        # random number that it would have without the condition, and readers advance independently of the
        # condition.
        branch = None
    elif operator.is_reader:
        branch = _outside(arguments)
    return Node(
        operator,
        edges,
        arguments,
        device,
        operator.output_count({**_defaults(operator), **arguments, "input_count": sum(map(bool, edges))}),
        branch,
        line,
        name,
        seed,
        preserve or operator.has_side_effect,
    )


def _followed(read: Sequence[Edge]) -> Branch | None:
    """Return the branch of a node: the one that is currently traced, or an open one that it reads from."""
    branch = current_branch()
    for edge in read:
        home = edge.node.branch
        if home is not None and home.is_open and home is not branch and is_within(home, branch):
            branch = home
    return branch


def split(node: DataNode, predicate: DataNode) -> tuple[DataNode, DataNode]:
    """Split a value by a predicate into values of two open branches: true samples and false samples.

    Args:
        node: the value.
        predicate: one boolean or number per sample.
    """
    line = SourceLine.capture()
    parent = _followed([node.edge, predicate.edge])
    sides: list[DataNode] = []
    for taken in (True, False):
        with entered(Branch(predicate.edge, taken, parent, line, is_open=True)):
            sides.append(apply("copy", node))
    return sides[0], sides[1]


def _outside(arguments: Mapping[str, Any]) -> None:
    """Reject arguments of readers from inside a condition: a reader reads for the whole batch."""
    for name, value in arguments.items():
        if isinstance(value, Edge) and value.node.branch is not None:
            raise GraphError(
                f"the argument {name} was computed inside a condition, for some samples only; a reader needs it "
                "for all samples.",
                hint="Compute it before the condition.",
            )


def _seed(operator: Operator, value: Any, line: SourceLine | None) -> int | None:
    """Return the seed that the user specified; None to derive it from the pipeline's seed."""
    if value is None:
        return None
    if isinstance(value, DataNode) or not isinstance(value, SupportsIndex):
        raise ArgumentTypeError(f"seed must be an integer; got {value!r}.")
    if not (operator.is_random or operator.is_reader):
        warn_deprecated(f"{operator.public_name} is not random; its seed has no effect.", line)
        return None
    seed = int(value)
    return None if seed < 0 else seed


def _defaults(operator: Operator) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in operator.parameters.items()}


def _positional(operator: Operator, inputs: Sequence[Any], given: dict[str, Any]) -> list[Any]:
    """Check the number of inputs.

    Move positional arguments that are not inputs (``external_source(source)``) to the keywords.
    """
    declared = operator.inputs
    values = list(inputs)
    if any(item.is_variadic for item in declared):
        required = sum(1 for item in declared if not item.is_optional and not item.is_variadic)
        if len(values) < required:
            raise ArgumentTypeError(_count_text(operator, len(values)))
        return values
    surplus = values[len(declared) :]
    positional = [item.name for item in operator.parameters.values() if item.is_positional]
    if len(surplus) > len(positional):
        raise ArgumentTypeError(_count_text(operator, len(values)))
    for name, value in zip(positional, surplus, strict=False):
        if name in given:
            raise ArgumentTypeError(f"the argument {name} was specified twice: by position and as {name}=.")
        given[name] = value
    values = values[: len(declared)]
    required = sum(1 for item in declared if not item.is_optional)
    if len(values) < required:
        raise ArgumentTypeError(_count_text(operator, len(values)))
    return values


def _check_given(operator: Operator, values: Sequence[Any]) -> None:
    """Reject None for a required input; usually a user function has no ``return``."""
    for index, value in enumerate(values):
        item = operator.inputs[min(index, len(operator.inputs) - 1)]
        if value is None and not item.is_optional:
            raise ArgumentTypeError(
                f"the input {item.name!r} is None; it must be a graph node, a number or an array.",
                hint="Check that the function that creates it has a `return`.",
            )


def _count_text(operator: Operator, count: int) -> str:
    required = [item.name for item in operator.inputs if not item.is_optional and not item.is_variadic]
    optional = [item.name for item in operator.inputs if item.is_optional]
    wanted = f"{len(required)} input{'' if len(required) == 1 else 's'}"
    names = f" ({', '.join(required)})" if required else ""
    extra = f" and up to {len(optional)} more ({', '.join(optional)})" if optional else ""
    extra = " or more" if any(item.is_variadic for item in operator.inputs) else extra
    return f"takes {wanted}{extra}{names}; got {count}."


def _is_list_of_arrays(value: Any) -> bool:
    """Return whether a value is a list of samples: NumPy arrays and scalars, tensors, but not Python numbers."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(
        not isinstance(item, (bool, int, float, Expression))
        and (hasattr(item, "__array__") or hasattr(item, "__dlpack__"))
        for item in value
    )


def _input(operator: Operator, value: Any) -> Edge:
    if _is_list_of_arrays(value):
        given = current_evaluator().source_of(value)
        if given is None:
            raise ArgumentTypeError(
                "a list of arrays cannot be a graph value; only debug mode accepts the samples of a batch.",
                hint="Use numpy.stack(arrays) for a constant that is the same for every sample, or "
                "fn.external_source for samples.",
                operator=operator.public_name,
            )
        return given
    if is_promotable(value):
        return constant(value).edge
    raise ArgumentTypeError(
        f"an input must be a graph node, a number or an array; got {type(value).__name__}.",
        operator=operator.public_name,
    )


def _arguments(operator: Operator, given: Mapping[str, Any], line: SourceLine | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Expression):
            value = value.as_argument()
        if name == RANDOM_STATE.name and isinstance(value, np.ndarray):
            value = constant(value)
        if name not in operator.parameters:
            modern = operator.old_arguments.get(name)
            if modern is not None:
                if modern in given:
                    raise ArgumentTypeError(f"{name!r} is the old name of {modern!r}; both were specified.")
                warn_deprecated(f"{operator.public_name}: the argument {name!r} is now called {modern!r}.", line)
                name = modern
            elif name in RETIRED_ARGUMENTS:
                warn_deprecated(
                    f"{operator.public_name}: the argument {name!r} no longer has an effect and can be omitted.", line
                )
                continue
        parameter = operator.parameter(name)
        if isinstance(value, DataNode):
            if not parameter.accepts_node:
                raise ArgumentTypeError(
                    f"{name} must be the same for the whole batch; it cannot be a graph node.",
                    hint=f"Use a constant: {name}={parameter.default if not parameter.is_required else '...'}",
                )
            if value.edge.device == "gpu":
                raise DeviceError(
                    f"the argument {name} must be on the CPU; it was computed on the GPU.",
                    hint=f"Compute it with device='cpu', or write {name}=value.cpu().",
                )
            arguments[name] = value.edge
        elif (
            parameter.accepts_node
            and _is_list_of_arrays(value)
            and (given_batch := current_evaluator().source_of(value))
        ):
            arguments[name] = given_batch
        elif parameter.accepts_node and _has_node(value):
            raise ArgumentTypeError(
                f"{name} is a list that contains graph nodes.", hint=f"Combine them first: {name}=fn.stack(a, b)."
            )
        else:
            value = parameter.normalize(value, operator.public_name)
            if value is not None or parameter.is_required:
                arguments[name] = value
    missing = [parameter.name for parameter in operator.parameters.values() if parameter.is_required]
    missing = [name for name in missing if name not in arguments]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise ArgumentTypeError(f"requires the argument{plural} {', '.join(missing)}.")
    return arguments


def _has_node(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(item, DataNode) or _has_node(item) for item in value)


def _check_device(operator: Operator, device: str, edges: Sequence[Edge | None]) -> None:
    if device not in DEVICES:
        raise ArgumentValueError(option_error_text("device", device, DEVICES))
    if device == "mixed" and not operator.takes_mixed:
        raise DeviceError("has no 'mixed' variant.", hint="Use device='cpu' or device='gpu'.")
    if device != "gpu" and any(edge is not None and edge.device == "gpu" for edge in edges):
        raise DeviceError(
            f"runs on the CPU (device={device!r}), but an input is on the GPU.",
            hint="Write input.cpu() to copy it back, or omit device= to run the operator on the device of its input.",
        )


def apply(name: str, *inputs: Any, **arguments: Any) -> DataNode:
    """Call an operator with one output by its name."""
    result = call(catalog.find(name), inputs, arguments)
    assert isinstance(result, DataNode), f"dalify bug: {name} does not have one output"
    return result


def is_promotable(value: object) -> bool:
    """Return whether a value can be an operand together with nodes, as a constant."""
    if isinstance(value, (bool, int, float, np.generic, np.ndarray, Expression)):
        return True
    if isinstance(value, (list, tuple)):
        return bool(value) and all(is_promotable(item) for item in value)
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def constant(value: Any, dtype: DALIDataType | None = None, layout: str = "", device: str = "cpu") -> DataNode:
    """Create a node with the same value for every sample.

    Args:
        value: number or array. As in DALI, Python integers are INT32 and Python floats FLOAT; arrays keep their type;
            lists of Python numbers follow the rule for numbers.
        dtype: element type, instead of that rule.
        layout: layout of an array.
        device: device of the result.

    Raises:
        IntegerRangeError: an integer does not fit 32 bits and there is no dtype.
        GraphError: not a number, an array, or a nested list of numbers.
    """
    if isinstance(value, Expression):  # a typed constant or a graph value
        return transfer(value.node(), device) if device == "gpu" else value.node()
    array = constant_array(value, dtype)
    array.flags.writeable = False
    node = Node(catalog.find("_literal"), (), {"value": array, "layout": layout}, line=SourceLine.capture())
    result = DataNode(Edge(node, 0))
    return transfer(result, "gpu") if device == "gpu" else result


def transfer(node: DataNode, device: str) -> DataNode:
    """Return a copy on another device; the node itself if it is there already."""
    if node.edge.device == device:
        return node
    copy = Node(
        catalog.find("_transfer"), (node.edge,), {}, device="mixed" if device == "gpu" else "cpu",
        branch=current_branch(), line=SourceLine.capture(),
    )  # fmt: skip
    return DataNode(Edge(copy, 0))


def merge(
    condition: DataNode,
    if_true: DataNode,
    if_false: DataNode,
    name: str = "",
    lines: tuple[SourceLine | None, SourceLine | None] = (None, None),
) -> DataNode:
    """Create the node that is ``if_true`` for samples whose condition is true and ``if_false`` for the others.

    Args:
        condition: one boolean or number per sample.
        if_true: value from the true branch of the condition, or before it.
        if_false: value from the false branch, or before it.
        name: name of the variable, for messages.
        lines: where the two values were assigned.
    """
    sides = [if_true, if_false]
    if if_true.device != if_false.device:
        for index, side in enumerate(sides):
            with entered(side.edge.node.branch):  # outside its branch a value exists only for some samples
                sides[index] = transfer(side, "gpu")
    device = sides[0].device
    node = Node(
        catalog.find("_conditional.merge"),
        (condition.edge, *(side.edge for side in sides)),
        {"variable": name, "lines": lines},
        device=device,
        branch=_followed([condition.edge]),
        line=SourceLine.capture(),
    )
    return DataNode(Edge(node, 0))


def logical_not(node: DataNode) -> DataNode:
    """Create the node that is true if a value is false or zero."""
    return apply("_conditional.not_", node)


def arithmetic(function: str, operands: Sequence[Any]) -> DataNode:
    """Create the node of an element-wise function of nodes, typed constants and numbers."""
    for operand in operands:
        if not isinstance(operand, Expression) and not is_promotable(operand):
            raise ArgumentTypeError(
                f"{function!r} does not support graph values together with {type(operand).__name__}.",
                line=SourceLine.capture(),
                hint="Use numbers, numpy arrays or graph nodes.",
            )
    return apply("arithmetic", *operands, function=function)


datanode.install(arithmetic=arithmetic, infer=edge_spec, transfer=transfer, apply=apply, subscript=subscript)
