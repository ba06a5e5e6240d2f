"""Compute the nodes of a pipeline function while the function runs, for debug mode.

A node in a branch of a condition is computed for the samples of the branch, as after ``passes/split_branches``.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import DivergentBranchesError
from dalify.base.source_line import SourceLine
from dalify.data import Batch, TensorListCPU, batch_of, moved, tensor_list
from dalify.executor.arena import Arena
from dalify.executor.branch_steps import MergeStep, taking
from dalify.executor.frame import Frame
from dalify.executor.steps import run_steps
from dalify.graph import Branch, Edge, Evaluator, Node, current_branch, is_within, new_edge, node_specs
from dalify.immediate.prepared import Prepared, fed_node
from dalify.registry import Role, Source

_Source = Callable[[Node, str], "list[Batch]"]


class OtherBatchSize(BaseException):
    """A source returned a different number of samples than assumed; the function must run again.

    Not an Exception: the user's function must not catch it.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class Interpreter(Evaluator):
    """Computes each node of one run of a pipeline function when it is created, and stores the values of all nodes.

    Args:
        source: returns the outputs of a reader or external source, from its node and label.
        count: number of samples of the batch.
        number: number of the batch, for random numbers.
        seed: seed of the pipeline.
    """

    def __init__(self, source: _Source, count: int, number: int, seed: int) -> None:
        self._source = source
        self._count = count
        self._number = number
        self._seed = seed
        self._values: dict[Edge, Batch | None] = {}
        self._positions: dict[Branch | None, np.ndarray[Any, Any]] = {None: np.arange(count)}
        self._labels: dict[Node, str] = {}
        self._occurrences: Counter[str] = Counter()

    def receive_node(self, node: Node) -> None:
        """Compute a new node."""
        name = node.operator.name
        if node.operator.is_random or isinstance(node.operator, Source):
            self._labels[node] = node.name or f"{name}#{self._occurrences[name]}"
            self._occurrences[name] += 1
        self._compute(node)

    def value(self, edge: Edge) -> tuple[bool, Any]:
        """Return the value for users: in a branch, the samples of the branch."""
        branch = current_branch()
        is_inside = is_within(branch, edge.node.branch)
        value = self._value_in(edge, branch) if is_inside else self._value(edge)
        return True, None if value is None else tensor_list(value)

    def source_of(self, samples: Sequence[Any]) -> Edge:
        """Return a graph value that consists of the samples of a batch.

        Raises:
            OtherBatchSize: their number is not the batch size.
        """
        if len(samples) != self._count:
            raise OtherBatchSize(len(samples))
        batch = batch_of(TensorListCPU(list(samples), contiguous=False))
        first = batch.samples[0]
        edge = new_edge(Role.LITERAL, (), {"value": first, "layout": batch.layout}, line=SourceLine.capture())
        self._values[edge] = batch
        return edge

    def output(self, edge: Edge) -> Batch:
        """Return an output of the pipeline.

        Raises:
            DivergentBranchesError: the output exists only for some samples.
        """
        value = self._value_in(edge, None)
        assert value is not None, "dalify bug: an output without samples"
        return value

    def _value(self, edge: Edge) -> Batch | None:
        if edge not in self._values:
            self._compute(edge.node)
        return self._values[edge]

    def _compute(self, node: Node) -> None:
        if isinstance(node.operator, Source):
            batches = self._source(node, self._labels[node])
            if batches and len(batches[0]) != self._count:
                raise OtherBatchSize(len(batches[0]))
            self._store(node, batches)
            return
        node_specs(node)
        if node.ends_branches:
            self._merge(node)
            return
        positions = self._positions_of(node.branch)
        if not len(positions):
            self._store(node, [None] * node.output_count)
        elif node.role is Role.LITERAL:
            value = node.arguments["value"]
            dense = np.broadcast_to(value, (self._count, *value.shape))
            self._store(node, [Batch(dense, None, node.arguments.get("layout", ""))])
        else:
            batches = [self._value_in(edge, node.branch) for edge in node.edges()]
            given = [batch for batch in batches if batch is not None]
            prepared = Prepared(fed_node(node, given), self._drawing(node))
            self._store(node, prepared.compute(given, len(positions), self._number, positions))

    def _store(self, node: Node, batches: Any) -> None:
        for output, batch in enumerate(batches):
            self._values[Edge(node, output)] = batch

    def _drawing(self, node: Node) -> tuple[int, int]:
        """Return seed and stream of a random node, as in a pipeline."""
        if node.seed is not None:
            return node.seed, 0
        return self._seed, zlib.crc32(self._labels.get(node, "").encode())

    def _merge(self, node: Node) -> None:
        """Merge the two sides of a condition, or the branches of a choice."""
        predicate, *sides = node.given_inputs
        positions = self._positions_of(node.branch)
        decision = _on_cpu(self._value_in(predicate, node.branch))
        values: list[Batch | None] = [None] * (1 + len(sides))
        if decision is not None:
            pairs = zip(sides, node.sides, strict=True)
            values = [
                decision,
                *(self._samples_at(edge, positions[taking(decision, s, node, node.line)]) for edge, s in pairs),
            ]
        slots = tuple(range(len(values)))
        step = MergeStep(node, slots, (len(slots),))
        frame = Frame(
            values=[*values, None], start=0, count=len(positions), step=self._number, batch_size=self._count,
            arena=Arena(),
        )  # fmt: skip
        frame.set_positions(node.branch, positions)
        run_steps([step], frame)
        self._store(node, [frame.values[-1]])

    def _positions_of(self, branch: Branch | None) -> np.ndarray[Any, Any]:
        """Return the positions of the samples of a branch in the batch."""
        found = self._positions.get(branch)
        if found is None:
            assert branch is not None, "dalify bug: a batch without positions"
            outer = self._positions_of(branch.parent)
            decision = _on_cpu(self._value_in(branch.condition, branch.parent))
            found = outer[:0]
            if decision is not None:
                found = outer[taking(decision, branch.taken, branch.condition.node, branch.line)]
            self._positions[branch] = found
        return found

    def _value_in(self, edge: Edge, branch: Branch | None) -> Batch | None:
        """Return a value for the samples of a branch.

        Raises:
            DivergentBranchesError: the value exists only for some samples.
        """
        if not is_within(branch, edge.node.branch):
            raise DivergentBranchesError(
                "a value from inside a branch of a condition is used outside of it, where it exists only for some "
                "samples.",
                line=edge.node.line,
                operator=edge.node.operator.public_name,
                hint="Assign it to a variable in both branches and use that variable afterwards.",
            )
        return self._samples_at(edge, self._positions_of(branch))

    def _samples_at(self, edge: Edge, positions: np.ndarray[Any, Any]) -> Batch | None:
        value = self._value(edge)
        available = self._positions_of(edge.node.branch)
        if value is None or not len(positions):
            return None
        return value if len(available) == len(positions) else value.take(np.searchsorted(available, positions))


def _on_cpu(decision: Batch | None) -> Batch | None:
    return None if decision is None else moved(decision, "cpu")
