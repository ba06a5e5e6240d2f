"""The state of one batch during the stages of a plan.

The engine starts stages and divides them into chunks. Only the methods here change the attributes of an iteration.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from dalify.base.errors import DalifyError
from dalify.base.first_error import FirstError
from dalify.base.interrupts import Completion
from dalify.data import Batch, BufferPool
from dalify.executor.agreement import Agreement
from dalify.executor.arena import Arena, NewMemory
from dalify.executor.frame import Collector, Frame
from dalify.executor.steps import Step, located
from dalify.graph import Branch, Node
from dalify.sources.convert import to_batch

_NodeT = TypeVar("_NodeT")
_OtherT = TypeVar("_OtherT")


class BadRecord(NamedTuple, Generic[_NodeT]):
    """A sample of a batch that could not be read or decoded.

    Attributes:
        position: position in the batch.
        attempt: number of replacements tried before.
        node: the node that failed; between processes, its index in ``graph.nodes()``.
        policy: how the sample is replaced.
        origin: origin of the sample; None if unknown.
        error: class and message of the exception.
    """

    position: int
    attempt: int
    node: _NodeT
    policy: Literal["skip", "replace"]
    origin: str | None
    error: str

    def with_node(self, node: _OtherT) -> BadRecord[_OtherT]:
        """Return a copy with another node, for instance its number in messages between processes."""
        return BadRecord(self.position, self.attempt, node, self.policy, self.origin, self.error)


@dataclass(eq=False, kw_only=True)
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
        rows: number of each sample, from 0 to 2**32 - 1, for the random numbers of operators for single samples; None
            to use the numbers of batch and position.
        agreement: agreement of the chunks of the current stage on dtypes; None for a single chunk.
        is_timed: True if the chunks of the current stage measure their CPU time.
        stage: index of the current stage, or of the next one between stages.
        collectors: join the values of the chunks of the current stage, by slot.
        event: recorded on the device's stream after the last device stage or the copies of fed data; None without them.
        bad: the bad samples.
        fetched_again: positions of samples whose cached copies were deleted and that were read again.
        memory: memory for the outputs; None for the memory of the engine.
        ready: set when all stages are finished.
    """

    number: int
    size: int
    values: list[Batch | None]
    before: dict[str, Any]
    error: FirstError = field(default_factory=FirstError)  # one without an error is false
    entries: dict[int, Any] = field(default_factory=dict[int, Any])
    padded: int = 0
    drawing: Mapping[int, tuple[int, int, int]] = field(default_factory=dict[int, "tuple[int, int, int]"])
    rows: np.ndarray[Any, Any] | None = None
    memory: BufferPool | None = None
    attempts: dict[int, int] = field(default_factory=dict[int, int])
    substitutes: dict[Node, set[int]] = field(default_factory=dict[Node, "set[int]"])
    bad: list[BadRecord[Node]] = field(default_factory=list[BadRecord[Node]])

    def __post_init__(self) -> None:
        self.order = self.stage = 0
        self.positions: dict[Branch, np.ndarray[Any, Any]] = {}
        self.fetched_again: set[int] = set()
        self._pending_chunks = 0
        self.collectors: dict[int, Collector] = {}
        self._parts: dict[int, dict[Branch | None, np.ndarray[Any, Any]]] = {}
        self.agreement: Agreement | None = None
        self.is_timed = True
        self._cpu_seconds = self._waited_seconds = 0.0
        self.event: Any = None
        self.ready = Completion()
        self.discarded = False
        self.lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        """Whether there is an error, or the iteration was canceled."""
        return self.discarded or self.error.error is not None

    def is_discarded(self) -> bool:
        """Return whether the iteration was canceled."""
        return self.discarded

    def begin(self, order: int, given: Sequence[tuple[int, Batch]], event: Any) -> None:
        """Begin with known inputs.

        Args:
            order: number of earlier iterations of the engine.
            given: values by slot.
            event: recorded after the copies of fed data; None without them.
        """
        self.order, self.event = order, event
        for slot, batch in given:
            self.values[slot] = batch

    def begin_stage(self, chunk_count: int, collectors: dict[int, Collector], *, is_timed: bool) -> None:
        """Begin the current stage.

        Args:
            chunk_count: number of its chunks.
            collectors: join the values of the chunks, by slot.
            is_timed: measure their CPU time.
        """
        self.is_timed = is_timed
        self._parts = {}
        self._cpu_seconds = self._waited_seconds = 0.0
        self._pending_chunks = chunk_count
        self.agreement = Agreement() if chunk_count > 1 else None
        self.collectors = collectors

    def repeat_chunks(self, chunk_count: int) -> None:
        """Compute some chunks of the current stage again."""
        self._pending_chunks = chunk_count

    def record_error(self, error: BaseException, start: int = 0) -> None:
        """Keep an error, unless there is one of an earlier sample; ``start`` is the first sample of the chunk."""
        with self.lock:
            self.error.record(error, start)

    def add_cpu_time(self, seconds: float) -> None:
        """Add the CPU time in which a chunk was computed."""
        with self.lock:
            self._cpu_seconds += seconds

    def end_chunk(self) -> bool:
        """End a chunk, computed or not; return whether it was the last one of the current stage."""
        with self.lock:
            self._pending_chunks -= 1
            return self._pending_chunks == 0

    def frame(
        self,
        values: list[Batch | None],
        start: int,
        stop: int,
        arena: Arena | NewMemory,
        collectors: dict[int, Collector],
        *,
        torch_device: str = "",
        agreement: Agreement | None = None,
    ) -> Frame:
        """Return a frame for the samples ``start`` to ``stop``; see ``Frame`` for the other arguments."""
        frame = Frame(
            values=values, start=start, count=stop - start, step=self.number, batch_size=self.size, arena=arena,
            collectors=collectors, entries=self.entries, torch_device=torch_device, substitutes=self.substitutes,
            drawing=self.drawing, agreement=agreement, rows=self.rows, is_timed=self.is_timed,
            is_discarded=self.is_discarded,
        )  # fmt: skip
        for branch, positions in self.positions.items():
            low, high = (int(bound) for bound in np.searchsorted(positions, (start, stop)))
            frame.set_positions(branch, positions[low:high])
        return frame

    def publish(self, slot: int, batch: Batch | None) -> None:
        """Store a value of a batch stage or device stage for later stages."""
        self.values[slot] = batch

    def record_event(self, stream: Any) -> None:
        """Record an event on the device's stream after a device stage."""
        self.event = stream.record_event()

    def take_results(
        self,
        values: Mapping[int, Batch | None],
        positions: dict[Branch, np.ndarray[Any, Any]],
        bad: list[BadRecord[Node]],
        substitutes: dict[Node, set[int]],
    ) -> None:
        """Store the results of another process: values by slot, and the attributes of this object."""
        for slot, batch in values.items():
            self.values[slot] = batch
        self.positions, self.bad, self.substitutes = positions, bad, substitutes

    def fetch_again(self, position: int) -> bool:
        """Record that the cached copies of a sample were deleted; return False if they were deleted before."""
        with self.lock:
            is_first = position not in self.fetched_again
            self.fetched_again.add(position)
            return is_first

    def add_bad(self, record: BadRecord[Node]) -> None:
        """Record a bad sample; the caller holds the lock."""
        position = record.position
        # Counted once, although a decoder also fails for a blank sample of the reader, and a replacement may be the
        # same sample again.
        is_known = any(position in substitutes for substitutes in self.substitutes.values()) or any(
            known.position == position and known.origin == record.origin for known in self.bad
        )
        if not is_known:
            self.bad.append(record)

    def substitute(self, node: Node, position: int) -> None:
        """Replace a sample of a node by a blank one; the caller holds the lock."""
        self.substitutes.setdefault(node, set()).add(position)

    def retry(self, position: int, attempt: int, entries: Mapping[int, Any]) -> None:
        """Read other entries for a sample, by slot of the reader, after some attempts; the caller holds the lock."""
        self.attempts[position] = attempt + 1
        for slot, entry in entries.items():
            self.entries[slot][position] = entry

    def end_frame(self, frame: Frame) -> None:
        """Store the positions of each branch that a chunk has computed, and add the time in which it waited."""
        with self.lock:
            self._parts[frame.start] = frame.known_positions
            self._waited_seconds += frame.waited_s

    def join_chunks(self, steps: Sequence[Step]) -> dict[int, Batch | None]:
        """Join the values and branch positions of the chunks for later stages; return the values by slot.

        Raises:
            DivergentBranchesError: the samples of each chunk were on one side of a condition, and the sides differ.
        """
        joined: dict[int, Batch | None] = {}
        for slot, collector in self.collectors.items():
            try:
                joined[slot] = self.values[slot] = collector.result()
            except DalifyError as error:
                maker = next(step for step in steps if slot in step.outputs)
                raise located(error, maker.node) from None
        self.collectors = {}
        parts = sorted(self._parts.items())
        for branch in {branch for _, found in parts for branch in found if branch is not None}:
            if branch not in self.positions:
                self.positions[branch] = np.concatenate([found[branch] for _, found in parts if branch in found])
        return joined

    @property
    def seconds_per_sample(self) -> float:
        """Time per sample of the current stage, summed over all threads.

        It includes waiting for files and in user code. It excludes waiting for the GIL, which shorter chunks increase.
        """
        return max(0.0, self._cpu_seconds + self._waited_seconds) / self.size  # clocks may be coarse

    @property
    def cpu_seconds_per_sample(self) -> float:
        """CPU time per sample of the current stage, summed over all threads."""
        return self._cpu_seconds / self.size

    def end_stage(self) -> None:
        """Go to the next stage."""
        self.stage += 1

    def finish(self) -> None:
        """Wake up the thread that waits for the iteration: all stages are finished."""
        self.ready.set()

    def discard(self) -> None:
        """Cancel the iteration and wake up threads that wait for it."""
        self.discarded = True
        self.ready.set()

    def renewed(self) -> Iteration:
        """Return the same batch before its first stage, with new locks, for a forked process."""
        return Iteration(
            number=self.number, size=self.size, values=[None] * len(self.values), before=self.before, error=self.error,
            entries=self.entries, padded=self.padded, drawing=self.drawing, rows=self.rows, attempts=self.attempts,
            substitutes=self.substitutes, bad=self.bad,
        )  # fmt: skip

    def slice_values(self, reads: Mapping[int, Branch | None], start: int, stop: int) -> list[Batch | None]:
        """Return the values that a stage reads, by slot, for the samples ``start`` to ``stop``."""
        if stop - start == self.size:
            return list(self.values)
        values: list[Batch | None] = [None] * len(self.values)
        for slot, branch in reads.items():
            batch = self.values[slot]
            if batch is None:
                continue
            low, high = start, stop
            if branch is not None:
                low, high = (int(bound) for bound in np.searchsorted(self.positions[branch], (start, stop)))
            if high > low:
                values[slot] = batch if low == 0 and high == len(batch) else batch.slice(low, high)
        return values

    def take_outputs(self, slots: Sequence[int]) -> tuple[Batch, ...]:
        """Return the outputs for the user. An output that is returned twice is copied: users may modify it."""
        found: dict[int, Batch] = {}
        outputs: list[Batch] = []
        for slot in slots:
            batch = to_batch(found[slot]) if slot in found else self.values[slot]
            found[slot] = Batch(None, [], "") if batch is None else batch
            outputs.append(found[slot])
        return tuple(outputs)
