"""The step of a cache: it holds the steps in front of it, and runs them for the samples that it does not have.

Alone because all else in the executor need not know that some samples are not computed: a chunk that comes out of
here looks as if all of it had been.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dalify.base.fork_lock import ForkLock
from dalify.data import Batch, stack_samples
from dalify.data.sample_folder import SampleFolder
from dalify.data.sample_memory import MEGABYTE, SampleStore, StoredSample, shared_memory_of
from dalify.executor.cache_keys import digest_of
from dalify.executor.frame import Frame
from dalify.executor.origins import Origins
from dalify.executor.reader_step import ReaderStep
from dalify.executor.steps import Step, run_steps, walk
from dalify.graph import Branch, Node, rule_arguments

__all__ = ["AloneStep", "CacheStep"]

_Place = tuple[str, str]  # key and state of a sample


class AloneStep:
    """Runs another step, one chunk at a time: users' functions need not be safe to call from several threads.

    Args:
        step: the other one.
    """

    def __init__(self, step: Step) -> None:
        self.node = step.node
        self.inputs = step.inputs
        self.outputs = step.outputs
        self._step = step
        self._lock = ForkLock()

    def run(self, frame: Frame) -> None:
        """Run the step when no other thread does."""
        with self._lock:
            self._step.run(frame)


class CacheStep:
    """Takes samples from a cache, computes those that are not there, and adds them.

    Args:
        node: a ``fn.cache``.
        inputs: slots of what is kept.
        outputs: slots of the same behind the cache.
        steps: what is needed for it alone, in order.
        reads: slots of what these steps read and do not make, with the branch of each.
        readers: all that are in front, with the slot of the first output of each.

    Attributes:
        steps: as given.
        hits: number of samples that came from the cache.
        misses: number of samples that were computed.
    """

    def __init__(
        self,
        node: Node,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        steps: Sequence[Step],
        reads: Mapping[int, Branch | None],
        readers: Mapping[int, ReaderStep],
    ) -> None:
        self.node = node
        self.inputs: tuple[int | None, ...] = inputs
        self.outputs = outputs
        self.steps = list(steps)
        self._kept = inputs
        self._reads = dict(reads)
        self._readers = dict(readers)
        self._nodes = [step.node for step in walk(self.steps)]
        self._lock = threading.Lock()
        self.hits = self.misses = 0
        given = rule_arguments(node)
        self._most_bytes: int = given["cache_size"] * MEGABYTE
        self._threshold_bytes: int = given["cache_threshold"]
        self._folder: str = given["cache_folder"]
        self._is_closed = False
        self.store: SampleStore | None = None
        if self._most_bytes and self.steps:
            digest = digest_of([edge for edge in node.inputs if edge is not None], node)
            if self._folder:
                self.store = SampleFolder(self._folder, digest, self._most_bytes)
            else:
                keeps_largest = given["cache_type"] == "largest"
                self.store = shared_memory_of(digest, self._most_bytes, keeps_largest, (self._threshold_bytes,))
        inner = [step for step in self.steps if isinstance(step, ReaderStep)]
        if self.store is not None and len(self._readers) == 1 and inner and inner[0].ahead is not None:
            inner[0].ahead.is_wanted = partial(self._is_absent, inner[0])

    def run(self, frame: Frame) -> None:
        """Take or compute the chunk's samples."""
        store = self.store
        if store is None or frame.count == 0:
            self._compute(frame, frame, 0, frame.count)
            for kept, slot in zip(self._kept, self.outputs, strict=True):
                frame.values[slot] = frame.values[kept]
            return
        places = self._places(frame)
        allocate = _scratch(frame)
        found = [None if place is None else store.get(*place, allocate) for place in places]
        hits = sum(sample is not None for sample in found)
        with self._lock:
            self.hits += hits
            self.misses += frame.count - hits
        computed: dict[int, list[Batch]] = {}  # by place of the first sample
        for start, stop in _gaps(found):
            computed[start] = self._computed(store, frame, places, start, stop)
        origins = self._origins(frame)
        for number, slot in enumerate(self.outputs):
            parts = [batches[number] for batches in computed.values()]
            if len(parts) == 1 and len(parts[0]) == frame.count:
                frame.values[slot] = parts[0]
                continue
            samples: list[Any] = [None if sample is None else sample.arrays[number] for sample in found]
            for start, batches in computed.items():
                samples[start : start + len(batches[number])] = batches[number].samples
            layout = parts[0].layout if parts else next(s.layouts[number] for s in found if s is not None)
            frame.values[slot] = _joined(samples, layout, origins, frame, slot)

    def _compute(self, outer: Frame, frame: Frame, start: int, stop: int) -> None:
        """Run the steps in front for some samples of a chunk."""
        if frame is not outer:
            for slot, branch in self._reads.items():
                batch = outer.values[slot]
                if batch is None:
                    continue
                low, high = start, stop
                if branch is not None:
                    bounds = (outer.start + start, outer.start + stop)
                    low, high = (int(bound) for bound in np.searchsorted(outer.positions(branch), bounds))
                if high > low:
                    frame.values[slot] = batch.slice(low, high)
        run_steps(self.steps, frame)

    def _computed(
        self, store: SampleStore, frame: Frame, places: Sequence[_Place | None], start: int, stop: int
    ) -> list[Batch]:
        """Compute some samples of a chunk and add them to the cache."""
        part = frame.part(start, stop)
        self._compute(frame, part, start, stop)
        batches: list[Batch] = []
        for slot in self._kept:
            batch = part.values[slot]
            assert batch is not None, "dalify bug: a cached value of no samples"
            batches.append(batch)
        layouts = tuple(batch.layout for batch in batches)
        for offset, place in enumerate(places[start:stop]):
            if place is None:
                continue
            sample = StoredSample(tuple(batch.samples[offset] for batch in batches), layouts)
            if sample.arrays[0].nbytes > self._threshold_bytes:
                store.put(*place, sample)
        return batches

    # -- what a sample is known by

    def _places(self, frame: Frame) -> list[_Place | None]:
        """Return key and state of each sample; None for those that have none, or that something stands in for."""
        bad: set[int] = set()
        if frame.stand_ins:
            bad.update(*(frame.stand_ins.get(node, ()) for node in self._nodes))
        chosen = [
            (reader, frame.entries[slot][frame.start : frame.start + frame.count].tolist())
            for slot, reader in self._readers.items()
        ]
        return [
            None
            if frame.start + offset in bad
            else self._place([(reader, numbers[offset]) for reader, numbers in chosen])
            for offset in range(frame.count)
        ]

    @staticmethod
    def _place(entries: Sequence[tuple[ReaderStep, int]]) -> _Place | None:
        try:
            if len(entries) == 1:
                reader, number = entries[0]
                return reader.identity_of(number)
            pairs = [reader.identity_of(number) for reader, number in entries]
        except Exception:  # whatever is wrong with the entry, reading it tells
            return None
        return "\0\0".join(key for key, _ in pairs), " ".join(state for _, state in pairs)

    def _is_absent(self, reader: ReaderStep, number: int) -> bool:
        store, place = self.store, self._place([(reader, number)])
        return store is None or place is None or not store.has(*place)

    def _origins(self, frame: Frame) -> Origins | None:
        for slot, reader in self._readers.items():
            numbers = frame.entries[slot][frame.start : frame.start + frame.count]
            return reader.origins_of(numbers)
        return None

    def close(self) -> None:
        """Let go of what is kept in memory: the pipeline does not run any more."""
        self._is_closed = True
        self.store = None

    def __str__(self) -> str:
        """Return how much of what came was in the cache, and how much is in it."""
        if self.store is None:
            why = "nothing in front is computed for it alone" if self._most_bytes else "cache_size is 0"
            return f"{self.node!r} keeps nothing: {'the pipeline is closed' if self._is_closed else why}"
        where = f"in {self._folder}" if self._folder else "in memory"
        total = self.hits + self.misses
        return (
            f"{self.node!r}: {self.hits} of {total} samples came from the cache, {self.misses} were computed; "
            f"{self.store.size_bytes} of {self._most_bytes} bytes are taken {where}"
        )


def _scratch(frame: Frame) -> Any:
    arena = frame.arena
    assert arena is not None, "dalify bug: CPU data without scratch memory"
    return lambda size: arena.empty((size,), np.dtype(np.uint8))


def _gaps(found: Sequence[StoredSample | None]) -> Iterator[tuple[int, int]]:
    """Yield first and last-but-one place of each run of samples that are not there."""
    start: int | None = None
    for place, sample in enumerate([*found, StoredSample((), ())]):
        if sample is None:
            start = place if start is None else start
        elif start is not None:
            yield start, place
            start = None


def _joined(samples: list[Any], layout: str, origins: Origins | None, frame: Frame, slot: int) -> Batch:
    """Return samples from here and there as one batch, equal shapes in one array, where kernels want them."""
    first = samples[0]
    shape, dtype = first.shape, first.dtype
    if any(sample.shape != shape or sample.dtype != dtype for sample in samples):
        return Batch(None, samples, layout, "cpu", origins)
    collector = frame.collectors.get(slot)
    out = None if collector is None else collector.memory(frame.start, len(samples), shape, dtype)
    if out is None:
        assert frame.arena is not None, "dalify bug: CPU data without scratch memory"
        out = frame.arena.empty((len(samples), *shape), dtype)
    return Batch(stack_samples(samples, out), None, layout, "cpu", origins)
