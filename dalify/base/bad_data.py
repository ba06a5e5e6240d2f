"""Notifies caches about data that could not be used, so that they can drop damaged copies."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[str], tuple[str, bool]]] = []


def add_listener(listener: Callable[[str], tuple[str, bool]]) -> None:
    """Register a function that is called for data that could not be read or decoded.

    Args:
        listener: called with a string that identifies the data, their origin or an error message; it returns the same
            as ``report_bad_data``.
    """
    _listeners.append(listener)


def report_bad_data(text: str) -> tuple[str, bool]:
    """Notify all listeners about data that could not be used.

    Args:
        text: origin of a sample, or the message of an error about a file.

    Returns:
        A sentence for the user about copies of the data, or "", and whether a copy was dropped, so that reading again
        fetches the data.
    """
    answers = [listener(text) for listener in _listeners]
    return " ".join(note for note, _ in answers if note), any(is_dropped for _, is_dropped in answers)
