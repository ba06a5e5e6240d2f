"""Conversion of exceptions of users' functions to ``RuntimeError``, as in DALI.

The exception is also an instance of its own class, so that both ``except RuntimeError`` and ``except`` of the user's
class work.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dalify.base.errors import SourceError


def as_runtime_error(error: Exception) -> Exception:
    """Return an exception that is a RuntimeError and an instance of the exception's class.

    Text, attributes, notes and traceback are those of the exception. ``StopIteration`` becomes a ``SourceError``.

    Args:
        error: the exception; returned unchanged if it is a RuntimeError, or if it cannot be copied.
    """
    error = without_stop_iteration(error, "the function")
    if isinstance(error, RuntimeError):
        return error
    try:
        made = _again(*_parts(error))
    except Exception:  # for example a class with its own __new__
        return error
    made.__cause__, made.__context__ = error.__cause__, error.__context__
    made.__suppress_context__ = error.__suppress_context__
    return made.with_traceback(error.__traceback__)


def without_stop_iteration(error: Exception, code: str) -> Exception:
    """Return a ``SourceError`` instead of a ``StopIteration``, and other exceptions unchanged.

    ``StopIteration`` would end the loop over an iterator without an error. Generators convert it for the same reason.

    Args:
        error: exception of the user's code.
        code: the code, for the message, such as ``the function``.
    """
    if not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    kind = type(error).__name__
    ended = SourceError(f"{code} raised {kind}.", hint=f"Only external sources can end an epoch by raising {kind}.")
    ended.__dict__.update(error.__dict__)
    ended.__cause__ = error
    return ended.with_traceback(error.__traceback__)


def _parts(error: Exception) -> tuple[type[Exception], tuple[Any, ...], dict[str, Any]]:
    """Return class, arguments and attributes of an exception."""
    kind = type(error)
    arguments: tuple[Any, ...] = error.args
    if isinstance(error, OSError) and error.filename is not None:  # not in `args`
        arguments = (*error.args, error.filename)
    state = dict(vars(error))
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(error, name):
                state[name] = getattr(error, name)
    for name in ("name", "path", "obj"):  # of ImportError, AttributeError and NameError
        if isinstance(error, (ImportError, AttributeError, NameError)) and getattr(error, name, None) is not None:
            state[name] = getattr(error, name)
    return kind, arguments, state


def _again(kind: type[Exception], arguments: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    made = _runtime_error(kind).__new__(_runtime_error(kind), *arguments)
    built_in = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    built_in.__init__(made, *arguments)  # the user's __init__ may take other arguments
    made.args = arguments[: len(made.args)] if isinstance(made, OSError) else arguments
    for name, value in state.items():
        setattr(made, name, value)
    return made


@functools.lru_cache(maxsize=256)
def _runtime_error(kind: type[Exception]) -> type[Exception]:
    """Return the class that derives from an exception's class and RuntimeError, with its name in tracebacks."""

    def reduce(error: Exception) -> tuple[Callable[..., Exception], tuple[Any, ...]]:
        return _again, (kind, *_parts(error)[1:])

    bases = (RuntimeError,) if kind in RuntimeError.__mro__ else (kind, RuntimeError)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__reduce__": reduce}
    return type(kind.__name__, bases, names)
