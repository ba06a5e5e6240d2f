"""The step of a cache: it contains the steps before the cache, and runs them for samples that are not cached."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from dalify.base.fork_lock import ForkLock
from dalify.data import Batch, stack_samples
from dalify.data.dtypes import DALIDataType, from_numpy
from dalify.data.sample_folder import SampleFolder
from dalify.data.sample_memory import MEGABYTE, SampleMemory, SampleStore, StoredSample, shared_memory_of
from dalify.executor.agreement import Agreement, Kind, NotDecided
from dalify.executor.cache_counts import CacheCounts
from dalify.executor.cache_keys import digest_of
from dalify.executor.frame import Frame
from dalify.executor.origins import Origins
from dalify.executor.reader_step import ReaderStep
from dalify.executor.steps import Step, run_steps, walk
from dalify.graph import Branch, Node, rule_arguments, upstream

_Key = tuple[str, str]  # digest of a sample, and state of its source


class _RecordingAgreement(Agreement):
    """Records the dtypes in a part of a chunk; decisions of the batch apply to it."""

    def __init__(self, outer: Agreement | None) -> None:
        super().__init__()
        self._outer = outer
        self.kinds: dict[int, tuple[Kind, bool]] = {}  # by slot, with a flag for replacements of bad samples

    def of(self, slot: int) -> Kind | None:
        """See ``Agreement.of``."""
        return None if self._outer is None else self._outer.of(slot)

    def note(self, slot: int, chunk: tuple[int, int], kind: Kind, *, is_blank: bool) -> None:
        """Record the first sample of the part."""
        self.kinds[slot] = kind, is_blank


class SerialStep(Step):
    """Runs another step, one chunk at a time, because user functions may not be thread-safe."""

    def __init__(self, step: Step) -> None:
        super().__init__(step.node, step.inputs, step.outputs)
        self._step = step
        self._lock = ForkLock()

    def run(self, frame: Frame) -> None:
        """Run the step while no other thread runs it."""
        with self._lock:
            self._step.run(frame)


class UncachedStep(Step):
    """Returns data without caching, because samples that do not come from a reader have no identity."""

    def run(self, frame: Frame) -> None:
        """Set the outputs to the inputs, without a copy."""
        for source, target in zip(self.inputs, self.outputs, strict=True):
            batch = None if source is None else frame.values[source]
            frame.values[target] = None if batch is None else batch.with_layout(batch.layout)


class CacheStep(Step):
    """Takes samples from a cache, computes missing ones, and adds them to the cache.

    Args:
        node: a ``fn.cache``.
        inputs: slots of the cached values before the cache.
        outputs: slots of the same values after the cache.
        steps: steps that only the cache needs, in order.
        reads: the branch of each slot that these steps read and do not compute.
        readers: all readers before the cache, by the slot of their first output.

    Attributes:
        counts: numbers of cached and computed samples.
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
        super().__init__(node, inputs, outputs, steps)
        self._kept = inputs
        self._reads = dict(reads)
        self._readers = dict(readers)
        self._nodes = [step.node for step in walk(self.steps)]
        # Several plans may share a cache, and slots are different in each.
        in_front = upstream(node)
        self._names: dict[int, list[int]] = {
            slot: [in_front.index(step.node), output]
            for step in walk(self.steps)
            for output, slot in enumerate(step.outputs)
        }
        self._slots = {(number, output): slot for slot, (number, output) in self._names.items()}
        self._lock = threading.Lock()
        self.counts = CacheCounts()
        given = rule_arguments(node)
        self._max_bytes: int = given["cache_size"] * MEGABYTE
        self._threshold_bytes: int = given["cache_threshold"]
        self._folder: str = given["cache_folder"]
        self._is_closed = False
        self.store: SampleStore | None = None
        self._shares = 1
        self._elsewhere: dict[int, int] = {}  # bytes in other processes
        if self._max_bytes and self.steps:
            digest = digest_of(node.given_inputs, node)
            if self._folder:
                self.store = SampleFolder(self._folder, digest, self._max_bytes)
            else:
                self._memory_key = digest, given["cache_type"] == "largest", (self._threshold_bytes,)
                self.store = self._memory_of(self._max_bytes)
        inner = [step for step in self.steps if isinstance(step, ReaderStep)]
        if self.store is not None and len(self._readers) == 1 and inner:
            inner[0].is_cached = partial(self._has, inner[0])

    def run(self, frame: Frame) -> None:
        """Read the samples of the chunk from the cache, or compute them."""
        store = self.store
        with suppress(NotDecided):  # the whole chunk may be sufficient for a decision
            if store is not None and frame.count and self._read_or_compute(store, frame):
                return
        self._compute(frame, frame, 0, frame.count)
        for kept, slot in zip(self._kept, self.outputs, strict=True):
            frame.values[slot] = frame.values[kept]

    def _read_or_compute(self, store: SampleStore, frame: Frame) -> bool:
        """Read cached samples and compute the others; return whether the samples can be in one batch.

        Raises:
            NotDecided: the decision depends on another chunk.
        """
        keys = self._keys(frame)

        def allocate(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
            return frame.arena.empty((size,), np.dtype(np.uint8))

        found = [None if key is None else store.get(*key, allocate) for key in keys]
        hits = sum(sample is not None for sample in found)
        self.counts.add(hits, frame.count - hits)
        computed: dict[int, list[Batch]] = {}  # by index of the first sample
        kinds = {index: self._kinds_of(sample) for index, sample in enumerate(found) if sample is not None}
        for start, stop in _gaps(found):
            noted = _RecordingAgreement(frame.agreement)
            computed[start] = self._compute_missing(store, frame, keys, start, stop, noted)
            kinds[start] = noted.kinds
        if not _agree(kinds, frame):
            return False
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
        return True

    def _compute(self, outer: Frame, frame: Frame, start: int, stop: int) -> None:
        """Run the steps before the cache for some samples of a chunk."""
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

    def _compute_missing(
        self,
        store: SampleStore,
        frame: Frame,
        keys: Sequence[_Key | None],
        start: int,
        stop: int,
        noted: _RecordingAgreement,
    ) -> list[Batch]:
        """Compute some samples of a chunk and add them to the cache."""
        part = frame.part(start, stop, noted)
        self._compute(frame, part, start, stop)
        batches: list[Batch] = []
        for slot in self._kept:
            batch = part.values[slot]
            assert batch is not None, "dalify bug: a cached value of no samples"
            batches.append(batch)
        layouts = tuple(batch.layout for batch in batches)
        for offset, key in enumerate(keys[start:stop]):
            if key is None:
                continue
            notes = [self._note(slot, kind, part, offset) for slot, (kind, _) in noted.kinds.items()]
            sample = StoredSample(tuple(batch.samples[offset] for batch in batches), layouts, notes)
            if sample.arrays[0].nbytes > self._threshold_bytes:
                store.put(*key, sample)
        return batches

    # -- element types of samples before the cache, if only the data determine them

    def _note(self, slot: int, kind: Kind, part: Frame, offset: int) -> list[Any]:
        batch = part.values[slot]
        shape = kind.shape if batch is None else batch.samples[offset].shape
        return [self._names[slot], int(from_numpy(kind.dtype)), list(shape)]

    def _kinds_of(self, sample: StoredSample) -> dict[int, tuple[Kind, bool]]:
        return {
            self._slots[number, output]: (Kind(DALIDataType(dtype).numpy, tuple(shape)), False)
            for (number, output), dtype, shape in sample.notes
        }

    # -- keys of samples

    def _keys(self, frame: Frame) -> list[_Key | None]:
        """Return key and state of each sample; None for samples without a key and for replaced samples."""
        bad: set[int] = set()
        if frame.substitutes:
            bad.update(*(frame.substitutes.get(node, ()) for node in self._nodes))
        chosen = [
            (reader, frame.entries[slot][frame.start : frame.start + frame.count].tolist())
            for slot, reader in self._readers.items()
        ]
        return [
            None
            if frame.start + offset in bad
            else self._key([(reader, numbers[offset]) for reader, numbers in chosen])
            for offset in range(frame.count)
        ]

    @staticmethod
    def _key(entries: Sequence[tuple[ReaderStep, int]]) -> _Key | None:
        pairs: list[_Key] = []
        for reader, number in entries:
            pair = reader.identity_of(number)
            if pair is None:
                return None
            pairs.append(pair)
        return "\0\0".join(key for key, _ in pairs), " ".join(state for _, state in pairs)

    def _has(self, reader: ReaderStep, number: int) -> bool:
        store, key = self.store, reader.identity_of(number)
        return store is not None and key is not None and store.has(*key)

    def _origins(self, frame: Frame) -> Origins | None:
        for slot, reader in self._readers.items():
            numbers = frame.entries[slot][frame.start : frame.start + frame.count]
            return reader.origins_of(numbers)
        return None

    # -- if worker processes compute the batches

    def divide(self, count: int) -> None:
        """Divide the memory limit among processes that cache samples in their own memory."""
        self._shares = count
        if self.store is not None and not self._folder:
            self.store = self._memory_of(self._max_bytes // count)

    def _memory_of(self, max_bytes: int) -> SampleMemory:
        digest, keeps_largest, options = self._memory_key
        return shared_memory_of(digest, max_bytes, keeps_largest, options)

    def progress(self) -> tuple[int, int, int]:
        """Return hits and misses since the last call, and the bytes in use."""
        return *self.counts.progress(), 0 if self.store is None else self.store.size_bytes

    def add(self, process: int, hits: int, misses: int, size_bytes: int) -> None:
        """Add the progress of another process."""
        self.counts.add(hits, misses)
        with self._lock:
            self._elsewhere.pop(process, None)
            self._elsewhere[process] = size_bytes
            while len(self._elsewhere) > self._shares:  # the oldest process has been replaced
                del self._elsewhere[next(iter(self._elsewhere))]

    def close(self) -> None:
        """Free the samples in memory."""
        self._is_closed = True
        self.store = None

    def __str__(self) -> str:
        """Return the number of samples that were found in the cache, and its size."""
        if self.store is None:
            why = "no operator before it is computed only for it" if self._max_bytes else "cache_size is 0"
            return f"{self.node!r} caches nothing: {'the pipeline is closed' if self._is_closed else why}"
        where = f"in {self._folder}" if self._folder else "in memory"
        taken = self.store.size_bytes
        if self._elsewhere and not self._folder:
            where += f" of {self._shares} processes"
            taken = sum(self._elsewhere.values())
        return f"{self.node!r}: {self.counts.text('computed')}; {taken} of {self._max_bytes} bytes are taken {where}"


def _agree(kinds: Mapping[int, dict[int, tuple[Kind, bool]]], frame: Frame) -> bool:
    """Return whether samples may be in one batch, and record their dtypes and shapes.

    Args:
        kinds: by index in the chunk and by slot, dtype and shape of samples before the cache.
        frame: frame of the chunk.
    """
    agreement = frame.agreement
    by_slot: dict[int, list[tuple[Kind, bool]]] = {}
    for index in sorted(kinds):
        for slot, found in kinds[index].items():
            by_slot.setdefault(slot, []).append(found)
    for slot, parts in by_slot.items():
        kind = (None if agreement is None else agreement.of(slot)) or parts[0][0]
        if not all(kind.fits(other.dtype, len(other.shape)) for other, _ in parts):
            return False
    if agreement is not None:
        chunk = (frame.start, frame.start + frame.count)
        for slot, parts in by_slot.items():
            agreement.note(slot, chunk, parts[0][0], is_blank=all(is_blank for _, is_blank in parts))
    return True


def _gaps(found: Sequence[StoredSample | None]) -> Iterator[tuple[int, int]]:
    """Yield start and stop of each range of missing samples."""
    start: int | None = None
    for index, sample in enumerate([*found, StoredSample((), ())]):
        if sample is None:
            start = index if start is None else start
        elif start is not None:
            yield start, index
            start = None


def _joined(samples: list[Any], layout: str, origins: Origins | None, frame: Frame, slot: int) -> Batch:
    """Return cached and computed samples as one batch; as one array if their shapes are equal."""
    first = samples[0]
    shape, dtype = first.shape, first.dtype
    if any(sample.shape != shape or sample.dtype != dtype for sample in samples):
        return Batch(None, samples, layout, "cpu", origins)
    out = frame.memory(slot, len(samples), shape, dtype)
    return Batch(stack_samples(samples, out), None, layout, "cpu", origins)
