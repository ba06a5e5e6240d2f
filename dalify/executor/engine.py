"""Runs a plan for one batch after the other.

Several batches are in progress at the same time. Each is an Iteration that moves from stage to stage. The thread that
finishes the last chunk of a stage starts the next stage, so no thread waits for another. Threads that would be idle at
the end of a batch compute chunks of the next batch. An error ends only its iteration: the engine and later iterations
continue. Only an error between the stages ends all of them (`_fail`), so that nothing waits for them forever.

The states of an iteration, and the methods between them::

    schedule, start_iteration      in the caller's thread
        |
        v
    (remote) --> _enter_stage <----------------------------------------------------+
                   |   |   |                                                       |
        no stage   |   |   +-- serial, not its turn --> parked                     |
        is left    |   |                                  | _leave_stage of the    |
                   |   |                                  v iteration before it    |
                   |   |                                _enter_stage               |
                   |   +-- error or canceled ------------------------------> _leave_stage
                   |   |                                                           ^
                   |   +-- _start_stage: n chunks                                  |
                   |          |  each in a worker thread: _chunk_task              |
                   |          v                                                    |
                   |       StageRunner.compute                                     |
                   |          |  after the last chunk                              |
                   |          v                                                    |
                   |       _finish_stage: _repeat_open_chunks, join ---------------+
                   v
    finished, collect              in the caller's thread; both raise the error of the iteration

The chunk of a brief stage is computed in the thread that enters the stage.
"""

from __future__ import annotations

import threading
import traceback
import weakref
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dalify.base.errors import DalifyError, NoBatchError, PipelineStateError, WorkerError
from dalify.base.exit_hook import at_exit
from dalify.base.fork_gate import is_clean_fork
from dalify.base.fork_hook import Owner
from dalify.base.interrupts import deferred_interrupts, is_main_thread
from dalify.base.limits import applied
from dalify.base.processors import available_processors, using_device
from dalify.base.threads import Thread as PoolThread
from dalify.data import Batch
from dalify.executor.batch_source import RemoteStages
from dalify.executor.chunking import batches_for_threads, chunk_bounds, is_brief
from dalify.executor.device_steps import share_fed, synchronize_consumer
from dalify.executor.feeds import Feeds, common_size
from dalify.executor.frame import Collector
from dalify.executor.iteration import BadRecord, Iteration
from dalify.executor.meter import Meter
from dalify.executor.plan import Plan
from dalify.executor.recovery import Recovery, valid_samples
from dalify.executor.resources import Resources
from dalify.executor.stage_runner import StageRunner
from dalify.executor.stage_state import StageState
from dalify.graph import Node

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_program_ends = False


@at_exit
def _close_engines() -> None:
    # Drops queued work and ends processes; the module `threads` waits for the threads.
    global _program_ends
    _program_ends = True
    for engine in list(_engines):
        engine.close(wait=False)


def _stop_at_end_of_program() -> None:
    """Wait for the end of the program if it has begun, because daemon threads must not print errors meanwhile."""
    # The end of the program waits for the other threads.
    if _program_ends and not (is_main_thread() or isinstance(threading.current_thread(), PoolThread)):
        threading.Event().wait()


# The first batches are timed, then one in each group of this size. Reading the CPU time of a thread is a system call,
# during which the system often runs another thread although this thread holds the GIL.
_FIRST_TIMED = 16
_TIMED_INTERVAL = 8


class Engine:
    """Executes a plan.

    Args:
        plan: the plan to execute.
        feeds: external sources and readers.
        recovery: handles bad samples.
        batch_size: maximum number of samples in a batch.
        resources: threads, memory, device and limits.
        remote: computes a batch before the stages of the plan; None if the plan contains all stages.
        meter: measures the sizes of the outputs of operators; None if not requested.

    Attributes:
        next_number: number of the next batch.
        next_rows: ``Iteration.rows`` of the next batch.
        stages: the states of the stages of the plan.
        failure: the error that has ended all iterations, see ``_fail``; "" if there was none.
    """

    def __init__(
        self,
        plan: Plan,
        feeds: Feeds,
        recovery: Recovery,
        batch_size: int,
        resources: Resources,
        remote: RemoteStages | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.plan = plan
        self.feeds = feeds
        self.recovery = recovery
        self._batch_size = batch_size
        self.remote = remote
        self.meter = meter
        # Of the last collected batch: number of samples, padded ones, bad ones.
        self._collected: tuple[int, int, Sequence[BadRecord[Node]]] = 0, 0, ()
        self.torch_device = torch_device = resources.torch_device
        self._limits = resources.limits
        self._device_id = resources.device_id
        self._threads = resources.threads
        self._owner = Owner()
        self._lock = threading.Lock()
        has_device = any(stage.kind == "device" for stage in plan.stages)
        self._may_add_batches = self._threads.size > 1 and not (remote or feeds.externals or has_device)
        self._read_ahead = [(slot, step, step.ahead) for slot, step in plan.readers.items() if step.ahead is not None]
        self.stages = [StageState(stage, plan, torch_device) for stage in plan.stages]
        self._started = self.next_number = 0
        self.next_rows: np.ndarray[Any, Any] | None = None
        self._scheduled: deque[Iteration] = deque()
        self._state_before_call: dict[str, Any] | None = None  # the state of the feeds while they are called
        self.failure = ""
        self._runner = StageRunner(plan, recovery, resources)
        # If the device copies from outputs on the CPU, `collect` waits for the copies: the user may change the outputs.
        self._are_outputs_copied = bool(plan.pinned & {*plan.outputs})
        _engines.add(self)

    # -- in the caller's thread

    @property
    def engines(self) -> tuple[Engine]:
        """The engines with sources: this one; in debug mode each source has its own engine."""
        return (self,)

    def computes_in(self, thread: threading.Thread) -> bool:
        """Return whether a thread computes batches of this engine, so that it cannot wait for one."""
        return thread in self._threads

    @property
    def valid(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which samples of the last collected batch are not padding or replacements."""
        return valid_samples(*self._collected)

    @property
    def scheduled(self) -> int:
        """Number of iterations that were scheduled and not collected."""
        self._reset_after_fork()
        return len(self._scheduled)

    def depth_for_threads(self, depth: int) -> int:
        """Return the number of batches that should be in progress, at least ``depth``.

        It is larger than ``depth`` only if the effect is limited to memory: on the CPU, in this process, and without
        external sources, which would otherwise be called earlier.

        Args:
            depth: the depth that the user specified.
        """
        if not self._may_add_batches:
            return depth
        seconds, cpu_seconds, steps = 0.0, 0.0, 0
        for state in self.stages:
            if not is_brief(self._batch_size, state.seconds_per_sample):
                seconds += state.seconds_per_sample or 0.0
                cpu_seconds += state.cpu_seconds_per_sample or 0.0
                steps += state.operator_count
        # Threads that share a processor are not faster with more batches, which would only take memory.
        threads = min(self._threads.size, available_processors())
        return batches_for_threads(depth, self._batch_size, seconds, cpu_seconds, threads, steps)

    def schedule(self) -> None:
        """Request a batch from the sources and schedule it.

        An error of a source replaces its batch: ``collect`` raises it in the order of the batches.

        Raises:
            StopIteration: a source has ended.
            PipelineStateError: the program is ending, or a thread of the engine has failed.
        """
        if self.failure:
            raise PipelineStateError(
                f"the pipeline cannot continue, because one of its threads failed: {self.failure}.",
                hint="Close the pipeline and build it again.",
            )
        self._reset_after_fork()
        self._threads.check_open()  # otherwise, ended workers of sources would be interpreted as the end of the data
        before = self._state_before_call = self._sources_state()
        with applied(self._limits), using_device(self._device_id):
            try:
                fed, failure = self.feeds.next_batches(before["sources"])
            except StopIteration:
                _stop_at_end_of_program()  # which ends the sources, too
                raise
        with deferred_interrupts():  # a batch is either scheduled or was never requested
            size = self._batch_size
            if not failure:
                try:
                    size = common_size([(feed.node, batches[0]) for feed, batches in fed], size)
                except DalifyError as error:
                    failure.record(error)
            number, self.next_number = self.next_number, self.next_number + 1
            rows, self.next_rows = self.next_rows, None
            entries: dict[int, Any] = {}
            padded = 0
            for slot, reader in self.feeds.readers.items():  # also after an error of a source, to keep equal positions
                entries[slot] = reader.next_entries(size)
                padded = max(padded, reader.sampler.padded_samples)
            iteration = Iteration(
                number=number, size=size, values=[None] * self.plan.slot_count, before=before, error=failure,
                entries=entries, padded=padded, rows=rows,
            )  # fmt: skip
            self.start_iteration(
                iteration, [pair for feed, batches in fed for pair in zip(feed.slots, batches, strict=True)]
            )

    def start_iteration(self, iteration: Iteration, given: Sequence[tuple[int, Batch]]) -> None:
        """Schedule a batch with known inputs: values by slot."""
        stream = self._runner.stream
        event = None if stream is None else share_fed([batch for _, batch in given], stream)
        iteration.begin(self._started, given, event)
        self._started += 1
        try:
            self._scheduled.append(iteration)
            self._state_before_call = None
            for slot, step, _ in self._read_ahead:
                try:
                    step.begin(iteration.number, iteration.entries[slot])
                except Exception as error:  # an error of this batch, whose consumer would wait for it
                    iteration.record_error(error)
            if self.remote is None:
                self._enter_stage(iteration)
            else:
                self.remote.submit(iteration, self._continue)
        except BaseException as error:
            self._fail(error)
            raise
        if self.failure:  # `_fail` may have been called before the iteration was appended
            self._end_failed(iteration)

    def collect(self) -> tuple[Batch, ...]:
        """Wait for the oldest scheduled iteration and return its outputs.

        Raises:
            NoBatchError: nothing is scheduled.
            Exception: the iteration's error; the next call returns the next iteration.
        """
        iteration = self.finished()
        self.recovery.record_bad_samples(iteration)
        self._collected = iteration.size, iteration.padded, iteration.bad
        if iteration.event is not None:
            if self._are_outputs_copied:
                iteration.event.synchronize()
            synchronize_consumer(
                [iteration.values[slot] for slot in self.plan.outputs], iteration.event, self.torch_device
            )
        return iteration.take_outputs(self.plan.outputs)

    def finished(self) -> Iteration:
        """Wait for the oldest scheduled iteration and return it.

        Raises:
            NoBatchError: nothing is scheduled.
            Exception: the iteration's error.
        """
        if not self.scheduled:
            raise NoBatchError("there is no batch to wait for.", hint="Call schedule_run() before outputs().")
        iteration = self._scheduled[0]
        iteration.ready.wait()
        if iteration.discarded or iteration.error:
            _stop_at_end_of_program()
        if iteration.discarded:
            raise PipelineStateError("another thread closed the pipeline while this thread waited for a batch.")
        self._scheduled.popleft()
        iteration.error.raise_first()
        return iteration

    def discard(self) -> None:
        """Cancel all iterations in progress.

        Readers will return the same samples again; data of external sources are lost.
        """
        if self._scheduled:
            before = self._scheduled[0].before
            self.next_number = before["number"]
            self.feeds.rewind(before["sources"])
        self._state_before_call = None
        while self._scheduled:
            self._scheduled.popleft().discard()
        if self.remote is not None:
            self.remote.discard()

    def state(self) -> dict[str, Any]:
        """Return the position of the consumer: before the oldest iteration that was not collected."""
        return self._scheduled[0].before if self.scheduled else self._sources_state()

    def _sources_state(self) -> dict[str, Any]:
        return {"number": self.next_number, "sources": self.feeds.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue at a ``state()`` of an engine of the same graph; batches in progress are dropped.

        Raises:
            CheckpointError: a source or reader cannot continue there.
        """
        self.discard()
        self.next_number = state["number"]
        self.feeds.restore(state["sources"])
        self.recovery.clear_record()

    def check_input(self, name: str) -> None:
        """Raise an error if there is no external source of this name; see ``Feeds.external``."""
        self.feeds.external(name)

    def feed(self, source: str | Node, data: Any, layout: str | None) -> None:
        """Add a batch to an external source; see ``Feeds.external`` and ``ExternalFeed.feed``."""
        self.feeds.external(source).feed(data, layout)

    def reset_sources(self) -> None:
        """Drop batches in progress, and start the next epoch of all external sources."""
        self.discard()
        for feed in self.feeds.externals:
            feed.reset()

    def start_epoch(self, epoch: int, *, is_next: bool = True) -> None:
        """Drop batches in progress. Start an epoch of all readers, and the next one of all external sources.

        Args:
            epoch: number of the readers' epoch, 0 for the first.
            is_next: True to start the next epoch of external sources, False to restart the current one.
        """
        self.discard()
        self.feeds.start_epoch(epoch, is_next)
        self.recovery.begin(epoch)

    def close(self, *, wait: bool = True) -> None:
        """End the threads and the sources' workers."""
        self.discard()
        for *_, ahead in self._read_ahead:
            ahead.release_waiting()
        if self.remote is not None:
            self.remote.close()
        if self._owner.is_this_process:
            self._threads.close(wait=wait)
            self._runner.copies.wait()  # the device may still copy from memory that is freed below
        for cache in (*self.plan.caches, *self.plan.device_caches):
            cache.close()
        for *_, ahead in self._read_ahead:
            ahead.close()
        self.feeds.close()

    def _reset_after_fork(self) -> None:
        """Start threads in a forked child, and compute batches in progress again."""
        if self._owner.is_this_process:
            return
        if self._runner.stream is not None:
            raise PipelineStateError(
                "a pipeline with operators on the GPU cannot run in a forked process, where CUDA does not work.",
                hint="Build the pipeline in the new process, and start that with the method 'spawn' or 'forkserver'.",
            )
        if not is_clean_fork():
            raise PipelineStateError(
                "this process was forked while another thread was running the pipeline.",
                hint="Fork before the first batch or after it, or build the pipeline in the process that runs it.",
            )
        # If one of these fails, the next call tries again.
        remote = None if self.remote is None else self.remote.renewed()
        self._threads, self.remote = self._threads.renewed(), remote
        self._owner.take_over()
        self._lock = threading.Lock()
        if self._state_before_call is not None:  # by a thread of the parent
            self.next_number = self._state_before_call["number"]
            self.feeds.reset_in_child(self._state_before_call["sources"])
        in_progress = list(self._scheduled)
        self._scheduled.clear()
        for state in self.stages:
            state.begin(self._started)
        for old in in_progress:
            kept = [(slot, old.values[slot]) for feed in self.feeds.externals for slot in feed.slots]
            self.start_iteration(old.renewed(), [(slot, batch) for slot, batch in kept if batch is not None])

    # -- in the worker threads

    def _continue(self, iteration: Iteration) -> None:
        """Enter the next stage in a thread of `remote`, which must continue after an error."""
        try:
            if not self.failure:  # otherwise it has been ended
                self._enter_stage(iteration)
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """End all iterations with an error, because their consumer would wait forever; no more can be started.

        Called after an error between the stages, such as one for lack of memory. Errors of samples, operators and
        sources belong to their iterations.
        """
        self.failure = "".join(traceback.format_exception_only(error)).strip()
        for iteration in list(self._scheduled):
            self._end_failed(iteration, error)

    def _end_failed(self, iteration: Iteration, cause: BaseException | None = None) -> None:
        failure = WorkerError(
            f"batch {iteration.number} is lost, because a thread of the pipeline failed: {self.failure}.",
            hint="Close the pipeline and build it again.",
        )
        failure.__cause__ = cause
        iteration.record_error(failure)
        iteration.finish()

    def _enter_stage(self, iteration: Iteration) -> None:
        """Start the current stage of the iteration, or defer it until earlier iterations have finished the stage."""
        while True:
            if iteration.stage == len(self.stages):
                iteration.finish()
                return
            state = self.stages[iteration.stage]
            if state.stage.is_serial:
                with self._lock:
                    if state.turn != iteration.order:
                        state.parked[iteration.order] = iteration
                        return
            # Serial stages must advance in order even if this iteration is over.
            if not iteration.is_over and (chunks := self._start_stage(iteration, state)):
                # The time of the stage may have been measured after the batch was divided, by another iteration.
                if len(chunks) > 1 or not state.is_brief(iteration.size):
                    tasks = [partial(self._chunk_task, iteration, state, start, stop) for start, stop in chunks]
                    self._threads.submit(iteration.number, iteration.stage, tasks, self._fail)
                    return
                self._runner.compute(iteration, state, *chunks[0])
                self._finish_stage(iteration, state)
            self._leave_stage(iteration)

    def _leave_stage(self, iteration: Iteration) -> None:
        """Leave the current stage; if it is serial, the next iteration enters it."""
        state = self.stages[iteration.stage]
        iteration.end_stage()
        if state.stage.is_serial:
            with self._lock:
                state.turn += 1
                following = state.parked.pop(state.turn, None)
            if following is not None:
                self._enter_stage(following)

    def _start_stage(self, iteration: Iteration, state: StageState) -> list[tuple[int, int]]:
        """Divide the samples into chunks; return their bounds, none after an error."""
        try:
            chunks, collectors = [(0, iteration.size)], {}
            if state.stage.kind == "segment":
                chunks = chunk_bounds(
                    iteration.size,
                    state.seconds_per_sample,
                    self._threads.size,
                    scheduled=len(self._scheduled) or 1,
                    steps=state.operator_count,
                )
                collectors = {
                    slot: Collector(
                        iteration.size if branch is None and slot not in state.ragged else None,
                        self._runner.pool_of(iteration, slot),
                    )
                    for slot, branch in state.stage.publishes.items()
                }
            is_timed = iteration.order < _FIRST_TIMED or iteration.order % _TIMED_INTERVAL == 0
            iteration.begin_stage(len(chunks), collectors, is_timed=is_timed or state.is_uneven)
        except Exception as error:  # for example out of memory; the consumer would wait forever
            iteration.record_error(error)
            return []
        return chunks

    def _chunk_task(self, iteration: Iteration, state: StageState, start: int, stop: int) -> None:
        """Compute one chunk in a worker thread. After the last chunk, move the iteration to its next stage."""
        if self._runner.compute(iteration, state, start, stop):
            self._finish_stage(iteration, state)
            self._leave_stage(iteration)
            self._enter_stage(iteration)

    def _repeat_open_chunks(self, iteration: Iteration, state: StageState) -> None:
        """Compute the chunks again whose samples differ from the first sample of the batch, which is known now."""
        agreement = iteration.agreement
        while agreement is not None and not iteration.is_over and (chunks := agreement.decide()):
            iteration.repeat_chunks(len(chunks))
            for start, stop in chunks:
                self._runner.compute(iteration, state, start, stop)

    def _finish_stage(self, iteration: Iteration, state: StageState) -> None:
        """Join the chunks of the current stage, and record their time."""
        try:
            self._repeat_open_chunks(iteration, state)
            if iteration.is_over:
                return
            for slot, batch in iteration.join_chunks(state.stage.steps).items():
                if batch is not None and not batch.is_uniform:
                    state.ragged.add(slot)
                else:
                    state.ragged.discard(slot)
            if iteration.is_timed:
                state.measure(iteration)
        except BaseException as error:
            iteration.record_error(error)
