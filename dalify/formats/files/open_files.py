"""Reads parts of many files from many threads, with a limited number of descriptors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.errors import ReaderError
from dalify.base.fork_lock import ForkLock
from dalify.base.interrupts import CallAtEnd
from dalify.formats.files import storage
from dalify.formats.files.memory import file_memory
from dalify.formats.files.pieces import Pieces
from dalify.formats.files.positions import (
    HAS_PREAD,
    Holding,
    closes_when_needed,
    is_within_limit,
    leave_some,
    most_idle,
    open_file,
    read_at,
)
from dalify.formats.files.runs import Runs, read_runs


class _Descriptor(CallAtEnd):
    """An open file, closed with the last reference; a thread that reads holds a reference."""

    number: int
    size: int

    def __new__(cls, number: int, size: int) -> _Descriptor:
        self = super().__new__(cls, os.close, number)
        self.number = number
        self.size = size
        return self


class OpenFiles:
    """Files by index, opened on first use; the most recently opened stay open.

    Reads specify an offset, so that threads and forked processes can share descriptors without sharing a position.
    Pickling stores the paths.

    Args:
        paths: paths of the files, local or URLs.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        self._remote = {number for number, path in enumerate(self.paths) if storage.is_remote(path)}
        self._lock = ForkLock()
        self._open: dict[int, _Descriptor] = {}
        self._states: dict[int, tuple[int, int]] = {}  # size and time of modification of local files
        closes_when_needed(self)

    def close_idle(self) -> None:
        """Close all files that no thread is reading; they are opened again on access."""
        with self._lock:
            self._open.clear()

    def __len__(self) -> int:
        return len(self.paths)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling: paths, without descriptors."""
        return {"paths": self.paths}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the paths."""
        self.__init__(state["paths"])

    def size(self, file: int) -> int:
        """Return the size of a file in bytes when it was opened.

        Raises:
            ReaderError: the file is absent or cannot be read.
        """
        path = storage.copy_or_path(self.paths[file])
        return storage.size_of(path) if storage.is_remote(path) else self._descriptor(file).size

    @property
    def is_remote(self) -> bool:
        """Whether one of the files is on another machine."""
        return bool(self._remote)

    def read(
        self,
        file: int,
        offset: int,
        size: int,
        out: NDArray[np.uint8] | None = None,
        *,
        is_sample: bool = True,
    ) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return bytes of a file as a 1-D uint8 array. The GIL is released during the read.

        Args:
            file: index of the file.
            offset: offset of the first byte.
            size: number of bytes.
            out: output buffer; allocated if None.
            is_sample: whether the bytes belong to one sample, so that the limit of samples applies.

        Raises:
            ReaderError: the file is absent, cannot be read, or is too short.
            LimitError: a sample is larger than ``max_sample_bytes``.
        """
        if not 0 <= offset <= offset + size:
            raise ReaderError(f"no {size} bytes at byte {offset} of {self.paths[file]!r}: the index is damaged.")
        path = self.paths[file]
        if storage.is_remote(path) and storage.is_remote(storage.copy_or_path(path)):
            self._check_size(file, offset, size if is_sample else 0)
            contents = storage.read(path, offset, size)
            if out is None:
                return contents
            out[...] = contents
            return out
        with Holding():
            descriptor = self._descriptor(file)
            # The index is not trusted, so the range is checked before memory is allocated.
            if offset + size > descriptor.size:
                raise self._truncated(file, offset, size)
            if out is None:
                self._check_size(file, offset, size if is_sample else 0)
            contents = file_memory(size) if out is None else out
            try:
                filled = read_at(descriptor.number, contents, offset)
            except OSError as error:
                raise ReaderError(f"cannot read the file {self.paths[file]!r}: {error.strerror}.") from None
            del descriptor
        if filled < size:  # the file was truncated since it was opened
            raise self._truncated(file, offset, size)
        return contents

    def read_runs(self, file: int, runs: Runs) -> NDArray[np.uint8]:
        """Return concatenated ranges of a file, a new 1-D uint8 array. The GIL is released during the read.

        Raises:
            ReaderError: the file is absent, cannot be read, or is too short.
        """
        if HAS_PREAD and not storage.is_remote(self.paths[file]):
            with Holding():
                descriptor = self._descriptor(file)
                contents = read_runs(descriptor.number, runs)
                del descriptor
            if contents is not None:
                return contents
        return runs.of(self.read(file, runs.first, runs.span_bytes))  # raises the error of an unreadable file

    def read_many(
        self,
        files: NDArray[np.int64],
        offsets: NDArray[np.int64],
        sizes: NDArray[np.int64],
        *,
        has_bytes: bool = False,
    ) -> Pieces | None:
        """Return ranges of local files, read in one call; None if each must be read separately.

        Args:
            files: file indices, ``[N]``.
            offsets: offsets of the first bytes, ``[N]``.
            sizes: numbers of bytes, ``[N]``.
            has_bytes: see ``Pieces.of``.
        """
        pieces = Pieces.of(files, offsets, sizes, has_bytes=has_bytes)
        return pieces if pieces is not None and self.fill(pieces, files, offsets, sizes) else None

    def fill(
        self, pieces: Pieces, files: NDArray[np.int64], offsets: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> bool:
        """Read pieces in one call; return False if each must be read separately.

        Args:
            pieces: memory of ``Pieces.of``, with these arguments.
            files: file indices, ``[N]``.
            offsets: offsets of the first bytes, ``[N]``.
            sizes: numbers of bytes, ``[N]``.
        """
        listed = [int(files[0])] if pieces.has_one_file else files.tolist()
        wanted = {*listed}
        if not HAS_PREAD or not wanted.isdisjoint(self._remote) or not is_within_limit(len(wanted)):
            return False
        with Holding(len(wanted)):
            try:
                opened = {file: self._descriptor(file) for file in wanted}  # keeps the files open during the read
            except ReaderError:
                return False
            descriptors = np.array([opened[file].number for file in listed], np.int32)
            is_read = pieces.read(descriptors, offsets, sizes)
            opened.clear()
        return is_read

    def check_unchanged(self, file: int) -> None:
        """Check a file before a library opens its path.

        Raises:
            ReaderError: it was changed or replaced after it was opened, also by a pipe, or cannot be read.
        """
        self._newly_opened(file)

    def _check_size(self, file: int, offset: int, size: int) -> None:
        if size > limits.current().max_sample_bytes:
            limits.check_sample_bytes(size, f"the part at byte {offset} of {self.paths[file]!r}")

    def _truncated(self, file: int, offset: int, size: int) -> ReaderError:
        return ReaderError(
            f"the file {self.paths[file]!r} ends before byte {offset + size}, the end of a record at byte {offset}.",
            hint="The file is truncated, or the index belongs to another file.",
        )

    def _descriptor(self, file: int) -> _Descriptor:
        found = self._open.get(file)
        if found is None:
            found = self._newly_opened(file)
            with self._lock:
                found = self._open.setdefault(file, found)
                most = most_idle()
                while len(self._open) > most:
                    del self._open[next(iter(self._open))]
        return found

    def _newly_opened(self, file: int) -> _Descriptor:
        path = self.paths[file]
        found = _Descriptor(*open_file(storage.copy_or_path(path), path))
        leave_some(found.number)
        state = found.size, os.fstat(found.number).st_mtime_ns
        # The index does not describe a replaced file. The copy of a remote file may be a new one.
        if not storage.is_remote(path) and self._states.setdefault(file, state) != state:
            raise ReaderError(
                f"the file {path!r} was changed or replaced after the pipeline opened it.",
                hint="Build the pipeline again after changing its files.",
            )
        return found

    def __repr__(self) -> str:
        return f"OpenFiles({len(self.paths)} files)"
