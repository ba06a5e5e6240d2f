"""``ndd.capture.invariant`` of DALI's capture mode; in dalify, ``capture=True`` has no effect on a loop."""

from __future__ import annotations

from typing import TypeVar

_T = TypeVar("_T")


def invariant(value: _T) -> _T:
    """Return the value. In DALI it declares a value that does not change in a loop; it has no effect here."""
    return value
