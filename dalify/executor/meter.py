"""Measures the sizes of the outputs of operators, for ``Pipeline.executor_statistics``."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from dalify.data import Batch
from dalify.executor.frame import Frame
from dalify.executor.plan import Plan
from dalify.executor.steps import Step, walk
from dalify.graph import Node

_KEPT_BATCHES = 16
_KEYS = ("real_memory_size", "max_real_memory_size", "reserved_memory_size", "max_reserved_memory_size")


class Meter:
    """Measures the outputs of each step of a plan.

    Args:
        plan: the plan whose steps are measured.
        remote_plan: the part that other processes compute and measure; see ``add``.
    """

    def __init__(self, plan: Plan, remote_plan: Plan | None = None) -> None:
        self._lock = threading.Lock()
        self._owners: dict[int, tuple[Node, int]] = {}  # by slot, the node and the index of its output
        self._chunks: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)  # by batch and slot, the chunks' bytes
        self._totals: dict[int, int] = {}
        self._largest: dict[int, int] = {}
        self._fed = {slot for _, slots in plan.externals for slot in slots}
        for node, slots in plan.externals:
            self._owners.update({slot: (node, output) for output, slot in enumerate(slots)})
        for stage in (*plan.stages, *(() if remote_plan is None else remote_plan.stages)):
            for step in walk(stage.steps):
                self._owners.update({slot: (step.node, output) for output, slot in enumerate(step.outputs)})
                step.observer = self._observe

    def _observe(self, step: Step, frame: Frame) -> None:
        fed = [slot for slot in self._fed if frame.values[slot] is not None]
        for slot in (*step.outputs, *fed):
            batch = frame.values[slot]
            if batch is not None:
                self._note(slot, frame, _sample_bytes(batch))

    def _note(self, slot: int, frame: Frame, sizes: list[int]) -> None:
        with self._lock:
            chunks = self._chunks[frame.step, slot]
            chunks[frame.start] = sum(sizes)
            self._totals[slot] = max(self._totals.get(slot, 0), sum(chunks.values()))
            self._largest[slot] = max(self._largest.get(slot, 0), *sizes, 0)
            for key in [key for key in self._chunks if key[0] < frame.step - _KEPT_BATCHES]:
                del self._chunks[key]

    def sizes(self) -> dict[int, tuple[int, int]]:
        """Return, by slot, bytes of the largest batch and of the largest sample."""
        with self._lock:
            return {slot: (total, self._largest[slot]) for slot, total in self._totals.items()}

    def add(self, sizes: Mapping[int, tuple[int, int]]) -> None:
        """Add the result of ``sizes`` of another process."""
        with self._lock:
            for slot, (total, largest) in sizes.items():
                self._totals[slot] = max(self._totals.get(slot, 0), total)
                self._largest[slot] = max(self._largest.get(slot, 0), largest)

    def statistics(self) -> dict[str, Any]:
        """Return, by device and name of each operator, lists with one number of bytes for each output."""
        with self._lock:
            found: dict[str, dict[str, list[int]]] = {}
            for slot, (node, output) in sorted(self._owners.items(), key=lambda item: (item[1][0].number, item[1][1])):
                if slot not in self._totals:
                    continue
                name = f"{node.output_device.upper()}_{node.label}"
                numbers = found.setdefault(name, {key: [0] * node.output_count for key in _KEYS})
                for key in _KEYS:
                    numbers[key][output] = (self._largest if key.startswith("max") else self._totals)[slot]
            return found


def _sample_bytes(batch: Batch) -> list[int]:
    if batch.dense is not None:
        return [batch.dense.nbytes // max(len(batch), 1)] * len(batch)
    return [sample.nbytes for sample in batch.samples]
