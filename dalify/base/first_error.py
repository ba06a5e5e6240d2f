"""Stores an error to be raised later.

An error in a local variable forms a reference cycle with the frames of its traceback, which keeps everything in these
frames alive until the garbage collector runs. `FirstError` avoids the cycle.
"""

from __future__ import annotations


class FirstError:
    """The first error of several tasks, to be raised after all of them.

    Attributes:
        error: the error; None without one.
    """

    __slots__ = ("_order", "error")

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._order = 0

    def __bool__(self) -> bool:
        """Return whether there is an error."""
        return self.error is not None

    def record(self, error: BaseException, order: int = 0) -> None:
        """Store an error, unless there is one with the same or a lower order."""
        if self.error is None or order < self._order:
            self.error, self._order = error, order

    def raise_first(self) -> None:
        """Raise the stored error, if any, and drop it."""
        error, self.error = self.error, None
        if error is not None:
            if getattr(error, "line", None) is not None:
                error.__traceback__ = None  # the message has the user's line; frames of the engine do not help
            try:
                raise error
            finally:
                del error
