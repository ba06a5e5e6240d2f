"""Warnings that refer to the user's line."""

from __future__ import annotations

import warnings

from dalify.base.source_line import SourceLine


def warn_deprecated(text: str, line: SourceLine | None = None) -> None:
    """Issue a deprecation warning.

    Args:
        text: the message.
        line: the user's line; by default found on the stack.
    """
    warn_at_line(text, DeprecationWarning, line)


def warn_at_line(text: str, kind: type[Warning], line: SourceLine | None = None) -> None:
    """Issue a warning at the user's line.

    Args:
        text: the message.
        kind: class of the warning.
        line: the user's line; by default found on the stack.
    """
    line = line or SourceLine.capture()
    if line is None:
        warnings.warn(text, kind, stacklevel=3)
    else:
        warnings.warn_explicit(text, kind, line.filename, line.line)
