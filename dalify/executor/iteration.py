"""The state of one batch during the stages of a plan."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import DalifyError
from dalify.base.held_error import HeldError
from dalify.base.interrupts import Completion
from dalify.data import Batch, BufferPool
from dalify.executor.agreement import Agreement
from dalify.executor.frame import Collector
from dalify.executor.steps import Step, located
from dalify.graph import Branch, Node
from dalify.sources.convert import to_batch

__all__ = ["Iteration", "gathered", "join_positions", "slice_values", "take_outputs"]


class Iteration:
    """One batch during the stages of a plan.

    Attributes:
        number: counted from the first batch of the run, across restarts; random numbers depend on it.
        order: counted from the start of the engine; the order of serial stages.
        size: number of samples.
        values: published values of stages, by slot.
        positions: positions of the samples of each branch, for later stages.
        entries: entries chosen by samplers, by slot of the reader's first output.
        before: state of the engine before it requested this batch; see ``Engine.state``.
        error: the first error, in the order of samples.
        padded: number of samples at the end that repeat another one.
        attempts: by position, number of replacements tried for bad samples.
        substitutes: by node, positions of blank samples.
        drawing: see ``Frame.drawing``.
        rows: number of each sample, from 0 to 2**32 - 1, that replaces the numbers of batch and position in the random
            numbers of operators for single samples; None: those of batch and position.
        agreement: agreement on the element types that the chunks of the current stage have read and decoded.
        bad: position, attempt, node, policy, origin and error text of each bad sample.
        fetched_again: positions of samples whose cached copies were deleted and that were read again.
        memory: memory for the outputs; None: that of the engine.
        ready: set when all stages are finished.
    """

    def __init__(self, number: int, size: int, slot_count: int) -> None:
        self.number = number
        self.order = 0
        self.size = size
        self.values: list[Batch | None] = [None] * slot_count
        self.positions: dict[Branch, np.ndarray[Any, Any]] = {}
        self.entries: dict[int, Any] = {}
        self.before: dict[str, Any] = {}
        self.padded = 0
        self.attempts: dict[int, int] = {}
        self.substitutes: dict[Node, set[int]] = {}
        self.drawing: Mapping[int, tuple[int, int, int]] = {}
        self.rows: np.ndarray[Any, Any] | None = None
        self.bad: list[tuple[int, int, Node, Any, str | None, str]] = []
        self.fetched_again: set[int] = set()
        self.stage = 0
        self.pending = 0
        self.error = HeldError()
        self.collectors: dict[int, Collector] = {}
        self.parts: dict[int, dict[Branch | None, np.ndarray[Any, Any]]] = {}
        self.agreement = Agreement()
        self.chunk_seconds = 0.0
        self.event: Any = None
        self.memory: BufferPool | None = None
        self.ready = Completion()
        self.discarded = False
        self.lock = threading.Lock()

    def discard(self) -> None:
        """Cancel the iteration and wake up threads that wait for it."""
        self.discarded = True
        self.ready.set()

    def again(self) -> Iteration:
        """Return the same batch before its first stage. It has new locks: lost threads may hold the old ones."""
        fresh = Iteration(self.number, self.size, len(self.values))
        fresh.entries, fresh.before, fresh.error = self.entries, self.before, self.error
        fresh.padded, fresh.bad, fresh.attempts = self.padded, self.bad, self.attempts
        fresh.substitutes, fresh.drawing, fresh.rows = self.substitutes, self.drawing, self.rows
        return fresh


def gathered(collector: Collector, slot: int, steps: Sequence[Step]) -> Batch | None:
    """Return the batch of a value from its chunks; None without samples.

    Raises:
        DivergentBranchesError: the samples of each chunk were on one side of a condition, and the sides differ.
    """
    try:
        return collector.result()
    except DalifyError as error:
        maker = next(step for step in steps if slot in step.outputs)
        raise located(error, maker.node, None, None) from None


def join_positions(iteration: Iteration) -> None:
    """Combine the branch positions of the chunks for later stages."""
    branches = {branch for found in iteration.parts.values() for branch in found if branch is not None}
    parts = sorted(iteration.parts.items())
    for branch in branches:
        if branch not in iteration.positions:
            iteration.positions[branch] = np.concatenate([found[branch] for _, found in parts if branch in found])


def slice_values(iteration: Iteration, reads: Mapping[int, Branch | None], start: int, stop: int) -> list[Batch | None]:
    """Return the values that a stage reads, by slot, for the samples ``start`` to ``stop``."""
    values: list[Batch | None] = [None] * len(iteration.values)
    for slot, branch in reads.items():
        batch = iteration.values[slot]
        if batch is None:
            continue
        low, high = start, stop
        if branch is not None:
            low, high = (int(bound) for bound in np.searchsorted(iteration.positions[branch], (start, stop)))
        if high > low:
            values[slot] = batch if low == 0 and high == len(batch) else batch.slice(low, high)
    return values


def take_outputs(iteration: Iteration, slots: Sequence[int]) -> tuple[Batch, ...]:
    """Return the outputs for the user. An output that is returned twice is copied, because users may modify it."""
    found: dict[int, Batch] = {}
    outputs: list[Batch] = []
    for slot in slots:
        batch = to_batch(found[slot]) if slot in found else iteration.values[slot]
        found[slot] = Batch(None, [], "") if batch is None else batch
        outputs.append(found[slot])
    return tuple(outputs)
