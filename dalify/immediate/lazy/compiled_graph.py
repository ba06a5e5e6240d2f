"""Compiled graphs of calls, reused for all graphs with the same structure.

They use the passes, the plan and the engine of pipelines.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from dalify.base.errors import DalifyError
from dalify.base.failure_context import failure_context
from dalify.base.fork_hook import at_fork
from dalify.base.fork_lock import ForkLock
from dalify.base.recent import Recent
from dalify.base.threads import AwaitedThreads
from dalify.data import Batch, BufferPool
from dalify.data.pool import pinned
from dalify.executor.arena import Arenas
from dalify.executor.device_steps import find_device
from dalify.executor.engine import Engine
from dalify.executor.feeds import Feeds
from dalify.executor.iteration import Iteration
from dalify.executor.packages import check_packages
from dalify.executor.resources import Resources
from dalify.executor.runnable_graph import RunnableGraph
from dalify.graph import Edge, Graph, Node
from dalify.graph.node import fresh_numbers
from dalify.immediate.calls import adapt_error
from dalify.immediate.lazy.calls import Call
from dalify.immediate.lazy.statistics import Fallback
from dalify.immediate.prepared import placeholders, rewired, without_aliasing
from dalify.passes import optimize

_POOL_BYTES = 256 << 20
_pool = BufferPool(capacity_bytes=_POOL_BYTES)
_arenas = Arenas()
_numbers = itertools.count()
_threads: dict[int, AwaitedThreads] = {}
_threads_lock = ForkLock()


class Structure(NamedTuple):
    """The connections of calls.

    Attributes:
        reads: for each call, its inputs: index of a call and output, or -1 and index of a feed.
        outputs: index of a call and output, for each requested output.
        num_threads: number of threads.
        device: torch device of the feeds; "" for the default of pipelines.
    """

    reads: tuple[tuple[tuple[int, int], ...], ...]
    outputs: tuple[tuple[int, int], ...]
    num_threads: int
    device: str


class CompiledGraph:
    """Computes graphs with one structure.

    Args:
        calls: the first calls with this structure, in topological order.
        structure: their connections.
        feeds: a batch of the kind of each feed.

    Raises:
        DalifyError: the graph cannot run; the message names the operator and the user's line.
    """

    def __init__(self, calls: Sequence[Call], structure: Structure, feeds: Sequence[Batch]) -> None:
        sources = placeholders(feeds)
        nodes: list[Node] = []
        for call, reads, number in zip(calls, structure.reads, fresh_numbers(len(calls)), strict=True):
            edges = [sources[output] if index < 0 else Edge(nodes[index], output) for index, output in reads]
            nodes.append(replace(rewired(call.node, edges), line=call.line, number=number))
        self._indices = {node.number: index for index, node in enumerate(nodes)}
        graph = Graph(tuple(Edge(nodes[index], output) for index, output in structure.outputs))
        graph, self.report = optimize(graph)
        self._on_cpu = _moved_to_cpu(nodes, graph)
        check_packages(graph.nodes())
        seeds = {node: (0, 0) for node in graph.nodes() if node.operator.is_random}
        plan, readers, recovery = RunnableGraph(graph=graph, seeds=seeds).plan()
        slots = {node.number: slots[0] for node, slots in plan.externals}
        self._slots = [slots.get(edge.node.number) for edge in sources]  # None: a pass removed its consumers
        on_device = next((node for node in nodes if node.output_device == "gpu"), None)
        device = structure.device or (None if on_device is None else find_device(None, on_device))
        threads = _threads_of(structure.num_threads)
        pinned_pool = BufferPool(pinned) if plan.pinned else None
        resources = Resources(threads=threads, pool=_pool, pinned_pool=pinned_pool, arenas=_arenas, torch_device=device)
        self._new_engine = partial(Engine, plan, Feeds((), readers), recovery, 1, resources)
        self._engine = self._new_engine()
        self._lock = threading.Lock()

    def compute(self, calls: Sequence[Call], feeds: Sequence[Batch], count: int) -> list[Batch]:
        """Return the requested outputs, in newly allocated memory.

        Args:
            calls: calls with this structure.
            feeds: a batch of ``count`` samples for each feed.
            count: number of samples.

        Raises:
            DalifyError: an operator does not accept the data; with the line of its call.
        """
        if self._engine.failure:  # by an error between its stages, for example Ctrl-C
            self._engine = self._new_engine()
        drawing = {number: (*calls[index].drawing, calls[index].number) for number, index in self._indices.items()}
        values: list[Batch | None] = [None] * self._engine.plan.slot_count
        iteration = Iteration(
            number=next(_numbers), size=count, values=values, before=self._engine.state(), drawing=drawing
        )
        given = [(slot, batch) for slot, batch in zip(self._slots, feeds, strict=True) if slot is not None]
        try:
            with self._lock:
                try:
                    self._engine.start_iteration(iteration, given)
                    results = self._engine.collect()
                finally:
                    self._engine.discard()  # drop batches after Ctrl-C
        except Exception as error:
            raise self._located(error, calls) from error.__cause__
        return [without_aliasing(batch, feeds) if batch.device == "gpu" else batch for batch in results]

    def fallbacks(self, calls: Sequence[Call]) -> list[Fallback]:
        """Return the calls that should run on the GPU and run on the CPU."""
        sent = [calls[index] for index in self._on_cpu]
        return [Fallback(call.operator.public_name, "it has no GPU kernel", str(call.line or "")) for call in sent]

    def _located(self, error: Exception, calls: Sequence[Call]) -> Exception:
        """Add the line of the call to an error: the plan may have been created for another line."""
        failure: Any = failure_context(error).failure
        if failure is None or failure.node.number not in self._indices:
            return error
        call = calls[self._indices[failure.node.number]]
        if not isinstance(error, DalifyError):
            if failure.node.line != call.line:  # the error has the line of the call for which the plan was created
                error.add_note(f"the call is at {call.line}")
            return error
        error.line = call.line
        adapt_error(error, call)
        return error


PLANS: Recent[CompiledGraph] = Recent(256)


def _moved_to_cpu(nodes: Sequence[Node], graph: Graph) -> list[int]:
    """Return the indices of the nodes that should run on the GPU and run on the CPU."""
    placed = {node.number: node.device for node in graph.nodes()}
    is_for_gpu = [node.inputs and node.device == "gpu" for node in nodes]
    return [index for index, node in enumerate(nodes) if is_for_gpu[index] and placed.get(node.number) == "cpu"]


def _threads_of(count: int) -> AwaitedThreads:
    """Return the threads that all compiled graphs of a process share."""
    with _threads_lock:
        found = _threads.get(count)
        if found is None:
            found = _threads[count] = AwaitedThreads(count, "dalify-lazy")
        return found


def _begin_child() -> None:
    """Drop threads and the plans that reference them in a forked child."""
    _threads.clear()
    PLANS.clear()


at_fork(_begin_child)
