"""Records in files, by offset and size: the index of container formats, with 16 MB for a million records."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dalify.base.bisection import last_at_most
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.base.wording import counted
from dalify.data.entries import Entries
from dalify.data.origin import Origin
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.pieces import Pieces
from dalify.formats.files.storage import read_copy, without_mark

T_co = TypeVar("T_co", covariant=True)


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _find(numbers: Any, firsts: Any, offsets: Any, sizes: Any, places: Any) -> None:
    """Find file, offset and size of records, ``places[3, N]``."""
    for n in range(numbers.size):
        places[0, n] = last_at_most(firsts, numbers[n])
        places[1, n], places[2, n] = offsets[numbers[n]], sizes[numbers[n]]


class Record(NamedTuple):
    """One record: its position, and the data needed to read it.

    Attributes:
        files: all files.
        file: index of the file of the record.
        offset: offset of its first byte.
        size: number of bytes.
        context: data of the format for decoding the record.
    """

    files: OpenFiles
    file: int
    offset: int
    size: int
    context: Any

    def read(self) -> NDArray[np.uint8]:
        """Return the bytes, uint8 ``[size]``.

        Raises:
            ReaderError: the file cannot be read, or is too short.
        """
        return self.files.read(self.file, self.offset, self.size)

    @property
    def origin(self) -> Origin:
        """File and offset; in ``source_info`` with DALI's wording."""
        path = self.files.paths[self.file]
        return Origin(f"{path} at byte {self.offset}", f"{path} at index {self.offset}")


class ContainerEntries(Entries[T_co]):
    """Entries of several container files, concatenated in order."""

    __slots__ = ("_firsts", "_starts", "files")

    def __init__(self, paths: Sequence[str], counts: Sequence[int]) -> None:
        self.files = OpenFiles(paths)
        self._firsts = [0, *np.cumsum(counts).tolist()]
        self._starts = np.array(self._firsts[:-1], np.int64)

    def __len__(self) -> int:
        return self._firsts[-1]

    @property
    def file_sizes(self) -> NDArray[np.int64]:
        """The number of entries in each file, for ``shuffle_after_epoch``, which shuffles files."""
        return np.diff(self._firsts)

    @property
    def is_remote(self) -> bool:
        """Whether files are on another machine."""
        return self.files.is_remote

    @property
    def sources(self) -> NDArray[np.int64]:
        """The file index of each entry, ``[N]``."""
        return np.repeat(np.arange(len(self.files)), np.diff(self._firsts))


class Records(ContainerEntries[Record]):
    """The records of several files.

    Args:
        paths: paths of the files.
        places: offsets and sizes of the records of each file.
        context: passed to every record.
    """

    __slots__ = ("_offsets", "_sizes", "context")

    def __init__(
        self, paths: Sequence[str], places: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]], context: Any = None
    ) -> None:
        super().__init__(paths, [len(offsets) for offsets, _ in places])
        self._offsets = np.concatenate([offsets for offsets, _ in places])
        self._sizes = np.concatenate([sizes for _, sizes in places])
        self.context = context

    def _entry(self, number: int) -> Record:
        file = bisect_right(self._firsts, number) - 1
        return Record(self.files, file, int(self._offsets[number]), int(self._sizes[number]), self.context)

    def read_many(self, numbers: NDArray[np.int64], *, has_bytes: bool = False) -> Pieces | None:
        """Return the bytes of records, read in one call; None if each must be read separately.

        Args:
            numbers: indices of the records, ``[N]``.
            has_bytes: whether records may start anywhere in memory; otherwise at a multiple of 64.
        """
        places = np.empty((3, len(numbers)), np.int64)
        _find(numbers, self._starts, self._offsets, self._sizes, places)
        return self.files.read_many(*places, has_bytes=has_bytes)


def paired(paths: Sequence[str], index_paths: Sequence[str] | None, name: str) -> list[tuple[str, str | None]]:
    """Return pairs of paths and index paths.

    Args:
        paths: paths of the data.
        index_paths: paths of the indices; None if there are none.
        name: name of the argument with the index paths.

    Raises:
        ReaderError: ``paths`` is empty.
        ArgumentValueError: the numbers of indices and files differ.
    """
    if not paths:
        raise ReaderError("path is empty.")
    if index_paths is None:
        return [(path, None) for path in paths]
    if len(index_paths) != len(paths):
        raise ArgumentValueError(
            f"{name} has {len(index_paths)} paths for {counted(len(paths), 'file')}; there must be one per file.",
        )
    return list(zip(paths, index_paths, strict=True))


def read_pairs(path: str, what: str) -> NDArray[np.int64]:
    """Read a text file with two integers on each line.

    Returns:
        int64 ``[lines, 2]``.

    Raises:
        ReaderError: the file is absent or does not have this form.
    """
    text = without_mark(read_copy(path, f"the {what}"), path, f"the {what}")
    # NumPy's parser stops with a warning at characters other than digits and white space.
    is_plain = not text.translate(None, b"0123456789 \t\r\n")
    values = np.fromstring(text, np.int64, sep=" ") if is_plain and text.strip() else np.empty(0, np.int64)
    if not is_plain or values.size % 2:
        raise ReaderError(f"{path!r} is not a valid {what}: expected 2 integers on each line.")
    return values.reshape(-1, 2)


def warn_of_rest(path: str, size: int, index: str, end: int, tool: str) -> None:
    """Warn if a file continues after the last record of its index, because the index is probably truncated.

    This is no error, because DALI accepts an index of a part of a file, and its tools write one for a damaged file.

    Args:
        path: path of the data.
        size: size of the data in bytes.
        index: path of the index.
        end: end of the last record of the index.
        tool: module that writes an index.
    """
    if end < size:
        warnings.warn(
            f"the index {index!r} ends at byte {end} of {path!r}, which has {size} bytes: the rest is not read. If "
            f"this is not intended, create the index again: python -m dalify.tools.{tool} FILE INDEX",
            stacklevel=2,
        )
