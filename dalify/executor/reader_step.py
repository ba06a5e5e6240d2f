"""The step of a reader, which converts the entries of the sampler to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import MixedBatchError, ReaderError
from dalify.base.failure_context import failure_context, forget_location
from dalify.base.limits import of_thread, within
from dalify.base.narrow import is_array, is_list
from dalify.data import Array, Batch, stack_samples
from dalify.data.entries import Entries
from dalify.executor.agreement import Kind, agreed_samples
from dalify.executor.frame import Frame
from dalify.executor.origins import Origins
from dalify.executor.read_ahead import ReadAhead
from dalify.executor.steps import Step, cause, located
from dalify.executor.values import Argument, constant_array
from dalify.graph import Node, rule_arguments
from dalify.registry import Reader

_SMALL_BYTES = 1024
# Maximum number of samples that are read to find one whose dtype a blank sample can have.
_MAX_OTHERS = 20


class ReaderStep(Step):
    """Reads the entries that the sampler chose.

    Args:
        node: the reader's node.
        operator: its operator.
        outputs: slots of the results.
        index: result of the reader's ``index`` function.
        argument_slots: slots of per-sample arguments by name.

    Attributes:
        ahead: reads in advance; None without.
        is_cached: returns whether an entry is cached, so that it is not read in advance; None without a cache.
    """

    def __init__(
        self,
        node: Node,
        operator: Reader,
        outputs: tuple[int, ...],
        index: Entries[Any],
        argument_slots: Mapping[str, int],
    ) -> None:
        super().__init__(node, (), outputs)
        self._index = index
        self._read = operator.read_function.function
        self._origin = operator.origin_of
        self._identity = operator.entry_identity
        given = rule_arguments(node)
        specs = operator.apply_rule((), given)
        self._layouts = [spec.layout or "" for spec in specs]
        self._is_open = [spec.dtype is None or spec.ndim is None for spec in specs]
        self._constants: dict[str, Any] = {}
        self._arguments: dict[str, Argument] = {}
        for name in operator.read_function.names:
            parameter = operator.parameters[name]
            slot = argument_slots.get(name)
            if parameter.kind == "static":
                self._constants[name] = given[name]
            else:
                self._arguments[name] = Argument(parameter, None if slot is not None else given[name], slot)
        self._substitute: Callable[[Any], Any] | None = None
        substitute = operator.substitute_function
        if substitute is not None:
            self._substitute = partial(substitute.function, **{name: given[name] for name in substitute.names})
        self.ahead: ReadAhead | None = None
        self.is_cached: Callable[[int], bool] | None = None
        self._read_many: Callable[..., tuple[Any, ...] | None] | None = None
        varies = bool(argument_slots) or any(given[name] is not None for name in self._arguments)
        is_remote = index.is_remote
        if is_remote and not varies:
            self.read_ahead(ReadAhead(index, within(of_thread(), self.reads_alone())))
        read_many = operator.read_many_function
        if read_many is not None and not is_remote and not argument_slots:
            names = {name: self._of_every_sample(name, given[name]) for name in read_many.names}
            self._read_many = partial(read_many.function, index, **names)

    def read_ahead(self, ahead: ReadAhead) -> None:
        """Use threads or processes that read in advance; a fork does not wait for them."""
        self.ahead = ahead
        self.is_awaited = False

    def begin(self, number: int, entries: NDArray[Any]) -> None:
        """Start to read the entries of a batch if they are read in advance."""
        if self.ahead is not None:
            is_cached = self.is_cached
            numbered = enumerate(entries.tolist())
            self.ahead.begin(number, numbered if is_cached is None else [i for i in numbered if not is_cached(i[1])])

    def reads_alone(self) -> Callable[[Any], Any]:
        """Return the function that reads an entry, without per-sample arguments."""
        return partial(self._read, **{**self._constants, **dict.fromkeys(self._arguments)})

    def origins_of(self, numbers: NDArray[Any], output: int = 0) -> Origins:
        """Return the origins of entries, with the ``source_info`` of an output."""
        return Origins(self._index, self._origin, numbers, output)

    def identity_of(self, number: int) -> tuple[str, str] | None:
        """Return key and state of an entry; see ``Reader.identity``. None if its data cannot be found."""
        assert self._identity is not None, f"dalify bug: {self.node!r} does not know its entries"
        try:
            return self._identity.function(self._index[number])
        except Exception:  # reading the entry raises the appropriate error
            return None

    def _of_every_sample(self, name: str, value: Any) -> Any:
        """Return a constant in the form for ``read``."""
        if name not in self._arguments or value is None:
            return value
        repeated = constant_array(self._arguments[name].parameter, value, 1)
        return None if repeated is None else repeated[0]

    def run(self, frame: Frame) -> None:
        """Read the samples of the chunk: together if the reader supports it, otherwise one after the other."""
        numbers = frame.entries[self.outputs[0]][frame.start : frame.start + frame.count]
        substitutes = frame.substitutes.get(self.node, ()) if frame.substitutes else ()
        columns: Any = None
        if self._read_many is not None and self.ahead is None and not substitutes:
            try:
                columns = self._read_many(numbers)
            except Exception:
                columns = None  # reading entries one by one identifies the bad sample
        if columns is None:
            columns = self._read_each(frame, numbers.tolist(), substitutes)
        for output, slot in enumerate(self.outputs):
            column, origins = columns[output], self.origins_of(numbers, output)
            if self._is_open[output]:
                column = self._agreed(column, slot, frame, origins)
            frame.values[slot] = _batch_of(column, self._layouts[output], origins)

    def _agreed(self, column: Any, slot: int, frame: Frame, origins: Origins) -> Any:
        """Return a column with the element type and the number of dimensions of the first sample of the batch."""
        agreement = frame.agreement
        chunk = (frame.start, frame.start + frame.count)
        if isinstance(column, Batch) and column.ragged is None:
            column = column.samples
        if not is_list(column):  # so all have the same dtype, and none is blank
            if agreement is None:
                return column
            if isinstance(column, Batch):
                kind = Kind(column.dtype.numpy, tuple(column.shape_array()[0].tolist()))
            else:
                kind = Kind(column.dtype, column.shape[1:])
            known = agreement.of(slot)
            if known is None or known.fits(kind.dtype, len(kind.shape)):
                agreement.note(slot, chunk, kind, is_blank=False)
                return column
            column = column.samples if isinstance(column, Batch) else list(column)
        substitutes = frame.substitutes.get(self.node, ())
        try:
            return agreed_samples(column, slot, chunk, agreement, lambda index: frame.start + index in substitutes)
        except MixedBatchError as error:
            index: int = failure_context(error).sample or 0
            raise located(error, self.node, frame.start + index, origins[index]) from None

    def _read_each(self, frame: Frame, numbers: list[int], substitutes: Any) -> list[list[Array]]:
        """Read entries one by one, so that an error has a sample."""
        columns: list[list[Array]] = [[] for _ in self.outputs]
        try:
            given = {name: argument.array(frame, frame.count) for name, argument in self._arguments.items()}
        except Exception as error:
            sample: int | None = failure_context(error).sample
            raise located(error, self.node, sample) from cause(error, self.node)
        varying = {name: values for name, values in given.items() if values is not None}
        named = {**self._constants, **given}
        for offset, number in enumerate(numbers):
            entry = None
            try:
                entry = self._index[number]
                for name, values in varying.items():
                    named[name] = values[offset]
                if frame.start + offset in substitutes:
                    arrays = self._blank(entry, number, named)
                else:
                    arrays = None if self.ahead is None else self.ahead.take(frame.step, frame.start + offset, number)
                    if arrays is None:
                        arrays = self._read(entry, **named)
            except Exception as error:
                forget_location(error)
                origin = None if entry is None else self._origin(entry, 0)
                raise located(error, self.node, frame.start + offset, origin) from cause(error, self.node)
            for column, array in zip(columns, arrays, strict=True):
                column.append(array)
        return columns

    def _blank(self, entry: Any, number: int, named: Mapping[str, Any]) -> tuple[Array, ...]:
        """Return a replacement for a bad sample: values from the reader, or zeros in the shape of a good sample."""
        known: tuple[Array | None, ...] = (None,) * len(self.outputs)
        if self._substitute is not None:
            with suppress(Exception):  # the function may read the damaged data again
                known = self._substitute(entry)
        if all(array is not None for array in known):
            return tuple(array for array in known if array is not None)
        others = _others(number, len(self._index))
        for other in others:
            with suppress(Exception):
                read = self._read(self._index[other], **named)
                pairs = zip(known, read, strict=True)
                return tuple(np.zeros_like(like) if array is None else array for array, like in pairs)
        tried = f"none of {len(others)} other samples can be read either" if others else "there is no other sample"
        raise ReaderError(f"{tried}, so the type of a blank sample is unknown.")


def _others(number: int, count: int) -> list[int]:
    """Return the samples whose dtype a blank sample may have, in the order in which to read them.

    First at doubling distances from the bad sample, because a whole row group may be damaged, then its neighbors.
    """
    doubling = [1 << power for power in range(min(_MAX_OTHERS, (count - 1).bit_length()))]
    distances = dict.fromkeys([*doubling, *range(1, min(count, _MAX_OTHERS + 1))])
    return [(number + distance) % count for distance in list(distances)[:_MAX_OTHERS]]


def _batch_of(column: Any, layout: str, origins: Origins) -> Batch:
    """Return an output of a chunk, from an array ``[N, ...]``, a new `Batch` or a list of arrays."""
    if isinstance(column, Batch):
        if column.ragged is not None:
            column.layout, column.origins = layout, origins
            # Files of equal size may become one array at the output.
            column.is_lasting = not column.is_uniform
            return column
        column = column.samples
    if is_array(column):
        batch = Batch(column, None, layout, "cpu", origins)
        owner = column if column.base is None else column.base
        # The array is in permanent memory. Small values are copied if they would keep more memory alive.
        is_alone = is_array(owner) and owner.nbytes == column.nbytes
        batch.is_lasting = is_alone or column.nbytes > _SMALL_BYTES * len(column)
        return batch
    first: tuple[int, ...] = column[0].shape
    is_uniform = all(array.shape == first for array in column)
    # Labels and similar values become one array; files remain separate arrays.
    dense = stack_samples(column) if is_uniform and column[0].nbytes <= _SMALL_BYTES else None
    batch = Batch(dense, None if dense is not None else column, layout, "cpu", origins)
    # Files of different sizes are not copied; files of equal size may become one array at the output.
    batch.is_lasting = dense is None and not is_uniform
    return batch
