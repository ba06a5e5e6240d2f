"""Numbers with nouns for messages."""

from __future__ import annotations

from typing import SupportsIndex

_IRREGULAR = {"axis": "axes", "vertex": "vertices"}


def counted(count: SupportsIndex | None, noun: str) -> str:
    """Return a number with a noun in singular or plural: ``"1 axis"``, ``"2 axes"``, ``"1,500 samples"``.

    Args:
        count: the number; None if it is not known.
        noun: singular of the noun.
    """
    number = None if count is None else int(count)
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        plural = f"{noun[:-1]}ies"
    else:
        plural = _IRREGULAR.get(noun) or noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")
    return f"an unknown number of {plural}" if number is None else f"{number:,} {plural}"
