"""Create graph nodes from calls of operators.

This does not require a current pipeline: a graph is found by walking back from its outputs. The pipeline that is being
traced records nodes only to find sinks (``preserve=True``, side effects) and to report pruned nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, SupportsIndex

import numpy as np

from dalify.base.context_stack import Assigned
from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DalifyError,
    DeviceError,
    GraphError,
    NodeAsNameError,
    check_option,
    option_error_text,
)
from dalify.base.narrow import is_dictionary, is_list_or_tuple
from dalify.base.source_line import SourceLine
from dalify.base.wording import counted
from dalify.data.dtypes import DALIDataType
from dalify.graph.branch import current_branch, entered, is_within
from dalify.graph.constants import constant_array
from dalify.graph.evaluator import current_evaluator
from dalify.graph.expression import Expression, TracedValue
from dalify.graph.node import DEVICES, Branch, Edge, JoinedCall, Node, new_edge, new_node
from dalify.registry import RANDOM_STATE, SEED, Operator, Reader, Role

# Argument of operators without inputs whose results depend on the size of the batch. In a branch it gets the condition,
# of which only the samples of the branch remain.
_SCOPE = "_scope"

# An operator that the program calls by another name, or None for all operators, and that name.
_called_as: ContextVar[tuple[Operator | None, str] | None] = ContextVar("dalify_called_as", default=None)


def make_node(
    operator: Operator,
    inputs: Sequence[Any],
    arguments: Mapping[str, Any],
    receive: Callable[[Node], None] | None = None,
) -> Node:
    """Return a new node for one call of an operator.

    Args:
        operator: the operator.
        inputs: positional arguments: nodes, or numbers and arrays that become constants.
        arguments: keyword arguments of the user.
        receive: called with the node; its errors also name the call.

    Raises:
        DalifyError: wrong number of inputs, unknown or unusable arguments; with the user's line.
    """
    line = SourceLine.capture()
    try:
        node = _make_node(operator, inputs, arguments, line)
        if receive is not None:
            receive(node)
    except DalifyError as error:
        error.locate(line=line, operator=_name_in_program(operator) or operator.public_name)
        raise
    return node


@contextmanager
def called_as(operator: Operator | None, name: str) -> Generator[None]:
    """Inside the ``with`` block, errors name an operator as the program does.

    Args:
        operator: the operator; None for all operators, which compute a call of the program together.
        name: public name, e.g. ``fn.experimental.filter``.
    """
    with Assigned(_called_as, (operator, name)):
        try:
            yield
        except DalifyError as error:
            if operator is None or error.operator == operator.public_name:
                error.operator = name
            raise


def _name_in_program(operator: Operator) -> str | None:
    known = _called_as.get()
    return known[1] if known is not None and known[0] in (operator, None) else None


def _make_node(operator: Operator, inputs: Sequence[Any], given: Mapping[str, Any], line: SourceLine | None) -> Node:
    given = dict(given)
    name = given.pop("name", None)
    if isinstance(name, Expression):
        raise NodeAsNameError(f"name must be a string; got {name!r}.")
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"name must be a string; got {name!r}.")
    device = given.pop("device", None)
    preserve = bool(given.pop("preserve", False))
    given.pop("bytes_per_sample_hint", None)
    seed = _seed(operator, given.pop("seed", None), line) if "seed" not in operator.parameters else None
    inputs, positional = sort_positional(operator, inputs)
    for argument, value in positional.items():
        if argument in given:
            raise ArgumentTypeError(f"the argument {argument} was specified twice: by position and as {argument}=.")
        given[argument] = value
    _check_given(operator, inputs)
    edges = tuple(None if value is None else _input(operator, value) for value in inputs)
    arguments = _arguments(operator, given, line)
    if device is None:
        device = "gpu" if any(edge is not None and edge.device == "gpu" for edge in edges) else "cpu"
    _check_device(operator, device, edges)
    read = [edge for edge in (*edges, *arguments.values()) if isinstance(edge, Edge)]
    branch = followed_branch(read)
    if branch is not None and _SCOPE in operator.parameters:
        arguments[_SCOPE] = branch.condition
    elif not read:
        # Nodes without inputs (random numbers, readers, constants) run for the whole batch: every sample then gets the
        # random number that it would have without the condition, and readers advance independently of the
        # condition.
        branch = None
    elif isinstance(operator, Reader):
        branch = _outside(arguments)
    preserve = preserve or operator.has_side_effect
    other_name = _name_in_program(operator)
    calls = () if other_name is None else (JoinedCall(other_name, line, frozenset(arguments)),)
    return new_node(
        operator, edges, arguments, device, branch=branch, line=line, name=name, seed=seed, preserve=preserve,
        calls=calls,
    )  # fmt: skip


def followed_branch(read: Sequence[Edge]) -> Branch | None:
    """Return the branch of a node: the branch that is traced, or an open branch whose values the node reads."""
    branch = current_branch()
    for edge in read:
        source_branch = edge.node.branch
        if (
            source_branch is not None
            and source_branch.is_open
            and source_branch is not branch
            and is_within(source_branch, branch)
        ):
            branch = source_branch
    return branch


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
    if isinstance(value, TracedValue):
        raise ArgumentTypeError(f"seed must be an integer; got {value!r}.")
    if not isinstance(value, SupportsIndex):
        value = SEED.normalize(value, operator.public_name)
    if not operator.takes_seed:
        warn_deprecated(f"{operator.public_name} is not random; its seed has no effect.", line)
        return None
    seed = int(value)
    return None if seed < 0 else seed


def sort_positional(operator: Operator, values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Separate the positional values of a call: inputs, and arguments by name, as in ``external_source(source)``.

    Raises:
        ArgumentTypeError: too few or too many values.
    """
    count = len(values) if operator.is_variadic else len(operator.inputs)
    names = [item.name for item in operator.parameters.values() if item.is_positional]
    if len(values) < len(operator.required_inputs) or len(values) > count + len(names):
        hint = "Pass arguments that are not inputs by name." if len(values) > count else ""
        raise ArgumentTypeError(_count_text(operator, len(values)), hint=hint)
    return values[:count], dict(zip(names, values[count:], strict=False))


def _check_given(operator: Operator, values: Sequence[Any]) -> None:
    """Reject None for a required input; usually a user function has no ``return``."""
    for index, value in enumerate(values):
        item = operator.inputs[min(index, len(operator.inputs) - 1)]
        if value is None and not item.is_optional:
            raise ArgumentTypeError(
                f"the input {item.name!r} is None; it must be a graph value, a number or an array.",
                hint="Check that the function that creates it has a `return`.",
            )


def _count_text(operator: Operator, count: int) -> str:
    required = operator.required_inputs
    optional = [item.name for item in operator.inputs if item.is_optional]
    wanted = counted(len(required), "input")
    names = f" ({', '.join(required)})" if required else ""
    extra = f" and up to {len(optional)} more ({', '.join(optional)})" if optional else ""
    extra = " or more" if operator.is_variadic else extra
    return f"takes {wanted}{names}{extra}; got {count}."


def _is_list_of_arrays(value: Any) -> bool:
    """Return whether a value is a list of samples: NumPy arrays and scalars, tensors, but not Python numbers."""
    if not is_list_or_tuple(value) or not value:
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
        return constant_edge(value)
    raise ArgumentTypeError(
        f"an input must be a graph value, a number or an array; got {type(value).__name__}.",
        hint="Pass one of its values: x['name']."
        if is_dictionary(value)
        else "In a pipeline, data come from readers or fn.external_source. dalify.eager has the same operators for "
        "data outside of pipelines.",
        operator=operator.public_name,
    )


def _arguments(operator: Operator, given: Mapping[str, Any], line: SourceLine | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Expression):
            value = value.as_argument()
        if name == RANDOM_STATE.name and isinstance(value, np.ndarray):
            value = TracedValue[Any](constant_edge(value))
        if name not in operator.parameters:
            modern = operator.old_arguments.get(name)
            if modern is not None:
                if modern in given:
                    raise ArgumentTypeError(f"{name!r} is the old name of {modern!r}; both were specified.")
                warn_deprecated(f"{operator.public_name}: the argument {name!r} is now called {modern!r}.", line)
                name = modern
            elif name in operator.retired_arguments:
                warn_deprecated(
                    f"{operator.public_name}: the argument {name!r} no longer has an effect and can be omitted.", line
                )
                continue
        parameter = operator.parameter(name)
        if isinstance(value, TracedValue):
            if not parameter.accepts_node:
                raise ArgumentTypeError(
                    f"{name} must be the same for the whole batch; it cannot be a graph value.",
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
                f"{name} is a list that contains graph values.", hint=f"Combine them first: {name}=fn.stack(a, b)."
            )
        else:
            value = parameter.normalize(value, operator.public_name)
            if value is not None or parameter.is_required:
                arguments[name] = value
    missing = [parameter.name for parameter in operator.parameters.values() if parameter.is_required]
    missing = [name for name in missing if name not in arguments]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise ArgumentTypeError(f"the operator requires the argument{plural} {', '.join(missing)}.")
    return arguments


def _has_node(value: Any) -> bool:
    return is_list_or_tuple(value) and any(isinstance(item, TracedValue) or _has_node(item) for item in value)


def _check_device(operator: Operator, device: str, edges: Sequence[Edge | None]) -> None:
    check_option("device", device, DEVICES)
    if device == "mixed" and not operator.takes_mixed:
        raise DeviceError("the operator has no 'mixed' variant.", hint="Use device='cpu' or device='gpu'.")
    if device != "gpu" and any(edge is not None and edge.device == "gpu" for edge in edges):
        raise DeviceError(
            f"the operator runs on the CPU (device={device!r}), but an input is on the GPU.",
            hint="Write input.cpu() to copy it back, or omit device= to run the operator on the device of its input.",
        )


def is_promotable(value: object) -> bool:
    """Return whether a value can be an operand together with nodes, as a constant."""
    if isinstance(value, (bool, int, float, np.generic, np.ndarray, Expression)):
        return True
    if is_list_or_tuple(value):
        return bool(value) and all(is_promotable(item) for item in value)
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def constant_edge(value: Any, dtype: DALIDataType | None = None, layout: str = "", device: str = "cpu") -> Edge:
    """Return an edge with the same value for every sample; see ``graph.constant``."""
    if device not in ("cpu", "gpu"):
        raise ArgumentValueError.here(option_error_text("device", device, ("cpu", "gpu")))
    if isinstance(value, Expression):  # a typed constant or a graph value
        edge = value.node().edge
    else:
        array = constant_array(value, dtype).copy()  # the program may change its array before the graph runs
        array.flags.writeable = False
        edge = new_edge(Role.LITERAL, (), {"value": array, "layout": layout}, line=SourceLine.capture())
    return transferred_edge(edge, device) if device == "gpu" else edge


def transferred_edge(edge: Edge, device: str) -> Edge:
    """Return an edge copied to another device; the edge itself if it is there already."""
    if edge.device == device:
        return edge
    where = "mixed" if device == "gpu" else "cpu"
    return new_edge(Role.TRANSFER, (edge,), {}, where, branch=current_branch(), line=SourceLine.capture())


def on_one_device(edges: Sequence[Edge]) -> tuple[list[Edge], str]:
    """Return edges of several branches on one device (the GPU if one edge is on the GPU), and this device."""
    device = "gpu" if any(edge.device == "gpu" for edge in edges) else "cpu"
    copies: list[Edge] = []
    for edge in edges:
        with entered(edge.node.branch):  # outside its branch a value exists only for some samples
            copies.append(transferred_edge(edge, device))
    return copies, device
