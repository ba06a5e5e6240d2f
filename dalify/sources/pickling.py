"""Pickles callbacks for worker processes that are not forks of this process.

Python's pickle does not support lambdas and nested functions. They are pickled by value: code, closure, and the globals
that the code uses.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import marshal
import pickle
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from dalify.base.errors import ArgumentTypeError
from dalify.base.optional import LazyModule
from dalify.base.source_line import SourceLine

__all__ = ["CallbackPickler", "dumps", "loads", "pickle_by_value"]

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


_cloudpickle = LazyModule("cloudpickle", "py_callback_pickler")


def _can_be_imported(function: FunctionType) -> bool:
    found: Any = sys.modules.get(function.__module__ or "")
    if function.__module__ == "__main__" and not hasattr(found, "__file__"):
        return False  # a notebook or interactive session cannot be imported
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function and not hasattr(function, _BY_VALUE)


def _named_globals(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named_globals(constant)


def _skeleton(code: bytes, name: str, module: str, cells: int) -> FunctionType:
    namespace = {"__builtins__": __builtins__, "__name__": module}
    closure = tuple(CellType() for _ in range(cells))
    return FunctionType(marshal.loads(code), namespace, name, None, closure)


def _fill(function: FunctionType, state: dict[str, Any]) -> None:
    function.__globals__.update(state["globals"])
    for cell, content in zip(function.__closure__ or (), state["closure"], strict=True):
        if content:
            cell.cell_contents = content[0]
    function.__defaults__ = state["defaults"]
    function.__kwdefaults__ = state["keyword_defaults"]
    function.__qualname__ = state["qualname"]
    function.__dict__.update(state["attributes"])


def _contents(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # an empty cell
        return ()


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            return importlib.import_module, (obj.__name__,)
        if not isinstance(obj, FunctionType) or _can_be_imported(obj):
            return NotImplemented
        names = set(_named_globals(obj.__code__))
        closure = obj.__closure__ or ()
        state = {
            "globals": {name: obj.__globals__[name] for name in names if name in obj.__globals__},
            "closure": [_contents(cell) for cell in closure],
            "defaults": obj.__defaults__,
            "keyword_defaults": obj.__kwdefaults__,
            "qualname": obj.__qualname__,
            "attributes": obj.__dict__,
        }
        made = (marshal.dumps(obj.__code__), obj.__name__, obj.__module__ or "", len(closure))
        # The contents follow the function itself, so that recursive functions work.
        return _skeleton, made, state, None, None, _fill


def dumps(value: Any) -> bytes:
    """Pickle a callback; functions that cannot be imported are pickled by value."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def loads(content: bytes) -> Any:
    """Undo ``dumps``."""
    return pickle.loads(content)


class CallbackPickler:
    """The user's ``py_callback_pickler``, or dalify's own.

    Args:
        chosen: None; a module or object with ``dumps`` and ``loads``; or a tuple of one of these, keyword arguments for
            ``dumps`` and, optionally, keyword arguments for ``loads``.

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
            try:
                return dumps(source), loads
            except Exception:  # for example a nested class
                if importlib.util.find_spec("cloudpickle") is None:
                    raise
                return _cloudpickle.dumps(source), _Loader(_cloudpickle, {})
        except Exception as error:
            raise ArgumentTypeError(
                f"the source {name} cannot be sent to a worker process: {type(error).__name__}: "
                f"{str(error).rstrip('.')}.",
                line=line,
                hint="Pass a function or object that can be pickled, set py_callback_pickler=cloudpickle, "
                "or use py_start_method='fork'.",
                operator=operator,
            ) from error


def _no_pickler(chosen: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"py_callback_pickler must have dumps and loads; got {chosen!r}.",
        hint="Pass a module such as cloudpickle, or a tuple (module, dumps arguments, loads arguments).",
    )


class _Loader:
    """Calls ``loads`` of a pickler; a module is pickled by name, because modules cannot be pickled."""

    def __init__(self, pickler: Any, keywords: dict[str, Any]) -> None:
        self._is_module = isinstance(pickler, ModuleType)
        self._pickler: Any = pickler.__name__ if isinstance(pickler, ModuleType) else pickler
        self._keywords = keywords

    def __call__(self, content: bytes) -> Any:
        pickler = importlib.import_module(self._pickler) if self._is_module else self._pickler
        return pickler.loads(content, **self._keywords)
