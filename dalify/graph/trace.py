"""From calls to nodes: the one place where graph nodes are made.

Needs no current pipeline: a node is context-free, and a pipeline is found by walking back from its outputs. The
pipeline that is being traced records the nodes only to find those that must be kept without being an output
(``preserve=True``, side effects), and to tell what was pruned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
from dalify.graph.node import DEVICES, Edge, Node
from dalify.graph.specs import edge_spec
from dalify.graph.subscript import subscript
from dalify.graph.watch import batch_of_samples
from dalify.registry import Operator, catalogue
from dalify.registry.legacy import RETIRED_ARGUMENTS

__all__ = [
    "apply",
    "arithmetic",
    "call",
    "constant",
    "is_promotable",
    "logical_not",
    "merge",
    "recording",
    "split",
    "transfer",
]

_MADE: ContextVar[list[Node] | None] = ContextVar("dalify_made_nodes", default=None)


@contextmanager
def recording(made: list[Node]) -> Iterator[None]:
    """Collect in ``made`` the nodes made meanwhile.

    Some must run although no output needs them, and users ask what was pruned.
    """
    token = _MADE.set(made)
    try:
        yield
    finally:
        _MADE.reset(token)


def call(operator: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> DataNode | list[DataNode] | None:
    """Make a node for one use of an operator.

    Args:
        operator: what to use.
        inputs: positional arguments: nodes, or numbers and arrays that become constants.
        arguments: keyword arguments as the user wrote them.

    Returns:
        one DataNode, a list of several, or None for an operator without outputs.

    Raises:
        DalifyError: wrong number of inputs, unknown or unusable arguments; with the user's line.
    """
    line = SourceLine.capture()
    try:
        return _call(operator, inputs, arguments, line)
    except DalifyError as error:
        error.locate(line=line, operator=operator.public_name)
        raise


def _call(
    operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any], line: SourceLine | None
) -> DataNode | list[DataNode] | None:
    given = dict(given)
    name = given.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"name must be a text; got {name!r}.")
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
        # What reads nothing (random numbers, readers, constants) runs for the whole batch: every sample then gets the
        # number that it would have had without the condition, and a reader advances the same way whatever the
        # condition says.
        branch = None
    elif operator.is_reader:
        branch = _outside(arguments)
    node = Node(
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
    made = _MADE.get()
    if made is not None:
        made.append(node)
    results = [DataNode(Edge(node, output)) for output in range(node.output_count)]
    return results[0] if len(results) == 1 else (results or None)


def _followed(read: Sequence[Edge]) -> Branch | None:
    """Return the branch of a node: the one that is traced now, or an open one that it reads from."""
    branch = current_branch()
    for edge in read:
        home = edge.node.branch
        if home is not None and home.is_open and home is not branch and is_within(home, branch):
            branch = home
    return branch


def split(node: DataNode, predicate: DataNode) -> tuple[DataNode, DataNode]:
    """Return a value for the samples whose predicate is true, and for the others, as values of two open branches.

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
    """Refuse arguments that exist for some samples only: a reader reads for the whole batch."""
    for name, value in arguments.items():
        if isinstance(value, Edge) and value.node.branch is not None:
            raise GraphError(
                f"the argument {name} was computed inside a condition, for some of the samples only; a reader reads "
                "for all.",
                hint="Compute it before the condition.",
            )


def _seed(operator: Operator, value: Any, line: SourceLine | None) -> int | None:
    """Return the seed that the user gave; None where it is to be derived from the pipeline's."""
    if value is None:
        return None
    if isinstance(value, DataNode) or not isinstance(value, SupportsIndex):
        raise ArgumentTypeError(f"seed must be an integer; got {value!r}.")
    if not (operator.is_random or operator.is_reader):
        warn_deprecated(f"{operator.public_name} draws no random numbers; its seed has no effect.", line)
        return None
    seed = int(value)
    return None if seed < 0 else seed


def _defaults(operator: Operator) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in operator.parameters.items()}


def _positional(operator: Operator, inputs: Sequence[Any], given: dict[str, Any]) -> list[Any]:
    """Check the number of inputs.

    Move positional arguments that are no inputs (``external_source(source)``) to the keywords.
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
            raise ArgumentTypeError(f"the argument {name} was given twice: by position and as {name}=.")
        given[name] = value
    values = values[: len(declared)]
    required = sum(1 for item in declared if not item.is_optional)
    if len(values) < required:
        raise ArgumentTypeError(_count_text(operator, len(values)))
    return values


def _check_given(operator: Operator, values: Sequence[Any]) -> None:
    """Refuse None for an input that is needed: a function of the user that forgot its ``return``, most often."""
    for index, value in enumerate(values):
        item = operator.inputs[min(index, len(operator.inputs) - 1)]
        if value is None and not item.is_optional:
            raise ArgumentTypeError(
                f"the input {item.name!r} is None; it must be a graph node, a number or an array.",
                hint="Does the function that should have made it return anything?",
            )


def _count_text(operator: Operator, count: int) -> str:
    required = [item.name for item in operator.inputs if not item.is_optional and not item.is_variadic]
    optional = [item.name for item in operator.inputs if item.is_optional]
    wanted = f"{len(required)} input{'' if len(required) == 1 else 's'}"
    names = f" ({', '.join(required)})" if required else ""
    extra = f" and up to {len(optional)} more ({', '.join(optional)})" if optional else ""
    extra = " or more" if any(item.is_variadic for item in operator.inputs) else extra
    return f"takes {wanted}{extra}{names}; {count} were given."


def _is_list_of_arrays(value: Any) -> bool:
    """Tell whether a value is a list of samples: arrays and scalars of numpy, tensors, but no numbers of Python."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(
        not isinstance(item, (bool, int, float, Expression))
        and (hasattr(item, "__array__") or hasattr(item, "__dlpack__"))
        for item in value
    )


def _input(operator: Operator, value: Any) -> Edge:
    if _is_list_of_arrays(value):
        given = batch_of_samples(value)
        if given is None:
            raise ArgumentTypeError(
                "a list of arrays is no graph value: outside debug mode nobody knows the batch that it would be.",
                hint="Write numpy.stack(arrays) for a constant that is the same for every sample, or use "
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
        if name not in operator.parameters:
            modern = operator.old_arguments.get(name)
            if modern is not None:
                if modern in given:
                    raise ArgumentTypeError(f"{name!r} is the old name of {modern!r}; both were given.")
                warn_deprecated(f"{operator.public_name}: the argument {name!r} is now called {modern!r}.", line)
                name = modern
            elif name in RETIRED_ARGUMENTS:
                warn_deprecated(
                    f"{operator.public_name}: the argument {name!r} has no effect any more and can be left out.", line
                )
                continue
        parameter = operator.parameter(name)
        if isinstance(value, DataNode):
            if not parameter.accepts_node:
                raise ArgumentTypeError(
                    f"{name} must be the same for the whole batch; it cannot be a graph node.",
                    hint=f"Give a constant: {name}={parameter.default if not parameter.is_required else '...'}",
                )
            if value.edge.device == "gpu":
                raise DeviceError(
                    f"the argument {name} must lie on the CPU; it was computed on the GPU.",
                    hint=f"Compute it with device='cpu', or write {name}=value.cpu().",
                )
            arguments[name] = value.edge
        elif parameter.accepts_node and _is_list_of_arrays(value) and (given_batch := batch_of_samples(value)):
            arguments[name] = given_batch
        elif parameter.accepts_node and _has_node(value):
            raise ArgumentTypeError(
                f"{name} is a list with graph nodes in it.", hint=f"Join them first: {name}=fn.stack(a, b)."
            )
        else:
            value = parameter.normalise(value, operator.public_name)
            if value is not None or parameter.is_required:
                arguments[name] = value
    missing = [parameter.name for parameter in operator.parameters.values() if parameter.is_required]
    missing = [name for name in missing if name not in arguments]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise ArgumentTypeError(f"needs the argument{plural} {', '.join(missing)}.")
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
            f"runs on the CPU (device={device!r}), but an input lies on the GPU.",
            hint="Write input.cpu() to copy it back, or leave out device= so that the operator follows its input.",
        )


def apply(name: str, *inputs: Any, **arguments: Any) -> DataNode:
    """Use an operator of one output by its name."""
    result = call(catalogue.find(name), inputs, arguments)
    assert isinstance(result, DataNode), f"dalify bug: {name} does not have one output"
    return result


def is_promotable(value: object) -> bool:
    """Tell whether a value becomes a constant of the graph when it meets nodes."""
    if isinstance(value, (bool, int, float, np.generic, np.ndarray, Expression)):
        return True
    if isinstance(value, (list, tuple)):
        return bool(value) and all(is_promotable(item) for item in value)
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def constant(value: Any, dtype: DALIDataType | None = None, layout: str = "", device: str = "cpu") -> DataNode:
    """Make a node with the same value for every sample.

    Args:
        value: number or array. As in DALI, Python integers are INT32 and Python floats FLOAT; arrays keep their type,
            but for lists of Python numbers, which follow the rule for numbers.
        dtype: element type, instead of that rule.
        layout: layout of an array.
        device: where the value is wanted.

    Raises:
        IntegerRangeError: an integer that does not fit 32 bits and has no dtype.
        GraphError: neither numbers nor an array of numbers.
    """
    if isinstance(value, Expression):  # a typed constant, or a graph value already
        return transfer(value.node(), device) if device == "gpu" else value.node()
    array = constant_array(value, dtype)
    array.flags.writeable = False
    node = Node(catalogue.find("_literal"), (), {"value": array, "layout": layout}, line=SourceLine.capture())
    result = DataNode(Edge(node, 0))
    return transfer(result, "gpu") if device == "gpu" else result


def transfer(node: DataNode, device: str) -> DataNode:
    """Make a copy on another device; the node itself where it lies there already."""
    if node.edge.device == device:
        return node
    copy = Node(
        catalogue.find("_transfer"), (node.edge,), {}, device="mixed" if device == "gpu" else "cpu",
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
    """Make the node that is ``if_true`` for samples whose condition holds and ``if_false`` for the others.

    Args:
        condition: one boolean or number per sample.
        if_true: value made in the true branch of the condition, or before it.
        if_false: value made in the false branch, or before it.
        name: the variable, for messages.
        lines: where the two values were defined.
    """
    sides = [if_true, if_false]
    if if_true.device != if_false.device:
        for index, side in enumerate(sides):
            with entered(side.edge.node.branch):  # outside its branch a value exists only for some samples
                sides[index] = transfer(side, "gpu")
    device = sides[0].device
    node = Node(
        catalogue.find("_conditional.merge"),
        (condition.edge, *(side.edge for side in sides)),
        {"variable": name, "lines": lines},
        device=device,
        branch=_followed([condition.edge]),
        line=SourceLine.capture(),
    )
    return DataNode(Edge(node, 0))


def logical_not(node: DataNode) -> DataNode:
    """Make the node that is true where a value is false or zero."""
    return apply("_conditional.not_", node)


def arithmetic(function: str, operands: Sequence[Any]) -> DataNode:
    """Make the node of an element-wise function of nodes, typed constants and numbers."""
    for operand in operands:
        if not isinstance(operand, Expression) and not is_promotable(operand):
            raise ArgumentTypeError(
                f"graph values cannot be combined with {type(operand).__name__} by {function!r}.",
                line=SourceLine.capture(),
                hint="Use numbers, numpy arrays or graph nodes.",
            )
    return apply("arithmetic", *operands, function=function)


datanode.install(arithmetic=arithmetic, infer=edge_spec, transfer=transfer, apply=apply, subscript=subscript)
