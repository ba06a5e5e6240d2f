"""What all kinds of ``RemoteStages`` share: the parts that they are made of, and how replies become batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dalify.base.errors import DalifyError
from dalify.data import Batch, BufferPool
from dalify.executor.batch_source import RemoteStages, Reply, Request, request_of
from dalify.executor.batch_worker import WorkerSetup
from dalify.executor.iteration import Iteration
from dalify.executor.meter import Meter
from dalify.executor.origins import Origins
from dalify.executor.plan_split import SplitPlan
from dalify.graph import Graph
from dalify.graph.packing import branches_of, pack
from dalify.sources.pickling import CallbackPickler

__all__ = ["Elsewhere", "RemoteParts", "Replies", "pickled_setup"]


class RemoteParts(NamedTuple):
    """What has to be known to compute the batches of a graph elsewhere.

    Attributes:
        graph: after all passes.
        plan: what is computed elsewhere, and here.
        readers: places of the readers among the sources, in the order in which they were written.
        setup: of the workers.
        pool: memory for copies of batches of which a consumer holds too many.
        meter: takes what workers measure; None where nobody asked for it.
        timeout_s: longest time for a batch; None for any.
        callback_pickler: how Python functions travel to workers that are not forked.
    """

    graph: Graph
    plan: SplitPlan
    readers: Sequence[int]
    setup: WorkerSetup
    pool: BufferPool
    meter: Meter | None
    timeout_s: float | None
    callback_pickler: Any


class Elsewhere(Protocol):
    """A place where workers compute batches.

    Attributes:
        count: most workers.
        threads: of each.
    """

    @property
    def count(self) -> int:
        """Most workers."""
        ...

    @property
    def threads(self) -> int:
        """Threads of each."""
        ...

    def stages(self, parts: RemoteParts) -> RemoteStages:
        """Return what brings batches to the workers."""
        ...


class Replies:
    """Brings iterations to workers as requests, and what came back into iterations.

    Args:
        parts: of the graph.
    """

    def __init__(self, parts: RemoteParts) -> None:
        self._parts = parts
        self._branches = branches_of(parts.graph)
        self._nodes = parts.graph.nodes()
        self._places = {node: place for place, node in enumerate(self._nodes)}

    def request(self, iteration: Iteration) -> Request:
        """Return what has to be sent of a batch."""
        return request_of(iteration, self._parts.readers, self._parts.plan.inputs)

    def fill(self, iteration: Iteration, reply: Reply, *, is_copied: bool) -> None:
        """Take what became of a batch.

        Args:
            iteration: the batch.
            reply: values, bad samples and the like.
            is_copied: whether values go into memory of this process.
        """
        parts = self._parts
        if parts.meter is not None:
            parts.meter.add(reply.sizes)
        for cache, progress in zip(parts.plan.elsewhere.caches, reply.kept, strict=True):
            cache.add(*progress)
        for slot, batch in reply.values.items():
            iteration.values[slot] = batch if batch is None or not is_copied else self._copied(batch)
        iteration.positions = {self._branches[place]: positions for place, positions in reply.positions.items()}
        iteration.bad = [(sample, attempt, self._nodes[place], *rest) for sample, attempt, place, *rest in reply.bad]
        iteration.stand_ins = {self._nodes[place]: set(samples) for place, samples in reply.stand_ins.items()}

    def _copied(self, batch: Batch) -> Batch:
        def copy(array: Any) -> Any:
            copied = self._parts.pool.empty(array.shape, array.dtype)
            copied[...] = array
            return copied

        return batch.map(copy)

    def origins_of(self, slot: int, numbers: np.ndarray[Any, Any]) -> Origins:
        """Return where samples of a reader came from.

        Args:
            slot: of the reader's output.
            numbers: of entries.
        """
        step = self._parts.plan.elsewhere.readers[slot]
        origin = step.node.operator.origin_function
        assert origin is not None, "dalify bug: a sample without origin that has one"
        return Origins(self._parts.setup.indices[self._places[step.node]], origin, numbers)


def pickled_setup(parts: RemoteParts, pickler: CallbackPickler) -> tuple[bytes, Callable[[bytes], Any]]:
    """Return the setup of the workers as bytes, and what loads them.

    Raises:
        ArgumentTypeError: something in the graph cannot be sent; with operator and the user's line.
    """
    try:
        return pickler.dumps(parts.setup, "the pipeline", None, "")
    except DalifyError:
        for place, node in enumerate(parts.graph.nodes()):  # which one is it?
            what = (pack(Graph((), (node,))).nodes[-1].arguments, parts.setup.indices.get(place))
            name = f"an argument of {node.operator.public_name}"
            pickler.dumps(what, name, node.line, node.operator.public_name)
        raise
