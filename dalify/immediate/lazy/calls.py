"""Recorded calls, their inputs and their consumers.

A call is referenced by the lazy values of users and by the calls that read it. When all of these are deleted, the call
is deleted without being computed, so pruning is reference counting.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Protocol
from weakref import ref

import numpy as np

from dalify.base.interrupts import CallAtEnd
from dalify.base.recent import Recent
from dalify.base.source_line import SourceLine
from dalify.data import Batch
from dalify.graph import Node, node_specs
from dalify.immediate.calls import BoundCall, cache_key
from dalify.immediate.lazy.statistics import COUNTS
from dalify.immediate.user_data import Deferred, Kind, Value

_numbers = itertools.count()


_nodes: Recent[Node] = Recent(4096)  # nodes with placeholders as inputs, shared by calls of one kind


class Recorded(Protocol):
    """Interface of an object that records calls and computes them."""

    def compute(self, call: Call, output: int) -> None:
        """Compute an output of a call."""
        ...


class Call(BoundCall):
    """One recorded call; its data and values are released when it is done.

    Args:
        tape: the tape that records it.
        line: the user's line.
        fields: the fields of `BoundCall`.

    Attributes:
        node: its node, with placeholders as inputs.
        order: position in the order of all calls; a call reads calls with smaller positions.
        results: results by output; None if not computed or not kept.
        lazy_values: the lazy values of the outputs that users still reference.
        has_run: whether it was computed, even if results were not kept.
        is_done: whether nothing is left to compute.
    """

    __slots__ = (
        "__weakref__",
        "_pruned",
        "_readers",
        "has_run",
        "is_done",
        "lazy_values",
        "line",
        "node",
        "order",
        "results",
        "tape",
    )

    def __init__(self, tape: Recorded, line: SourceLine | None, *fields: Any) -> None:
        super().__init__(*fields)
        self.node, _ = _nodes.get_or_make(cache_key(self, None), self.node_of_kinds)
        self.line = line
        self.tape = tape
        self.order = next(_numbers)
        self.results: list[Batch | None] = [None] * self.node.output_count
        self.lazy_values: list[ref[Deferred]] = []
        self._readers: list[ref[Call]] = []
        self._pruned = CallAtEnd(COUNTS.pruned.append, 0)
        self.has_run = False
        self.is_done = False
        for source in self.sources():
            if isinstance(source, Result):
                source.call._add_reader(self)

    def _add_reader(self, reader: Call) -> None:
        readers = self._readers
        if not len(readers) & (len(readers) - 1):  # each time their number has doubled
            self._readers = readers = [known for known in readers if known() is not None]
        readers.append(ref(reader))

    @property
    def readers(self) -> list[Call]:
        """The live calls that read this one."""
        found = [reader() for reader in self._readers]
        return [reader for reader in found if reader is not None]

    def mark_run(self) -> None:
        """Record that it was computed, so that deleting it does not count as pruning."""
        self.has_run = True
        self._pruned.__setstate__((bool, (), {}, {}))  # pyright: ignore[reportAttributeAccessIssue] -- partial has it

    def sources(self) -> Iterator[Value]:
        """Yield the inputs of the call, in the order of ``Node.edges``."""
        for item in (*self.data, *self.values.values()):
            if item is not None:
                yield item

    def pending_inputs(self) -> list[Result]:
        """Return the inputs of the call that are not computed yet."""
        return [source for source in self.sources() if isinstance(source, Result) and source.data() is None]

    def live_outputs(self) -> list[int]:
        """Return the outputs that a user references and that were not computed."""
        pairs = enumerate(zip(self.lazy_values, self.results, strict=True))
        return [output for output, (value, result) in pairs if value() is not None and result is None]

    def waiting_readers(self) -> list[Call]:
        """Return the calls that read this one and are not computed."""
        return [reader for reader in self.readers if not reader.is_done]

    def result(self, output: int) -> Batch:
        """Return an output; compute it if necessary."""
        self.tape.compute(self, output)
        result = self.results[output]
        assert result is not None, "dalify bug: a result that was not kept"
        return result

    def keep(self, output: int, result: Batch) -> None:
        """Store a result. When no other result can be requested, release the inputs of the call."""
        self.results[output] = result
        value = self.lazy_values[output]()
        if value is not None:
            value.set_data(result)
        waiting = [self]
        while waiting:
            call = waiting.pop()
            is_awaited = any(source.call is call for reader in call.readers for source in reader.pending_inputs())
            if not call.is_done and not is_awaited and not call.live_outputs():
                waiting += [source.call for source in call.sources() if isinstance(source, Result)]
                call.is_done = True
                call.data, call.values = [], {}


class Result(Value):
    """An output of a call as the input of another call; its kind is known, its data may be computed later."""

    __slots__ = ("call", "output")

    def __init__(self, call: Call, output: int, device: str) -> None:
        super().__init__(_kind_of(call, output, device), kind_of_result(call, output))
        self.call = call
        self.output = output

    def data(self) -> Batch | None:
        """Return the data, or None if not computed."""
        return self.call.results[self.output]

    def moved(self, device: str) -> Value:
        """Return it with the device of the operator; `place` inserts the copy."""
        return Result(self.call, self.output, "gpu") if device == "gpu" else self


def _kind_of(call: Call, output: int, device: str) -> Batch:
    """Return empty samples with the element type, dimensions, layout, number and device of an output."""
    spec = node_specs(call.node)[output]
    assert spec.dtype is not None, "dalify bug: a result of unknown type"
    assert spec.ndim is not None, "dalify bug: a result of unknown dimensions"
    empty = np.empty((call.count,) + (0,) * spec.ndim, spec.dtype.numpy)
    return Batch(empty, None, spec.layout or "", device, None, spec.dtype)


def kind_of_result(call: Call, output: int) -> Kind:
    """Return the kind of the user's result; a sample on the device becomes a torch tensor."""
    is_on_device = node_specs(call.node)[output].device == "gpu"
    return "torch" if call.kind == "numpy" and is_on_device else call.kind
