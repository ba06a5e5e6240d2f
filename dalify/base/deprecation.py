"""Warnings, shown at the user's line."""

from __future__ import annotations

import warnings

from dalify.base.source_line import SourceLine

__all__ = ["warn_at_line", "warn_deprecated"]


def warn_deprecated(text: str, line: SourceLine | None = None) -> None:
    """Warn that something works but is spelled differently today.

    Args:
        text: what to write instead.
        line: the user's line; found on the stack where not given.
    """
    warn_at_line(text, DeprecationWarning, line)


def warn_at_line(text: str, kind: type[Warning], line: SourceLine | None = None) -> None:
    """Warn of something that the user's line brought about.

    Args:
        text: what to know.
        kind: of warning.
        line: the user's line; found on the stack where not given.
    """
    line = line or SourceLine.capture()
    if line is None:
        warnings.warn(text, kind, stacklevel=3)
    else:
        warnings.warn_explicit(text, kind, line.filename, line.line)
