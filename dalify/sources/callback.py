"""What kind of thing a user passed as ``source``, and where he wrote it.

Alone because sources that run in this process and sources that run in workers must agree on it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from enum import Enum
from types import CodeType, FunctionType
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, SourceError
from dalify.base.source_line import SourceLine

__all__ = ["Callback", "Cycle", "SourceKind", "Walk", "epoch_of", "has_state", "parse_cycle"]


class SourceKind(Enum):
    """How a source is asked for data."""

    CALLABLE = "callable"
    ITERABLE = "iterable"
    GENERATOR_FUNCTION = "generator function"


class Cycle(Enum):
    """What happens after the last item of an iterable."""

    NO = "no"
    RAISE = "raise"
    QUIET = "quiet"


def parse_cycle(cycle: str | bool | None) -> Cycle:
    """Return what the argument ``cycle`` means.

    Raises:
        ArgumentValueError: none of the options.
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
    """Return the user's code behind a source: a function's, a generator's, or of the method that will be called."""
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
    return inspect.isgeneratorfunction(getattr(source, "__call__", None))  # noqa: B004 -- its kind, not whether it is there


def _is_iterable(source: object) -> bool:
    # Classes such as Enum are iterable by their metaclass, but who passes a class wants instances.
    return not inspect.isclass(source) and (hasattr(source, "__iter__") or hasattr(type(source), "__getitem__"))


class Callback:
    """A user's source, examined.

    Args:
        source: callable of none or one positional argument, iterable, or generator function.
        cycle: what follows the last item, see ``fn.external_source``; for iterables and generator functions only.

    Attributes:
        source: as passed.
        kind: how it is asked for data.
        takes_info: whether a callable is told which sample or batch is wanted.
        cycle: what follows the last item.
        line: where the source's code begins; None for built-in types.
        keys: of the first dictionary that came, for a source that gives dictionaries.

    Raises:
        ArgumentTypeError: nothing that gives data, or a callable with arguments that dalify does not know.
        ArgumentValueError: an unknown ``cycle``, or one for a callable or generator.
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
            raise self._type_error("is asynchronous.", "Pass an ordinary function, iterable or generator function.")
        if _is_generator_function(source):
            self.kind = SourceKind.GENERATOR_FUNCTION
            if _required_arguments(source):
                raise self._type_error(
                    "is a generator function with arguments; it is called without any.",
                    "Bind them with functools.partial, or return single items instead of yielding.",
                )
        elif _is_iterable(source):
            self.kind = SourceKind.ITERABLE
        elif callable(source):
            self.kind = SourceKind.CALLABLE
            self.takes_info = self._counts_one_argument()
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
            problem = "cycle is for iterables and generator functions; the source is a callable, which ends by itself."
            hint = "Leave cycle out, and raise StopIteration in the callable where an epoch ends."
        elif inspect.isgenerator(self.source):
            problem = "a generator cannot be walked twice, so it cannot be cycled."
            hint = "Pass the generator function itself instead of what it returns."
        if problem:
            raise ArgumentValueError(problem, line=self.line, hint=hint, operator="fn.external_source")

    def _counts_one_argument(self) -> bool:
        try:
            parameters = inspect.signature(self.source).parameters.values()
        except ValueError:
            raise self._type_error(
                "is built in and does not tell its arguments.", "Wrap it: source=lambda: function()."
            ) from None
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        required = [p for p in positional if p.default is p.empty]
        keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        hint = "It may take one: the SampleInfo, BatchInfo or iteration number. Bind others with functools.partial."
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
    def place(self) -> str:
        """Name and place, e.g. ``load() at train.py:12``."""
        if self.line is None:
            return self.name
        return f"{self.name} at {self.line}".removesuffix(f" in {self.line.function}()")

    @property
    def can_begin_anew(self) -> bool:
        """Whether a walk from the first item is possible: not for callables, generators, map(), zip(), open files."""
        if self.kind is SourceKind.CALLABLE:
            return False
        begin = getattr(type(self.source), "__iter__", None)
        # A class written in Python may be its own iterator and begin anew in __iter__.
        return not hasattr(type(self.source), "__next__") or isinstance(begin, FunctionType)

    def iterate(self) -> Iterator[Any]:
        """Begin a walk over an iterable or generator function."""
        return iter(self.source() if self.kind is SourceKind.GENERATOR_FUNCTION else self.source)

    def __repr__(self) -> str:
        """Return kind, name and place."""
        return f"Callback({self.kind.value} {self.place})"


class Walk:
    """Takes items from an iterable or generator function and begins anew as its ``cycle`` says.

    Args:
        callback: an iterable or generator function.
        counts_epochs: tell a source that has ``epoch`` and ``set_epoch()`` when it is walked again, as data sets of
            Hugging Face want it: they are shuffled anew, and only then forget where they were resumed.

    Attributes:
        taken: items taken since the walk began, or began anew.
        is_over: the items are at their end, and no further walk follows.
    """

    __slots__ = ("_callback", "_counts_epochs", "_iterator", "is_over", "taken")

    def __init__(self, callback: Callback, counts_epochs: bool = False) -> None:
        self._callback = callback
        self._counts_epochs = counts_epochs
        self._iterator = callback.iterate()
        self.taken = 0
        self.is_over = False

    def end(self) -> None:
        """Go to the end of the items, without asking for them."""
        self._iterator = iter(())
        self.is_over = True

    @property
    def stateful(self) -> Any:
        """The iterator, or else the source, where it can tell and take back its own state; otherwise None."""
        return next((each for each in (self._iterator, self._callback.source) if has_state(each)), None)

    def resume(self, state: Any) -> None:
        """Give the source's own state back to it, and begin the walk from there."""
        # A source is told before it is walked, as torch's loaders do it; an iterator can only be told afterwards.
        if has_state(self._callback.source):
            self._callback.source.load_state_dict(state)
            self._iterator = self._callback.iterate()
        iterator: Any = self._iterator
        if has_state(iterator):
            iterator.load_state_dict(state)

    def take(self, count: int, items: list[Any]) -> None:
        """Append the next items to a list.

        Args:
            count: how many.
            items: receives them; on an error it holds those that came before.

        Raises:
            StopIteration: the items ended first; what was taken is lost.
            SourceError: ``cycle="quiet"``, and the source gives nothing any more.
        """
        callback = self._callback
        wanted = len(items) + count
        while True:
            before = len(items)
            next_item = self._iterator.__next__
            try:
                # Not islice: it calls iter() once more, and objects that are their own iterator begin anew there.
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
                    f"the source {callback.name} has cycle='quiet' but gave nothing when it was walked again.",
                    line=callback.line,
                    hint="Its __iter__ must begin anew each time; an iterator such as map() or an open file cannot.",
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
    """Tell whether an object follows the convention of ``state_dict()`` and ``load_state_dict(state)``."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def epoch_of(source: Any) -> int | None:
    """Return the epoch of a source that is told of it by ``set_epoch()``; None of others."""
    epoch = getattr(source, "epoch", None)
    return epoch if isinstance(epoch, int) and callable(getattr(source, "set_epoch", None)) else None


def _required_arguments(function: object) -> bool:
    try:
        inspect.signature(function).bind()  # pyright: ignore[reportArgumentType] -- known to be callable
    except TypeError:
        return True
    return False
