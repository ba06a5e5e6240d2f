"""The steps of a plan, one per node: constants, conditions, readers. ``kernel_step`` has those that compute.

A step reads and writes the values of a frame by slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from dalify.base.errors import ConditionError, DalifyError
from dalify.base.optional import torch
from dalify.data import Array, Batch, array_dtype, stack_samples
from dalify.data.agreement import check_agreement
from dalify.executor.frame import Frame
from dalify.executor.read_ahead import ReadAhead
from dalify.executor.values import Argument
from dalify.graph import Branch, Node, rule_arguments

__all__ = ["Failure", "LiteralStep", "MergeStep", "ReaderStep", "SplitStep", "Step", "located", "with_stand_ins"]


_SMALL_BYTES = 1024


class Step(Protocol):
    """One node of a plan, ready to run."""

    node: Node
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]

    def run(self, frame: Frame) -> None:
        """Compute the outputs of the frame's samples."""
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed.

    Attributes:
        node: the operator's use.
        position: of the sample in its batch; None where the error belongs to no sample.
        origin: where the sample came from; None where that is not known.
    """

    node: Node
    position: int | None
    origin: str | None


def located(error: Exception, node: Node, sample: int | None, origin: str | None) -> Exception:
    """Add to an error what the executor knows: operator, the user's line, sample, and where the sample came from."""
    if not hasattr(error, "__dalify_failure__"):
        error.__dalify_failure__ = Failure(node, sample, origin)  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(error, DalifyError):
        error.locate(line=node.line, operator=node.operator.public_name, sample=sample, origin=origin)
        return error
    if not getattr(error, "__dalify_located__", False):
        place = f" at {node.line}" if node.line else ""
        where = "" if sample is None else f", sample {sample} of the batch"
        where += f", from {origin}" if origin else ""
        error.add_note(f"in {node.operator.public_name}{place}{where}")
        error.__dalify_located__ = True  # pyright: ignore[reportAttributeAccessIssue]
    return error


def with_stand_ins(batch: Batch | None, node: Node, frame: Frame) -> Batch:
    """Return a decoder's input with samples that can be decoded in the place of those that cannot."""
    stand_in = node.operator.stand_in_function
    assert batch is not None, "dalify bug: a bad sample in no batch"
    assert stand_in is not None, "dalify bug: no stand-in for a bad sample"
    bad = frame.stand_ins[node]
    positions = frame.positions(node.branch).tolist()
    samples = [
        stand_in(sample) if position in bad else sample
        for position, sample in zip(positions, batch.samples, strict=True)
    ]
    return Batch(None, samples, batch.layout, batch.device, batch.origins, batch.dtype)


class LiteralStep:
    """A constant: the same memory for every sample."""

    def __init__(self, node: Node, outputs: tuple[int, ...]) -> None:
        self.node = node
        self.inputs: tuple[int | None, ...] = ()
        self.outputs = outputs
        self._value: np.ndarray[Any, Any] = node.arguments["value"]
        self._layout: str = node.arguments.get("layout", "")
        self._dtype = array_dtype(self._value)
        self._batch: Batch | None = None  # of the last chunk: most chunks have as many samples

    def run(self, frame: Frame) -> None:
        """Repeat the value without copying."""
        batch = self._batch
        if batch is None or len(batch) != frame.count:
            dense = np.broadcast_to(self._value, (frame.count, *self._value.shape))
            batch = self._batch = Batch(dense, None, self._layout, "cpu", None, self._dtype)
        frame.values[self.outputs[0]] = batch


class SplitStep:
    """Keeps the samples of one side of a condition."""

    def __init__(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> None:
        assert node.branch is not None, "dalify bug: a split outside all branches"
        self.node = node
        self.inputs = inputs
        self.outputs = outputs
        self._branch: Branch = node.branch

    def run(self, frame: Frame) -> None:
        """Take the samples; the first split of a branch decides for all which ones."""
        branch = self._branch
        outer = frame.positions(branch.parent)
        if not frame.knows(branch):
            predicate = frame.values[self.inputs[1] or 0]
            mask = np.zeros(0, bool) if predicate is None else _truth(predicate, self.node)
            for taken in (True, False):
                if taken == branch.taken:
                    frame.set_positions(branch, outer[mask if taken else ~mask])
        inner = frame.positions(branch)
        value = frame.values[self.inputs[0] or 0]
        if len(inner) == 0 or value is None:
            frame.values[self.outputs[0]] = None
        elif len(inner) == len(outer):
            frame.values[self.outputs[0]] = value
        else:
            frame.values[self.outputs[0]] = value.take(np.searchsorted(outer, inner))


def _truth(predicate: Batch, node: Node) -> np.ndarray[Any, Any]:
    """Return the predicate as booleans ``[N]``."""
    if predicate.ndim:
        raise ConditionError(
            f"the condition has {predicate.ndim} dimension{'s' if predicate.ndim > 1 else ''} per sample; it "
            "must be a single value.",
            line=node.line,
            hint="Reduce it first, for instance with fn.reductions.max(x).",
        )
    dense = predicate.dense if predicate.dense is not None else stack_samples(predicate.samples)
    return np.asarray(dense) != 0


class MergeStep:
    """Puts the samples of two branches together in their original order."""

    def __init__(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> None:
        self.node = node
        self.inputs = inputs
        self.outputs = outputs
        self._variable: str = node.arguments.get("variable", "")
        self._lines: Any = node.arguments.get("lines")

    def run(self, frame: Frame) -> None:
        """Merge. Without samples on one side, the other side is the result."""
        slot = self.outputs[0]
        predicate, one, other = (frame.values[index or 0] for index in self.inputs)
        if one is None or other is None:
            frame.values[slot] = one if other is None else other
            return
        assert predicate is not None, "dalify bug: samples without a predicate"
        try:
            check_agreement(
                one.spec_of(0).replace(shape=None), other.spec_of(0).replace(shape=None), self._variable, self._lines
            )
        except DalifyError as error:
            raise located(error, self.node, None, None) from None
        mask = _truth(predicate, self.node)
        frame.values[slot] = _merged(mask, one, other, frame, slot)


def _merged(mask: np.ndarray[Any, Any], one: Batch, other: Batch, frame: Frame, slot: int) -> Batch:
    count = len(mask)
    positions = np.empty(count, np.intp)
    positions[mask] = np.arange(len(one))
    positions[~mask] = np.arange(len(other))
    origins = None
    if one.origins is not None and other.origins is not None:
        sides = (other.origins, one.origins)
        origins = [sides[side][index] for side, index in zip(mask.tolist(), positions.tolist(), strict=True)]
    if one.dense is not None and other.dense is not None and one.dense.shape[1:] == other.dense.shape[1:]:
        shape = tuple(one.dense.shape[1:])
        if one.device == "gpu":
            dense = torch.empty((count, *shape), dtype=one.dense.dtype, device=one.dense.device)
            where = torch.as_tensor(mask, device=one.dense.device)
            dense[where], dense[~where] = one.dense, other.dense
            return Batch(dense, None, one.layout, one.device, origins, one.dtype)
        collector = frame.collectors.get(slot)
        dense = collector.memory(frame.start, count, shape, one.dense.dtype) if collector is not None else None
        if dense is None:
            assert frame.arena is not None, "dalify bug: CPU data without scratch memory"
            dense = frame.arena.empty((count, *shape), one.dense.dtype)
        dense[mask], dense[~mask] = one.dense, other.dense
        return Batch(dense, None, one.layout, one.device, origins, one.dtype)
    sides = (other.samples, one.samples)
    samples = [sides[side][index] for side, index in zip(mask.tolist(), positions.tolist(), strict=True)]
    return Batch(None, samples, one.layout, one.device, origins, one.dtype)


class ReaderStep:
    """Reads the entries that the sampler chose.

    Args:
        node: the reader's node.
        outputs: slots of the results.
        index: what the reader's ``index`` function returned.
        argument_slots: slots of per-sample arguments by name.

    Attributes:
        ahead: begins to read when a batch is scheduled, on another machine or in other processes; else None.
    """

    def __init__(self, node: Node, outputs: tuple[int, ...], index: Any, argument_slots: Mapping[str, int]) -> None:
        self.node = node
        self.inputs: tuple[int | None, ...] = ()
        self.outputs = outputs
        self._index = index
        operator = node.operator
        assert operator.read_function is not None, f"dalify bug: {operator.name} cannot read"
        self._read = operator.read_function
        self._origin = operator.origin_function
        given = rule_arguments(node)
        self._layouts = [spec.layout or "" for spec in operator.apply_rule((), given)]
        self._constants: dict[str, Any] = {}
        self._arguments: dict[str, Argument] = {}
        for name in operator.read_names:
            parameter = operator.parameters[name]
            slot = argument_slots.get(name)
            if parameter.kind == "static":
                self._constants[name] = given[name]
            else:
                self._arguments[name] = Argument(parameter, None if slot is not None else given[name], slot)
        self.ahead: ReadAhead | None = None
        varies = argument_slots or any(given[name] is not None for name in self._arguments)
        if getattr(index, "is_remote", False) and not varies:
            self.ahead = ReadAhead(index, self.reads_alone())

    def reads_alone(self) -> Callable[[Any], Any]:
        """Return the function that reads an entry, where no argument differs from sample to sample."""
        return partial(self._read, **{**self._constants, **dict.fromkeys(self._arguments)})

    def run(self, frame: Frame) -> None:
        """Read the chunk's samples one after the other."""
        numbers = frame.entries[self.outputs[0]][frame.start : frame.start + frame.count]
        columns: list[list[Array]] = [[] for _ in self.outputs]
        origins: list[str | None] = []
        try:
            given = {name: argument.array(frame, frame.count) for name, argument in self._arguments.items()}
        except Exception as error:
            sample: int | None = getattr(error, "__dalify_sample__", None)
            raise located(error, self.node, sample, None) from error.__cause__
        varying = {name: values for name, values in given.items() if values is not None}
        named = {**self._constants, **given}
        stand_ins = frame.stand_ins.get(self.node, ())
        for offset, number in enumerate(numbers):
            origin = None
            try:
                entry = self._index[number]
                origin = self._origin(entry) if self._origin is not None else None
                if frame.start + offset in stand_ins:
                    assert self.node.operator.stand_in_function is not None, "dalify bug: a reader without stand-in"
                    arrays = self.node.operator.stand_in_function(entry)
                else:
                    arrays = None if self.ahead is None else self.ahead.take(frame.step, frame.start + offset, number)
                    if arrays is None:
                        for name, values in varying.items():
                            named[name] = values[offset]
                        arrays = self._read(entry, **named)
            except Exception as error:
                raise located(error, self.node, frame.start + offset, origin) from error.__cause__
            origins.append(origin)
            for column, array in zip(columns, arrays, strict=True):
                column.append(array)
        for slot, column, layout in zip(self.outputs, columns, self._layouts, strict=True):
            # Labels and the like are one array from here on; files stay what they are.
            shapes = {array.shape for array in column} if column[0].nbytes <= _SMALL_BYTES else set()
            dense = stack_samples(column) if len(shapes) == 1 else None
            batch = Batch(dense, None if dense is not None else column, layout, "cpu", origins)
            # Files of different sizes stay where they were read; equal ones may become one array at the output.
            batch.is_lasting = dense is None and len({array.shape for array in column}) > 1
            frame.values[slot] = batch
