"""Computes batches by number in a worker process, with its own engine."""

from __future__ import annotations

import os
from dataclasses import dataclass

from dalify.base.limits import Limits, applied
from dalify.base.optional import is_loaded, torch
from dalify.base.threads import AwaitedThreads
from dalify.data import BufferPool
from dalify.data.shared_memory import SlotMemory
from dalify.executor.batch_source import Reply, Request
from dalify.executor.engine import Engine
from dalify.executor.feeds import Feeds
from dalify.executor.iteration import Iteration
from dalify.executor.meter import Meter
from dalify.executor.plan_split import split_plan
from dalify.executor.resources import Resources
from dalify.executor.runnable_graph import RunnableGraph
from dalify.executor.shared_batches import write_reply
from dalify.executor.steps import walk
from dalify.graph.packing import branches_of
from dalify.sources.permutation import mixed_key
from dalify.sources.worker_process import seed_generators


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """The data that a worker receives once.

    Attributes:
        runnable: the graph.
        seed: seed of the pipeline; the random generators for user functions are seeded with it.
        num_threads: number of threads of the worker.
        batch_size: maximum number of samples in a batch.
        limits: limits in effect where the pipeline was built.
        measures: measure the bytes of values.
        device_id: index of the accelerator of the pipeline; None for the current one.
    """

    runnable: RunnableGraph
    seed: int
    num_threads: int
    batch_size: int
    limits: Limits
    measures: bool
    device_id: int | None = None


class BatchWorker:
    """Computes the stages of a plan that may run in other processes."""

    def __init__(self, setup: WorkerSetup) -> None:
        graph = setup.runnable.graph
        self._node_numbers = {node: number for number, node in enumerate(graph.nodes())}
        self._branch_numbers = {branch: number for number, branch in enumerate(branches_of(graph))}
        with applied(setup.limits):
            plan, readers, recovery = setup.runnable.plan()
        self._plan = split_plan(plan).remote
        self._meter = Meter(self._plan) if setup.measures else None
        self._seed = setup.seed
        self._runs_user_code = any(
            step.node.operator.runs_user_code for stage in self._plan.stages for step in walk(stage.steps)
        )
        self._slots_of_indices = {id(setup.runnable.indices[step.node]): slot for slot, step in plan.readers.items()}
        threads = AwaitedThreads(setup.num_threads, "dalify-worker")
        resources = Resources(threads=threads, pool=BufferPool(), device_id=setup.device_id, limits=setup.limits)
        self._engine = Engine(self._plan, Feeds((), readers), recovery, setup.batch_size, resources)
        if self._runs_user_code and is_loaded("torch"):
            torch.set_num_threads(1)  # other workers compute at the same time

    def compute(self, request: Request, memory: BufferPool | None = None) -> Reply:
        """Compute a batch.

        Raises:
            Exception: the error of the batch.
            SystemExit: a thread of this process failed: the process must be replaced.
        """
        if self._runs_user_code:  # the same numbers in every process
            seed_generators(mixed_key(self._seed, request.number))
        iteration = Iteration(
            number=request.number,
            size=request.size,
            values=[None] * self._plan.slot_count,
            before={"number": request.number, "sources": list(request.readers)},
            entries={slot: entries.copy() for slot, entries in request.entries.items()},
            rows=request.rows,
            memory=memory,
        )
        try:
            self._engine.start_iteration(iteration, list(request.inputs.items()))
            self._engine.finished()
        except Exception as error:
            if self._engine.failure:  # other threads may continue to write into the memory of the batch
                raise SystemExit(f"dalify: this worker process ends: {error}") from error
            raise
        return Reply(
            {slot: iteration.values[slot] for slot in self._plan.outputs},
            {self._branch_numbers[branch]: positions for branch, positions in iteration.positions.items()},
            [record.with_node(self._node_numbers[record.node]) for record in iteration.bad],
            {self._node_numbers[node]: sorted(positions) for node, positions in iteration.substitutes.items()},
            {} if self._meter is None else self._meter.sizes(),
            [(os.getpid(), *cache.progress()) for cache in self._plan.caches],
        )

    def compute_into(self, memory: SlotMemory, request: Request) -> Reply:
        """Compute a batch in memory that is sent to another process; see ``write_reply``.

        Raises:
            Exception: the error of the batch.
        """
        return write_reply(memory, self.compute(request, memory), self._slots_of_indices)

    def close(self) -> None:
        """End the threads."""
        self._engine.close()
