"""An error that waits until other work is done.

Alone because what simpler code does, to keep the error in a variable, is a trap: its traceback holds the frames it came
through, and a frame that holds the error in turn lives on, with all that its callers have, until Python's garbage
collector happens to run.
"""

from __future__ import annotations

__all__ = ["HeldError"]


class HeldError:
    """The error of several pieces of work that comes first, to be raised when all of them are done."""

    __slots__ = ("_error", "_order")

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._order = 0

    def __bool__(self) -> bool:
        """Whether there is one."""
        return self._error is not None

    def hold(self, error: BaseException, order: int = 0) -> None:
        """Keep an error, unless there is one already of the same order or less."""
        if self._error is None or order < self._order:
            self._error, self._order = error, order

    def release(self) -> None:
        """Raise the error, if there is one, and forget it."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error
