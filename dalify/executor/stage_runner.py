"""Computes the stages of a plan, for a chunk or a whole batch, in the thread that calls it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import Context

import numpy as np

from dalify.base.limits import applied
from dalify.base.optional import torch
from dalify.base.processors import thread_seconds, using_device
from dalify.data import BufferPool
from dalify.executor.agreement import NotDecided
from dalify.executor.arena import NewMemory
from dalify.executor.device_steps import PendingCopies, device_stream
from dalify.executor.frame import Collector
from dalify.executor.iteration import Iteration
from dalify.executor.plan import Plan, Stage
from dalify.executor.recovery import Recovery
from dalify.executor.resources import Resources
from dalify.executor.stage_state import StageState
from dalify.executor.steps import device_error, run_steps


def _context_with(*settings: AbstractContextManager[None]) -> Context:
    """Return the context of a new thread with settings that are context variables.

    Each chunk runs in a copy, which takes less time than entering the settings.
    """
    context = Context()
    for setting in settings:
        context.run(setting.__enter__)
    return context


class StageRunner:
    """Computes the stages of a plan.

    Args:
        plan: the plan.
        recovery: handles bad samples.
        resources: memory, device and limits.

    Attributes:
        stream: stream of the device for kernels; None where the device has no streams.
        copies: copies to the device that may not have ended.
    """

    def __init__(self, plan: Plan, recovery: Recovery, resources: Resources) -> None:
        self._plan = plan
        self._recovery = recovery
        # Nonfinite data and arguments give nonfinite results without a warning. User functions keep their warnings.
        settings = applied(resources.limits), using_device(resources.device_id)
        self._context = _context_with(*settings, np.errstate(all="ignore"))
        self._user_context = _context_with(*settings)
        self._pool = resources.pool
        self._pinned_pool = resources.pinned_pool or resources.pool
        self._arenas = resources.arenas
        self._torch_device = device = resources.torch_device or ""
        self.copies = PendingCopies()
        # Copies have their own stream, so that they overlap with the kernels of the previous batch.
        has_streams = device.startswith("cuda")
        self.stream = torch.cuda.Stream(device) if has_streams else None
        self._copy_stream = torch.cuda.Stream(device) if has_streams else None

    def pool_of(self, iteration: Iteration, slot: int) -> BufferPool:
        """Return the memory for a value of a batch."""
        if iteration.memory is not None and slot in self._plan.outputs:
            return iteration.memory
        return self._pinned_pool if slot in self._plan.pinned else self._pool

    def compute(self, iteration: Iteration, state: StageState, start: int, stop: int) -> bool:
        """Compute a stage for one chunk; return whether it was the last chunk of the batch.

        Never raises; errors are recorded in the iteration.

        Args:
            iteration: the batch.
            state: the stage.
            start: first sample of the chunk.
            stop: end of its samples; a stage that is not a segment computes the whole batch.
        """
        stage = state.stage
        if not iteration.is_over:
            runs_user_code = stage.is_serial and stage.kind != "device"
            context = self._user_context if runs_user_code else self._context
            try:
                began = thread_seconds() if iteration.is_timed else 0.0
                context.copy().run(self._run_recovering, iteration, state, start, stop)
                if iteration.is_timed:
                    iteration.add_cpu_time(thread_seconds() - began)
            except BaseException as error:
                refusal = None
                if stage.kind == "device" and isinstance(error, Exception):  # an error of a kernel occurs later
                    refusal = device_error(error, stage.steps[-1].node)
                iteration.record_error(refusal or error, start)
        return iteration.end_chunk()

    def _run_recovering(self, iteration: Iteration, state: StageState, start: int, stop: int) -> None:
        """Run until no bad sample is left that can be replaced."""
        while True:
            try:
                if state.stage.kind == "segment":
                    self._run_on_chunk(iteration, state.stage, start, stop)
                else:
                    self._run_on_batch(iteration, state)
                return
            except NotDecided:  # the chunk is computed again after all other chunks
                return
            except Exception as error:
                if not self._recovery.replace_bad_sample(iteration, error):
                    raise

    def _run_on_chunk(self, iteration: Iteration, stage: Stage, start: int, stop: int) -> None:
        values = iteration.slice_values(stage.reads, start, stop)
        arena = self._arenas.borrow()
        frame = iteration.frame(values, start, stop, arena, iteration.collectors, agreement=iteration.agreement)
        try:
            run_steps(stage.steps, frame)
            for slot, collector in iteration.collectors.items():
                batch = values[slot]
                if batch is not None:
                    collector.store(start, batch)
        finally:
            self._arenas.take_back(arena)
        iteration.end_frame(frame)

    def _run_on_batch(self, iteration: Iteration, state: StageState) -> None:
        collectors: dict[int, Collector] = {}
        stage = state.stage
        if state.publishes_directly:
            arena = NewMemory()
        else:
            arena = self._arenas.borrow()
            if stage.kind == "batch":
                # Results of a batch stage are not copied, so they must not be in scratch memory.
                collectors = {
                    slot: Collector(iteration.size, self.pool_of(iteration, slot)) for slot in stage.publishes
                }
        values = list(iteration.values)
        frame = iteration.frame(values, 0, iteration.size, arena, collectors, torch_device=self._torch_device)
        frame.copy_stream = self._copy_stream
        try:
            with device_stream(self.stream if stage.kind == "device" else None, iteration.event):
                run_steps(state.steps, frame)
                if stage.kind == "device" and self.stream is not None:
                    iteration.record_event(self.stream)
                    read = [iteration.values[slot] for slot in stage.reads]
                    self.copies.keep([*read, *frame.staged], iteration.event)
            for slot, branch in stage.publishes.items():
                batch = frame.values[slot]
                # The batch may be in scratch memory or repeat a constant, so it is copied.
                if batch is not None and slot in collectors and batch.device == "cpu":
                    collector = collectors[slot] if branch is None else Collector(None, self.pool_of(iteration, slot))
                    collector.store(0, batch)
                    batch = collector.result()
                iteration.publish(slot, batch)
        finally:
            if not isinstance(arena, NewMemory):
                self._arenas.take_back(arena)
        iteration.end_frame(frame)
