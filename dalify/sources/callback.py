"""Classifies the ``source`` that a user passed, and locates its definition."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from enum import Enum
from types import CodeType, FunctionType
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, SourceError
from dalify.base.source_line import SourceLine


class SourceKind(Enum):
    """How a source is called."""

    CALLABLE = "callable"
    ITERABLE = "iterable"
    GENERATOR_FUNCTION = "generator function"


class Cycle(Enum):
    """Behavior after the last item of an iterable."""

    NO = "no"
    RAISE = "raise"
    QUIET = "quiet"


def parse_cycle(cycle: str | bool | None) -> Cycle:
    """Return the behavior for the argument ``cycle``.

    Raises:
        ArgumentValueError: the value is not one of the options.
    """
    if cycle is None or cycle is False or cycle == "no":
        return Cycle.NO
    if cycle is True or cycle == "quiet":
        return Cycle.QUIET
    if cycle == "raise":
        return Cycle.RAISE
    raise ArgumentValueError(
        f"cycle must be one of 'no' (or False, None), 'quiet' (or True), 'raise'; got {cycle!r}.",
        operator="fn.external_source",
    )


def _code_of(source: object) -> CodeType | None:
    """Return the code object of a source: of a function, a generator, or the method that is called."""
    if isinstance(source, functools.partial):
        return _code_of(source.func)
    if inspect.isgenerator(source):
        return source.gi_code
    source = inspect.unwrap(source) if callable(source) else source
    for candidate in (source, getattr(source, "__func__", None)):
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code
    for name in ("__call__", "__next__", "__iter__", "__getitem__"):
        code = getattr(getattr(type(source), name, None), "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def _is_generator_function(source: object) -> bool:
    if inspect.isgeneratorfunction(source):
        return True
    if isinstance(source, functools.partial):
        return _is_generator_function(source.func)
    if inspect.isroutine(source) or inspect.isclass(source):
        return False
    return inspect.isgeneratorfunction(getattr(source, "__call__", None))  # noqa: B004 -- not a test whether it is callable


def _is_iterable(source: object) -> bool:
    # Classes such as Enum are iterable by their metaclass, but a class passed as source is called.
    return not inspect.isclass(source) and (hasattr(source, "__iter__") or hasattr(type(source), "__getitem__"))


class Callback:
    """A user's source and its properties.

    Args:
        source: callable with zero or one positional argument, iterable, or generator function.
        cycle: see ``fn.external_source``; for iterables and generator functions only.

    Attributes:
        source: the source as passed.
        kind: how it is called.
        takes_info: whether a callable receives the requested sample or batch as argument.
        cycle: behavior after the last item.
        line: start of the source's code; None for built-in types.
        keys: keys of the first dictionary that the source returned; empty if it has returned none.

    Raises:
        ArgumentTypeError: the value is not a data source, or a callable with an unsupported signature.
        ArgumentValueError: ``cycle`` is unknown, or given for a callable or generator.
    """

    __slots__ = ("cycle", "keys", "kind", "line", "source", "takes_info")

    def __init__(self, source: Any, cycle: str | bool | None = None) -> None:
        code = _code_of(source)
        self.line = SourceLine.of_code(code) if code is not None else None
        self.source = source
        self.cycle = parse_cycle(cycle)
        self.takes_info = False
        self.keys: tuple[Any, ...] = ()
        if inspect.iscoroutinefunction(source) or inspect.isasyncgenfunction(source) or inspect.iscoroutine(source):
            raise self._type_error("is asynchronous.", "Pass a synchronous function, iterable or generator function.")
        if _is_generator_function(source):
            self.kind = SourceKind.GENERATOR_FUNCTION
            if _required_arguments(source):
                raise self._type_error(
                    "is a generator function with arguments, but it is called without arguments.",
                    "Bind them with functools.partial, or return single items instead of yielding.",
                )
        elif _is_iterable(source):
            self.kind = SourceKind.ITERABLE
        elif callable(source):
            self.kind = SourceKind.CALLABLE
            self.takes_info = self._takes_argument()
        else:
            raise self._type_error(
                "is neither callable nor iterable.", "Pass a function, an iterable or a generator function."
            )
        if self.cycle is not Cycle.NO:
            self._check_cycle()

    def _type_error(self, problem: str, hint: str) -> ArgumentTypeError:
        return ArgumentTypeError(
            f"the source {self.name} {problem}", line=self.line, hint=hint, operator="fn.external_source"
        )

    def _check_cycle(self) -> None:
        problem = hint = ""
        if self.kind is SourceKind.CALLABLE:
            problem = "cycle is only for iterables and generator functions; the source is a callable."
            hint = "Omit cycle, and raise StopIteration in the callable at the end of an epoch."
        elif inspect.isgenerator(self.source):
            problem = "a generator cannot be iterated twice, so cycle cannot be used."
            hint = "Pass the generator function itself instead of its result."
        if problem:
            raise ArgumentValueError(problem, line=self.line, hint=hint, operator="fn.external_source")

    def _takes_argument(self) -> bool:
        try:
            parameters = inspect.signature(self.source).parameters.values()
        except ValueError:
            raise self._type_error(
                "is a built-in with an unknown signature.", "Wrap it: source=lambda: function()."
            ) from None
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        required = [p for p in positional if p.default is p.empty]
        keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        hint = "It can take one: the SampleInfo, BatchInfo or iteration number. Bind others with functools.partial."
        if any(p.kind is p.VAR_POSITIONAL for p in parameters) and not required:
            raise self._type_error("takes any number of positional arguments.", hint)
        if keywords:
            raise self._type_error(f"needs the keyword argument {keywords[0]!r}.", hint)
        if len(required) > 1 or (not required and len(positional) > 1):
            raise self._type_error(f"takes {len(positional)} positional arguments.", hint)
        return bool(positional)

    @property
    def name(self) -> str:
        """The name of the function, or the type of the object."""
        source = self.source
        while isinstance(source, functools.partial):
            source = source.func
        name = getattr(source, "__qualname__", None)
        return f"{name}()" if isinstance(name, str) else f"{type(source).__name__} object"

    @property
    def location(self) -> str:
        """Name and location, e.g. ``load() at train.py:12``."""
        if self.line is None:
            return self.name
        return f"{self.name} at {self.line}".removesuffix(f" in {self.line.function}()")

    def add_note(self, error: BaseException, iteration: int, epoch: int, sample: int | None) -> None:
        """Add a note with the source and the batch to an exception of the source.

        Args:
            error: the exception.
            iteration: number of the batch in the epoch.
            epoch: number of the epoch.
            sample: index of the sample in the batch; None if the source returns batches.
        """
        request = f"batch {iteration} of epoch {epoch}"
        request = request if sample is None else f"sample {sample} of {request}"
        error.add_note(f"Raised by the source of fn.external_source, {self.location}, for {request}.")

    @property
    def can_restart(self) -> bool:
        """Whether iteration can restart; False for callables, generators, map(), zip() and open files."""
        if self.kind is SourceKind.CALLABLE:
            return False
        begin = getattr(type(self.source), "__iter__", None)
        # A Python class may be its own iterator and restart in __iter__.
        return not hasattr(type(self.source), "__next__") or isinstance(begin, FunctionType)

    def iterate(self) -> Iterator[Any]:
        """Return a new iterator over an iterable or generator function."""
        return iter(self.source() if self.kind is SourceKind.GENERATOR_FUNCTION else self.source)


class ItemIterator:
    """Takes items from an iterable or generator function and restarts it according to ``cycle``.

    Args:
        callback: an iterable or generator function.
        counts_epochs: whether to call ``set_epoch()`` with the next ``epoch`` when the source is restarted, if it has
            both, as datasets of Hugging Face require: they are shuffled again and discard their resume state.

    Attributes:
        taken: number of items taken since the last start.
        is_over: whether the items are exhausted and the source is not restarted.
    """

    __slots__ = ("_callback", "_counts_epochs", "_iterator", "is_over", "taken")

    def __init__(self, callback: Callback, counts_epochs: bool = False) -> None:
        self._callback = callback
        self._counts_epochs = counts_epochs
        self._iterator = callback.iterate()
        self.taken = 0
        self.is_over = False

    def end(self) -> None:
        """Skip to the end, without taking the items."""
        self._iterator = iter(())
        self.is_over = True

    @property
    def stateful(self) -> Any:
        """The iterator or the source, the first one that can save and load its state; None if none can."""
        return next((each for each in (self._iterator, self._callback.source) if has_state(each)), None)

    def resume(self, state: Any) -> None:
        """Load the state of the source, and iterate from there."""
        # A source loads its state before iteration starts, as in torch's loaders; an iterator only afterwards.
        if has_state(self._callback.source):
            self._callback.source.load_state_dict(state)
            self._iterator = self._callback.iterate()
        iterator: Any = self._iterator
        if has_state(iterator):
            iterator.load_state_dict(state)

    def take(self, count: int, items: list[Any]) -> None:
        """Append the next items to a list.

        Args:
            count: number of items.
            items: list to append to; on an error it contains the items before it.

        Raises:
            StopIteration: the source is exhausted; items taken in this call are lost.
            SourceError: ``cycle="quiet"``, but the source is empty after a restart.
        """
        callback = self._callback
        wanted = len(items) + count
        while True:
            before = len(items)
            next_item = self._iterator.__next__
            try:
                # Not islice: it calls iter() again, and objects that are their own iterator restart there.
                for _ in range(wanted - before):
                    items.append(next_item())
                return
            except StopIteration:
                pass
            finally:
                self.taken += len(items) - before
            if callback.cycle is Cycle.NO:
                self.is_over = True
                raise StopIteration
            if callback.cycle is Cycle.QUIET and self.taken == 0:
                raise SourceError(
                    f"the source {callback.name} has cycle='quiet' but returned nothing when it was iterated again.",
                    line=callback.line,
                    hint="Its __iter__ must restart each time; an iterator such as map() or an open file cannot.",
                    operator="fn.external_source",
                )
            epoch = epoch_of(callback.source) if self._counts_epochs else None
            if epoch is not None:
                callback.source.set_epoch(epoch + 1)
            self._iterator = callback.iterate()
            self.taken = 0
            if callback.cycle is Cycle.RAISE:
                raise StopIteration


def has_state(value: object) -> bool:
    """Return whether an object has ``state_dict()`` and ``load_state_dict(state)``."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def epoch_of(source: Any) -> int | None:
    """Return the epoch of a source with ``set_epoch()``; None for others."""
    epoch = getattr(source, "epoch", None)
    return epoch if isinstance(epoch, int) and callable(getattr(source, "set_epoch", None)) else None


def _required_arguments(function: object) -> bool:
    try:
        inspect.signature(function).bind()  # pyright: ignore[reportArgumentType] -- known to be callable
    except TypeError:
        return True
    return False
