"""Thread-local values that are set by ``with`` blocks, such as a pipeline, a device or a mode."""

from __future__ import annotations

import threading
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
