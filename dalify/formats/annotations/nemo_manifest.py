"""Reads manifests of NVIDIA NeMo: audio recordings and their transcripts, one JSON object per line.

Entries are stored in a few arrays, because a million dictionaries would need too much memory.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import ReaderError, short_repr
from dalify.base.narrow import is_number
from dalify.base.wording import counted
from dalify.data.entries import Entries
from dalify.formats.files.data_root import DataRoot
from dalify.formats.files.paths import JoinedBytes
from dalify.formats.files.storage import folder_of, joined, read_text

_NOT_GIVEN = -1.0


class Recording(NamedTuple):
    """One entry of a manifest.

    Attributes:
        path: path of the audio file.
        offset: start of the recording, in seconds.
        duration: duration in seconds; negative for the whole file.
        text: transcript, UTF-8.
        number: index of the entry among the selected entries of its manifest.
        problem: why the entry is invalid; "" if it is valid.
    """

    path: str
    offset: float
    duration: float
    text: bytes
    number: int
    problem: str = ""


class Recordings(Entries[Recording]):
    """The entries of manifests, filtered by duration.

    An invalid entry is kept with its problem, and is an error when it is read.

    Args:
        manifests: paths of the manifests.
        min_duration: minimum duration in seconds; 0 for any. If set, entries without a duration are skipped.
        max_duration: maximum duration in seconds; 0 for any.
        allow_outside_root: whether audio paths are interpreted as in DALI: relative to the working directory, and
            anywhere. Otherwise they are relative to the folder of their manifest and must stay inside it.

    Raises:
        ReaderError: a manifest is absent or not JSON, or a path in it points outside its folder.
    """

    def __init__(
        self, manifests: Sequence[str], min_duration: float, max_duration: float, *, allow_outside_root: bool
    ) -> None:
        # DALI stores the limits as float32, so an entry of 0.01 s is longer than a limit of 0.01.
        limits = float(np.float32(min_duration)), float(np.float32(max_duration))
        self._offsets, self._durations, self._numbers = array("d"), array("d"), array("q")
        self._problems: dict[int, str] = {}
        self._strings = JoinedBytes(self._collected(manifests, *limits, allow_outside_root))  # path and text of each

    def _collected(
        self, manifests: Sequence[str], minimum: float, maximum: float, allow_outside_root: bool
    ) -> Iterator[bytes]:
        """Collect the numbers of the entries; yield path and text of each."""
        skipped = 0
        for manifest in manifests:
            number = 0
            folder = None if allow_outside_root else folder_of(manifest)
            root = DataRoot(folder, allow_outside_root=allow_outside_root)
            for place, entry in _entries(manifest):
                path, offset, duration, text, problem = _parse_entry(entry, place)
                if problem:
                    self._problems[len(self)] = problem
                elif (minimum > 0 and duration < minimum) or (maximum > 0 and duration > maximum):
                    skipped += 1
                    continue
                else:
                    path = joined(folder, root.relative(path, place))
                yield os.fsencode(path)
                yield text.encode(errors="surrogateescape")
                self._offsets.append(offset)
                self._durations.append(duration)
                self._numbers.append(number)
                number += 1
        if skipped and not self._numbers:
            raise ReaderError(f"min_duration and max_duration exclude all {counted(skipped, 'entry')}.")

    def __len__(self) -> int:
        return len(self._numbers)

    def _entry(self, number: int) -> Recording:
        return Recording(
            os.fsdecode(self._strings[2 * number]),
            self._offsets[number],
            self._durations[number],
            self._strings[2 * number + 1],
            self._numbers[number],
            self._problems.get(number, ""),
        )


def _entries(manifest: str) -> Iterator[tuple[str, Any]]:
    """Yield each object with its position; an object may have several lines, as in NeMo's examples."""
    text = read_text(manifest, "the manifest")
    decode = json.JSONDecoder().raw_decode
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            entry, end = decode(text, place)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, place) + 1
            raise ReaderError(f"{manifest}, line {line}: invalid JSON: {error}.") from None
        yield f"{manifest}, entry at character {place}", entry
        place = end


def _parse_entry(entry: Any, place: str) -> tuple[str, float, float, str, str]:
    """Return path, offset, duration and text, and the reason why they are invalid, or ""."""
    if not isinstance(entry, dict):
        problem = f'{place}: expected an object such as {{"audio_filepath": ...}}; got {short_repr(entry)}.'
        return place, 0.0, _NOT_GIVEN, "", problem
    path = entry.get("audio_filepath")
    if not isinstance(path, str) or not path or "\0" in path or not _is_encodable(path):
        return place, 0.0, _NOT_GIVEN, "", f"{place}: 'audio_filepath' must be a path; got {short_repr(path)}."
    numbers: list[float] = []
    for name, default in (("offset", 0.0), ("duration", _NOT_GIVEN)):
        value = entry.get(name)
        if value is not None and not _is_seconds(value):
            problem = f"{place}: {name} must be a finite number of seconds, at least 0; got {short_repr(value)}."
            return path, 0.0, _NOT_GIVEN, "", problem
        numbers.append(default if value is None else float(value))
    text = entry.get("text")
    if text is not None and not (isinstance(text, str) and _is_encodable(text)):
        return path, 0.0, _NOT_GIVEN, "", f"{place}: text must be a string of valid Unicode; got {short_repr(text)}."
    return path, numbers[0], numbers[1], text or "", ""


def _is_encodable(text: str) -> bool:
    """Return whether a string has no unpaired surrogates, which JSON allows and UTF-8 does not."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _is_seconds(value: Any) -> bool:
    return is_number(value) and 0 <= value <= sys.float_info.max
