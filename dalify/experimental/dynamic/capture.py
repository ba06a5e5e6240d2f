"""``ndd.capture.invariant`` of DALI's capture mode; in dalify, ``capture=True`` has no effect on a loop."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["invariant"]

_T = TypeVar("_T")


def invariant(value: _T) -> _T:
    """Return the value: a promise that it stays the same in every round of a loop, of which nothing depends here."""
    return value
