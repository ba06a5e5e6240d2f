"""``SourceLine``: the user's line in the innermost frame outside of dalify."""

from __future__ import annotations

import linecache
import os
import sys
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from dalify.base.context_stack import Assigned

# Without pathlib, because its import takes longer than that of this package.
_PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep  # noqa: PTH120
_OWN_FILES: dict[str, bool] = {}
_written: ContextVar[SourceLine | None] = ContextVar("_written", default=None)


def is_own(filename: str) -> bool:
    """Return whether a file belongs to dalify."""
    own = _OWN_FILES.get(filename)
    if own is None:
        own = _OWN_FILES[filename] = filename.startswith((_PACKAGE_ROOT, "<frozen"))
    return own


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of the user's code.

    Attributes:
        filename: path as in the code object.
        line: line number, counted from 1.
        function: name of the enclosing function.
    """

    filename: str
    line: int
    function: str

    @classmethod
    def capture(cls) -> SourceLine | None:
        """Return the innermost line outside of dalify on the current stack, or None."""
        if (line := _written.get()) is not None:
            return line
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] -- documented
        while frame is not None and is_own(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return None
        return cls(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)

    @classmethod
    def captured_as(cls, line: SourceLine | None) -> AbstractContextManager[None]:
        """Make `capture` return a line inside the ``with`` block, for calls that were recorded earlier.

        Args:
            line: the line; None has no effect.
        """
        return Assigned(_written, line if line is not None else _written.get())

    @classmethod
    def of_code(cls, code: CodeType) -> SourceLine:
        """Return the first line of a code object."""
        return cls(code.co_filename, code.co_firstlineno, code.co_name)

    @classmethod
    def of_method(cls, method: Any) -> SourceLine | None:
        """Return the first line of a method; None if dalify defines it, or if it is not written in Python."""
        code = getattr(getattr(method, "__func__", None), "__code__", None)
        return None if not isinstance(code, CodeType) or is_own(code.co_filename) else cls.of_code(code)

    @property
    def text(self) -> str:
        """The source text of the line without indentation, or "" if there is no source."""
        try:
            return linecache.getline(self.filename, self.line).strip()
        except ValueError:  # not a file name, in a damaged serialized graph
            return ""

    def __str__(self) -> str:
        """Return ``file.py:31 in function``, the file name without folders."""
        place = f"{os.path.basename(self.filename)}:{self.line}"  # noqa: PTH119
        return place if self.function == "<module>" else f"{place} in {self.function}()"

    def quote(self, indent: str = "  ") -> str:
        """Return the location and, on an indented second line, the source text."""
        text = self.text
        return f"{indent}{self}" + (f"\n{indent}    {text}" if text else "")
