"""Pickles callbacks for worker processes that are not forks of this process, with cloudpickle."""

from __future__ import annotations

import functools
import importlib
import io
import pickle
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

from dalify.base.errors import ArgumentTypeError
from dalify.base.source_line import SourceLine

_BY_VALUE = "_dalify_pickle_by_value"


def pickle_by_value(fun: FunctionType) -> FunctionType:
    """Mark a function to be pickled by value for worker processes, even if it could be imported there.

    Raises:
        ArgumentTypeError: the value is not a Python function.
    """
    if not isinstance(fun, FunctionType):
        raise ArgumentTypeError(f"only functions can be pickled by value; got a {type(fun).__name__}.")
    setattr(fun, _BY_VALUE, True)
    return fun


class ValuePickler(cloudpickle.Pickler):
    """cloudpickle's pickler with support for ``pickle_by_value`` and for imports from scripts.

    cloudpickle pickles everything in ``__main__`` by value. A worker that is started by ``spawn`` or ``forkserver``
    imports the script. Its functions and classes stay references, so that their results and exceptions are instances
    of the classes of this process, and their globals need not be picklable. Notebooks cannot be imported.
    """

    def reducer_override(self, obj: Any) -> Any:
        """Return the reduced form of an object; ``NotImplemented`` for the default of ``pickle``."""
        if isinstance(obj, FunctionType) and hasattr(obj, _BY_VALUE):
            return super().reducer_override(_copied(obj))
        if isinstance(obj, FunctionType | type) and obj.__module__ == "__main__" and _is_in_script(obj):
            return NotImplemented
        return super().reducer_override(obj)


def _is_in_script(obj: Any) -> bool:
    found: Any = sys.modules["__main__"]
    if not hasattr(found, "__file__"):
        return False  # a notebook or interactive session
    for name in obj.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is obj


def _copied(function: FunctionType) -> FunctionType:
    """Return a copy; cloudpickle pickles it by value, because no module contains it."""
    code, name, closure = function.__code__, function.__name__, function.__closure__
    copy = FunctionType(code, function.__globals__, name, function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(copy, function)
    del copy.__wrapped__  # pyright: ignore[reportFunctionMemberAccess] -- set by update_wrapper
    return copy


def dumps(value: Any) -> bytes:
    """Pickle a callback; functions and classes that cannot be imported are pickled by value."""
    file = io.BytesIO()
    ValuePickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def loads(content: bytes) -> Any:
    """Return the callback pickled by ``dumps``."""
    return pickle.loads(content)


class CallbackPickler:
    """The user's ``py_callback_pickler``, or ``ValuePickler``.

    Args:
        chosen: None, or a module or object with ``dumps`` and ``loads``, or a tuple of such a module or object, keyword
            arguments for ``dumps`` and, optionally, keyword arguments for ``loads``.

    Raises:
        ArgumentTypeError: the value is none of these.
    """

    def __init__(self, chosen: Any = None) -> None:
        parts = list(chosen) if isinstance(chosen, (tuple, list)) else [chosen]
        if not 1 <= len(parts) <= 3:
            raise _no_pickler(chosen)
        pickler, dumps_keywords, loads_keywords = [*parts, None, None][:3]
        if pickler is not None and not (hasattr(pickler, "dumps") and hasattr(pickler, "loads")):
            raise _no_pickler(chosen)
        self._pickler = pickler
        self._dumps_keywords: dict[str, Any] = dumps_keywords or {}
        self._loads_keywords: dict[str, Any] = loads_keywords or {}

    def dumps(
        self, source: Any, name: str, line: SourceLine | None, operator: str = "fn.external_source"
    ) -> tuple[bytes, Callable[[bytes], Any]]:
        """Return a pickled source, and the function that unpickles it in the worker process.

        Args:
            source: the callback.
            name: name of the callback, for the error message.
            line: location of the callback, for the error message.
            operator: the operator with the callback, for the error message.

        Raises:
            ArgumentTypeError: the source contains an object that cannot be pickled.
        """
        try:
            if self._pickler is not None:
                return self._pickler.dumps(source, **self._dumps_keywords), _Loader(self._pickler, self._loads_keywords)
            return dumps(source), loads
        except Exception as error:
            raise ArgumentTypeError(
                f"the source {name} cannot be sent to a worker process: {type(error).__name__}: "
                f"{str(error).rstrip('.')}.",
                line=line,
                hint="Pass a function or object that cloudpickle can pickle, set py_callback_pickler, or use "
                "py_start_method='fork'.",
                operator=operator,
            ) from error


def _no_pickler(chosen: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"py_callback_pickler must have dumps and loads; got {chosen!r}.",
        hint="Pass a module such as cloudpickle, or a tuple (module, dumps arguments, loads arguments).",
    )


class _Loader:
    """Calls ``loads`` of a pickler; stores the name of a module, because modules cannot be pickled."""

    def __init__(self, pickler: Any, keywords: dict[str, Any]) -> None:
        self._is_module = isinstance(pickler, ModuleType)
        self._pickler: Any = pickler.__name__ if isinstance(pickler, ModuleType) else pickler
        self._keywords = keywords

    def __call__(self, content: bytes) -> Any:
        pickler = importlib.import_module(self._pickler) if self._is_module else self._pickler
        return pickler.loads(content, **self._keywords)
