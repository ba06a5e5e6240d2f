"""An optimized graph with the seeds and readers of its nodes, for this process or a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dalify.data.entries import Entries
from dalify.executor.feeds import ReaderFeed
from dalify.executor.plan import Plan, make_plan
from dalify.executor.recovery import Recovery
from dalify.graph import Graph, Node
from dalify.graph.packing import PackedGraph, pack, unpack
from dalify.sources.sampler import Sampler


class PlannedGraph(NamedTuple):
    """The plan of a graph with its readers and the handling of bad samples.

    Attributes:
        plan: the plan of the whole graph.
        readers: readers by slot of their first output.
        recovery: handles bad samples in all stages.
    """

    plan: Plan
    readers: dict[int, ReaderFeed]
    recovery: Recovery


@dataclass(frozen=True, kw_only=True)
class RunnableGraph:
    """A graph with the seeds and readers of its nodes. It can be pickled.

    Attributes:
        graph: the graph after all passes.
        seeds: seed and stream of random nodes.
        indices: indices of readers.
        samplers: samplers of readers.
        on_error: handling of bad samples for operators that do not specify it.
        processes: number of processes that share the memory limit of caches; 0 for only this process.
    """

    graph: Graph
    seeds: Mapping[Node, tuple[int, int]]
    indices: Mapping[Node, Entries[Any]] = field(default_factory=dict[Node, Entries[Any]])
    samplers: Mapping[Node, Sampler] = field(default_factory=dict[Node, Sampler])
    on_error: str = "raise"
    processes: int = 0

    def plan(self, max_error_rate: float | None = None) -> PlannedGraph:
        """Return the stages of the graph.

        Args:
            max_error_rate: maximum fraction of bad samples in an epoch; None for no limit.
        """
        plan = make_plan(self.graph, self.seeds, self.indices, self.on_error)
        if self.processes:
            for cache in plan.caches:
                cache.divide(self.processes)
        readers = {slot: ReaderFeed(step.node, self.samplers[step.node]) for slot, step in plan.readers.items()}
        return PlannedGraph(plan, readers, Recovery(plan, readers, self.on_error, max_error_rate))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle nodes as indices in ``graph.nodes()``: a graph is too deep for pickle, and node numbers may repeat."""
        numbers = {node: number for number, node in enumerate(self.graph.nodes())}
        by_node = (self.seeds, self.indices, self.samplers)
        by_number = [{numbers[node]: value for node, value in values.items()} for values in by_node]
        return _unpacked, (pack(self.graph), by_number, self.on_error, self.processes)


def _unpacked(packed: PackedGraph, by_number: list[dict[int, Any]], on_error: str, processes: int) -> RunnableGraph:
    graph = unpack(packed)
    nodes = graph.nodes()
    seeds, indices, samplers = ({nodes[number]: value for number, value in values.items()} for values in by_number)
    return RunnableGraph(
        graph=graph, seeds=seeds, indices=indices, samplers=samplers, on_error=on_error, processes=processes
    )
