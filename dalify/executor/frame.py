"""The values of one chunk during the steps of a plan, and buffers that collect the results of a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dalify.base.errors import DalifyError
from dalify.base.small_arrays import counting
from dalify.data import Batch, BufferPool, stack_samples
from dalify.data.agreement import check_agreement
from dalify.data.batch import ALIGNMENT_BYTES
from dalify.executor.agreement import Agreement
from dalify.executor.arena import Arena, NewMemory
from dalify.executor.origins import joined_origins
from dalify.graph import Branch, Node


class Collector:
    """Collects one output of a segment from the chunks of a batch.

    The first finished chunk determines the shape of a dense buffer; other chunks write to their rows. If a sample has a
    different shape, the batch becomes a list.

    Args:
        size: number of samples of the whole batch; None for no dense buffer, in a branch with an unknown number of
            samples or if the previous batch was ragged.
        pool: memory for outputs of the stage.
    """

    __slots__ = ("_dense", "_kernel_memory", "_lock", "_parts", "_pool", "_size", "_uniform")

    def __init__(self, size: int | None, pool: BufferPool) -> None:
        self._size = size
        self._pool = pool
        self._dense: np.ndarray[Any, Any] | None = None
        self._parts: dict[int, Batch] = {}
        self._kernel_memory: dict[int, np.ndarray[Any, Any]] = {}  # by first sample: memory passed to the kernel
        self._uniform = True
        self._lock = threading.Lock()

    def memory(
        self, start: int, count: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> np.ndarray[Any, Any] | None:
        """Return memory for ``count`` results of a kernel, so that they need not be copied at the end of the stage.

        Returns:
            An array ``[count, *shape]``; None if scratch memory must be used.
        """
        rows = self._rows(start, count, shape, dtype)
        if rows is None and count == 1:
            rows = self._pool.empty((1, *shape), dtype)
            self._uniform = False
        if rows is not None:
            self._kernel_memory[start] = rows
        return rows

    def block(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return memory for all samples of a ragged chunk; it is not copied at the end of the stage."""
        return self._pool.empty(shape, dtype)

    def _rows(
        self, start: int, count: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> np.ndarray[Any, Any] | None:
        """Return the rows of the dense buffer for some samples; None if they do not fit."""
        if self._size is None:
            return None
        dense = self._dense
        if dense is None:
            with self._lock:
                if self._dense is None:
                    self._dense = self._pool.empty((self._size, *shape), dtype)
                dense = self._dense
        if dense.shape[1:] != shape or dense.dtype != dtype:
            return None
        return dense if count == self._size else dense[start : start + count]

    def store(self, start: int, batch: Batch) -> None:
        """Add the result of a chunk; data in scratch memory are copied."""
        dense, samples = batch.dense, None
        if dense is not None:
            if batch.is_lasting and len(dense) == self._size:
                self._uniform = False
            else:
                dense = self._kept(start, dense)
        elif (lasting := batch if batch.is_lasting else self._copied(batch)) is not None:
            with self._lock:
                self._uniform = False
                self._parts[start] = lasting
            return
        else:
            dense = self._gathered(start, batch.samples)
            if dense is None:
                samples = [self._kept(start + row, sample[None])[0, ...] for row, sample in enumerate(batch.samples)]
        with self._lock:
            self._parts[start] = Batch(dense, samples, batch.layout, batch.device, batch.origins, batch.dtype)

    def _copied(self, batch: Batch) -> Batch | None:
        """Return samples of different shapes in permanent memory by one copy; None if they are not adjacent."""
        if batch.ragged is None or batch.is_uniform:
            return None
        block, offsets, shapes = batch.ragged
        sizes = shapes.prod(1) * batch.dtype.numpy.itemsize
        ends = offsets + sizes
        first, size_bytes = int(offsets[0]), int(ends[-1] - offsets[0])
        gaps = offsets[1:] - ends[:-1]
        if (gaps < 0).any() or size_bytes > 2 * sizes.sum() + ALIGNMENT_BYTES * len(sizes):
            return None
        memory = self._pool.empty((size_bytes,), np.dtype(np.uint8))
        memory[...] = block[first : first + size_bytes]
        ragged = memory, offsets - first, shapes
        return Batch(None, None, batch.layout, batch.device, batch.origins, batch.dtype, ragged)

    def _gathered(self, start: int, samples: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any] | None:
        """Copy samples to their rows of the dense buffer; None if they do not fit, or some are already there."""
        first = samples[0]
        shape, dtype = first.shape, first.dtype
        if any(start + row in self._kernel_memory for row in range(len(samples))):
            return None
        if any(sample.shape != shape or sample.dtype != dtype for sample in samples):
            return None
        rows = self._rows(start, len(samples), shape, dtype)
        return None if rows is None else stack_samples(samples, rows)

    def _kept(self, start: int, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the same samples in permanent memory."""
        passed = self._kernel_memory.get(start)
        if passed is not None and (passed is array or _is_same(passed, array)):
            return array
        rows = self._rows(start, len(array), array.shape[1:], array.dtype)
        if rows is None:
            rows = self._pool.empty(array.shape, array.dtype)
            self._uniform = False
        # Without memory passed to the kernel, the results cannot be in the rows already.
        if not (self._kernel_memory and _is_same(rows, array)):
            rows[...] = array
        return rows

    def result(self) -> Batch | None:
        """Return the whole batch, samples in order; None without samples."""
        if not self._parts:
            return None
        in_order = sorted(self._parts.items())
        first = in_order[0][1]
        if len(in_order) == 1 and (first.dense is not None or not self._uniform):
            return first
        parts = [part for _, part in in_order]
        for start, part in in_order[1:]:  # each chunk may be on one side of a condition
            one, other = first.spec_of(0).replace(shape=None), part.spec_of(0).replace(shape=None)
            try:
                check_agreement(one, other, "", None)
            except DalifyError as error:
                origin = None if part.origins is None else part.origins[0]
                error.locate(sample=None if self._size is None else start, origin=origin)
                raise
        origins = joined_origins([(len(part), part.origins) for part in parts])
        if self._uniform and self._dense is not None:
            return Batch(self._dense, None, first.layout, first.device, origins, first.dtype)
        if len(parts) == 1:
            return first
        blocks = [part.dense for part in parts if part.dense is not None]
        if len(blocks) == len(parts) and len({block.shape[1:] for block in blocks}) == 1:
            dense = np.concatenate(blocks)
            return Batch(dense, None, first.layout, first.device, origins, first.dtype)
        samples = [sample for part in parts for sample in part.samples]
        whole = Batch(None, samples, first.layout, first.device, origins, first.dtype)
        if all(part.ragged is not None for part in parts):
            whole.parts = tuple(parts)
        return whole


def _is_same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    if one.shape != other.shape or _address(one) != _address(other):
        return False
    # The stride of the sample axis is arbitrary if there is only one sample.
    return one.strides[1:] == other.strides[1:] and (len(one) == 1 or one.strides[0] == other.strides[0])


def _address(array: np.ndarray[Any, Any]) -> int:
    return array.__array_interface__["data"][0]


def _never() -> bool:
    return False


@dataclass(eq=False, kw_only=True, slots=True)
class Frame:
    """The values of one chunk during the steps of a stage.

    Attributes:
        values: values by slot; None for a value without samples.
        start: position of the chunk's first sample in the batch.
        count: number of samples of the chunk.
        step: number of the iteration since the start of the pipeline; random numbers depend on it.
        batch_size: number of samples of the batch.
        arena: scratch memory for results on the CPU.
        collectors: buffers by slot for outputs of the stage.
        entries: entries chosen by samplers for the batch, by slot of a reader.
        torch_device: torch device of the stage; "" on the CPU.
        substitutes: by node, the positions in the batch of samples that are replaced by blank ones.
        agreement: agreement of the chunks on dtypes; None if the chunk is the whole batch.
        copy_stream: stream of the device for copies from the CPU; None if the device has no streams.
        staged: host memory that asynchronous copies to the device read.
        drawing: seed, stream and step by the number of a random node, instead of those of plan and batch.
        rows: see ``Iteration.rows``.
        is_timed: True if steps measure the time in which they wait.
        is_discarded: returns True if nothing needs the results any more.
        waited_s: time in seconds in which readers, caches and user code waited, for instance for a file.
        known_positions: results of ``positions`` that are known, by branch.
    """

    values: list[Batch | None]
    start: int
    count: int
    step: int
    batch_size: int
    arena: Arena | NewMemory
    collectors: dict[int, Collector] = field(default_factory=dict[int, Collector])
    entries: Mapping[int, Any] = field(default_factory=dict[int, Any])
    torch_device: str = ""
    substitutes: Mapping[Node, set[int]] = field(default_factory=dict[Node, "set[int]"])
    drawing: Mapping[int, tuple[int, int, int]] = field(default_factory=dict[int, "tuple[int, int, int]"])
    agreement: Agreement | None = None
    rows: np.ndarray[Any, Any] | None = None
    is_timed: bool = True
    is_discarded: Callable[[], bool] = _never
    copy_stream: Any = None
    staged: list[Batch] = field(init=False)
    waited_s: float = field(default=0.0, init=False)
    known_positions: dict[Branch | None, np.ndarray[Any, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.staged, self.known_positions = [], {}

    def memory(
        self, slot: int, count: int, shape: tuple[int, ...], dtype: np.dtype[Any], start: int = 0
    ) -> np.ndarray[Any, Any]:
        """Return memory for results of ``count`` samples of the chunk from ``start``, in the batch if possible."""
        collector = self.collectors.get(slot)
        found = None if collector is None else collector.memory(self.start + start, count, shape, dtype)
        return self.arena.empty((count, *shape), dtype) if found is None else found

    def part(self, start: int, stop: int, agreement: Agreement | None) -> Frame:
        """Return a frame without values for some samples of the chunk; its results are not collected."""
        first, last = self.start + start, self.start + stop
        values: list[Batch | None] = [None] * len(self.values)
        frame = replace(self, values=values, start=first, count=stop - start, collectors={}, agreement=agreement)
        for branch, positions in self.known_positions.items():
            if branch is not None:
                low, high = (int(bound) for bound in np.searchsorted(positions, (first, last)))
                frame.set_positions(branch, positions[low:high])
        return frame

    def positions(self, branch: Branch | None) -> np.ndarray[Any, Any]:
        """Return the positions in the batch of the chunk's samples in a branch; all samples for None."""
        found = self.known_positions.get(branch)
        if found is None:
            assert branch is None, "dalify bug: a branch was used before its samples were split off"
            found = self.known_positions[None] = counting(self.count) + self.start
        return found

    def has_positions(self, branch: Branch | None) -> bool:
        """Return whether the positions of a branch are known."""
        return branch is None or branch in self.known_positions

    def set_positions(self, branch: Branch | None, positions: np.ndarray[Any, Any]) -> None:
        """Set the positions of the samples in a branch."""
        self.known_positions[branch] = positions
