"""TFRecord files: finds their records, with or without an index file, and verifies checksums.

A record is its length (8 bytes, little-endian), a checksum of the length, the data, and a checksum of the data. Source:
record_writer.h of TensorFlow. The index is that of DALI's ``tfrecord2idx``: a line "offset size" per record, including
its header and trailer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.errors import ReaderError
from dalify.base.whole_files import write_file
from dalify.formats.files.forward_file import ForwardFile
from dalify.formats.files.pieces import Pieces
from dalify.formats.files.storage import is_remote
from dalify.formats.records.records import Record, Records, paired, read_pairs, warn_of_rest

_HEAD, _TAIL = 12, 4
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


def records_of(paths: Sequence[str], index_paths: Sequence[str] | None, context: Any) -> Records:
    """Find the records of TFRecord files.

    Args:
        paths: paths of the files.
        index_paths: paths of the indices, one per file; None to scan the files, which reads every header.
        context: passed to every record.

    Raises:
        ReaderError: a file is absent, damaged or empty.
        ArgumentValueError: the numbers of indices and files differ.
    """
    return Records(
        paths,
        [
            scan(path) if index is None else _from_index(path, index)
            for path, index in paired(paths, index_paths, "index_path")
        ],
        context,
    )


def scan(path: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return offsets and sizes of the records of a file, including header and trailer.

    Raises:
        ReaderError: the file is absent, or truncated in the middle of a record.
    """
    with ForwardFile(path) as file:
        if not file.size:
            raise ReaderError(f"the TFRecord file {path!r} is empty.")
        parts = [np.zeros(1, np.int64)]
        place = 0
        while place < file.size:
            window = file.read_from(place, min(_HEAD, file.size - place))
            offsets, place = _scan(window, place, file.size)
            parts.append(offsets)
            if place < 0:
                last = int(np.concatenate(parts)[-1])
                raise ReaderError(
                    f"{path!r} is not a TFRecord file, or is truncated: the record at byte {last} is incomplete.",
                    hint=file.compression_hint(),
                )
    places = np.concatenate(parts)
    return places[:-1], np.diff(places)


@njit(nogil=True, cache=True)
def _scan(window: Any, start: int, size_of_file: int) -> tuple[Any, Any]:
    """Return the ends of records with their headers in a window, and the last end; -1 if one is damaged.

    Args:
        window: a part of the file.
        start: offset of the window, which is the start of a record.
        size_of_file: size of the file in bytes.
    """
    offsets = np.empty(window.size // (_HEAD + _TAIL) + 1, np.int64)
    count = 0
    place = start
    while place < size_of_file:
        header = place - start
        if header + _HEAD > window.size:
            if place + _HEAD > size_of_file:
                return offsets[:count], -1
            break
        length = np.uint64(0)
        for byte in range(8):
            length |= np.uint64(window[header + byte]) << np.uint64(8 * byte)
        if length > np.uint64(size_of_file - place):
            return offsets[:count], -1
        place += np.int64(length) + _HEAD + _TAIL
        if place > size_of_file:
            return offsets[:count], -1
        offsets[count] = place
        count += 1
    return offsets[:count], place


def _from_index(path: str, index: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    places = read_pairs(index, "TFRecord index")
    if not len(places):
        raise ReaderError(f"the index {index!r} of {path!r} is empty.")
    if (places[:, 1] < _HEAD + _TAIL).any():
        line = int(np.argmax(places[:, 1] < _HEAD + _TAIL)) + 1
        raise ReaderError(f"{index}, line {line}: the size of a record must be at least {_HEAD + _TAIL} bytes.")
    end = sum(places[places[:, 0].argmax()].tolist())
    if not is_remote(path):  # a request for each file would take longer than reading the index
        with suppress(OSError):  # reported for the sample
            warn_of_rest(path, Path(path).stat().st_size, index, end, "tfrecord2idx")
    return places[:, 0].copy(), places[:, 1].copy()


def write_index(path: str, index: str) -> int:
    """Scan a file and write its index; return the number of records.

    Raises:
        ReaderError: the file cannot be read or is damaged.
    """
    offsets, sizes = scan(path)
    lines = [f"{offset} {size}\n" for offset, size in zip(offsets.tolist(), sizes.tolist(), strict=True)]
    write_file(index, "".join(lines).encode())
    return len(lines)


def payload(record: Record, check_crc: bool) -> NDArray[np.uint8]:
    """Return the data of a record, without header and trailer.

    Args:
        record: a record found by this module.
        check_crc: whether to verify both checksums.

    Raises:
        ReaderError: the file is too short, the index does not match, or a checksum is wrong.
    """
    frame = record.read()
    length = int(frame[:8].view("<u8")[0])
    if length != len(frame) - _HEAD - _TAIL:
        raise ReaderError(
            f"the record has {length} bytes, but the index specifies {len(frame) - _HEAD - _TAIL}.",
            hint="Create the index again: python -m dalify.tools.tfrecord2idx FILE INDEX",
        )
    data = frame[_HEAD:-_TAIL]
    if check_crc:
        for part, place in ((frame[:8], 8), (data, len(frame) - _TAIL)):
            if _masked_crc(part, _TABLES) != int.from_bytes(frame[place : place + 4].tobytes(), "little"):
                raise ReaderError("the checksum of the record is wrong: its data is damaged.")
    return data


def payloads(pieces: Pieces, check_crc: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return start and end of the data of many records; None if ``payload`` would reject a record.

    Args:
        pieces: the records with header and trailer.
        check_crc: whether to verify the checksums.
    """
    starts, stops = pieces.starts + _HEAD, pieces.stops - _TAIL
    if not _are_complete(pieces.data, starts, stops):
        return None
    if check_crc and not _are_checksums_valid(pieces.data, starts, stops, _TABLES):
        return None
    return starts, stops


def _crc_tables() -> NDArray[np.uint32]:
    """Return ``[8, 256]`` tables of CRC-32C: the effect of a byte 0 to 7 bytes later."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for depth in range(1, 8):
        tables[depth] = tables[depth - 1] >> 8 ^ tables[0, tables[depth - 1] & 255]
    return tables


_TABLES = _crc_tables()


@njit(nogil=True, cache=True)
def _masked_crc(data: Any, tables: Any) -> int:
    """Return the masked CRC-32C of TFRecord: computed for eight bytes per step, rotated, plus a constant."""
    crc = np.uint32(0xFFFFFFFF)
    place = 0
    while place + 8 <= data.size:
        low = crc ^ (
            np.uint32(data[place])
            | np.uint32(data[place + 1]) << np.uint32(8)
            | np.uint32(data[place + 2]) << np.uint32(16)
            | np.uint32(data[place + 3]) << np.uint32(24)
        )
        crc = (
            tables[7, low & np.uint32(255)]
            ^ tables[6, low >> np.uint32(8) & np.uint32(255)]
            ^ tables[5, low >> np.uint32(16) & np.uint32(255)]
            ^ tables[4, low >> np.uint32(24)]
            ^ tables[3, data[place + 4]]
            ^ tables[2, data[place + 5]]
            ^ tables[1, data[place + 6]]
            ^ tables[0, data[place + 7]]
        )
        place += 8
    while place < data.size:
        crc = np.uint32(crc >> np.uint32(8)) ^ tables[0, (crc ^ np.uint32(data[place])) & np.uint32(255)]
        place += 1
    crc = ~np.uint32(crc)
    rotated = (np.uint64(crc) >> np.uint64(15) | np.uint64(crc) << np.uint64(17)) & np.uint64(0xFFFFFFFF)
    return int((rotated + np.uint64(_MASK)) & np.uint64(0xFFFFFFFF))


@njit(nogil=True, cache=True)
def _sum_at(data: Any, place: int) -> Any:
    return (
        np.int64(data[place])
        | np.int64(data[place + 1]) << 8
        | np.int64(data[place + 2]) << 16
        | np.int64(data[place + 3]) << 24
    )


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _are_complete(data: Any, starts: Any, stops: Any) -> bool:
    """Return whether the lengths in the headers of records equal the lengths in the index."""
    for record in range(starts.size):
        start = starts[record]
        if stops[record] < start:
            return False
        length = np.uint64(0)
        for byte in range(8):
            length |= np.uint64(data[start - 12 + byte]) << np.uint64(8 * byte)
        if length != np.uint64(stops[record] - start):
            return False
    return True


@njit(nogil=True, cache=True)
def _are_checksums_valid(data: Any, starts: Any, stops: Any, tables: Any) -> bool:
    for record in range(starts.size):
        start, stop = starts[record], stops[record]
        if _masked_crc(data[start - 12 : start - 4], tables) != _sum_at(data, start - 4):
            return False
        if _masked_crc(data[start:stop], tables) != _sum_at(data, stop):
            return False
    return True
