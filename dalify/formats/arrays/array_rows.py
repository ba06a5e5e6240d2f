"""Rows of large arrays in HDF5 and Zarr as entries of a reader: a sample is the same row of several arrays."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, DTypeError, ReaderError
from dalify.base.wording import counted
from dalify.data.entries import Blocks, Entries
from dalify.formats.files.block_cache import BlockCache
from dalify.formats.files.memory import file_memory
from dalify.formats.files.storage import is_remote

_LABELS = ("label", "labels")
_MAX_CHUNKS = 1 << 24
_MAX_BYTES = 1 << 26  # maximum size of a read; larger reads are not faster


class StoredArray(NamedTuple):
    """Description of a stored array.

    Attributes:
        row_count: number of rows.
        row_shape: shape of a row.
        dtype: dtype of the elements.
        row_bytes: memory of a row; an estimate for rows of variable length.
        chunk_rows: rows per chunk; 1 if each row can be read separately.
    """

    row_count: int
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    row_bytes: int
    chunk_rows: int


class ArrayFile(Protocol):
    """The requested arrays of a file.

    Attributes:
        name: path, for messages.
        arrays: description of each array.
    """

    name: str
    arrays: list[StoredArray]

    def read(self, array: int, start: int, stop: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return rows of an array, ``[stop - start, ...]``, as a copy or in ``out``.

        Args:
            array: index of the array.
            start: first row.
            stop: one past the last row.
            out: memory to fill, for numbers and booleans, in native byte order.
        """
        ...

    def read_rows(self, array: int, rows: Sequence[int]) -> Sequence[Any]:
        """Return rows of an array in any order; each equals ``read(array, row, row + 1)[0]``."""
        ...

    def labels(self, names: Sequence[str]) -> NDArray[Any] | None:
        """Return the first array with one of these names that is a vector of integers, or None."""
        ...


class ArrayRow(NamedTuple):
    """The same row of all arrays.

    Attributes:
        rows: the collection that contains this row.
        file: index of the file.
        number: index of the row in the file.
    """

    rows: ArrayRows
    file: int
    number: int

    def read(self) -> tuple[NDArray[Any], ...]:
        """Return the row of each array.

        Raises:
            ReaderError: the file cannot be read.
        """
        return self.rows.read(self.file, self.number)

    def substitute(self) -> tuple[NDArray[Any] | None, ...]:
        """Return the rows of readable arrays; zeros for the others, or None for rows of variable length."""
        return tuple(map(self._row_or_zeros, range(len(self.rows.files[self.file].arrays))))

    def _row_or_zeros(self, array: int) -> NDArray[Any] | None:
        try:
            return self.rows.read_one(self.file, array, self.number)
        except Exception:  # any library may raise here
            stored = self.rows.files[self.file].arrays[array]
            return np.zeros(stored.row_shape, stored.dtype) if stored.dtype.kind in "biuf" else None

    @property
    def origin(self) -> str:
        """Row number and file, for error messages."""
        return f"row {self.number} of {self.rows.files[self.file].name}"


class ArrayRows(Entries[ArrayRow]):
    """Rows of several files, concatenated in order.

    Args:
        files: files with the same arrays.
        names: names of the requested arrays.
        cache_bytes: size of the cache for decoded chunks.

    Raises:
        ReaderError: there is no file, or the arrays of one have different numbers of rows.
        DTypeError: an array has different dtypes in two files.
    """

    def __init__(self, files: Sequence[ArrayFile], names: Sequence[str], cache_bytes: int) -> None:
        if not files:
            raise ReaderError("the list of paths is empty.")
        if cache_bytes < 1:
            raise ArgumentValueError(f"cache_bytes must be at least 1; got {cache_bytes}.")
        self.files = list(files)
        self._names = list(names)
        self._cache_bytes = cache_bytes
        for file in files:
            self._check(file)
        counts = [file.arrays[0].row_count for file in files]
        self._firsts = [0, *np.cumsum(counts).tolist()]
        # Chunks of all arrays of all files are numbered consecutively.
        self._first_blocks = [0]
        for file in files:
            for stored in file.arrays:
                self._first_blocks.append(self._first_blocks[-1] + -(-stored.row_count // stored.chunk_rows))
        self._cache = BlockCache(self._load, cache_bytes)
        in_chunks = [stored for file in files for stored in file.arrays if stored.chunk_rows > 1]
        self._keeps_all = sum(stored.row_bytes * stored.row_count for stored in in_chunks) <= cache_bytes

    def _check(self, file: ArrayFile) -> None:
        for name, stored, first in zip(self._names, file.arrays, self.files[0].arrays, strict=True):
            if stored.row_count != file.arrays[0].row_count:
                raise ReaderError(
                    f"in {file.name!r}, {name!r} has {counted(stored.row_count, 'row')} and {self._names[0]!r} has "
                    f"{file.arrays[0].row_count}: all requested arrays must have the same number of rows.",
                )
            if stored.chunk_rows > 1 and stored.row_count // stored.chunk_rows >= _MAX_CHUNKS:
                raise ReaderError(
                    f"in {file.name!r}, {name!r} has {counted(stored.row_count, 'row')} in chunks of "
                    f"{stored.chunk_rows}: more than {_MAX_CHUNKS:,} chunks.",
                    hint="Rewrite the array with larger chunks.",
                )
            if stored.dtype != first.dtype:
                raise DTypeError(
                    f"{name!r} has dtype {first.dtype} in {self.files[0].name!r} and dtype {stored.dtype} "
                    f"in {file.name!r}.",
                    hint="All files must have the same dtype for an output.",
                )

    def __len__(self) -> int:
        return self._firsts[-1]

    def _entry(self, number: int) -> ArrayRow:
        file = bisect_right(self._firsts, number) - 1
        return ArrayRow(self, file, number - self._firsts[file])

    def read(self, file: int, number: int) -> tuple[NDArray[Any], ...]:
        """Return a row of each array."""
        return tuple([self.read_one(file, array, number) for array in range(len(self._names))])

    def read_many(self, numbers: NDArray[np.int64]) -> tuple[NDArray[Any] | list[NDArray[Any]], ...] | None:
        """Return rows of each array, ``[N, ...]`` or a list of N arrays; None if rows must be read one by one."""
        file = bisect_right(self._firsts, int(numbers[0])) - 1
        rows = numbers - self._firsts[file]
        stored = self.files[file].arrays
        row_bytes = sum(each.row_bytes for each in stored)
        if rows.min() < 0 or numbers.max() >= self._firsts[file + 1] or row_bytes * len(rows) > _MAX_BYTES:
            return None
        are_neighbors = bool((np.diff(rows) == 1).all())
        first, stop = int(rows[0]), int(rows[-1]) + 1
        try:
            return tuple(
                [
                    self._listed(file, array, rows.tolist())
                    if each.dtype.kind not in "biuf"
                    else as_array(self.files[file].read(array, first, stop))
                    if are_neighbors and each.chunk_rows == 1
                    else self._gathered(file, array, rows)
                    for array, each in enumerate(stored)
                ]
            )
        except ReaderError:
            return None

    def _listed(self, file: int, array: int, rows: Sequence[int]) -> list[NDArray[Any]]:
        """Return rows of an array as a list, for example strings."""
        if self.files[file].arrays[array].chunk_rows > 1:
            return [self.read_one(file, array, row) for row in rows]
        return [as_array(row) for row in self.files[file].read_rows(array, rows)]

    def _gathered(self, file: int, array: int, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return a copy of rows of an array, in any order."""
        stored = self.files[file].arrays[array]
        dtype, shape = stored.dtype.newbyteorder("="), (len(rows), *stored.row_shape)
        gathered = file_memory(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
        chunks, offsets = np.divmod(rows, stored.chunk_rows)
        first = self._first_blocks[file * len(self._names) + array]
        for number in np.unique(chunks).tolist():
            start = number * stored.chunk_rows
            stop = min(start + stored.chunk_rows, stored.row_count)
            places = np.flatnonzero(chunks == number).tolist()
            target = gathered[places[0] : places[-1] + 1]
            # Whole chunks that are not cached are read directly into the result.
            is_whole = len(target) == len(places) and offsets[places].tolist() == list(range(stop - start))
            if is_whole and (stored.chunk_rows == 1 or not self._keeps_all):
                self.files[file].read(array, start, stop, target)
                continue
            is_separate = stored.chunk_rows == 1
            chunk = self.files[file].read(array, start, stop) if is_separate else self._cache.get(first + number)
            for place in places:
                gathered[place] = chunk[offsets[place]]
        return gathered

    def read_one(self, file: int, array: int, number: int) -> NDArray[Any]:
        """Return a row of one array."""
        stored = self.files[file].arrays[array]
        if stored.chunk_rows == 1:
            return as_array(self.files[file].read(array, number, number + 1)[0])
        chunk, offset = divmod(number, stored.chunk_rows)
        first = self._first_blocks[file * len(self._names) + array]
        return _copy_of_row(as_array(self._cache.get(first + chunk)[offset]))

    def _load(self, block: int) -> tuple[NDArray[Any], int]:
        place = bisect_right(self._first_blocks, block) - 1
        file, array = divmod(place, len(self._names))
        stored = self.files[file].arrays[array]
        start = (block - self._first_blocks[place]) * stored.chunk_rows
        stop = min(start + stored.chunk_rows, stored.row_count)
        rows = self.files[file].read(array, start, stop)
        return rows, max(rows.nbytes, stored.row_bytes * len(rows))

    @property
    def is_remote(self) -> bool:
        """Whether rows are on another machine."""
        return any(is_remote(file.name) for file in self.files)

    @property
    def blocks(self) -> Blocks | None:
        """The chunks, for ``BlockOrder``; None if rows can be read separately."""
        if all(stored.chunk_rows == 1 for file in self.files for stored in file.arrays):
            return None
        entries: list[NDArray[np.int64]] = []
        sizes: list[NDArray[np.int64]] = []
        for file in self.files:
            # Chunks of the array with the largest rows; those of small arrays, such as labels, stay in the cache.
            rows = max(file.arrays, key=lambda stored: (stored.chunk_rows > 1, stored.row_bytes)).chunk_rows
            row_bytes = sum(stored.row_bytes for stored in file.arrays)
            count = file.arrays[0].row_count
            blocks = -(-count // rows)
            entries.append(np.full(blocks, rows, np.int64))
            entries[-1][-1:] = count - (blocks - 1) * rows
            sizes.append(np.full(blocks, rows * row_bytes, np.int64))
        return Blocks(np.concatenate(entries), np.concatenate(sizes), self._cache_bytes // 2)

    @property
    def sources(self) -> NDArray[np.int64]:
        """The file index of each row, ``[N]``."""
        return np.repeat(np.arange(len(self.files)), np.diff(self._firsts))

    @property
    def labels(self) -> NDArray[np.int64] | None:
        """The class of each row, ``[N]``, if there is an array ``label`` or ``labels``; else None."""
        found = [file.labels(_LABELS) for file in self.files]
        known = [labels for labels in found if labels is not None]
        if len(known) < len(found) or [len(each) for each in known] != np.diff(self._firsts).tolist():
            return None
        return np.concatenate(known).astype(np.int64)


def as_array(value: Any) -> NDArray[Any]:
    """Return one row as an array: strings and bytes as uint8, numbers in native byte order."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, np.void)):
        return np.frombuffer(bytearray(value.tobytes() if isinstance(value, np.void) else value), np.uint8)
    array = np.asarray(value)
    return np.asarray(array, array.dtype.newbyteorder("="), order="C")


def _copy_of_row(row: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of a row, because the caller may modify it, and the chunk is in the cache."""
    copy = file_memory(row.nbytes).view(row.dtype).reshape(row.shape)
    copy[...] = row
    return copy
