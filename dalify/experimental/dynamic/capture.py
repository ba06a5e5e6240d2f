"""What DALI's capture mode needs of a program: ``ndd.capture.invariant``.

Alone because it is a module of DALI's. Here a loop with ``capture=True`` runs like any other.
"""

from __future__ import annotations

from typing import TypeVar

__all__ = ["invariant"]

_T = TypeVar("_T")


def invariant(value: _T) -> _T:
    """Return the value: a promise that it stays the same in every round of a loop, of which nothing depends here."""
    return value
