"""Conversion of graphs to JSON and back.

Reading executes no code: operators are found by name in the catalog, values are plain data.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from dalify.base.errors import ArgumentTypeError, DalifyError, SerializationError, short_repr
from dalify.base.narrow import is_array, is_dictionary, is_list_or_tuple
from dalify.base.source_line import SourceLine
from dalify.base.wording import counted
from dalify.data.dtypes import DALIDataType, DALIImageType, DALIInterpType, from_numpy
from dalify.graph.graph import Graph
from dalify.graph.node import DEVICES, Branch, Edge, Node, fresh_numbers, new_node
from dalify.graph.packing import PackedEdge, PackedNode, pack
from dalify.registry import FedSource, Operator, Structural, catalog

FORMAT = "dalify graph 1"
_ELEMENTS = re.compile(r"[<>=|]?[biuf][1248]")  # allowed array types
_ENUM_ELEMENTS = {kind.name: kind for kind in DALIDataType if kind.is_enum}
# Arguments of fed operators that say how a callback is called.
_OF_CALLBACKS = {"source", "cycle", "batch", "parallel", "batch_info", "prefetch_queue_depth"}
_ENUMERATIONS = {kind.__name__: kind for kind in (DALIDataType, DALIImageType, DALIInterpType)}


def to_json(graph: Graph) -> dict[str, Any]:
    """Return a graph as plain data for ``json.dumps``.

    Callbacks of external sources with a name are left out, as in DALI: the program then feeds data by the name.

    Raises:
        SerializationError: an argument is a Python function or object.
    """
    packed = pack(graph)
    # Random streams depend on the order in which nodes were created, which differs from the order in the JSON.
    indices = sorted(range(len(packed.nodes)), key=lambda index: packed.nodes[index].node.number)
    ranks = {index: rank for rank, index in enumerate(indices)}

    def node_data(index: int, item: PackedNode) -> dict[str, Any]:
        node = item.node
        arguments: dict[str, Any] = {}
        is_fed_later = isinstance(node.operator, FedSource) and node.name and item.arguments.get("source") is not None
        for name, value in item.arguments.items():
            if is_fed_later and name in _OF_CALLBACKS:
                continue
            try:
                arguments[name] = {"edge": list(value)} if isinstance(value, PackedEdge) else _encoded(value)
            except TypeError:
                raise SerializationError(
                    f"the argument {name} is a Python {type(value).__name__}, which cannot be "
                    "serialized as plain data.",
                    line=node.line,
                    operator=node.operator.public_name,
                    hint="Only graphs of operators with plain arguments can be serialized; feed data with "
                    "feed_input instead of a callback. If the source has a name, its callback is left out.",
                ) from None
        return {
            "operator": node.operator.name,
            "inputs": [edge and list(edge) for edge in item.inputs],
            "arguments": arguments,
            "device": node.device,
            "outputs": node.output_count,
            "branch": item.branch,
            "line": _encoded(node.line),
            "name": node.name,
            "seed": node.seed,
            "preserve": node.preserve,
            "made": ranks[index],
        }

    return {
        "format": FORMAT,
        "nodes": [node_data(index, item) for index, item in enumerate(packed.nodes)],
        "branches": [
            {
                "condition": list(branch.condition),
                "taken": branch.taken,
                "parent": branch.parent,
                "line": _encoded(branch.line),
            }
            for branch in packed.branches
        ],
        "outputs": [list(index) for index in packed.outputs],
        "sinks": list(packed.sinks),
    }


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, (str, float)) or type(value) in (bool, int):
        return value
    if type(value).__name__ in _ENUMERATIONS:
        return {"enum": type(value).__name__, "value": int(value)}
    if isinstance(value, SourceLine):
        return {"line": [value.filename, value.line, value.function]}
    if is_list_or_tuple(value):
        return {"items": [_encoded(item) for item in value]}
    if is_array(value):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        kind = from_numpy(value.dtype)
        dtype = kind.name if kind.is_enum else value.dtype.str
        return {"array": data, "dtype": dtype, "shape": list(value.shape)}
    raise TypeError(type(value).__name__)


def _decoded(value: Any) -> Any:
    if not is_dictionary(value):
        return value
    if "enum" in value:
        return _ENUMERATIONS[value["enum"]](value["value"])
    if "line" in value:
        filename, line, function = value["line"]
        return SourceLine(str(filename), int(line), str(function))
    if "items" in value:
        return tuple(_decoded(item) for item in value["items"])
    if value["dtype"] in _ENUM_ELEMENTS:
        dtype = _ENUM_ELEMENTS[value["dtype"]].numpy
    elif _ELEMENTS.fullmatch(value["dtype"]):
        dtype = np.dtype(value["dtype"])
    else:
        raise ValueError(f"arrays with element type {value['dtype'][:20]!r} are not allowed")
    return np.frombuffer(base64.b64decode(value["array"], validate=True), dtype).reshape(value["shape"])


def from_json(data: Any, *, allow_side_effects: bool) -> Graph:
    """Return the graph in the result of ``to_json``.

    Args:
        data: plain data.
        allow_side_effects: accept operators that write files or run Python code.

    Raises:
        SerializationError: the data are not a graph, or contain unknown operators or operators with side effects.
    """
    if not is_dictionary(data) or data.get("format") != FORMAT:
        found = data.get("format") if is_dictionary(data) else type(data).__name__
        raise SerializationError(f"not a serialized pipeline: its format is {found!r}, expected {FORMAT!r}.")
    try:
        graph = _graph(data)
    except DalifyError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise SerializationError(f"this serialized pipeline is damaged: {type(error).__name__}: {error}") from None
    for node in () if allow_side_effects else graph.nodes():
        effect = node.operator.effect(node.arguments)
        if effect:
            raise SerializationError(
                f"this serialized pipeline has an operator that {effect}.",
                operator=node.operator.public_name,
                hint="If its author can be trusted, write Pipeline.deserialize(..., allow_side_effects=True).",
            )
    return graph


def _graph(data: dict[str, Any]) -> Graph:
    nodes: list[Node] = []
    branches: dict[int, Branch] = {}

    def edge(item: Any) -> Edge | None:
        if item is None:
            return None
        number, output = item
        if type(number) is not int or type(output) is not int:
            raise ValueError(f"{item!r} is not a pair of node and output")
        if not 0 <= number < len(nodes) or not 0 <= output < nodes[number].output_count:
            raise ValueError(f"node {number} has no output {output}, or is defined after it is read")
        return Edge(nodes[number], output)

    def some_edge(item: Any) -> Edge:
        found = edge(item)
        if found is None:
            raise ValueError("an edge is missing")
        return found

    def branch(number: int | None) -> Branch | None:
        if number is None:
            return None
        if number not in branches:
            item = data["branches"][number]
            if item["parent"] is not None and item["parent"] >= number:
                raise ValueError("a branch is defined before its parent")
            branches[number] = Branch(
                some_edge(item["condition"]), _taken(item["taken"]), branch(item["parent"]), _line(item["line"])
            )
        return branches[number]

    ranks: list[int] = [item.get("made", position) for position, item in enumerate(data["nodes"])]
    if sorted(ranks) != list(range(len(ranks))):
        raise ValueError("the creation order of the nodes is missing")
    numbers = fresh_numbers(len(ranks))
    for rank, item in zip(ranks, data["nodes"], strict=True):
        operator = catalog.find(str(item["operator"]))
        if item["device"] not in DEVICES:
            raise ValueError(f"unknown device {item['device']!r}")
        inputs = tuple(edge(value) for value in item["inputs"])
        arguments = _arguments(operator, item["arguments"], some_edge)
        if item["branch"] is not None and not any(inputs) and not any(isinstance(v, Edge) for v in arguments.values()):
            raise ValueError(f"{operator.public_name} has no inputs, but is inside a condition")
        name, seed = item["name"], item["seed"]
        if not isinstance(name, str | None) or not isinstance(seed, int | None):
            raise ValueError(f"{name!r} is not a name or {seed!r} is not a seed")
        _check_inputs(operator, inputs)
        node = new_node(
            operator,
            inputs,
            arguments,
            item["device"],
            branch=branch(item["branch"]),
            line=_line(item["line"]),
            name=name,
            seed=seed,
            preserve=bool(item["preserve"]),
            number=numbers[rank],
        )
        if item["outputs"] != node.output_count:
            raise ValueError(
                f"{operator.public_name} has {counted(node.output_count, 'output')}, not {item['outputs']!r}"
            )
        nodes.append(node)
    outputs = tuple(some_edge(item) for item in data["outputs"])
    sinks: list[int] = data["sinks"]
    return Graph(outputs, tuple(nodes[number] for number in sinks))


def _line(value: Any) -> SourceLine | None:
    line = _decoded(value)
    if not isinstance(line, SourceLine | None):
        raise ValueError(f"{line!r} is not a source line")
    return line


def _arguments(operator: Operator, given: Mapping[str, Any], edge: Callable[[Any], Edge]) -> dict[str, Any]:
    """Return the arguments of a node, with the same checks as in calls."""
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        parameter = operator.parameter(name)
        if not (isinstance(value, dict) and "edge" in value):
            arguments[name] = parameter.normalize(_decoded(value), operator.public_name)
            if isinstance(operator, Structural) and name == "value" and not isinstance(arguments[name], np.ndarray):
                raise ValueError(f"the constant {arguments[name]!r} is not an array")
        elif parameter.accepts_node:
            arguments[name] = edge(value["edge"])
        else:
            raise ValueError(f"the argument {name} of {operator.public_name} cannot be a graph value")
    missing = [item.name for item in operator.parameters.values() if item.is_required and item.name not in arguments]
    if missing:
        raise ValueError(f"{operator.public_name} lacks the arguments {', '.join(missing)}")
    return arguments


def _check_inputs(operator: Operator, inputs: Sequence[Edge | None]) -> None:
    required = len(operator.required_inputs)
    is_missing = None in (inputs if operator.is_variadic else inputs[:required])
    if len(inputs) < required or is_missing or (len(inputs) > len(operator.inputs) and not operator.is_variadic):
        raise ValueError(f"{operator.public_name} cannot have {counted(len(inputs), 'input')}")


def dumps(data: dict[str, Any]) -> bytes:
    """Return plain data as JSON, UTF-8."""
    return json.dumps(data, separators=(",", ":"), allow_nan=True).encode()


def _taken(value: Any) -> bool | int:
    """Return the side of a condition or the number of a branch."""
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"unknown branch {value!r}")
    return value


def loads(text: bytes | str) -> Any:
    """Parse JSON.

    Raises:
        SerializationError: not JSON.
        ArgumentTypeError: neither bytes nor a string.
    """
    if not isinstance(cast("object", text), bytes | bytearray | str):
        raise ArgumentTypeError.here(f"a serialized pipeline must be bytes or a string; got {short_repr(text)}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SerializationError(
            f"not a serialized pipeline: it is not JSON ({error}).",
            hint="Pass the result of serialize(). What DALI serialized cannot be read: serialize the pipeline again.",
        ) from None
