"""Calls that wait: what they compute, what of, and who still wants it.

Alone because pruning is nothing but this structure. A call is held by the lazy values that users hold and by the calls
that read it; when both are gone, so is the call, and nobody computes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from dalify.base.interrupts import CallAtEnd
from dalify.base.source_line import SourceLine
from dalify.data import Batch, Spec
from dalify.deferred.statistics import COUNTS
from dalify.eager.functions import Use
from dalify.eager.values import Kind, Value
from dalify.graph import Node, node_specs

if TYPE_CHECKING:
    from dalify.deferred.tape import Tape

__all__ = ["Call", "Result", "Template", "copied", "kind_of_result"]

_places = itertools.count()


class Template:
    """What calls of one kind share.

    Args:
        node: of the operator's use; its inputs are placeholders.

    Attributes:
        specs: what is known of the outputs before anything is computed.
    """

    __slots__ = ("node", "specs")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.specs: tuple[Spec, ...] = node_specs(node)


class Call:
    """One call that was put off.

    Attributes:
        use: what the call means; its data and values are forgotten when it is done.
        template: its node.
        line: the user's line.
        tape: it was recorded there.
        place: in the order of all calls: what a call reads has a smaller one.
        results: by output; None for one that was not computed, or not kept.
        values: the lazy values that stand for the outputs, as far as users hold them.
        has_run: computed, though perhaps not kept.
        is_done: nothing more will be computed of it.
    """

    __slots__ = (
        "__weakref__",
        "_pruned",
        "_readers",
        "has_run",
        "is_done",
        "line",
        "place",
        "results",
        "tape",
        "template",
        "use",
        "values",
    )

    def __init__(self, use: Use, template: Template, line: SourceLine | None, tape: Tape) -> None:
        self.use = use
        self.template = template
        self.line = line
        self.tape = tape
        self.place = next(_places)
        self.results: list[Batch | None] = [None] * template.node.output_count
        self.values: list[ref[Any]] = []
        self._readers: list[ref[Call]] = []
        self._pruned = CallAtEnd(COUNTS.pruned.append, 0)
        self.has_run = False
        self.is_done = False
        for source in self.sources():
            if isinstance(source, Result):
                source.call._add_reader(self)

    def _add_reader(self, reader: Call) -> None:
        readers = self._readers
        if not len(readers) & (len(readers) - 1):  # each time that their number has doubled
            self._readers = readers = [known for known in readers if known() is not None]
        readers.append(ref(reader))

    @property
    def readers(self) -> list[Call]:
        """Calls that read this one, as far as they are there."""
        found = [reader() for reader in self._readers]
        return [reader for reader in found if reader is not None]

    def mark_run(self) -> None:
        """Note that it was computed: it is not given up any more when it ends."""
        self.has_run = True
        self._pruned.__setstate__((bool, (), {}, {}))  # pyright: ignore[reportAttributeAccessIssue] -- partial has it

    def sources(self) -> Iterator[Value]:
        """Yield what the call reads, in the order of ``Node.edges``."""
        for item in (*self.use.data, *self.use.values.values()):
            if item is not None:
                yield item

    def awaited(self) -> list[Result]:
        """Return what the call reads and what is not there yet."""
        return [source for source in self.sources() if isinstance(source, Result) and source.known() is None]

    def held(self) -> list[int]:
        """Return the outputs that a user holds and that were not computed."""
        pairs = enumerate(zip(self.values, self.results, strict=True))
        return [output for output, (value, result) in pairs if value() is not None and result is None]

    def waiting_readers(self) -> list[Call]:
        """Return the calls that read this one and wait."""
        return [reader for reader in self.readers if not reader.is_done]

    def keep(self, output: int, result: Batch) -> None:
        """Take a result. With the last one that anybody can ask for, what the call read is let go."""
        self.results[output] = result
        waiting = [self]
        while waiting:
            call = waiting.pop()
            is_awaited = any(source.call is call for reader in call.readers for source in reader.awaited())
            if not call.is_done and not is_awaited and not call.held():
                waiting += [source.call for source in call.sources() if isinstance(source, Result)]
                call.is_done = True
                call.use.data, call.use.values = [], {}


class Result(Value):
    """An output of a call as an input of another: its kind is known, its data come later.

    Args:
        call: whose output it is.
        output: which one.
        device: where it is wanted.
    """

    __slots__ = ("call", "output")

    def __init__(self, call: Call, output: int, device: str) -> None:
        super().__init__(_kind_of(call, output, device), kind_of_result(call, output))
        self.call = call
        self.output = output

    def known(self) -> Batch | None:
        """Return the data where they are there."""
        return self.call.results[self.output]

    def moved(self, device: str) -> Value:
        """Return it with the device where the operator was asked to run; the copy is inserted with the others."""
        return Result(self.call, self.output, "gpu") if device == "gpu" else self


def _kind_of(call: Call, output: int, device: str) -> Batch:
    """Return samples of no elements that stand for data to come: element type, dimensions, layout, number, device."""
    spec = call.template.specs[output]
    assert spec.dtype is not None, "dalify bug: a result of unknown type"
    assert spec.ndim is not None, "dalify bug: a result of unknown dimensions"
    empty = np.empty((call.use.count,) + (0,) * spec.ndim, spec.dtype.numpy)
    return Batch(empty, None, spec.layout or "", device, None, spec.dtype)


def kind_of_result(call: Call, output: int) -> Kind:
    """Return what a user gets for an output: of a sample on the device, a tensor of torch."""
    is_on_device = call.template.specs[output].device == "gpu"
    return "torch" if call.use.kind == "numpy" and is_on_device else call.use.kind


def copied(batch: Batch) -> Batch:
    """Return data that stay as they are, whatever is done with these."""
    copy = (lambda array: array.clone()) if batch.device == "gpu" else (lambda array: array.copy())
    dense = None if batch.dense is None else copy(batch.dense)
    samples = None if batch.dense is not None else [copy(sample) for sample in batch.samples]
    return Batch(dense, samples, batch.layout, batch.device, batch.origins, batch.dtype)
