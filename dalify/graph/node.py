"""``Node``: one use of an operator in a graph; ``Edge``: an output of a node; ``Branch``: one side of a condition."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypedDict, Unpack

from dalify.base.errors import DalifyError
from dalify.base.source_line import SourceLine
from dalify.registry import Operator, Role, Structural, catalog

DEVICES = ("cpu", "gpu", "mixed")
"""The devices of nodes; ``mixed``: CPU inputs, GPU outputs."""
_SELECTING_INPUTS = {Role.SPLIT: 1, Role.MERGE: 0, Role.JOIN: 0}
_numbers = itertools.count()


class Edge(NamedTuple):
    """One output of a node."""

    node: Node
    output: int

    @property
    def device(self) -> str:
        """Device of the data: ``cpu`` or ``gpu``."""
        return self.node.output_device


@dataclass(eq=False, slots=True)
class Branch:
    """One side of a condition, or one branch of a choice among many (``choose``).

    Args:
        condition: the condition, one boolean per sample; of a choice, one integer per sample.
        taken: whether this is the side for true samples; of a choice, the number of the branch, not a bool.
        parent: the branch that contains the condition; None for the whole batch.
        line: the user's line of the condition.
        is_open: created by `split`, not by an ``if``: nodes that read its values belong to it, wherever they are
            created.
    """

    condition: Edge
    taken: bool | int
    parent: Branch | None
    line: SourceLine | None
    is_open: bool = False
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        self.depth = 1 if self.parent is None else self.parent.depth + 1

    def __repr__(self) -> str:
        side = f"{'true' if self.taken else 'false'}" if isinstance(self.taken, bool) else f"number {self.taken}"
        return f"<{side} branch of {self.line}>"


def fresh_numbers(count: int) -> list[int]:
    """Reserve numbers for nodes that are created in a different order than their numbers."""
    return [next(_numbers) for _ in range(count)]


class JoinedCall(NamedTuple):
    """A call of the user that a node computes together with other calls.

    Attributes:
        operator: public name, e.g. ``fn.resize``.
        line: the user's line.
        arguments: names of the arguments that the user specified.
    """

    operator: str
    line: SourceLine | None
    arguments: frozenset[str]


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
        calls: the calls whose work it does, if a pass has joined several; errors name one of them, by default the
            first one.
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
    calls: tuple[JoinedCall, ...] = ()

    @property
    def given_inputs(self) -> list[Edge]:
        """The inputs that were not omitted."""
        return [edge for edge in self.inputs if edge is not None]

    @property
    def first_input(self) -> Edge:
        """The first input, of a node that needs it."""
        edge = self.inputs[0]
        assert edge is not None, f"dalify bug: {self!r} has no first input"
        return edge

    def edges(self) -> Iterator[Edge]:
        """Yield all edges that the node reads: inputs, then arguments."""
        yield from self.given_inputs
        for value in self.arguments.values():
            if isinstance(value, Edge):
                yield value

    def branches(self) -> Iterator[Branch]:
        """Yield the branches that contain the node, from the innermost to the outermost."""
        branch = self.branch
        while branch is not None:
            yield branch
            branch = branch.parent

    def needs(self) -> Iterator[Edge]:
        """Yield all edges that the node reads, then the conditions of the branches that contain it."""
        yield from self.edges()
        for branch in self.branches():
            yield branch.condition

    def with_edges(self, new_edge: Callable[[Edge], Edge], branch: Branch | None) -> Node:
        """Return the node with other edges, replaced in the order of ``edges``, and another branch."""
        inputs = tuple(None if edge is None else new_edge(edge) for edge in self.inputs)
        arguments: dict[str, Any] = {
            name: new_edge(value) if isinstance(value, Edge) else value for name, value in self.arguments.items()
        }
        same = inputs == self.inputs and branch is self.branch
        same = same and all(arguments[name] is value for name, value in self.arguments.items())
        return self if same else replace(self, inputs=inputs, arguments=arguments, branch=branch)

    @property
    def role(self) -> Role | None:
        """Role of its operator, if that is structural."""
        return self.operator.role if isinstance(self.operator, Structural) else None

    @property
    def ends_branches(self) -> bool:
        """Whether it merges values of several branches."""
        return self.role in (Role.MERGE, Role.JOIN)

    @property
    def sides(self) -> Sequence[bool | int]:
        """``Branch.taken`` of each value that it merges: of all inputs but the first."""
        return range(len(self.inputs) - 1) if self.role is Role.JOIN else (True, False)

    @property
    def selecting_input(self) -> int | None:
        """Which input selects samples, and is on the CPU whatever the device; None without one."""
        return None if self.role is None else _SELECTING_INPUTS.get(self.role)

    @property
    def output_device(self) -> str:
        """Device of the outputs."""
        return "cpu" if self.device == "cpu" else "gpu"

    @property
    def user_calls(self) -> tuple[JoinedCall, ...]:
        """The user's calls whose work it does, at least one."""
        return self.calls or (JoinedCall(self.operator.public_name, self.line, frozenset(self.arguments)),)

    def call_of(self, argument: str | None) -> JoinedCall:
        """Return the user's call that specified an argument; the first call for None and for defaults."""
        return next((call for call in self.user_calls if argument in call.arguments), self.user_calls[0])

    def locate(self, error: DalifyError, *, sample: int | None = None, origin: str | None = None) -> None:
        """Set line and operator of an error, and sample and origin, unless they are known."""
        call = self.call_of(error.argument)
        error.locate(line=call.line, operator=call.operator, sample=sample, origin=origin)

    @property
    def label(self) -> str:
        """Short unique name for messages, drawings and serialized graphs."""
        return self.name or f"{self.operator.name}_{self.number}"

    def __repr__(self) -> str:
        """Return operator, device and source line; no data."""
        place = f" at {self.line}" if self.line else ""
        return f"{self.operator.name}({self.device}){place}"


class Facts(TypedDict, total=False):
    """The optional attributes of a new node; see `Node`."""

    branch: Branch | None
    line: SourceLine | None
    name: str | None
    seed: int | None
    preserve: bool
    number: int
    calls: tuple[JoinedCall, ...]


def new_node(
    operator: Operator,
    inputs: tuple[Edge | None, ...],
    arguments: Mapping[str, Any],
    device: str = "cpu",
    **facts: Unpack[Facts],
) -> Node:
    """Return a new node; operator and arguments determine the number of its outputs.

    All nodes are created here or are copies of such nodes.

    Raises:
        ArgumentValueError: the number of outputs is out of range.
    """
    count = operator.output_count({**arguments, "input_count": sum(map(bool, inputs))})
    return Node(operator, inputs, arguments, device, count, **facts)


def new_edge(
    role: Role,
    inputs: tuple[Edge | None, ...],
    arguments: Mapping[str, Any],
    device: str = "cpu",
    **facts: Unpack[Facts],
) -> Edge:
    """Return the only output of a new node of the operator with a role."""
    return Edge(new_node(catalog.find(role.value), inputs, arguments, device, **facts), 0)
