"""Reads records of LMDB databases by index, in the order of their keys.

The file is not mapped, because truncation of a mapped file would end the process. One pass over the pages finds the
values; then records are read as from other containers. No lock file is needed. Source: the data structures in mdb.c of
LMDB 0.9, on 64-bit machines with little-endian numbers.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.compiling import njit
from dalify.base.errors import ReaderError
from dalify.base.wording import counted
from dalify.data.entries import Entries
from dalify.data.origin import Origin
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.pieces import Pieces
from dalify.formats.files.storage import local_copy

# A page starts with its number, 2 unused bytes, flags, and the start and end of its free space.
_PAGE_HEADER_BYTES = 16
_BRANCH, _LEAF, _META = 1, 2, 8
_MAGIC, _VERSION = 0xBEEFC0DE, 1
# After the header of a meta page: magic, version, address, size of the map; for the free list and for the records: page
# size or nothing, flags, depth, counts of three kinds of pages, count of entries, page of the root; then last page and
# number of the transaction.
_META_PAGE = struct.Struct("<8x2xHHH" + "IIQQ" + 2 * "IHHQQQQQ" + "QQ")
_NUMBER_OF_TRANSACTION = struct.Struct("<Q")
_PLACE_OF_TRANSACTION = _META_PAGE.size - _NUMBER_OF_TRANSACTION.size
_MIN_PAGE_BYTES, _MAX_PAGE_BYTES = 512, 1 << 15
_MAX_DEPTH = 32  # as in LMDB
_NO_PAGE = (1 << 64) - 1
_DUPLICATE_KEYS = 4  # flag of the record tree
_DAMAGED = -1
# A node consists of the low and high half of the size of its value, flags, the size of its key, the key, and the value.
# In a branch, the first three are the number of a page.
_IS_OVERFLOW = 1  # flag of a node: it contains the number of the overflow pages with the value


class _Meta(NamedTuple):
    """State of a database after its last transaction, from its meta pages."""

    page_bytes: int
    depth: int
    entries: int
    root: int
    transaction: int


class LmdbRecord(NamedTuple):
    """One record: index of its database, and its index among the records of all databases."""

    records: LmdbRecords
    database: int
    number: int

    @property
    def origin(self) -> Origin:
        """Database and key; in ``source_info`` with DALI's wording."""
        key = self.records.key(self.number).decode(errors="backslashreplace")
        path = self.records.paths[self.database]
        return Origin(f"{path}, key {key}", f"{path} at key {key}")

    @property
    def place(self) -> tuple[str, bytes]:
        """The file and the key."""
        return self.records.file_of(self.database), self.records.key(self.number)

    def read(self) -> NDArray[np.uint8]:
        """Return a copy of the value, uint8 ``[bytes]``.

        Raises:
            ReaderError: the database cannot be read, or has changed since it was opened.
            LimitError: the value is larger than ``max_sample_bytes``.
        """
        return self.records.read(self.database, self.number)


class LmdbRecords(Entries[LmdbRecord]):
    """The records of several databases, concatenated in order. Pickling stores paths, keys and offsets.

    Args:
        paths: paths of the databases: folders with a file ``data.mdb``, or files.

    Raises:
        ReaderError: a database is absent or damaged, or has several values per key.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        self._files = OpenFiles([_file_of(path) for path in self.paths])
        self._metas = [_meta(self._files, number, path) for number, path in enumerate(self.paths)]
        found = [_Index(self._files, number, meta) for number, meta in enumerate(self._metas)]
        self._offsets = _joined([part for index in found for part in index.offsets])
        self._sizes = _joined([part for index in found for part in index.sizes])
        self._keys = b"".join([part for index in found for part in index.keys])
        self._key_ends = np.cumsum(_joined([part for index in found for part in index.key_sizes]))
        self._firsts = [0, *np.cumsum([meta.entries for meta in self._metas]).tolist()]
        self._starts = np.array(self._firsts[:-1], np.int64)

    def file_of(self, database: int) -> str:
        """Return the path of the file of a database."""
        return self._files.paths[database]

    def key(self, number: int) -> bytes:
        """Return the key of a record."""
        start = int(self._key_ends[number - 1]) if number else 0
        return self._keys[start : int(self._key_ends[number])]

    def __len__(self) -> int:
        return len(self._offsets)

    def _entry(self, number: int) -> LmdbRecord:
        return LmdbRecord(self, bisect_right(self._firsts, number) - 1, number)

    def read(self, database: int, number: int) -> NDArray[np.uint8]:
        """Return the value of a record, uint8 ``[bytes]``.

        Raises:
            ReaderError: the database cannot be read, or has changed since it was opened.
            LimitError: the value is larger than ``max_sample_bytes``.
        """
        self._check_unchanged(database)
        return self._files.read(database, int(self._offsets[number]), int(self._sizes[number]))

    def read_many(self, numbers: NDArray[np.int64]) -> Pieces | None:
        """Return the values of records, read in one call; None if each must be read separately."""
        databases = np.searchsorted(self._starts, numbers, side="right") - 1
        try:
            for database in np.unique(databases).tolist():
                self._check_unchanged(database)
        except ReaderError:
            return None
        return self._files.read_many(databases, self._offsets[numbers], self._sizes[numbers])

    def _check_unchanged(self, database: int) -> None:
        """Raise an error if the database was modified, because its pages may contain other values."""
        known = self._metas[database]
        found = [
            _NUMBER_OF_TRANSACTION.unpack(self._files.read(database, place, _NUMBER_OF_TRANSACTION.size).data)[0]
            for place in (_PLACE_OF_TRANSACTION, known.page_bytes + _PLACE_OF_TRANSACTION)
        ]
        if max(found) != known.transaction:
            raise ReaderError(
                f"the LMDB database {self.paths[database]!r} was changed after it was opened.",
                hint="Do not write to a database while it is read. Rebuild the pipeline to read its new contents.",
            )


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _file_of(path: str) -> str:
    found = Path(local_copy(path))
    return str(found / "data.mdb") if found.is_dir() else str(found)


def _meta(files: OpenFiles, number: int, path: str) -> _Meta:
    """Return the newer of the two meta pages.

    Raises:
        ReaderError: the database is absent or invalid.
    """
    try:
        first = _meta_at(files, number, 0)
        found = max(first, _meta_at(files, number, first.page_bytes), key=lambda meta: meta.transaction)
        if found.page_bytes != first.page_bytes:
            raise ReaderError("its meta pages contradict each other")
    except ReaderError as error:
        raise _invalid(path, error.message) from None
    limits.check_count(found.entries, f"the LMDB database {path!r} declares {counted(found.entries, 'record')}")
    return found


def _meta_at(files: OpenFiles, number: int, offset: int) -> _Meta:
    values = _META_PAGE.unpack(files.read(number, offset, _META_PAGE.size).data)
    flags, magic, version = values[0], *values[3:5]
    page_bytes, depth, entries, root = values[7], *(values[place] for place in (17, 21, 22))
    if not flags & _META or magic != _MAGIC:
        raise ReaderError("it does not start with a valid meta page")
    if version != _VERSION:
        raise ReaderError(f"it has the format version {version}; version {_VERSION} is supported")
    if not _MIN_PAGE_BYTES <= page_bytes <= _MAX_PAGE_BYTES or page_bytes & (page_bytes - 1):
        raise ReaderError(f"it has an invalid page size of {page_bytes} bytes")
    if depth > _MAX_DEPTH:
        raise ReaderError(f"it has {depth} levels of pages; at most {_MAX_DEPTH} are possible")
    if values[16] & _DUPLICATE_KEYS:
        raise ReaderError("it allows duplicate keys (MDB_DUPSORT), which is not supported")
    return _Meta(page_bytes, depth, entries, root, values[-1])


def _invalid(path: str, reason: str) -> ReaderError:
    return ReaderError(f"cannot open the LMDB database {path!r}: {reason.rstrip('.')}.")


class _Index:
    """The offsets of the values of a database, found by traversing its pages from the root.

    Raises:
        ReaderError: a page is out of bounds or damaged.

    Attributes:
        offsets: offsets of the values, in chunks of int64 ``[n]``.
        sizes: sizes of the values, in chunks.
        keys: concatenated keys, in chunks.
        key_sizes: size of each key, in chunks.
    """

    def __init__(self, files: OpenFiles, number: int, meta: _Meta) -> None:
        self.offsets: list[NDArray[np.int64]] = []
        self.sizes: list[NDArray[np.int64]] = []
        self.keys: list[bytes] = []
        self.key_sizes: list[NDArray[np.int64]] = []
        self._path = files.paths[number]
        self._file_bytes = files.size(number)
        self._page_bytes = meta.page_bytes
        count = self._file_bytes // meta.page_bytes
        waiting = [] if meta.root == _NO_PAGE else [(meta.root, 1)]
        pages = entries = 0
        while waiting:
            page, depth = waiting.pop()
            pages += 1
            if page >= count or pages > count:
                raise self._damaged(f"page {page} is {'beyond its end' if page >= count else 'used more than once'}")
            data = files.read(number, page * meta.page_bytes, meta.page_bytes)
            if depth < meta.depth:
                children = np.empty(meta.page_bytes, np.int64)
                found = _read_branch(data, children)
                waiting += [(child, depth + 1) for child in children[: max(found, 0)].tolist()[::-1]]
            else:
                found = self._add_leaf(data, page)
                entries += found
            if found < 0:
                raise self._damaged(f"page {page} is damaged")
        if entries != meta.entries:
            raise self._damaged(f"it declares {counted(meta.entries, 'record')} but contains {entries}")

    def _add_leaf(self, data: NDArray[np.uint8], page: int) -> int:
        offsets, sizes, key_sizes = np.empty((3, len(data)), np.int64)
        keys = np.empty_like(data)
        start = page * self._page_bytes
        count = _read_leaf(data, start, self._file_bytes, offsets, sizes, keys, key_sizes)
        if count > 0:
            self.offsets.append(offsets[:count].copy())
            self.sizes.append(sizes[:count].copy())
            self.key_sizes.append(key_sizes[:count].copy())
            self.keys.append(keys[: key_sizes[:count].sum()].tobytes())
        return count

    def _damaged(self, what: str) -> ReaderError:
        return _invalid(self._path, f"{what}; the file is truncated or damaged")


@njit(nogil=True, cache=True)
def _half(data: Any, place: int) -> Any:
    return np.int64(data[place]) | np.int64(data[place + 1]) << 8


@njit(nogil=True, cache=True)
def _count_of(data: Any, kind: int) -> int:
    """Return the number of nodes of a page; -1 if it is not of this kind."""
    free = _half(data, 12)
    is_right = _half(data, 10) & (_BRANCH | _LEAF) == kind and _PAGE_HEADER_BYTES <= free <= data.size
    return (free - _PAGE_HEADER_BYTES) // 2 if is_right else _DAMAGED


@njit(nogil=True, cache=True)
def _read_branch(data: Any, children: Any) -> int:
    """Fill the numbers of the child pages; return their count, -1 if the page is damaged."""
    count = _count_of(data, _BRANCH)
    for number in range(count):
        node = _half(data, _PAGE_HEADER_BYTES + 2 * number)
        if node + 8 > data.size:
            return _DAMAGED
        children[number] = _half(data, node) | _half(data, node + 2) << 16 | _half(data, node + 4) << 32
    return count


@njit(nogil=True, cache=True)
def _read_leaf(data: Any, start: int, file_bytes: int, offsets: Any, sizes: Any, keys: Any, key_sizes: Any) -> int:
    """Fill offsets and sizes of the values, and the keys; return their count, -1 if the page is damaged.

    Args:
        data: the page.
        start: its offset in the file.
        file_bytes: size of the file.
        offsets: output.
        sizes: output.
        keys: output, the concatenated keys.
        key_sizes: output.
    """
    count = _count_of(data, _LEAF)
    filled = 0
    for number in range(count):
        node = _half(data, _PAGE_HEADER_BYTES + 2 * number)
        if node + 8 > data.size:
            return _DAMAGED
        size = _half(data, node) | _half(data, node + 2) << 16
        key = node + 8
        value = key + _half(data, node + 6)
        if value > data.size or filled + value - key > keys.size:
            return _DAMAGED
        offset = start + value
        if _half(data, node + 4) & _IS_OVERFLOW:
            if value + 8 > data.size:
                return _DAMAGED
            page = np.uint64(0)
            for byte in range(8):
                page |= np.uint64(data[value + byte]) << np.uint64(8 * byte)
            if page >= np.uint64(file_bytes // data.size):
                return _DAMAGED
            offset = np.int64(page) * data.size + _PAGE_HEADER_BYTES
            if offset + size > file_bytes:
                return _DAMAGED
        elif value + size > data.size:
            return _DAMAGED
        offsets[number], sizes[number], key_sizes[number] = offset, size, value - key
        for place in range(key, value):
            keys[filled] = data[place]
            filled += 1
    return count
