"""Compute single operators immediately, in the caller's thread.

A graph of one node goes through the same checks and steps as in a pipeline. A `Prepared` serves all calls with the same
constants and the same kinds of data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.base.threads import HelperThreads
from dalify.data import Batch, BufferPool
from dalify.executor.arena import Arenas
from dalify.executor.device_steps import find_device
from dalify.executor.frame import Collector, Frame
from dalify.executor.packages import check_packages
from dalify.executor.plan import make_plan
from dalify.executor.steps import run_steps
from dalify.graph import DataNode, Edge, Graph, Node, entered, make_node, node_specs
from dalify.passes import Report, place
from dalify.registry import Operator, catalog

_POOL_BYTES = 256 << 20
_SECONDS_OF_A_PART = 0.001  # submitting a part to another thread takes a tenth of that
_pool = BufferPool(capacity_bytes=_POOL_BYTES)
_arenas = Arenas()


class Prepared:
    """Computes a node.

    Args:
        node: a node whose inputs are declared sources.
        drawing: seed and stream number of a random operator.
    """

    def __init__(self, node: Node, drawing: tuple[int, int]) -> None:
        operator = node.operator
        given = [edge.node for edge in node.edges()]
        edges = tuple(Edge(node, output) for output in range(node.output_count))
        graph = Graph(edges, () if edges else (node,))
        if node.device != "cpu" or "cpu" not in operator.devices:
            graph = place(graph, Report())
        nodes = graph.nodes()
        check_packages(nodes)
        plan = make_plan(graph, {item: drawing for item in nodes if item.operator.is_random}, {})
        slots = {item.number: slots[0] for item, slots in plan.externals}
        self._slots = [slots[item.number] for item in given]
        self._steps = [step for stage in plan.stages for step in stage.steps]
        self._slot_count = plan.slot_count
        self._outputs = plan.outputs
        self._device_node = next((item for item in nodes if item.output_device == "gpu"), None)
        self._is_serial = operator.is_serial
        self._is_divisible = bool(given) and all(stage.kind == "segment" for stage in plan.stages)
        self._seconds_per_sample = 0.0

    def compute(
        self,
        batches: Sequence[Batch],
        count: int,
        number: int,
        positions: np.ndarray[Any, Any] | None = None,
        threads: HelperThreads | None = None,
    ) -> list[Batch]:
        """Return the outputs, in newly allocated memory.

        Args:
            batches: inputs and arguments of the node, in the order of ``Node.edges``, each with ``count`` samples.
            count: number of samples.
            number: number of the call, for random numbers.
            positions: positions of the samples in their batch; None: from 0.
            threads: threads among which samples are divided if this saves time; None for the caller's thread only.
        """
        collectors = {slot: Collector(count, _pool) for slot in self._outputs}
        if threads is None or not self._is_divisible:
            on_device = self._chunk(batches, range(count), number, count, positions, collectors)
        else:
            on_device = {}
            self._divide(batches, number, count, collectors, threads)
        return [on_device[slot] if slot in on_device else _result(collectors[slot]) for slot in self._outputs]

    def _divide(
        self,
        batches: Sequence[Batch],
        number: int,
        count: int,
        collectors: dict[int, Collector],
        threads: HelperThreads,
    ) -> None:
        """Compute on a number of threads that depends on the measured time per sample."""
        wanted = math.ceil(count * self._seconds_per_sample / _SECONDS_OF_A_PART)
        parts = max(1, min(threads.count, count, wanted))

        def compute_part(start: int, stop: int) -> None:
            begin = time.perf_counter()
            given = batches if parts == 1 else [batch.slice(start, stop) for batch in batches]
            self._chunk(given, range(start, stop), number, count, None, collectors)
            self._seconds_per_sample = (time.perf_counter() - begin) / (stop - start)

        bounds = pairwise(count * part // parts for part in range(parts + 1))
        tasks = [partial(compute_part, start, stop) for start, stop in bounds]
        if parts == 1:
            tasks[0]()
        else:
            threads.run(tasks)

    def _chunk(
        self,
        batches: Sequence[Batch],
        places: range,
        number: int,
        count: int,
        positions: np.ndarray[Any, Any] | None,
        collectors: dict[int, Collector],
    ) -> dict[int, Batch]:
        """Compute some of the samples into the collectors; return outputs on the device, by slot."""
        values: list[Batch | None] = [None] * self._slot_count
        for slot, batch in zip(self._slots, batches, strict=True):
            values[slot] = batch
        device = "" if self._device_node is None else _device_of(batches, self._device_node)
        arena = _arenas.borrow()
        frame = Frame(
            values=values, start=places.start, count=len(places), step=number, batch_size=count, arena=arena,
            collectors=collectors, torch_device=device,
        )  # fmt: skip
        if positions is not None:
            frame.set_positions(None, positions)
        try:
            if self._is_serial:
                run_steps(self._steps, frame)
            else:
                with np.errstate(all="ignore"):
                    run_steps(self._steps, frame)
            on_device: dict[int, Batch] = {}
            for slot in self._outputs:
                batch = values[slot]
                assert batch is not None, "dalify bug: an operator without result"
                if batch.device == "gpu":
                    on_device[slot] = without_aliasing(batch, batches)
                else:
                    collectors[slot].store(places.start, batch)
            return on_device
        finally:
            _arenas.take_back(arena)


def _result(collector: Collector) -> Batch:
    result = collector.result()
    assert result is not None, "dalify bug: a result that was not stored"
    return result


def node_of_kinds(
    operator: Operator, inputs: Sequence[Batch | None], values: Mapping[str, Batch], constants: Mapping[str, Any]
) -> Node:
    """Return a node for calls of one kind. It has no pipeline and no line, because many calls use it.

    Args:
        operator: the operator.
        inputs: a batch of the kind of each input; None for an omitted optional input.
        values: the same for arguments that are data, by name.
        constants: constant arguments of the user.

    Raises:
        DalifyError: the operator does not accept the data or arguments; with the user's line.
    """
    if constants.get("on_error") not in (None, "raise"):
        raise ArgumentValueError(
            "on_error is only for pipelines, where another sample can replace a bad one.",
            hint="Catch the error instead: except dalify.base.errors.DecodeError.",
        )
    with entered(None):
        placeholders = [None if batch is None else _placeholder(batch) for batch in inputs]
        arguments = {name: _placeholder(batch) for name, batch in values.items()}
        node = make_node(operator, placeholders, {**constants, **arguments})
    node_specs(node)  # with the line, for error messages
    return replace(node, line=None, name=None)


def fed_node(node: Node, batches: Sequence[Batch]) -> Node:
    """Return a node of a pipeline with its inputs replaced by sources of the kind of batches."""
    return replace(rewired(node, placeholders(batches)), branch=None)


def rewired(node: Node, edges: Iterable[Edge]) -> Node:
    """Return a node with other edges, in the order of ``Node.edges``."""
    given = iter(edges)
    return node.with_edges(lambda _: next(given), node.branch)


def placeholders(batches: Iterable[Batch]) -> list[Edge]:
    """Return declared sources of the kind of batches. They belong to no pipeline."""
    with entered(None):
        return [_placeholder(batch).edge for batch in batches]


def _placeholder(batch: Batch) -> DataNode:
    source = catalog.find("external_source")
    declared = {"dtype": batch.dtype, "ndim": batch.ndim, "layout": batch.layout or None}
    return DataNode(Edge(make_node(source, (), {**declared, "device": batch.device}), 0))


def _device_of(batches: Sequence[Batch], node: Node) -> str:
    """Return the torch device of the data, or the device that a pipeline would use."""
    for batch in batches:
        if batch.device == "gpu":
            return str(batch.torch_device)
    return find_device(None, node)


def without_aliasing(batch: Batch, given: Sequence[Batch]) -> Batch:
    """Return a result on the device that shares no memory with the inputs."""
    addresses = {
        array.untyped_storage().data_ptr() for other in given if other.device == "gpu" for array in other.arrays
    }
    return batch.map(lambda tensor: tensor.clone() if tensor.untyped_storage().data_ptr() in addresses else tensor)
