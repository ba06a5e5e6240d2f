"""Cache of computed samples in a folder that processes of a machine share.

Each sample is a file, written under a temporary name and renamed when it is complete, so a killed process leaves no
partial samples. A file that was damaged later fails its checksum and is deleted. The total size is stored in a file
that is locked during changes. It is increased before a file is created, so a crash in between leaves it too large,
never too small, and it is recounted before samples are rejected. The writer of an unfinished file holds a lock on it;
an unfinished file without a lock was left by a crash.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from dalify.base.deflate import crc32
from dalify.base.file_lock import LOCK_FLAGS, locked, try_lock
from dalify.data.batch import array_dtype
from dalify.data.dtypes import DALIDataType
from dalify.data.sample_memory import Allocate, StoredSample

_MAGIC = b"dalify-s"
_HEADER = Struct("<8sIQI")  # magic, bytes of the description, bytes after the header, their CRC-32
_NUMBER = Struct("<8sQ")
_ALIGNMENT_BYTES = 64
_LOCK_NAME = "dalify-samples.lock"
_USED_NAME = "used"
_OWN_FOLDER = re.compile(r"[0-9a-f]{32}")
_OWN_FILE = re.compile(r"[0-9a-f]{30}(\.[0-9a-f]{16}\.part)?")
_READ_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
_LOCK_TIMEOUT_S = 0.25  # short, since not caching a sample is cheaper than waiting
_COUNTING_TIMEOUT_S = 10.0
_RECHECK_S = 60.0  # time until a full folder is checked again, and minimum interval at which use is recorded
_IN_USE_S = 3600.0  # samples of other graphs are kept for this time after their last use


class SampleFolder:
    """Keeps samples in a folder up to a maximum size. Safe for several threads and processes, and after a fork.

    When it is full, samples of other graphs that were not used for an hour are deleted; other samples are kept in order
    of arrival.

    Args:
        folder: created if missing. Only files of this class are counted or deleted.
        digest: digest of the graph that computes the samples, 32 hexadecimal digits.
        max_bytes: maximum size of all samples in the folder, of any graph.
    """

    def __init__(self, folder: str, digest: str, max_bytes: int) -> None:
        self._root = Path(folder)
        self._own = self._root / digest
        self._max_bytes = max_bytes
        self._lock_path = self._root / _LOCK_NAME
        self._used_at = self._full_at = -_RECHECK_S
        self._is_refused = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all samples in the folder at the last count."""
        with suppress(OSError):
            return _number_in(self._lock_path.read_bytes()) or 0
        return 0

    def get(self, key: str, state: str, allocate: Allocate) -> StoredSample | None:
        """Return a sample; None if it is missing, outdated, or damaged. A damaged one is deleted.

        Args:
            key: key of the sample.
            state: state of its source.
            allocate: allocates memory of the given number of bytes.
        """
        path = self._path(key)
        try:
            descriptor = os.open(path, _READ_FLAGS)
        except OSError:
            return None
        try:
            size = os.fstat(descriptor).st_size
            if not _HEADER.size <= size <= self._max_bytes:
                self._drop(path)
                return None
            memory = allocate(size)
            filled = 0
            with open(descriptor, "rb", buffering=0, closefd=False) as file:
                while filled < size and (count := file.readinto(memory.data[filled:])):
                    filled += count
        except OSError:
            return None
        finally:
            os.close(descriptor)
        found = _parse(memory, filled)
        if found is None:
            self._drop(path)
            return None
        if found[:2] != [key, state]:
            return None
        self._note_use()
        return found[2]

    def has(self, key: str, state: str) -> bool:
        """Return whether there is a sample with this key, in any state."""
        return _size_of(self._path(key)) > 0

    def put(self, key: str, state: str, sample: StoredSample) -> bool:
        """Store a copy of a sample if there is room; return whether it is stored.

        Args:
            key: key of the sample; an existing sample is replaced.
            state: state of its source.
            sample: the sample.
        """
        if self._is_refused or time.monotonic() - self._full_at < _RECHECK_S:
            return False
        parts = _parts(key, state, sample)
        size = sum(map(len, parts))
        if size > self._max_bytes:
            return False
        try:
            return self._write(self._path(key), parts, size)
        except FileNotFoundError:  # the folder is being deleted; the next sample creates it again
            return False
        except OSError as error:
            if not self._is_refused:  # another thread may have warned meanwhile
                self._is_refused = True
                why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
                warnings.warn(f"no more samples are stored in the cache {self._root}: {why}.", stacklevel=2)
            return False

    def _path(self, key: str) -> Path:
        name = sha256(key.encode(errors="surrogatepass")).hexdigest()
        return self._own / name[:2] / name[2:32]

    # -- writing

    def _write(self, path: Path, parts: list[Any], size: int) -> bool:
        part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
        descriptor = self._reserve(part, size)
        if descriptor is None:
            return False
        is_written, is_open = False, True
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.writelines(parts)
            with locked(self._lock_path, _COUNTING_TIMEOUT_S) as lock:
                if lock is not None:
                    os.close(descriptor)  # not all systems can rename open files; the lock prevents counting meanwhile
                    is_open = False
                    replaced = _size_of(path)
                    part.replace(path)
                    is_written = True
                    self._add(lock, -replaced)
        finally:
            if not is_written:
                with suppress(OSError):
                    part.unlink()
                    with locked(self._lock_path, _COUNTING_TIMEOUT_S) as lock:
                        if lock is not None:
                            self._add(lock, -size)
            if is_open:
                os.close(descriptor)
        return is_written

    def _reserve(self, part: Path, size: int) -> int | None:
        """Return the descriptor of a new file of this size; None if there is no room or the lock times out."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._note_use()
        with locked(self._lock_path, _LOCK_TIMEOUT_S) as lock:
            if lock is None:
                return None
            total = self._total(lock)
            if total is None or total + size > self._max_bytes:
                total = self._with_room(size)
                _set_total(lock, total)
                if total + size > self._max_bytes:
                    self._full_at = time.monotonic()
                    return None
            _set_total(lock, total + size)
            descriptor = os.open(part, LOCK_FLAGS | os.O_EXCL, 0o600)
            try:
                try_lock(descriptor)
                os.truncate(descriptor, size)  # counted with its final size
            except BaseException:
                os.close(descriptor)
                raise
            return descriptor

    @staticmethod
    def _total(lock: int) -> int | None:
        os.lseek(lock, 0, os.SEEK_SET)
        return _number_in(os.read(lock, _NUMBER.size))

    def _add(self, lock: int, change: int) -> None:
        if change:
            _set_total(lock, max(0, (self._total(lock) or 0) + change))

    def _with_room(self, size: int) -> int:
        """Return the total size, after deleting files left by crashes and, if there is no room, unused samples."""
        graphs: list[tuple[float, int, Path]] = []
        with os.scandir(self._root) as entries:
            names = [entry.path for entry in entries if _OWN_FOLDER.fullmatch(entry.name)]
        for name in names:
            folder = Path(name)
            used = 0.0
            with suppress(OSError):
                used = (folder / _USED_NAME).lstat().st_mtime
            graphs.append((used, sum(self._sizes_in(folder)), folder))
        total = sum(taken for _, taken, _ in graphs)
        for used, taken, folder in sorted(graphs):
            if total + size <= self._max_bytes:
                break
            if folder != self._own and time.time() - used > _IN_USE_S:
                for path in _samples_in(folder):
                    with suppress(OSError):
                        path.unlink()
                total -= taken - sum(self._sizes_in(folder))
        return total

    def _sizes_in(self, folder: Path) -> Iterator[int]:
        for path in _samples_in(folder):
            if path.name.endswith(".part") and _is_left(path):
                with suppress(OSError):
                    path.unlink()
            yield _size_of(path)

    def _drop(self, path: Path) -> None:
        with suppress(OSError), locked(self._lock_path, _LOCK_TIMEOUT_S) as lock:
            if lock is not None:
                size = _size_of(path)
                path.unlink()
                self._add(lock, -size)

    def _note_use(self) -> None:
        """Record, at intervals, that samples of this graph are in use."""
        now = time.monotonic()
        if now - self._used_at >= _RECHECK_S:
            self._used_at = now
            with suppress(OSError):
                self._own.mkdir(mode=0o700, parents=True, exist_ok=True)
                (self._own / _USED_NAME).touch(0o600)


def _number_in(text: bytes) -> int | None:
    """Return the number in a lock file; None if it is invalid."""
    if len(text) != _NUMBER.size:
        return None
    mark, number = _NUMBER.unpack(text)
    return number if mark == _MAGIC else None


def _set_total(lock: int, total: int) -> None:
    os.lseek(lock, 0, os.SEEK_SET)
    os.write(lock, _NUMBER.pack(_MAGIC, total))


def _samples_in(folder: Path) -> Iterator[Path]:
    for shelf in _children(folder):
        if len(shelf.name) == 2:
            yield from (path for path in _children(shelf) if _OWN_FILE.fullmatch(path.name))


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _is_left(path: Path) -> bool:
    """Return whether an unfinished file has no writer."""
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return try_lock(descriptor)
    finally:
        os.close(descriptor)


# -- file format


def _parts(key: str, state: str, sample: StoredSample) -> list[Any]:
    """Return the contents of a file: header, description in JSON, and the arrays at multiples of 64 bytes."""
    arrays = [np.ascontiguousarray(array) for array in sample.arrays]
    description = [
        [int(array_dtype(array)), list(array.shape), layout]
        for array, layout in zip(sample.arrays, sample.layouts, strict=True)
    ]
    text = json.dumps([key, state, description, sample.notes], separators=(",", ":")).encode()
    text += b" " * (-(_HEADER.size + len(text)) % _ALIGNMENT_BYTES)
    parts: list[Any] = [text]
    for array in arrays:
        data = array.reshape(-1).view(np.uint8).data
        parts += [data, bytes(-len(data) % _ALIGNMENT_BYTES)]
    checksum = 0
    for part in parts:
        checksum = crc32(part, checksum)
    return [_HEADER.pack(_MAGIC, len(text), sum(map(len, parts)), checksum), *parts]


def _parse(memory: np.ndarray[Any, Any], size: int) -> list[Any] | None:
    """Return key, state and sample from the contents of a file; None if it is damaged."""
    if size < _HEADER.size:
        return None
    mark, described_bytes, following_bytes, checksum = _HEADER.unpack(memory[: _HEADER.size].tobytes())
    contents = memory[_HEADER.size : size]
    if mark != _MAGIC or len(contents) != following_bytes or crc32(contents.data) != checksum:
        return None
    try:
        key, state, description, notes = json.loads(contents[:described_bytes].tobytes())
        arrays: list[np.ndarray[Any, Any]] = []
        layouts: list[str] = []
        place = described_bytes
        for number, shape, layout in description:
            dtype = DALIDataType(number).numpy
            stop = place + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            arrays.append(contents[place:stop].view(dtype).reshape(shape))
            layouts.append(str(layout))
            place = stop + -(stop - place) % _ALIGNMENT_BYTES
    except (ValueError, TypeError, LookupError):  # written by another program with a valid checksum
        return None
    return [key, state, StoredSample(tuple(arrays), tuple(layouts), notes)]
