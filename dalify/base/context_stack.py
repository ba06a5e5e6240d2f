"""Values that are set by ``with`` blocks, such as a pipeline, a device or a mode."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Generic, TypeVar

_T = TypeVar("_T")


class ContextStack(threading.local, Generic[_T]):
    """The active ``with`` blocks of the current thread.

    Attributes:
        chosen: value of each block, the innermost last.
    """

    def __init__(self) -> None:
        self.chosen: list[_T] = []

    @property
    def innermost(self) -> _T | None:
        """The value of the innermost block; None outside of blocks."""
        return self.chosen[-1] if self.chosen else None


class Assigned(AbstractContextManager[None], Generic[_T]):
    """A ``with`` block in which a context variable has a value.

    A class, because some are entered for each chunk, and it takes half the calls of a generator.

    Args:
        variable: the context variable.
        value: its value inside the block.
    """

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[_T], value: _T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        """Set the value for this thread."""
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        """Restore the previous value."""
        self._variable.reset(self._token)
