"""The data of a user's callback, called in this process.

Alone because the executor sees batches only: counting samples, iterations and epochs, the end of data and the user's
mistakes end here. ``dalify.sources.parallel`` does the same with worker processes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dalify.base.errors import ArgumentValueError, CheckpointError, SourceError
from dalify.data.sample_info import BatchInfo, SampleInfo
from dalify.sources.callback import Callback, Cycle, SourceKind, Walk, epoch_of, has_state

__all__ = ["ExternalSource", "split_outputs"]

_MOST_NUMBER = 1 << 53  # of epochs and items in a saved state


class ExternalSource:
    """Asks a user's source for batches, in this process.

    The source is a callable of no argument or of one (``SampleInfo`` per sample; per batch the iteration number, or
    ``BatchInfo``), an iterable, or a generator function. Iterables are walked once, over as many epochs as that takes:
    with ``cycle=None`` every epoch after their end is empty, as in DALI; ``cycle="raise"`` gives one walk per epoch.

    An error in the source, or data that cannot be used, costs that batch: the next call asks for the next one.

    Args:
        source: what the user passed.
        num_outputs: None when the source gives one item; otherwise it gives tuples, lists or dictionaries of so many.
        cycle: what follows the last item of an iterable: None, False, "no" (nothing), "raise" (the epoch ends, the next
            walk begins), True, "quiet" (the next walk begins at once).
        batch: whether the source gives whole batches; otherwise single samples.
        batch_info: whether a callable that takes an argument gets a ``BatchInfo`` instead of the iteration number.
        batch_size: most samples in a batch; how many are asked for per batch when ``batch`` is False.

    Attributes:
        callback: the examined source; its ``line`` belongs into error messages about its data.
        epoch: number of the epoch, counted by ``reset``.
        iteration: number of batches asked for in this epoch.

    Raises:
        ArgumentTypeError: the source is nothing that gives data.
        ArgumentValueError: an argument out of range, or a ``cycle`` that the source cannot do.
    """

    def __init__(
        self,
        source: Any,
        num_outputs: int | None = None,
        *,
        cycle: str | bool | None = None,
        batch: bool = True,
        batch_info: bool = False,
        batch_size: int,
    ) -> None:
        self.callback = Callback(source, cycle)
        if num_outputs is not None and num_outputs < 1:
            raise ArgumentValueError(f"num_outputs must be at least 1; got {num_outputs}.")
        self.num_outputs = num_outputs
        self.batch = batch
        self.batch_info = batch_info
        self.batch_size = batch_size
        self.epoch = 0
        self.iteration = 0
        self._ended = False
        self._calls = 0  # of a callable that is not told what is wanted
        self._walk: Walk | None = None

    @property
    def resumes_exactly(self) -> bool:
        """Whether a restored state needs no replay: the source is told which item is wanted."""
        return self.callback.takes_info

    def next_batch(self) -> list[Any]:
        """Return the next batch: for each output the data as the source gave them, or a list of samples.

        Raises:
            StopIteration: the data are at their end; also every time until ``reset``. A batch that the end cuts off is
                dropped.
            SourceError: the source gave None, or another number of outputs than ``num_outputs``.
            Exception: whatever the source raises, with a note that names it.
        """
        if self._ended:
            raise StopIteration
        count = 1 if self.batch else self.batch_size
        items: list[Any] = []
        try:
            if self.callback.kind is not SourceKind.CALLABLE:
                self._begun_walk().take(count, items)
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
            sample = "" if self.batch else f"sample {len(items)} of "
            where = f"for {sample}batch {self.iteration} of epoch {self.epoch}"
            error.add_note(f"Raised by the source of fn.external_source, {self.callback.place}, {where}.")
            raise
        finally:
            self.iteration += 1
        return split_outputs(items[0] if self.batch else items, self.num_outputs, self.batch, self.callback)

    def _call_with_info(self, count: int, append: Callable[[Any], None]) -> None:
        source, iteration, epoch = self.callback.source, self.iteration, self.epoch
        if not self.batch:
            first = iteration * count
            for index in range(count):
                append(source(SampleInfo(first + index, index, iteration, epoch)))
        else:
            append(source(BatchInfo(iteration, epoch) if self.batch_info else iteration))

    def _begun_walk(self) -> Walk:
        if self._walk is None:
            self._walk = Walk(self.callback, counts_epochs=True)
        return self._walk

    def reset(self) -> None:
        """Begin the next epoch: indices start at 0 again. Iterables go on where they are, as in DALI."""
        self._begin(self.epoch + 1)

    def restart(self, is_next: bool = True) -> None:
        """Begin an epoch at the first item, in the middle of this one.

        With ``cycle=None`` an iterable goes on where it is: nothing says that it can be walked twice.

        Args:
            is_next: begin the next epoch; otherwise this one again.
        """
        if self.callback.cycle is not Cycle.NO:
            epoch = epoch_of(self.callback.source)
            if is_next and self._walk is not None and epoch is not None:
                self.callback.source.set_epoch(epoch + 1)
            self._walk = None
        self._begin(self.epoch + is_next)

    def _begin(self, epoch: int) -> None:
        self._ended = False
        self.iteration = 0
        self.epoch = epoch

    def close(self) -> None:
        """Let go of the walk over the source, so that a generator's ``finally`` runs now."""
        self._walk = None
        self._ended = True

    def state(self) -> dict[str, Any]:
        """Return the state: JSON-ready integers; under ``own`` what the source's ``state_dict()`` gives."""
        state: dict[str, Any] = {
            "epoch": self.epoch,
            "iteration": self.iteration,
            "items": self._calls if self._walk is None else self._walk.taken,
            "ended": int(self._ended),
        }
        stateful = self._stateful()
        source_epoch = epoch_of(self.callback.source)
        if source_epoch is not None:
            state["source_epoch"] = source_epoch
        if self._walk is not None and self._walk.is_over:
            state["over"] = 1  # a source that keeps its place may be at the beginning again
        elif stateful is not None:
            state["own"] = copy.deepcopy(stateful.state_dict())  # it may return what it goes on to change
        return state

    def _stateful(self) -> Any:
        if self._walk is not None:
            return self._walk.stateful
        # A callable that is told what is wanted needs no state: the model whose method it may be is not to be copied.
        source = self.callback.source
        return source if has_state(source) and not self.callback.takes_info else None

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where a source was when ``state()`` was taken.

        A callable that is told which item is wanted continues at once, and so does a source with ``state_dict()`` and
        ``load_state_dict()`` of its own. Others are walked again to the same place: their items are asked for and
        dropped. A generator, which cannot be walked twice, goes on from where it is.

        Raises:
            CheckpointError: not a source's state, the source ends before the place is reached, or a generator has been
                walked past it.
        """
        if set(state) - {"own", "over", "source_epoch"} != {"epoch", "iteration", "items", "ended"}:
            raise CheckpointError(f"this is not the state of an external source: {sorted(state)}.")
        numbers = {name: state[name] for name in ("epoch", "iteration", "items", "ended")}
        if not all(type(number) is int and 0 <= number < _MOST_NUMBER for number in numbers.values()):
            raise CheckpointError(f"an external source cannot stand at {numbers}.")
        self.epoch, self.iteration = int(state["epoch"]), int(state["iteration"])
        self._ended = bool(state["ended"])
        if "source_epoch" in state and epoch_of(self.callback.source) is not None:
            self.callback.source.set_epoch(state["source_epoch"])
        if "over" in state:
            self._walk = Walk(self.callback, counts_epochs=True)
            self._walk.end()
            self._walk.taken = int(state["items"])
        elif "own" in state:
            self._resume(state)
        else:
            self._replay(int(state["items"]))

    def _resume(self, state: dict[str, Any]) -> None:
        items = int(state["items"])
        own = copy.deepcopy(state["own"])
        if self.callback.kind is SourceKind.CALLABLE:
            if not has_state(self.callback.source):
                raise self._without_state()
            self.callback.source.load_state_dict(own)
            self._calls = items
            return
        self._walk = Walk(self.callback, counts_epochs=True)
        if self._walk.stateful is None:
            raise self._without_state()
        self._walk.resume(own)
        self._walk.taken = items

    def _without_state(self) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint holds a state that the source {self.callback.place} gave, but it has no load_state_dict() "
            "to take it back."
        )

    @property
    def spent(self) -> int:
        """Number of items that were taken and can be had no second time."""
        if self.callback.can_begin_anew or self._stateful() is not None:
            return 0
        return self._calls if self._walk is None else self._walk.taken

    def _replay(self, items: int) -> None:
        if items and self.callback.takes_info:
            raise CheckpointError(
                f"the checkpoint was made after {items} items of a source that is walked; {self.callback.place} takes "
                "the number of the item."
            )
        spent = self.spent
        if spent > items:
            raise CheckpointError(
                f"the source {self.callback.place} has given {spent} items and cannot go back to the {items} of the "
                "checkpoint.",
                hint="Restore before the first batch, let the source have state_dict() and load_state_dict(), or pass "
                "a list, a generator function, or a callable that takes the number of the batch.",
            )
        if self.callback.can_begin_anew:
            self._walk = None
        for number in range(spent, items):
            try:
                if self.callback.kind is SourceKind.CALLABLE:
                    self.callback.source()
                    self._calls += 1
                else:
                    self._begun_walk().take(1, [])
            except StopIteration:
                raise CheckpointError(
                    f"the checkpoint was made after {items} items of the source {self.callback.place}, "
                    f"which now ends after {number}.",
                    hint="Restore with the same data.",
                ) from None

    def __repr__(self) -> str:
        """Return the source and where it stands."""
        return f"ExternalSource({self.callback.place}, epoch {self.epoch}, iteration {self.iteration})"


def split_outputs(data: Any, num_outputs: int | None, batch: bool, callback: Callback) -> list[Any]:
    """Sort what a source gave by output.

    Args:
        data: a batch, or the list of its samples.
        num_outputs: None where the data are the only output.
        batch: whether the data are what the source gave in one call.
        callback: for error messages.

    Returns:
        For each output its data; where not ``batch`` a list of samples.

    Raises:
        SourceError: None instead of data, no tuple, list or dictionary, one of another length than ``num_outputs``, or
            a dictionary with other keys than before.
    """
    if num_outputs is None:
        if data is None:
            raise _wrong(callback, "returned None.", "Return the data, or raise StopIteration at their end.")
        first = data if batch else data[0]
        if isinstance(first, Mapping):
            count = f"num_outputs={len(first)}"
            raise _wrong(callback, "returned a dictionary, which is several outputs.", f"Write {count}.")
        return [data]
    if batch:
        return list(_outputs(data, num_outputs, callback))
    columns = list(data)
    for index, sample in enumerate(data):
        # The exact types first: this runs per sample.
        if type(sample) is not tuple or len(sample) != num_outputs:
            try:
                columns[index] = _outputs(sample, num_outputs, callback)
            except SourceError as error:
                error.locate(sample=index)
                raise
    return [list(column) for column in zip(*columns, strict=True)]


def _outputs(data: Any, num_outputs: int, callback: Callback) -> Any:
    """Return the outputs in their order: those of a dictionary stand as in the first one that came."""
    if isinstance(data, Mapping) and len(data) == num_outputs:
        if not callback.keys:
            callback.keys = tuple(data)
        if set(callback.keys) != set(data):
            raise _wrong(
                callback,
                f"returned a dictionary with the keys {_listed(data)}; before, they were {_listed(callback.keys)}.",
                "Return the same keys each time.",
            )
        return [data[key] for key in callback.keys]
    if data is None:
        raise _wrong(callback, "returned None.", "Return the data, or raise StopIteration at their end.")
    if isinstance(data, (str, bytes, set)) or not hasattr(data, "__len__"):
        raise _wrong(
            callback,
            f"returned a value of type {type(data).__name__}, but num_outputs={num_outputs} asks for a tuple.",
            f"Return a tuple of {num_outputs}, also where num_outputs is 1.",
        )
    if len(data) != num_outputs:
        raise _wrong(
            callback,
            f"returned {len(data)} outputs, but num_outputs is {num_outputs}.",
            f"Return a tuple of {num_outputs}, or write num_outputs={len(data)}.",
        )
    return data


def _listed(keys: Iterable[Any]) -> str:
    return ", ".join(map(repr, keys))


def _wrong(callback: Callback, problem: str, hint: str) -> SourceError:
    return SourceError(
        f"the source {callback.name} {problem}", line=callback.line, hint=hint, operator="fn.external_source"
    )
