"""A graph as JSON, and back.

Nothing in the text is executed: operators are found by name in the catalogue, values are plain data.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from dalify.base.errors import DalifyError, SerializationError
from dalify.base.source_line import SourceLine
from dalify.data.dtypes import DALIDataType, DALIImageType, DALIInterpType
from dalify.graph.branch import Branch
from dalify.graph.graph import Graph
from dalify.graph.node import DEVICES, Edge, Node, fresh_numbers
from dalify.registry import catalogue

__all__ = ["FORMAT", "dumps", "from_json", "loads", "to_json"]

FORMAT = "dalify graph 1"
_ENUMERATIONS = {kind.__name__: kind for kind in (DALIDataType, DALIImageType, DALIInterpType)}


def to_json(graph: Graph) -> dict[str, Any]:
    """Return a graph as plain data for ``json.dumps``.

    Raises:
        SerializationError: an argument is a Python function or object.
    """
    nodes = graph.nodes()
    numbers = {node: index for index, node in enumerate(nodes)}
    # Random streams go by the order in which nodes were made, which is not the one in which they are written.
    made = {node: rank for rank, node in enumerate(sorted(nodes, key=lambda node: node.number))}
    branches: list[Branch] = []

    def edge_data(edge: Edge | None) -> Any:
        return None if edge is None else [numbers[edge.node], edge.output]

    def branch_data(branch: Branch | None) -> int | None:
        if branch is None:
            return None
        branch_data(branch.parent)  # parents first
        if branch not in branches:
            branches.append(branch)
        return branches.index(branch)

    def node_data(node: Node) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for name, value in node.arguments.items():
            try:
                arguments[name] = {"edge": edge_data(value)} if isinstance(value, Edge) else _encoded(value)
            except TypeError:
                raise SerializationError(
                    f"the argument {name} is a Python {type(value).__name__}, which cannot be written down "
                    "without executing code later.",
                    line=node.line,
                    operator=node.operator.public_name,
                    hint="Only graphs of operators with plain arguments can be serialised; feed data with "
                    "feed_input instead of a callback.",
                ) from None
        return {
            "operator": node.operator.name,
            "inputs": [edge_data(edge) for edge in node.inputs],
            "arguments": arguments,
            "device": node.device,
            "outputs": node.output_count,
            "branch": branch_data(node.branch),
            "line": _encoded(node.line),
            "name": node.name,
            "seed": node.seed,
            "preserve": node.preserve,
            "made": made[node],
        }

    data = [node_data(node) for node in nodes]
    return {
        "format": FORMAT,
        "nodes": data,
        "branches": [
            {
                "condition": edge_data(branch.condition),
                "taken": branch.taken,
                "parent": branch_data(branch.parent),
                "line": _encoded(branch.line),
            }
            for branch in branches
        ],
        "outputs": [edge_data(edge) for edge in graph.outputs],
        "sinks": [numbers[node] for node in graph.sinks],
    }


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, (str, float)) or type(value) in (bool, int):
        return value
    if type(value).__name__ in _ENUMERATIONS:
        return {"enum": type(value).__name__, "value": int(value)}
    if isinstance(value, SourceLine):
        return {"line": [value.filename, value.line, value.function]}
    if isinstance(value, (tuple, list)):
        return {"items": [_encoded(item) for item in value]}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": data, "dtype": value.dtype.str, "shape": list(value.shape)}
    raise TypeError(type(value).__name__)


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "enum" in value:
        return _ENUMERATIONS[value["enum"]](value["value"])
    if "line" in value:
        return SourceLine(*value["line"])
    if "items" in value:
        return tuple(_decoded(item) for item in value["items"])
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in "biuf":
        raise ValueError(f"arrays of {dtype} elements are not allowed")
    return np.frombuffer(base64.b64decode(value["array"], validate=True), dtype).reshape(value["shape"])


def from_json(data: Any) -> Graph:
    """Return the graph that ``to_json`` wrote.

    Raises:
        SerializationError: the data are no graph, or one of operators that this version does not have.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise SerializationError(f"this is no serialised pipeline: its format is {found!r}, expected {FORMAT!r}.")
    try:
        return _graph(data)
    except DalifyError:
        raise
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SerializationError(f"this serialised pipeline is damaged: {type(error).__name__}: {error}") from None


def _graph(data: dict[str, Any]) -> Graph:
    nodes: list[Node] = []
    branches: dict[int, Branch] = {}

    def edge(item: Any) -> Edge | None:
        if item is None:
            return None
        number, output = item
        if not 0 <= number < len(nodes) or not 0 <= output < nodes[number].output_count:
            raise ValueError(f"there is no output {output} of node {number} before it is read")
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
                raise ValueError("a branch stands before the one around it")
            branches[number] = Branch(
                some_edge(item["condition"]), _taken(item["taken"]), branch(item["parent"]), _decoded(item["line"])
            )
        return branches[number]

    made = [item.get("made", position) for position, item in enumerate(data["nodes"])]
    if sorted(made) != list(range(len(made))):
        raise ValueError("the order in which the nodes were made is not told")
    numbers = fresh_numbers(len(made))
    for rank, item in zip(made, data["nodes"], strict=True):
        operator = catalogue.find(str(item["operator"]))
        if item["device"] not in DEVICES:
            raise ValueError(f"there is no device {item['device']!r}")
        arguments: dict[str, Any] = {}
        for name, value in item["arguments"].items():
            operator.parameter(name)
            arguments[name] = (
                some_edge(value["edge"]) if isinstance(value, dict) and "edge" in value else _decoded(value)
            )
        nodes.append(
            Node(
                operator,
                tuple(edge(value) for value in item["inputs"]),
                arguments,
                item["device"],
                int(item["outputs"]),
                branch(item["branch"]),
                _decoded(item["line"]),
                item["name"],
                item["seed"],
                bool(item["preserve"]),
                numbers[rank],
            )
        )
    outputs = tuple(some_edge(item) for item in data["outputs"])
    return Graph(outputs, tuple(nodes[number] for number in data["sinks"]))


def dumps(data: dict[str, Any]) -> bytes:
    """Return plain data as JSON text, UTF-8."""
    return json.dumps(data, separators=(",", ":"), allow_nan=True).encode()


def _taken(value: Any) -> bool | int:
    """Return which side or branch it is that was written down."""
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"there is no branch {value!r}")
    return value


def loads(text: bytes | str) -> Any:
    """Return the plain data of a JSON text.

    Raises:
        SerializationError: the text is not JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise SerializationError(f"this is no serialised pipeline: {error}") from None
