"""Computes stages of a plan in worker processes of this machine.

A worker receives the graph once, then numbers of batches. It writes outputs into shared memory that this process
views, and that is reused after the last view is deleted. If a worker dies, another one computes its batch again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Self

from dalify.base.errors import WorkerError
from dalify.base.fork_hook import Owner
from dalify.data.shared_memory import HELD_BATCHES, FreeSlots, Slot, SlotMemory
from dalify.executor.batch_source import Reply
from dalify.executor.batch_worker import BatchWorker, WorkerSetup
from dalify.executor.iteration import Iteration
from dalify.executor.remote import MAX_DEATHS, MAX_TIMEOUTS, Order, RemoteParts, Replies, pickled_setup
from dalify.executor.shared_batches import read_reply, read_request, write_request
from dalify.sources.worker_death import WorkerDeath
from dalify.sources.worker_pool import WorkerPool
from dalify.sources.worker_process import Calls, Failure, RunnerFactory, Task, error_of, failure_of, trace_of

# Each needs a file descriptor and address space. With more batches in progress, finished ones are copied.
_MAX_SLOTS = 64


class ProcessStages:
    """Worker processes that compute batches; see ``RemoteStages``.

    Args:
        parts: the graph and the plan of the workers.
        count: number of workers.
        in_progress: maximum number of batches in progress.
        start_method: ``fork``, ``spawn`` or ``forkserver``.

    Attributes:
        plan: the part of the plan that they compute.
        in_progress: as passed.
    """

    def __init__(self, parts: RemoteParts, count: int, in_progress: int, start_method: str) -> None:
        self._parts = parts
        self.plan = parts.plan.remote
        self._count = count
        self.in_progress = in_progress
        self._start_method = start_method
        self._replies = Replies(parts)
        max_slots = max(_MAX_SLOTS, 2 * count)
        self._slots = [Slot() for _ in range(min(in_progress + HELD_BATCHES, max_slots))]
        self._free = FreeSlots(len(self._slots))
        self._waiting: deque[Order] = deque()
        self._computing: dict[Order, int] = {}
        self._generation = 0
        self._workers = WorkerPool(count, start_method, parts.callback_pickler, parts.timeout_s)
        self._workers.register(self)
        self._load_pickled: Callable[[], WorkerSetup] | None = None
        self._owner = Owner()

    def renewed(self) -> Self:
        """Return new stages for a forked process, because these workers belong to the parent."""
        return type(self)(self._parts, self._count, self.in_progress, self._start_method)

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the workers."""
        return self._workers.process_ids

    def start(self) -> None:
        """Start the workers, and then the thread that receives their results, before dalify starts other threads.

        Raises:
            ArgumentTypeError: an object in the graph cannot be pickled.
            WorkerError: the system cannot start processes or a thread.
        """
        try:
            self._workers.collect_in_background()
        except WorkerError:
            self.close()
            raise

    def submit(self, iteration: Iteration, done: Callable[[Iteration], None]) -> None:
        """Request the computation of a batch; see ``RemoteStages``."""
        if iteration.error:
            done(iteration)
            return
        try:
            self._workers.collect_in_background()
        except Exception as error:  # an error of this batch, whose consumer would wait for it
            iteration.record_error(error)
            done(iteration)
            return
        self._waiting.append(Order(iteration, done, self._generation))
        self._send_requests()

    def _send_requests(self) -> None:
        """Write requests into free slots. Several threads may call this; each order is taken by one thread."""
        while self._waiting:
            try:
                slot = self._free.take()
            except IndexError:
                return  # an order in progress will release one
            try:
                order = self._waiting.popleft()
            except IndexError:
                self._free.add(slot)
                continue
            try:
                self._computing[order] = slot
                write_request(self._slots[slot], self._replies.request(order.iteration))
                self._send(order)
            except Exception as error:  # raised when the batch is collected
                self._fail(order, error)

    def _send(self, order: Order) -> None:
        details = (self._computing[order], order.iteration.number, 0, 0, 0, 0)
        self._workers.submit(0, order.generation, details, order)

    def discard(self) -> None:
        """Drop batches that are not being computed; see ``RemoteStages``."""
        if not self._owner.is_this_process:
            return
        self._generation += 1
        self._workers.skip_before(0, self._generation)
        while self._waiting:
            with suppress(IndexError):
                self._waiting.popleft().finish()

    def close(self) -> None:
        """End the workers. Their results remain readable."""
        self._workers.close()
        if self._owner.is_this_process:
            for slot in self._slots:
                slot.close()

    # -- as a receiver of the workers' results

    def runner_factory(self) -> RunnerFactory:
        """Return the function that creates the task runner of a worker; see ``Receiver``."""
        if self._start_method == "fork":
            setup = self._parts.setup
            return partial(_Worker, self._slots, lambda: setup)
        if self._load_pickled is None:
            content, unpickle = pickled_setup(self._parts, self._workers.pickler)
            self._load_pickled = partial(unpickle, content)
        return partial(_Worker, self._slots, self._load_pickled)

    def is_wanted(self, token: Order) -> bool:
        """Return True, because the result of an order releases its slot; see ``Receiver``."""
        return True

    def receive(self, token: Order, outcome: Any) -> None:
        """Receive the result of a batch; see ``Receiver``."""
        iteration = token.iteration
        if isinstance(outcome, Reply) and not iteration.discarded:
            try:
                self._take(token, outcome)
            except Exception as error:  # for example no memory for a copy; the consumer would wait forever
                iteration.record_error(error)
            self._finish_order(token)
            return
        if isinstance(outcome, Failure):
            iteration.record_error(error_of(outcome, f"batch {iteration.number}"))
        self._finish(token)

    def task_lost(self, token: Order, death: WorkerDeath) -> None:
        """Request a batch again after its worker died; see ``Receiver``."""
        token.deaths += 1
        number = token.iteration.number
        if token.generation < self._generation:
            self._finish(token)
            return
        most = MAX_DEATHS if death.timeout_s is None else MAX_TIMEOUTS
        # Errors at the start, such as import errors, would occur again, unlike signals from other processes.
        is_hopeless = bool(death.reason) or (death.call is None and (death.code or 0) > 0)
        if token.deaths < most and not is_hopeless:
            try:
                self._send(token)
            except Exception as error:  # closed in the meantime, or no process can be started
                self._fail(token, error)
            return
        tries = f"batch {number}" if token.deaths == 1 else f"batch {number}, tried {token.deaths} times"
        self._fail(token, death.error("the pipeline", tries, None, ""))

    def _fail(self, order: Order, error: Exception) -> None:
        order.iteration.record_error(error)
        self._finish(order)

    def _finish(self, order: Order) -> None:
        """Release the slot of a batch without a result."""
        slot = self._computing.pop(order, None)
        if slot is not None:
            self._free.add(slot)
        self._finish_order(order)

    def _finish_order(self, order: Order) -> None:
        order.finish()
        self._send_requests()

    def _take(self, order: Order, reply: Reply) -> None:
        """Store the views of a batch in its iteration, or copy the batch and release the slot."""
        number = self._computing.pop(order)
        slot, replies = self._slots[number], self._replies
        # Consumers may hold any number of batches, and forked processes may read their memory for any time. A batch is
        # copied if its slot is needed, because one slot per worker must be free or in progress.
        if len(self._free) + len(self._computing) >= min(self._count, self.in_progress):
            memory = self._free.reserve(slot, number)
            replies.fill(order.iteration, read_reply(memory, reply, replies.origins_of), is_copied=False)
            return
        try:
            replies.fill(order.iteration, read_reply(slot.memory, reply, replies.origins_of), is_copied=True)
        finally:
            self._free.add(number)


class _Worker:
    """Computes batches in a worker process."""

    def __init__(self, slots: list[Slot], load: Callable[[], WorkerSetup]) -> None:
        self._slots = slots
        self._load = load
        self._worker: BatchWorker | None = None
        with suppress(Exception):  # raised again for the first batch
            self._begin()

    def _begin(self) -> BatchWorker:
        if self._worker is None:
            self._worker = BatchWorker(self._load())
        return self._worker

    def run(self, task: Task, calls: Calls) -> Any:
        slot = self._slots[task.details[0]]
        try:
            calls.begin(0)
            try:
                memory = SlotMemory(slot.memory)
                reply = self._begin().compute_into(memory, read_request(slot))
                slot.free_after(memory.end_bytes)
                return reply
            finally:
                calls.end()
        except Exception as error:
            return failure_of(error, trace_of(error, __file__))
