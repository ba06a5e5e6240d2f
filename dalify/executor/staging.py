"""Copies inputs of device stages to page-locked memory in advance.

A copy to the device from pageable memory blocks the host and other copies. Results of a pipeline are written to
page-locked memory; this module copies data of users and of worker processes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import numpy as np

from dalify.base.processors import available_processors
from dalify.base.threads import in_parallel
from dalify.data import Batch, BufferPool
from dalify.data.batch import block_offsets, packed
from dalify.data.pool import pinned
from dalify.executor.device_steps import TransferStep, is_page_locked
from dalify.executor.frame import Frame
from dalify.executor.plan import Plan, Stage
from dalify.executor.steps import Step

_PART_BYTES = 1 << 20  # copying this size takes longer than starting a task in another thread


class StagingStep(Step):
    """Copies a batch to page-locked memory on several threads, unless it is in such memory."""

    def __init__(self, transfer: TransferStep, output: int) -> None:
        super().__init__(transfer.node, transfer.inputs, (output,))
        self._pool = BufferPool(pinned)

    def run(self, frame: Frame) -> None:
        """Copy the batch."""
        batch = frame.values[self.inputs[0] or 0]
        if batch is not None and batch.device == "cpu" and not is_page_locked(batch):
            batch = self._copied(batch)
        frame.values[self.outputs[0]] = batch

    def _copied(self, batch: Batch) -> Batch:
        if batch.dense is not None:
            dense = self._pool.empty(batch.dense.shape, batch.dense.dtype)
            bounds = _bounds(len(dense), dense.nbytes)
            in_parallel([partial(np.copyto, dense[first:last], batch.dense[first:last]) for first, last in bounds])
            return Batch(dense, None, batch.layout, "cpu", batch.origins, batch.dtype)
        shapes = batch.shape_array()
        offsets, size_bytes = block_offsets(shapes, batch.dtype.numpy.itemsize)
        block = self._pool.empty((size_bytes,), np.dtype(np.uint8))
        starts = [*offsets.tolist(), size_bytes]

        def copy(first: int, last: int) -> None:
            packed(batch.slice(first, last), lambda _: block[starts[first] : starts[last]])

        in_parallel([partial(copy, first, last) for first, last in _bounds(len(offsets), size_bytes)])
        return Batch(None, None, batch.layout, "cpu", batch.origins, batch.dtype, (block, offsets, shapes))


def _bounds(count: int, size_bytes: int) -> list[tuple[int, int]]:
    """Return start and stop, as indices of samples, of the parts that are copied in parallel."""
    parts = max(1, min(count, available_processors(), size_bytes // _PART_BYTES))
    return [(count * part // parts, count * (part + 1) // parts) for part in range(parts)]


def with_staging(plan: Plan, slots: Collection[int]) -> Plan:
    """Return a plan that copies some values to page-locked memory before they are copied to the device.

    Args:
        plan: a plan for a device with page-locked memory; its steps are changed.
        slots: slots of values that may be in pageable memory.
    """
    staged: dict[int, int] = {}
    stages: list[Stage] = []
    for stage in plan.stages:
        transfers = [
            step
            for step in stage.steps
            if isinstance(step, TransferStep) and step.node.output_device == "gpu" and step.inputs[0] in slots
        ]
        for transfer in transfers:
            slot = transfer.inputs[0]
            assert slot is not None, "dalify bug: a copy of nothing"
            branch = stage.reads[slot]
            if slot not in staged:
                staged[slot] = plan.slot_count + len(staged)
                stages.append(
                    Stage("batch", False, [StagingStep(transfer, staged[slot])], {slot: branch}, {staged[slot]: branch})
                )
            transfer.inputs = (staged[slot],)
            stage.reads[staged[slot]] = branch
        stages.append(stage)
    return replace(plan, stages=stages, slot_count=plan.slot_count + len(staged))
