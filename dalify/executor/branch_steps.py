"""The steps of conditions and choices, which divide samples among branches and merge the results of the branches.

A condition has the branches true and false, selected by a boolean per sample. A choice has branches with numbers,
selected by an integer per sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ConditionError, DalifyError
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.base.source_line import SourceLine
from dalify.base.wording import counted
from dalify.data import Batch, stack_samples
from dalify.data.agreement import check_agreement, check_index
from dalify.data.torch_unsigned import movable_torch
from dalify.executor.frame import Frame
from dalify.executor.steps import Step, located
from dalify.graph import Branch, Node
from dalify.kernels.arrays.upload_torch import selected_samples, uploaded
from dalify.registry import Role


class SplitStep(Step):
    """Selects the samples of one branch."""

    def __init__(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> None:
        super().__init__(node, inputs, outputs)
        assert node.branch is not None, "dalify bug: a split outside all branches"
        self._branch: Branch = node.branch

    def run(self, frame: Frame) -> None:
        """Select the samples; the first split of a branch determines them for all."""
        branch = self._branch
        outer = frame.positions(branch.parent)
        if not frame.has_positions(branch):
            index = frame.values[self.inputs[1] or 0]
            inner = outer[:0] if index is None else outer[taking(index, branch.taken, self.node, branch.line)]
            frame.set_positions(branch, inner)
        inner = frame.positions(branch)
        value = frame.values[self.inputs[0] or 0]
        if len(inner) == 0 or value is None:
            value = None
        elif len(inner) != len(outer):
            value = _take_samples(value, np.searchsorted(outer, inner))
        frame.values[self.outputs[0]] = value


class MergeStep(Step):
    """Merges the samples of the branches of a condition or choice in their original order."""

    def __init__(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> None:
        super().__init__(node, inputs, outputs)
        self._is_condition = node.role is Role.MERGE
        self._names = ("true", "false") if self._is_condition else ("one", "another")
        self._variable: str = node.arguments.get("variable", "")
        self._lines: Any = node.arguments.get("lines")

    def run(self, frame: Frame) -> None:
        """Merge. If all samples are in one branch, its value is the result."""
        slot = self.outputs[0]
        index, *sides = (frame.values[number or 0] for number in self.inputs)
        present = [(number, side) for number, side in enumerate(sides) if side is not None]
        numbers = None
        if index is not None and not self._is_condition:
            numbers = self._checked_numbers(index, len(sides), frame)
        if len(present) < 2:
            frame.values[slot] = present[0][1] if present else None
            return
        assert index is not None, "dalify bug: samples of branches without an index"
        first = present[0][1]
        try:
            for _, side in present[1:]:
                check_agreement(first.open_spec(), side.open_spec(), self._variable, self._lines, self._names)
        except DalifyError as error:
            raise located(error, self.node) from None
        if numbers is None:
            numbers = ~_truth(index, self.node.line)  # 0 is the true branch
        frame.values[slot] = _merged(numbers, present, frame, slot)

    def _checked_numbers(self, index: Batch, count: int, frame: Frame) -> np.ndarray[Any, Any]:
        numbers = _numbers(index, self.node)
        wrong = np.flatnonzero((numbers < 0) | (numbers >= count))
        if len(wrong):
            error = ArgumentValueError(
                f"the index that chooses one of {count} branches is {numbers[wrong[0]]}; "
                f"it must be between 0 and {count - 1}."
            )
            raise located(error, self.node, int(frame.positions(self.node.branch)[wrong[0]]))
        return numbers


def _merged(numbers: np.ndarray[Any, Any], present: list[tuple[int, Batch]], frame: Frame, slot: int) -> Batch:
    first = present[0][1]
    count = len(numbers)
    sides = [(np.flatnonzero(numbers == number), side) for number, side in present]
    unknown: list[str | None] = [None] * count
    origins = None if any(side.origins is None for _, side in sides) else unknown
    for rows, side in sides:
        if side.origins is None or origins is None:
            break
        for row, origin in zip(rows.tolist(), side.origins, strict=True):
            origins[row] = origin
    blocks = [side.dense for _, side in sides if side.dense is not None]
    if len(blocks) == len(sides) and len({tuple(block.shape[1:]) for block in blocks}) == 1:
        shape = tuple(blocks[0].shape[1:])
        if first.device == "gpu":
            dense = torch.empty((count, *shape), dtype=blocks[0].dtype, device=blocks[0].device)
            # With positions instead of a mask: torch waits for the device to count the elements that a mask selects.
            for (rows, _), block in zip(sides, blocks, strict=True):
                movable_torch(dense).index_copy_(0, uploaded(rows, block.device), movable_torch(block))
            return Batch(dense, None, first.layout, first.device, origins, first.dtype)
        dense = frame.memory(slot, count, shape, blocks[0].dtype)
        for (rows, _), block in zip(sides, blocks, strict=True):
            dense[rows] = block
        return Batch(dense, None, first.layout, first.device, origins, first.dtype)
    samples: list[Any] = [None] * count
    for rows, side in sides:
        for row, sample in zip(rows.tolist(), side.samples, strict=True):
            samples[row] = sample
    return Batch(None, samples, first.layout, first.device, origins, first.dtype)


def _take_samples(value: Batch, rows: np.ndarray[Any, Any]) -> Batch:
    """Return the samples in some rows; adjacent samples and constants are not copied."""
    first, last = int(rows[0]), int(rows[-1])
    if is_array(value.dense) and value.dense.strides[0] == 0 and value.origins is None:
        first, last = 0, len(rows) - 1  # a constant: all samples are one
    if value.dense is None or last - first + 1 != len(rows):
        return value.take(rows) if value.device == "cpu" else selected_samples(value, rows)
    origins = None if value.origins is None else value.origins[first : last + 1]
    return Batch(value.dense[first : last + 1], None, value.layout, value.device, origins, value.dtype)


def taking(index: Batch, taken: bool | int, node: Node, line: SourceLine | None) -> np.ndarray[Any, Any]:
    """Return whether each sample is in a branch, bool ``[N]``.

    Args:
        index: the condition, or the index of the choice, on the CPU.
        taken: see ``Branch``.
        node: the node that needs it, for messages.
        line: the user's line of the condition, for messages.
    """
    return (_truth(index, line) if isinstance(taken, bool) else _numbers(index, node)) == taken


def _truth(predicate: Batch, line: SourceLine | None) -> np.ndarray[Any, Any]:
    """Return the predicate of a condition as booleans ``[N]``."""
    if predicate.ndim:
        raise ConditionError(
            f"the condition has {counted(predicate.ndim, 'dimension')} per sample; it must be a single value.",
            line=line,
            hint="Take one element, x[0], or reduce it, for instance with fn.reductions.max(x).",
        )
    return np.asarray(predicate.stacked()) != 0


def _numbers(index: Batch, node: Node) -> np.ndarray[Any, Any]:
    """Return the index of a choice as integers ``[N]``; external data are checked here."""
    dense = index.dense
    if is_array(dense) and dense.ndim == 1 and dense.dtype.kind in "iu":
        return dense  # called once per branch and chunk, so the usual case is first
    try:
        check_index(index.spec_of(0))
    except DalifyError as error:
        raise located(error, node) from None
    stacked: Any = dense if dense is not None else stack_samples(index.samples)
    return np.asarray(stacked).reshape(len(index))
