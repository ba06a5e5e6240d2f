"""Data that turned out to be unusable: whoever keeps copies of data is told, and can drop the copy."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["add_listener", "doubt"]

_listeners: list[Callable[[str], tuple[str, bool]]] = []


def add_listener(listener: Callable[[str], tuple[str, bool]]) -> None:
    """Have a function called for data that could not be read or decoded.

    Args:
        listener: gets a text that names the data: their origin, or an error message. Returns what ``doubt`` does.
    """
    _listeners.append(listener)


def doubt(text: str) -> tuple[str, bool]:
    """Tell all listeners about data that could not be used.

    Args:
        text: origin of a sample, or the message of an error about a file.

    Returns:
        a sentence for the user about copies of the data, "" where there are none; and whether a copy was dropped, so
        that reading again fetches the data again.
    """
    answers = [listener(text) for listener in _listeners]
    return " ".join(note for note, _ in answers if note), any(is_dropped for _, is_dropped in answers)
