"""The steps of a choice among many branches: split the samples by the number of the branch, and join them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.data import Batch, stack_samples
from dalify.data.agreement import check_agreement, check_index
from dalify.executor.frame import Frame
from dalify.executor.steps import located
from dalify.graph import Branch, Node
from dalify.kernels.arrays.torch_unsigned import movable_torch
from dalify.kernels.arrays.upload_torch import uploaded

__all__ = ["ChosenStep", "JoinStep", "is_choice"]


def is_choice(branch: Branch | None) -> bool:
    """Return whether a branch belongs to a choice by index, not to a condition."""
    return branch is not None and not isinstance(branch.taken, bool)


class ChosenStep:
    """Keeps the samples whose index is the number of the branch."""

    def __init__(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> None:
        assert node.branch is not None, "dalify bug: a split outside all branches"
        self.node = node
        self.inputs = inputs
        self.outputs = outputs
        self._branch: Branch = node.branch

    def run(self, frame: Frame) -> None:
        """Select the samples; the first split of a branch determines them for all."""
        branch = self._branch
        outer = frame.positions(branch.parent)
        if not frame.has_positions(branch):
            index = frame.values[self.inputs[1] or 0]
            frame.set_positions(
                branch, outer[_numbers(index, self.node) == branch.taken] if index is not None else outer[:0]
            )
        inner = frame.positions(branch)
        value = frame.values[self.inputs[0] or 0]
        slot = self.outputs[0]
        if len(inner) == 0 or value is None:
            frame.values[slot] = None
        elif len(inner) == len(outer):
            frame.values[slot] = value
        else:
            frame.values[slot] = _taken(value, np.searchsorted(outer, inner))


class JoinStep:
    """Puts the samples of many branches together in their original order."""

    def __init__(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> None:
        self.node = node
        self.inputs = inputs
        self.outputs = outputs

    def run(self, frame: Frame) -> None:
        """Merge. If all samples are in one branch, its value is the result."""
        slot = self.outputs[0]
        index, *sides = (frame.values[number or 0] for number in self.inputs)
        if index is None:
            frame.values[slot] = None
            return
        numbers = _numbers(index, self.node)
        wrong = np.flatnonzero((numbers < 0) | (numbers >= len(sides)))
        if len(wrong):
            error = ArgumentValueError(
                f"the index that chooses one of {len(sides)} branches is {numbers[wrong[0]]}; "
                f"it must be between 0 and {len(sides) - 1}."
            )
            raise located(error, self.node, int(frame.positions(self.node.branch)[wrong[0]]), None)
        present = [(number, side) for number, side in enumerate(sides) if side is not None]
        first = present[0][1]
        if len(present) == 1:
            frame.values[slot] = first
            return
        try:
            for _, side in present[1:]:
                check_agreement(_any_shape(first), _any_shape(side), "", None, ("one", "another"))
        except DalifyError as error:
            raise located(error, self.node, None, None) from None
        frame.values[slot] = _joined(numbers, present, frame, slot)


def _joined(numbers: np.ndarray[Any, Any], present: list[tuple[int, Batch]], frame: Frame, slot: int) -> Batch:
    first = present[0][1]
    count = len(numbers)
    places = [(np.flatnonzero(numbers == number), side) for number, side in present]
    unknown: list[str | None] = [None] * count
    origins = None if any(side.origins is None for _, side in places) else unknown
    for rows, side in places:
        if side.origins is None or origins is None:
            break
        for row, origin in zip(rows.tolist(), side.origins, strict=True):
            origins[row] = origin
    blocks = [side.dense for _, side in places if side.dense is not None]
    if len(blocks) == len(places) and len({tuple(block.shape[1:]) for block in blocks}) == 1:
        shape = tuple(blocks[0].shape[1:])
        if first.device == "gpu":
            dense = torch.empty((count, *shape), dtype=blocks[0].dtype, device=blocks[0].device)
            for (rows, _), block in zip(places, blocks, strict=True):
                movable_torch(dense).index_copy_(0, uploaded(rows, block.device), movable_torch(block))
            return Batch(dense, None, first.layout, first.device, origins, first.dtype)
        collector = frame.collectors.get(slot)
        dense = collector.memory(frame.start, count, shape, blocks[0].dtype) if collector is not None else None
        if dense is None:
            assert frame.arena is not None, "dalify bug: CPU data without scratch memory"
            dense = frame.arena.empty((count, *shape), blocks[0].dtype)
        for (rows, _), block in zip(places, blocks, strict=True):
            for row, sample in zip(rows.tolist(), block, strict=True):  # a third of the time of dense[rows] = block
                dense[row] = sample
        return Batch(dense, None, first.layout, first.device, origins, first.dtype)
    samples: list[Any] = [None] * count
    for rows, side in places:
        for row, sample in zip(rows.tolist(), side.samples, strict=True):
            samples[row] = sample
    return Batch(None, samples, first.layout, first.device, origins, first.dtype)


def _taken(value: Batch, rows: np.ndarray[Any, Any]) -> Batch:
    """Return some samples; adjacent samples and constants are not copied."""
    first, last = int(rows[0]), int(rows[-1])
    if is_array(value.dense) and value.dense.strides[0] == 0 and value.origins is None:
        first, last = 0, len(rows) - 1  # a constant: all samples are one
    if value.dense is None or last - first + 1 != len(rows):
        return value.take(rows)
    origins = None if value.origins is None else value.origins[first : last + 1]
    return Batch(value.dense[first : last + 1], None, value.layout, value.device, origins, value.dtype)


def _any_shape(batch: Batch) -> Any:
    return batch.spec_of(0).replace(shape=None)


def _numbers(index: Batch, node: Node) -> np.ndarray[Any, Any]:
    """Return the index as integers ``[N]``; external data are checked here."""
    dense = index.dense
    if is_array(dense) and dense.ndim == 1 and dense.dtype.kind in "iu":
        return dense  # called once per branch and chunk, so the usual case is first
    try:
        check_index(index.spec_of(0))
    except DalifyError as error:
        raise located(error, node, None, None) from None
    stacked: Any = dense if dense is not None else stack_samples(index.samples)
    return np.asarray(stacked).reshape(len(index))
