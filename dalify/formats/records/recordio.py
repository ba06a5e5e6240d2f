"""MXNet's RecordIO files of images: finds and decodes their records.

A record is a magic number, a word with its kind (upper 3 bits) and length (lower 29 bits), and the data, padded to four
bytes. Data that contains the magic number is split there into several parts. An image is preceded by a flag, a label,
two numbers, and as many additional labels as the flag says. Source: recordio.h of dmlc-core and recordio.py of MXNet.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.base.whole_files import write_file
from dalify.base.wording import counted
from dalify.data.batch import Batch
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.pieces import samples_in
from dalify.formats.files.storage import is_remote, size_of
from dalify.formats.records.records import Record, Records, read_pairs, warn_of_rest

_MAGIC = 0xCED7230A
_MAGIC_BYTES = np.frombuffer(struct.pack("<I", _MAGIC), np.uint8)
_HEAD = struct.Struct("<II")
_IMAGE_HEAD = struct.Struct("<IfQQ")
_LENGTH_BITS = 29
_WHOLE, _BEGIN, _MIDDLE, _END = range(4)


def records_of(paths: Sequence[str], index_paths: Sequence[str]) -> Records:
    """Find the records of RecordIO files, in file order.

    Args:
        paths: paths of the files.
        index_paths: one index ("key offset" on each line) with offsets into the concatenated files, as in DALI; or one
            index per file.

    Raises:
        ReaderError: a file is absent, or an index is damaged, empty, or belongs to another file.
        ArgumentValueError: the number of indices is wrong.
    """
    if not paths:
        raise ReaderError("path is empty.")
    if len(index_paths) not in (1, len(paths)):
        raise ArgumentValueError(f"index_path must be one path, or one path for each of the {len(paths)} files.")
    sizes = [_size(path) for path in paths]
    if len(index_paths) == len(paths):
        places = [
            _places(_offsets(index), 0, path, size, index)
            for path, index, size in zip(paths, index_paths, sizes, strict=True)
        ]
    else:
        offsets = _offsets(index_paths[0])
        ends = np.cumsum(sizes)
        if offsets[-1] >= ends[-1]:
            raise _beyond_end(index_paths[0], int(offsets[-1]))
        cuts = np.searchsorted(offsets, ends)
        places = [
            _places(part, int(end) - size, path, size, index_paths[0])
            for part, end, path, size in zip(np.split(offsets, cuts[:-1]), ends, paths, sizes, strict=True)
        ]
    return Records(paths, places)


def _size(path: str) -> int:
    if is_remote(path):
        return size_of(path)
    try:
        return os.stat(path).st_size  # noqa: PTH116 - path is a string
    except OSError as error:
        raise ReaderError(f"cannot read the RecordIO file {path!r}: {error.strerror}.") from None


def _offsets(index: str) -> NDArray[np.int64]:
    """Return the offsets of an index, ascending and without repetitions; the keys are ignored."""
    offsets = np.unique(read_pairs(index, "RecordIO index")[:, 1])
    if not len(offsets):
        raise ReaderError(f"the index {index!r} is empty.")
    return offsets


def _places(
    offsets: NDArray[np.int64], begin: int, path: str, size: int, index: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return offsets within the file and sizes: each record ends at the start of the next one."""
    own = offsets - begin
    if len(own) and own[-1] >= size:
        raise _beyond_end(index, int(offsets[-1]))
    if not is_remote(path):  # a request for each file would take longer than reading the index
        with suppress(ReaderError):  # reported for the sample
            warn_of_rest(path, size, index, _end(path, size, int(own[-1])) if len(own) else 0, "rec2idx")
    return own, np.diff(own, append=np.int64(size))


def _end(path: str, size: int, offset: int) -> int:
    """Return the end of a record; the end of the file if the record is damaged or has several parts."""
    if offset + _HEAD.size > size:
        return size
    mark, word = _HEAD.unpack(OpenFiles([path]).read(0, offset, _HEAD.size).tobytes())
    return offset + _HEAD.size + (word + 3) // 4 * 4 if mark == _MAGIC and word >> _LENGTH_BITS == _WHOLE else size


def _beyond_end(index: str, offset: int) -> ReaderError:
    return ReaderError(
        f"the index {index!r} has a record at byte {offset}, beyond the end of the data.",
        hint="The index belongs to another file.",
    )


def image_and_labels(record: Record) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return the bytes of an image, uint8 ``[n]``, and its labels, float32 ``[k]``.

    Raises:
        ReaderError: the file is too short, or the record is damaged.
    """
    data = _contents(record.read())
    if len(data) < _IMAGE_HEAD.size:
        raise ReaderError("the record is damaged: it is shorter than the header of an image.")
    flag, label, _, _ = _IMAGE_HEAD.unpack_from(data.data)
    start = _IMAGE_HEAD.size
    if flag == 0:
        return data[start:], np.array([label], np.float32)
    stop = start + 4 * flag
    if stop > len(data):
        raise ReaderError(f"the record is damaged: it is too short for its {counted(flag, 'label')}.")
    return data[stop:], data[start:stop].copy().view("<f4")


def images_and_labels(
    records: Records, numbers: NDArray[np.int64]
) -> tuple[Batch, NDArray[np.float32] | list[NDArray[np.float32]]] | None:
    """Return images and labels of many records, read in one call; labels are float32 ``[N, 1]`` if all have one.

    None if ``image_and_labels`` must be used, because a record is damaged or has several parts.
    """
    pieces = records.read_many(numbers)
    if pieces is None or (pieces.stops - pieces.starts < _HEAD.size + _IMAGE_HEAD.size).any():
        return None
    words, places = pieces.data.view("<u4"), pieces.starts // 4
    contents = pieces.starts + _HEAD.size
    # In a complete record, the kind is 0, so the word is the length.
    ends = contents + words[places + 1]
    flags = words[places + 2].astype(np.int64)
    starts = contents + _IMAGE_HEAD.size + 4 * flags
    if not ((words[places] == _MAGIC) & (starts <= ends) & (ends <= pieces.stops)).all():
        return None
    images = samples_in(pieces.data, starts, ends)
    numbers_of = pieces.data.view("<f4")
    if not flags.any():
        return images, numbers_of[places + 3][:, None]
    # Words of a record: magic, length, flag, label, two numbers of two words each, and further labels.
    return images, [
        numbers_of[place + 8 : place + 8 + flag].copy() if flag else numbers_of[place + 3 : place + 4].copy()
        for place, flag in zip(places.tolist(), flags.tolist(), strict=True)
    ]


def _contents(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the data of a record: its parts, joined by the magic number."""
    parts: list[NDArray[np.uint8]] = []
    place = 0
    while True:
        if place + _HEAD.size > len(data):
            raise ReaderError("the record is damaged: it ends within a header.")
        mark, word = _HEAD.unpack_from(data.data, place)
        if mark != _MAGIC:
            raise ReaderError(
                "no record at the offset in the index: the RecordIO magic number is missing.",
                hint="Create the index again: python -m dalify.tools.rec2idx FILE INDEX",
            )
        kind, length = word >> _LENGTH_BITS, word & ((1 << _LENGTH_BITS) - 1)
        place += _HEAD.size
        if place + length > len(data) or kind > _END or (kind in (_WHOLE, _BEGIN)) != (not parts):
            raise ReaderError("the record is damaged: its length or kind is invalid.")
        part = data[place : place + length]
        if kind == _WHOLE:
            return part
        parts += [part] if not parts else [_MAGIC_BYTES, part]
        if kind == _END:
            return np.concatenate(parts)
        place += (length + 3) // 4 * 4


def write_index(path: str, index: str) -> int:
    """Scan a file and write its index; return the number of records.

    Raises:
        ReaderError: the file cannot be read or is damaged.
    """
    files = OpenFiles([path])
    size = files.size(0)
    offset = 0
    lines: list[str] = []
    while offset < size:
        mark, word = _HEAD.unpack_from(files.read(0, offset, min(_HEAD.size, size - offset)).tobytes().ljust(8, b"\0"))
        length = word & ((1 << _LENGTH_BITS) - 1)
        if mark != _MAGIC or offset + _HEAD.size + length > size:
            raise ReaderError(f"{path!r} is not a RecordIO file, or is damaged at byte {offset}.")
        if word >> _LENGTH_BITS in (_WHOLE, _BEGIN):
            lines.append(f"{len(lines)}\t{offset}\n")
        offset += _HEAD.size + (length + 3) // 4 * 4
    write_file(index, "".join(lines).encode())
    return len(lines)
