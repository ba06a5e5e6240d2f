"""One batch on its way through the stages of a plan."""

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
    """One batch on its way through the stages.

    Attributes:
        number: counted from the first batch of the run, over restarts; random numbers go by it.
        order: counted from the engine's start; serial stages go by it.
        size: number of samples.
        values: by slot, what stages have published.
        positions: of the samples of each branch, for later stages.
        entries: what the samplers chose, by slot of the reader's first output.
        before: where the engine stood before it asked for this batch; see ``Engine.state``.
        error: the first error, by sample.
        padded: how many samples at the end repeat another.
        attempts: by position, how many samples were tried there in place of bad ones.
        stand_ins: by node, positions that get a blank sample.
        drawing: see ``Frame.drawing``.
        agreement: on the element types of what the chunks of the current stage have read and decoded.
        bad: position, attempt, node, policy, origin and text of each sample that failed.
        fetched_again: positions of samples whose copies were dropped and that were read once more.
        memory: for the outputs; None for that of the engine.
        ready: set when all stages are done.
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
        self.stand_ins: dict[Node, set[int]] = {}
        self.drawing: Mapping[int, tuple[int, int, int]] = {}
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
        """Give it up, also in the eyes of who waits for it."""
        self.discarded = True
        self.ready.set()

    def again(self) -> Iteration:
        """Return the same batch, not begun. Threads that are no more may hold the locks of this one after a fork."""
        fresh = Iteration(self.number, self.size, len(self.values))
        fresh.entries, fresh.before, fresh.error = self.entries, self.before, self.error
        fresh.padded, fresh.bad, fresh.attempts = self.padded, self.bad, self.attempts
        fresh.stand_ins, fresh.drawing = self.stand_ins, self.drawing
        return fresh


def gathered(collector: Collector, slot: int, steps: Sequence[Step]) -> Batch | None:
    """Return what the chunks of a batch made of a value; None where there was no sample.

    Raises:
        DivergentBranchesError: each chunk took one side of a condition, and the sides differ.
    """
    try:
        return collector.result()
    except DalifyError as error:
        maker = next(step for step in steps if slot in step.outputs)
        raise located(error, maker.node, None, None) from None


def join_positions(iteration: Iteration) -> None:
    """Put the branch positions that the chunks found together, for later stages."""
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
    """Return what the user gets. Consumers may change a tensor in place: what is returned twice is two."""
    found: dict[int, Batch] = {}
    outputs: list[Batch] = []
    for slot in slots:
        batch = to_batch(found[slot]) if slot in found else iteration.values[slot]
        found[slot] = Batch(None, [], "") if batch is None else batch
        outputs.append(found[slot])
    return tuple(outputs)
