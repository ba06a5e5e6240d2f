"""Calls a user's source in this process.

Counts samples, iterations and epochs, and handles the end of the data and errors of the user's code.
``dalify.sources.parallel`` does the same with worker processes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from dalify.base.errors import CheckpointError, OutputCountError, SourceError
from dalify.base.wording import counted
from dalify.data.sample_info import BatchInfo, SampleInfo
from dalify.sources.callback import Callback, Cycle, ItemIterator, SourceKind, epoch_of, has_state
from dalify.sources.declaration import check_num_outputs

_MAX_NUMBER = 1 << 53  # of epochs and items in a saved state


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How a user's source is called, and the form of its return values.

    Attributes:
        batch_size: maximum number of samples in a batch; the exact number if ``batch`` is False.
        num_outputs: None if the source returns one item; otherwise the length of the tuples, lists or dictionaries that
            it returns.
        cycle: behavior after the last item of an iterable: None, False, "no" (stop), "raise" (end the epoch and restart
            in the next one), True, "quiet" (restart immediately).
        batch: True if the source returns whole batches, False if it returns single samples.
        batch_info: call a callable that takes an argument with a ``BatchInfo`` instead of the iteration number.
    """

    batch_size: int
    num_outputs: int | None = None
    cycle: str | bool | None = None
    batch: bool = True
    batch_info: bool = False


class UserSource:
    """A user's source and the position in its data; base class of sources in this process and in worker processes.

    Attributes:
        callback: the source and its properties; its ``line`` is shown in error messages about its data.
        options: the options as passed.
        epoch: number of the epoch, counted by ``reset``.
        iteration: number of batches requested in this epoch.

    Raises:
        ArgumentTypeError: the source is not a data source.
        ArgumentValueError: an argument is out of range, or the source does not support ``cycle``.
    """

    def __init__(self, source: Any, options: SourceOptions) -> None:
        self.callback = Callback(source, options.cycle)
        check_num_outputs(options.num_outputs)
        self.options = options
        self.epoch = 0
        self.iteration = 0
        self._ended = False

    @property
    def resumes_exactly(self) -> bool:
        """Whether restoring a state needs no replay, because the source receives the index of the requested item."""
        return self.callback.takes_info

    def reset(self) -> None:
        """Start the next epoch: indices start at 0 again. Iterables continue at their position, as in DALI."""
        self._begin(self.epoch + 1)

    def _begin(self, epoch: int) -> None:
        self._ended = False
        self.iteration = 0
        self.epoch = epoch

    def _position(self, items: int) -> dict[str, Any]:
        """Return the position as JSON-ready integers.

        Args:
            items: number of items taken from an iterable, or calls of a callable without argument.
        """
        return {"epoch": self.epoch, "iteration": self.iteration, "items": items, "ended": int(self._ended)}


class ExternalSource(UserSource):
    """Requests batches from a user's source, in this process.

    The source is a callable with zero or one argument (``SampleInfo`` per sample; per batch the iteration number, or
    ``BatchInfo``), an iterable, or a generator function. Iterables are iterated once, over as many epochs as that
    takes: with ``cycle=None`` every epoch after their end is empty, as in DALI; ``cycle="raise"`` iterates once per
    epoch.

    After an error in the source or invalid data, that batch is lost: the next call requests the next one.

    See ``UserSource`` for arguments and attributes.
    """

    def __init__(self, source: Any, options: SourceOptions) -> None:
        super().__init__(source, options)
        self._calls = 0  # number of calls of a callable without argument
        self._iterator: ItemIterator | None = None

    def next_batch(self) -> list[Any]:
        """Return the next batch: for each output the data as returned by the source, or a list of samples.

        Raises:
            StopIteration: the data is exhausted, also on every further call until ``reset``. An incomplete last batch
                is dropped.
            SourceError: the source returned None, or another number of outputs than ``num_outputs``.
            Exception: any exception of the source, with a note that names the source.
        """
        if self._ended:
            raise StopIteration
        options = self.options
        count = 1 if options.batch else options.batch_size
        items: list[Any] = []
        try:
            if self.callback.kind is not SourceKind.CALLABLE:
                self._item_iterator().take(count, items)
            elif self.callback.takes_info:
                self._call_with_info(count, items.append)
            else:
                for _ in range(count):
                    items.append(self.callback.source())
                self._calls += count
        except StopIteration:
            self._ended = True
            raise
        except Exception as error:
            self.callback.add_note(error, self.iteration, self.epoch, None if options.batch else len(items))
            raise
        finally:
            self.iteration += 1
        return split_outputs(items[0] if options.batch else items, options, self.callback)

    def _call_with_info(self, count: int, append: Callable[[Any], None]) -> None:
        source, iteration, epoch = self.callback.source, self.iteration, self.epoch
        if not self.options.batch:
            first = iteration * count
            for index in range(count):
                append(source(SampleInfo(first + index, index, iteration, epoch)))
        else:
            append(source(BatchInfo(iteration, epoch) if self.options.batch_info else iteration))

    def _item_iterator(self) -> ItemIterator:
        if self._iterator is None:
            self._iterator = ItemIterator(self.callback, counts_epochs=True)
        return self._iterator

    def restart(self, is_next: bool = True) -> None:
        """Restart at the first item, in the middle of an epoch.

        With ``cycle=None`` an iterable continues at its position, because it may not be iterable twice.

        Args:
            is_next: True to start the next epoch, False to repeat this one.
        """
        if self.callback.cycle is not Cycle.NO:
            epoch = epoch_of(self.callback.source)
            if is_next and self._iterator is not None and epoch is not None:
                self.callback.source.set_epoch(epoch + 1)
            self._iterator = None
        self._begin(self.epoch + is_next)

    def close(self) -> None:
        """Close the iterator of the source, so that a generator's ``finally`` runs now."""
        self._iterator = None
        self._ended = True

    def state(self) -> dict[str, Any]:
        """Return the state: JSON-ready integers, and the ``state_dict()`` of the source under ``own``."""
        state = self._position(self._calls if self._iterator is None else self._iterator.taken)
        stateful = self._stateful()
        source_epoch = epoch_of(self.callback.source)
        if source_epoch is not None:
            state["source_epoch"] = source_epoch
        if self._iterator is not None and self._iterator.is_over:
            state["over"] = 1  # a source that saves its position may have restarted already
        elif stateful is not None:
            state["own"] = copy.deepcopy(stateful.state_dict())  # it may return an object that it modifies later
        return state

    def _stateful(self) -> Any:
        if self._iterator is not None:
            return self._iterator.stateful
        # A callable with an index needs no state; if it is a method of a model, the model must not be copied.
        source = self.callback.source
        return source if has_state(source) and not self.callback.takes_info else None

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state returned by ``state()``.

        A callable that receives the index of the item continues immediately, as does a source with ``state_dict()`` and
        ``load_state_dict()``. Others are iterated again up to the same position, and the items are discarded. A
        generator cannot be iterated twice, so it continues at its position.

        Raises:
            CheckpointError: this is not the state of a source, the source ends before the position, or a generator is
                already past it.
        """
        self.epoch, self.iteration, items, self._ended = position_in(state, {"own", "over", "source_epoch"})
        if "source_epoch" in state and epoch_of(self.callback.source) is not None:
            self.callback.source.set_epoch(state["source_epoch"])
        if "over" in state:
            self._iterator = ItemIterator(self.callback, counts_epochs=True)
            self._iterator.end()
            self._iterator.taken = items
        elif "own" in state:
            self._resume(items, copy.deepcopy(state["own"]))
        else:
            self._replay(items)

    def _resume(self, items: int, own: Any) -> None:
        if self.callback.kind is SourceKind.CALLABLE:
            if not has_state(self.callback.source):
                raise self._without_state()
            self.callback.source.load_state_dict(own)
            self._calls = items
            return
        self._iterator = ItemIterator(self.callback, counts_epochs=True)
        if self._iterator.stateful is None:
            raise self._without_state()
        self._iterator.resume(own)
        self._iterator.taken = items

    def _without_state(self) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint contains a state of the source {self.callback.location}, but it has no "
            "load_state_dict() to restore it."
        )

    @property
    def unrepeatable_count(self) -> int:
        """Number of items that were taken and cannot be requested again."""
        if self.callback.can_restart or self._stateful() is not None:
            return 0
        return self._calls if self._iterator is None else self._iterator.taken

    def _replay(self, items: int) -> None:
        if items and self.callback.takes_info:
            raise CheckpointError(
                f"the checkpoint was made after {items} items of an iterable source, but {self.callback.location} "
                "takes the index of the item."
            )
        spent = self.unrepeatable_count
        if spent > items:
            raise CheckpointError(
                f"the source {self.callback.location} has returned {spent} items and cannot go back to the {items} of "
                "the checkpoint.",
                hint="Restore before the first batch, add state_dict() and load_state_dict() to the source, or pass "
                "a list, a generator function, or a callable that takes the index of the batch.",
            )
        if self.callback.can_restart:
            self._iterator = None
        for number in range(spent, items):
            try:
                if self.callback.kind is SourceKind.CALLABLE:
                    self.callback.source()
                    self._calls += 1
                else:
                    self._item_iterator().take(1, [])
            except StopIteration:
                raise CheckpointError(
                    f"the checkpoint was made after {items} items of the source {self.callback.location}, "
                    f"which now ends after {number}.",
                    hint="Restore with the same data.",
                ) from None


def position_in(state: Mapping[str, Any], further: AbstractSet[str]) -> tuple[int, int, int, bool]:
    """Return epoch, iteration and number of items of a saved state, and whether the data has ended.

    Args:
        state: the state.
        further: optional names that it may contain.

    Raises:
        CheckpointError: this is not the state of a source.
    """
    if set(state) - further != {"epoch", "iteration", "items", "ended"}:
        raise CheckpointError(f"this is not the state of an external source: {sorted(state)}.")
    numbers = {name: state[name] for name in ("epoch", "iteration", "items", "ended")}
    if not all(type(number) is int and 0 <= number < _MAX_NUMBER for number in numbers.values()):
        raise CheckpointError(f"invalid position of an external source: {numbers}.")
    return numbers["epoch"], numbers["iteration"], numbers["items"], bool(numbers["ended"])


def split_outputs(data: Any, options: SourceOptions, callback: Callback) -> list[Any]:
    """Split the data of a source by output.

    Returns:
        The data of each output; a list of samples unless ``batch``.

    Raises:
        SourceError: the data is None, is not a tuple, list or dictionary, its length differs from ``num_outputs``, or a
            dictionary has other keys than before.
    """
    num_outputs, batch = options.num_outputs, options.batch
    if num_outputs is None:
        if data is None:
            raise _source_error(callback, "returned None.", "Return the data, or raise StopIteration at the end.")
        first = data if batch else data[0]
        if isinstance(first, Mapping):
            hint = f"Set num_outputs={len(first)}: each key is an output. For one output return its data."
            raise _source_error(callback, "returned a dictionary, which has several outputs.", hint)
        return [data]
    if batch:
        return list(_outputs(data, num_outputs, callback))
    columns = list(data)
    for index, sample in enumerate(data):
        # The exact type first, because this runs per sample.
        if type(sample) is not tuple or len(sample) != num_outputs:
            try:
                columns[index] = _outputs(sample, num_outputs, callback)
            except SourceError as error:
                error.locate(sample=index)
                raise
    return [list(column) for column in zip(*columns, strict=True)]


def _outputs(data: Any, num_outputs: int, callback: Callback) -> Any:
    """Return the outputs in order: a dictionary has the order of the first one."""
    if isinstance(data, Mapping) and len(data) == num_outputs:
        if not callback.keys:
            callback.keys = tuple(data)
        if set(callback.keys) != set(data):
            raise _source_error(
                callback,
                f"returned a dictionary with the keys {_listed(data)}; before, they were {_listed(callback.keys)}.",
                "Return the same keys each time.",
            )
        return [data[key] for key in callback.keys]
    if data is None:
        raise _source_error(callback, "returned None.", "Return the data, or raise StopIteration at the end.")
    if isinstance(data, (str, bytes, set)) or not hasattr(data, "__len__"):
        raise _source_error(
            callback,
            f"returned a value of type {type(data).__name__}, but num_outputs={num_outputs} requires a tuple.",
            f"Return a tuple of length {num_outputs}, even if num_outputs is 1.",
        )
    if len(data) != num_outputs:
        raise _source_error(
            callback,
            f"returned {counted(len(data), 'output')}, but num_outputs is {num_outputs}.",
            f"Return a tuple of length {num_outputs}, or set num_outputs={len(data)}.",
            OutputCountError,
        )
    return data


def _listed(keys: Iterable[Any]) -> str:
    return ", ".join(map(repr, keys))


def _source_error(callback: Callback, problem: str, hint: str, kind: type[SourceError] = SourceError) -> SourceError:
    return kind(f"the source {callback.name} {problem}", line=callback.line, hint=hint, operator="fn.external_source")
