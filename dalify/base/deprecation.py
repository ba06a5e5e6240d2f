"""Warnings about old spellings, shown at the user's line."""

from __future__ import annotations

import warnings

from dalify.base.source_line import SourceLine

__all__ = ["warn_deprecated"]


def warn_deprecated(text: str, line: SourceLine | None = None) -> None:
    """Warn that something works but is spelled differently today.

    Args:
        text: what to write instead.
        line: the user's line; found on the stack where not given.
    """
    line = line or SourceLine.capture()
    if line is None:
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, DeprecationWarning, line.filename, line.line)
