"""``Node``, one use of an operator in a graph, and ``Edge``, one output of a node. Both are frozen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dalify.base.source_line import SourceLine
from dalify.graph.branch import Branch
from dalify.registry import Operator, Role

__all__ = ["DEVICES", "Edge", "Node", "fresh_numbers"]

DEVICES = ("cpu", "gpu", "mixed")
"""The devices of nodes; ``mixed``: CPU inputs, GPU outputs."""
_numbers = itertools.count()


class Edge(NamedTuple):
    """One output of a node."""

    node: Node
    output: int

    @property
    def device(self) -> str:
        """Device of the data: ``cpu`` or ``gpu``."""
        return self.node.output_device


def fresh_numbers(count: int) -> list[int]:
    """Reserve numbers for nodes that are created in a different order than that of their numbers."""
    return [next(_numbers) for _ in range(count)]


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Node:
    """One use of an operator.

    Attributes:
        operator: the operator.
        inputs: positional inputs; None for an omitted optional input.
        arguments: specified keyword arguments: normalized constants, or edges for per-sample values.
        device: device on which it runs: ``cpu``, ``gpu`` or ``mixed`` (CPU inputs, GPU outputs).
        output_count: number of outputs.
        branch: branch of a condition in which it was created; None for the whole batch.
        line: the user's line.
        name: name that the user specified, or None.
        seed: seed that the user specified for a random operator; None: derived from the pipeline's seed.
        preserve: kept even when no output needs it.
        number: position in the order in which nodes were created. A replaced node keeps it, because random streams
            and messages depend on it.
    """

    operator: Operator
    inputs: tuple[Edge | None, ...]
    arguments: Mapping[str, Any]
    device: str = "cpu"
    output_count: int = 1
    branch: Branch | None = None
    line: SourceLine | None = None
    name: str | None = None
    seed: int | None = None
    preserve: bool = False
    number: int = field(default_factory=_numbers.__next__)

    def edges(self) -> Iterator[Edge]:
        """Yield all edges that the node reads: inputs, then arguments."""
        for edge in self.inputs:
            if edge is not None:
                yield edge
        for value in self.arguments.values():
            if isinstance(value, Edge):
                yield value

    @property
    def role(self) -> Role:
        """Role of its operator."""
        return self.operator.role

    @property
    def output_device(self) -> str:
        """Device of the outputs."""
        return "cpu" if self.device == "cpu" else "gpu"

    @property
    def label(self) -> str:
        """Short unique name for messages, drawings and serialized graphs."""
        return self.name or f"{self.operator.name}_{self.number}"

    def __repr__(self) -> str:
        """Return operator, device and source line; no data."""
        place = f" at {self.line}" if self.line else ""
        return f"{self.operator.name}({self.device}){place}"
