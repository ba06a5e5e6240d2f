"""Make an input smaller while it shows the same mistake."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.inputs import Input


def minimized(given: Input, shows: Callable[[Input], bool], seconds: float = 40.0, tries: int = 1500) -> Input:
    """Return a small input that shows the same.

    Args:
        given: an input that shows it.
        shows: runs an input; whether the same comes of it.
        seconds: when to stop.
        tries: how often to run.
    """
    search = _Search(given, shows, time.monotonic() + seconds, tries)
    for name in given:
        if not name.startswith(":"):
            document = _document(search.best[name])
            if document is not None:
                search.reduce_document(name)
            else:
                search.reduce_bytes(name)
    return search.best


def _document(data: bytes) -> Any:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


class _Search:
    def __init__(self, given: Input, shows: Callable[[Input], bool], end: float, tries: int) -> None:
        self.best = given
        self._shows = shows
        self._end = end
        self._tries = tries

    def _accepts(self, name: str, data: bytes) -> bool:
        if self._tries <= 0 or time.monotonic() > self._end or data == self.best[name]:
            return False
        self._tries -= 1
        changed = {**self.best, name: data}
        if not self._shows(changed):
            return False
        self.best = changed
        return True

    def reduce_bytes(self, name: str) -> None:
        """Delete pieces, large ones first, then zero them."""
        size = len(self.best[name]) // 2
        while size:
            place = 0
            while place < len(self.best[name]):
                data = self.best[name]
                if not self._accepts(name, data[:place] + data[place + size :]):
                    place += size
            size //= 2
        size = len(self.best[name]) // 2
        while size:
            for place in range(0, len(self.best[name]), size):
                data = self.best[name]
                piece = data[place : place + size]
                self._accepts(name, data[:place] + bytes(len(piece)) + data[place + size :])
            size = size // 4 if size > 4 else 0

    def reduce_document(self, name: str) -> None:
        """Delete keys and items, then replace values by simpler ones."""
        is_smaller = True
        while is_smaller:
            is_smaller = False
            number = 0
            while True:
                strings = list(_simpler(json.loads(self.best[name]), number))
                if not strings:
                    break
                if any(self._accepts(name, text.encode()) for text in strings):
                    is_smaller = True
                else:
                    number += 1


def _simpler(document: Any, number: int) -> Iterator[str]:
    """Return the strings without the value of a number, counted from the outside, or with simpler values."""
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    for holder in waiting:
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            places.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])
    if number >= len(places):
        return
    holder, key = places[number]
    value = holder[key]
    del holder[key]
    yield json.dumps(document)
    if isinstance(holder, list):
        holder.insert(key, value)
    else:
        holder[key] = value
    for simple in (None, 0, ""):
        if isinstance(value, (dict, list)) and value and simple is None:
            holder[key] = simple
            yield json.dumps(document)
