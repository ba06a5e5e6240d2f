"""Store an error and raise it after other work is done.

An error in a local variable forms a reference cycle with the frames of its traceback, which keeps everything in these
frames alive until the garbage collector runs. `FirstError` avoids the cycle.
"""

from __future__ import annotations

__all__ = ["FirstError"]


class FirstError:
    """The first error of several tasks, raised when all of them are done."""

    __slots__ = ("_error", "_order")

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._order = 0

    def __bool__(self) -> bool:
        """Return whether there is an error."""
        return self._error is not None

    def record(self, error: BaseException, order: int = 0) -> None:
        """Store an error, unless there is one with the same or a lower order."""
        if self._error is None or order < self._order:
            self._error, self._order = error, order

    def raise_first(self) -> None:
        """Raise the stored error, if any, and drop it."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error
