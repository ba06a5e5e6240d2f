"""One use of an operator in a graph, and the edges between uses.

Frozen: a pass replaces nodes, it never changes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dalify.base.source_line import SourceLine
from dalify.graph.branch import Branch
from dalify.registry import Operator

__all__ = ["DEVICES", "Edge", "Node", "fresh_numbers"]

DEVICES = ("cpu", "gpu", "mixed")
"""Where a node may run; ``mixed``: CPU inputs, GPU outputs."""
_numbers = itertools.count()


class Edge(NamedTuple):
    """One output of a node."""

    node: Node
    output: int

    @property
    def device(self) -> str:
        """Device on which the data lie: ``cpu`` or ``gpu``."""
        return self.node.output_device


def fresh_numbers(count: int) -> list[int]:
    """Return numbers for nodes that are to be made in another order than that of their numbers."""
    return [next(_numbers) for _ in range(count)]


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Node:
    """One use of an operator.

    Attributes:
        operator: what it does.
        inputs: positional inputs; None for an optional one that was not given.
        arguments: keyword arguments that were given: normalised constants, or edges for per-sample values.
        device: where it runs: ``cpu``, ``gpu`` or ``mixed`` (CPU inputs, GPU outputs).
        output_count: number of outputs.
        branch: branch of a condition that it was written in; None for the whole batch.
        line: the user's line.
        name: name that the user gave; None otherwise.
        seed: seed that the user gave to a random operator; None: derived from the pipeline's.
        preserve: kept even when no output needs it.
        number: position in the order in which nodes were made. A replaced node keeps it: random streams and messages
            go by it.
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
        """Yield everything the node reads: inputs, then arguments."""
        for edge in self.inputs:
            if edge is not None:
                yield edge
        for value in self.arguments.values():
            if isinstance(value, Edge):
                yield value

    @property
    def output_device(self) -> str:
        """Device of the outputs."""
        return "cpu" if self.device == "cpu" else "gpu"

    @property
    def label(self) -> str:
        """Short unique name for messages, drawings and serialised graphs."""
        return self.name or f"{self.operator.name}_{self.number}"

    def __repr__(self) -> str:
        """Return what, where it runs and where it was written; no data."""
        place = f" at {self.line}" if self.line else ""
        return f"{self.operator.name}({self.device}){place}"
