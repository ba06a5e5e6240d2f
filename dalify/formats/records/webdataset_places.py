"""Finds the requested files of WebDataset samples, in one compiled pass over the names of an archive, or over an index.

Special cases are processed by ``webdataset`` name by name, with errors and warnings, which takes much longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.bisection import last_at_most
from dalify.base.compiling import njit
from dalify.formats.files.pieces import ALIGNMENT_BYTES, Pieces, largest_piece, lay_out
from dalify.formats.records.tar import BLOCK_BYTES, member_rows

_MAX_DIGITS = 18
_BLANK, _TAB, _LINE_END, _RETURN, _SLASH, _DOT = 32, 9, 10, 13, 47, 46


class Extensions:
    """Maps extensions to outputs.

    Args:
        pairs: extension, in lower case if not case-sensitive, and index of the output.
        sizes: element size of each output in bytes.
        folds: whether upper and lower case are equivalent.

    Attributes:
        arrays: arguments of compiled functions: strings, their ends, outputs, element sizes, case folding.
    """

    def __init__(self, pairs: list[tuple[bytes, int]], sizes: list[int], *, folds: bool) -> None:
        self.count = len(sizes)
        self.arrays = (
            np.frombuffer(b"".join(extension for extension, _ in pairs) or b"\0", np.uint8),
            np.cumsum([len(extension) for extension, _ in pairs], dtype=np.int64),
            np.array([output for _, output in pairs], np.int64),
            np.array(sizes, np.int64),
            folds,
        )


@njit(nogil=True, cache=True)
def _take(data: Any, start: Any, stop: Any, offset: Any, size: Any, wanted: Any, row: Any) -> bool:
    """Store a file in the row of its sample; return False in any special case."""
    texts, ends, outputs, sizes, folds = wanted
    begin = 0
    for pair in range(ends.size):
        same = ends[pair] - begin == stop - start
        if same:
            for index in range(stop - start):
                byte = data[start + index]
                if folds and 65 <= byte <= 90:
                    byte += 32
                if byte != texts[begin + index]:
                    same = False
                    break
        begin = ends[pair]
        if same:
            output = outputs[pair]
            if row[output, 0] >= 0 or size % sizes[output]:
                return False
            row[output, 0], row[output, 1] = offset, size
    return True


@njit(nogil=True, cache=True)
def _group(data: Any, rows: Any, last: Any, wanted: Any, table: Any, filled: Any) -> int:
    """Group files into samples; ``table[filled - 1]`` is the current one. Return the new count or -1.

    ``last`` is the name of the last sample: its start and end, and start and end of its prefix.
    """
    for number in range(len(rows)):
        name, name_end, prefix, prefix_end, offset, size = rows[number]
        component = name
        for place in range(name, name_end):
            if data[place] == _SLASH:
                component = place + 1
        base_end = component
        while base_end < name_end and data[base_end] != _DOT:
            base_end += 1
        if base_end == component:
            continue
        if (prefix_end > prefix) != (last[3] > last[2]) and filled:
            return -1  # equal names may be stored in different ways
        same = filled > 0 and base_end - name == last[1] - last[0]
        if filled and prefix_end > prefix:
            if prefix_end - prefix != last[3] - last[2]:
                return -1
            for index in range(prefix_end - prefix):
                if data[prefix + index] != data[last[2] + index]:
                    same = False
        if same:
            for index in range(base_end - name):
                if data[name + index] != data[last[0] + index]:
                    same = False
                    break
        if not same:
            table[filled] = -1
            filled += 1
            last[0], last[1], last[2], last[3] = name, base_end, prefix, prefix_end
        if not _take(data, min(base_end + 1, name_end), name_end, offset, size, wanted, table[filled - 1]):
            return -1
    return filled


def places_in_archive(path: str, extensions: Extensions) -> NDArray[np.int64] | None:
    """Return offsets and sizes of the requested files of the samples of an archive, -1 for missing files.

    Returns:
        int64 ``[samples, outputs, 2]``; None in special cases: several files for an output, sizes that are not a
        multiple of the element size, or equal names that are stored in different ways.

    Raises:
        ReaderError: the archive is absent, empty, damaged or truncated.
    """
    parts: list[NDArray[np.int64]] = []
    last = np.zeros(4, np.int64)
    filled = 0
    begun = np.empty((1, extensions.count, 2), np.int64)
    name_of_last = np.empty(0, np.uint8)
    for names, rows in member_rows(path):
        # The name of the last sample precedes the new names.
        data = np.concatenate([name_of_last, names])
        rows[:, :4] += len(name_of_last)
        table = np.empty((len(rows) + 1, extensions.count, 2), np.int64)
        table[0] = begun[0]
        filled = _group(data, rows, last, extensions.arrays, table, filled)
        if filled < 0:
            return None
        if filled:
            # The last sample may continue in the next part.
            parts.append(table[: filled - 1])
            begun = table[filled - 1 : filled].copy()
            filled = 1
            name_of_last = np.concatenate([data[last[0] : last[1]], data[last[2] : last[3]]])
            size = last[1] - last[0]
            last[:] = 0, size, size, len(name_of_last)
    return np.concatenate([*parts, begun[:filled]])


@njit(nogil=True, cache=True)
def _number(data: Any, start: Any, stop: Any) -> Any:
    """Parse a word as a number; -1 if it is not a number."""
    if stop == start or stop - start > _MAX_DIGITS:
        return -1
    value = np.int64(0)
    for place in range(start, stop):
        if not 48 <= data[place] < 58:
            return -1
        value = value * 10 + np.int64(data[place] - 48)
    return value


@njit(nogil=True, cache=True)
def _parse(data: Any, place: Any, width: Any, wanted: Any, table: Any) -> bool:
    """Fill a row of the table from each line; return False for an unusual line."""
    for sample in range(len(table)):
        table[sample] = -1
        words = 0
        start = stop = offset = np.int64(0)
        while True:
            while place < data.size and (data[place] == _BLANK or data[place] == _TAB):
                place += 1
            if place < data.size and data[place] == _RETURN:
                place += 1
                if place < data.size and data[place] != _LINE_END:
                    return False
            if place >= data.size or data[place] == _LINE_END:
                place += 1
                break
            begin = place
            while place < data.size and data[place] > _BLANK:
                place += 1
            column = words % width
            if column == 0:
                start, stop = begin, place
            elif column == 1:
                offset = _number(data, begin, place)
            elif column == 2:
                size = _number(data, begin, place)
                is_place = offset >= 0 and offset % BLOCK_BYTES == 0 and size >= 0
                if not is_place or not _take(data, start, stop, offset, size, wanted, table[sample]):
                    return False
            if place < data.size and data[place] < _BLANK and not (9 <= data[place] <= 10 or data[place] == _RETURN):
                return False
            words += 1
        if words == 0 or words % width:
            return False
    return True


def places_in_index(
    text: bytes, start: int, count: int, words: int, extensions: Extensions
) -> NDArray[np.int64] | None:
    """Return offsets and sizes of the requested files of the samples of an index, -1 for missing files.

    Args:
        text: the index.
        start: offset of the first line with a sample.
        count: number of samples.
        words: number of words per file: extension, offset, size, and optionally the name.
        extensions: the requested extensions.

    Returns:
        int64 ``[samples, outputs, 2]``; None in special cases; see ``places_in_archive``.
    """
    if count > len(text):
        return None
    table = np.empty((count, extensions.count, 2), np.int64)
    return table if _parse(np.frombuffer(text, np.uint8), start, words, extensions.arrays, table) else None


class PiecesByOutput:
    """Pieces of archives for the samples of a chunk, found by one compiled call. Missing files have size 0.

    Args:
        numbers: indices of the samples, int64 ``[N]``, N > 0.
        places: offset and size of each output of all samples, int64 ``[samples, outputs, 2]``; negative if missing.
        firsts: index of the first sample of each archive, int64 ``[archives]``.

    Attributes:
        archives: archive, offset and size of each piece, by sample and output, int64 ``[3, N * outputs]``.
        pieces: memory for them; None if a number is invalid, or they are large.
        spans: start and size of the pieces of each output in this memory, int64 ``[outputs, 2, N]``.
        bounds: minimum and maximum size of each output, alternately.
    """

    __slots__ = ("archives", "bounds", "pieces", "spans")

    def __init__(self, numbers: NDArray[np.int64], places: NDArray[np.int64], firsts: NDArray[np.int64]) -> None:
        count, outputs = len(numbers), places.shape[1]
        # Outputs are arguments, because numba returns arrays slowly.
        table = np.empty((5, count * outputs), np.int64)
        self.spans = np.empty((outputs, 2, count), np.int64)
        found = np.empty(2 + 2 * outputs, np.int64)
        _find_pieces(numbers, places, firsts, largest_piece(count * outputs), table, self.spans, found)
        size_bytes, has_one_file, *self.bounds = found.tolist()
        self.archives = table[:3]
        self.pieces = (
            None if size_bytes < 0 else Pieces(table[3], table[4], size_bytes, has_one_file=bool(has_one_file))
        )


@njit(cache=True)
def _find_pieces(numbers: Any, places: Any, firsts: Any, largest: int, table: Any, spans: Any, found: Any) -> None:
    outputs = places.shape[1]
    for sample in range(numbers.size):
        archive = last_at_most(firsts, numbers[sample])
        for output in range(outputs):
            piece = sample * outputs + output
            is_there = places[numbers[sample], output, 0] >= 0
            table[0, piece] = archive
            table[1, piece] = places[numbers[sample], output, 0] if is_there else 0
            table[2, piece] = places[numbers[sample], output, 1] if is_there else 0
    found[0], found[1] = lay_out(table[0], table[1], table[2], largest, ALIGNMENT_BYTES, table[3], table[4])
    for output in range(outputs):
        low = high = table[2, output]
        for sample in range(numbers.size):
            piece = sample * outputs + output
            spans[output, 0, sample], spans[output, 1, sample] = table[3, piece], table[2, piece]
            low, high = min(low, table[2, piece]), max(high, table[2, piece])
        found[2 + 2 * output], found[3 + 2 * output] = low, high
