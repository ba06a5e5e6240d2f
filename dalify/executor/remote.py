"""The common base of all ``RemoteStages``: their configuration, and the conversion of replies to batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DalifyError
from dalify.data import Batch, BufferPool
from dalify.executor.batch_source import RemoteStages, Reply, Request
from dalify.executor.batch_worker import WorkerSetup
from dalify.executor.iteration import Iteration
from dalify.executor.meter import Meter
from dalify.executor.origins import Origins
from dalify.executor.plan_split import SplitPlan
from dalify.graph import Graph
from dalify.graph.packing import branches_of, pack
from dalify.sources.pickling import CallbackPickler

# A batch fails after this number of deaths of workers, or after exceeding the time limit this number of times.
MAX_DEATHS = 5
MAX_TIMEOUTS = 2


class Order:
    """A batch for a worker to compute.

    Args:
        iteration: the batch.
        done: called with the iteration when it is computed, has failed or was dropped.
        generation: number of discards before it; orders of earlier generations are no longer needed.

    Attributes:
        deaths: number of workers that died while they computed it.
    """

    def __init__(self, iteration: Iteration, done: Callable[[Iteration], None], generation: int) -> None:
        self.iteration = iteration
        self._done = done
        self._is_finished = False
        self.generation = generation
        self.deaths = 0

    def finish(self) -> None:
        """Report the batch as done. A batch that failed while it was received may be reported as lost, too."""
        if not self._is_finished:
            self._done(self.iteration)
            self._is_finished = True


class RemoteParts(NamedTuple):
    """The data needed to compute the batches of a graph in other processes.

    Attributes:
        plan: the parts of the plan for other processes and for this one.
        readers: indices of the readers among the sources, in the order of the program.
        setup: setup of the workers.
        pool: memory for copies if a consumer holds too many batches.
        meter: collects measurements of workers; None if not requested.
        timeout_s: maximum time for a batch in seconds; None for no limit.
        callback_pickler: pickles Python functions for workers that are not forked.
    """

    plan: SplitPlan
    readers: Sequence[int]
    setup: WorkerSetup
    pool: BufferPool
    meter: Meter | None
    timeout_s: float | None
    callback_pickler: Any


class BatchService(NamedTuple):
    """Workers that are not processes of this machine, for example actors of Ray.

    Attributes:
        workers: maximum number of workers.
        threads: number of threads per worker.
        stages: returns the stages that send batches to the workers.
    """

    workers: int
    threads: int
    stages: Callable[[RemoteParts], RemoteStages]


class Replies:
    """Converts iterations to requests for workers, and replies to values of iterations."""

    def __init__(self, parts: RemoteParts) -> None:
        self._parts = parts
        graph = parts.setup.runnable.graph
        self._branches = branches_of(graph)
        self._nodes = graph.nodes()

    def request(self, iteration: Iteration) -> Request:
        """Return the request for a batch."""
        sources = iteration.before["sources"]
        inputs = {slot: batch for slot in self._parts.plan.inputs if (batch := iteration.values[slot]) is not None}
        states = [sources[number] for number in self._parts.readers]
        return Request(iteration.number, iteration.size, iteration.entries, states, inputs, iteration.rows)

    def fill(self, iteration: Iteration, reply: Reply, *, is_copied: bool) -> None:
        """Store the result of a batch.

        Args:
            iteration: the batch.
            reply: values, bad samples and further results.
            is_copied: copy values to memory of this process.
        """
        parts = self._parts
        if parts.meter is not None:
            parts.meter.add(reply.sizes)
        for cache, progress in zip(parts.plan.remote.caches, reply.kept, strict=True):
            cache.add(*progress)
        iteration.take_results(
            {
                slot: batch if batch is None or not is_copied else self._copied(batch)
                for slot, batch in reply.values.items()
            },
            {self._branches[number]: positions for number, positions in reply.positions.items()},
            [record.with_node(self._nodes[record.node]) for record in reply.bad],
            {self._nodes[number]: set(samples) for number, samples in reply.substitutes.items()},
        )

    def _copied(self, batch: Batch) -> Batch:
        def copy(array: Any) -> Any:
            copied = self._parts.pool.empty(array.shape, array.dtype)
            copied[...] = array
            return copied

        return batch.map(copy)

    def origins_of(self, slot: int, numbers: np.ndarray[Any, Any], output: int) -> Origins:
        """Return the origins of samples of a reader.

        Args:
            slot: slot of the reader's first output.
            numbers: numbers of entries.
            output: index of the output.
        """
        return self._parts.plan.remote.readers[slot].origins_of(numbers, output)


def pickled_setup(parts: RemoteParts, pickler: CallbackPickler) -> tuple[bytes, Callable[[bytes], Any]]:
    """Return the setup of the workers as bytes, and the function that loads them.

    Raises:
        ArgumentTypeError: an object in the graph cannot be pickled; with operator and the user's line.
    """
    try:
        return pickler.dumps(parts.setup, "the pipeline", None, "")
    except DalifyError:
        runnable = parts.setup.runnable
        for node in runnable.graph.nodes():  # find the argument
            what = (pack(Graph((), (node,))).nodes[-1].arguments, runnable.indices.get(node))
            name = f"an argument of {node.operator.public_name}"
            pickler.dumps(what, name, node.line, node.operator.public_name)
        raise
