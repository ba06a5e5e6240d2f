"""Copies of remote files in a folder of bounded size that several processes share.

Copies are verified when they are used, because a full disk, a process that was killed, or another program may have
damaged them. There are two kinds of copies: entries are read as a whole and start with their checksum; plain files are
opened by libraries by path, and have their checksum in a second file.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from dalify.base.deflate import crc32
from dalify.base.fork_lock import ForkLock
from dalify.base.regular_files import OPEN_FLAGS
from dalify.base.whole_files import write_whole
from dalify.formats.files.memory import file_memory
from dalify.formats.files.positions import read_at

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# Eviction reduces the cache to this fraction of the bound, so that the folder is not listed for every new file.
_KEPT_FRACTION = 0.9
_PRIVATE = 0o600  # the data may have been read with credentials of the user
_HEADER = Struct("<8sQI")  # magic, size in bytes, CRC-32 of the contents
_MAGIC = b"dalify-1"
_COPY, _CHECKSUM = ".copy", ".seal"
# Other files in the folder are neither counted nor deleted.
_OWN_NAME = re.compile(r"([0-9a-f]{32})(?:\.copy|\.seal)?(\.[0-9a-f]{16}\.part)?")
_UNFINISHED_S = 3600.0  # an unfinished file of this age was left by a process that was killed
_CHUNK_BYTES = 1 << 20


class _Checksum(NamedTuple):
    """Checksum of a plain file, and the state of the file when it was verified."""

    size_bytes: int
    checksum: int
    inode: int
    modified_ns: int


class DiskCache:
    """An LRU cache of files in a folder.

    Args:
        folder: the folder; created if absent.
        max_bytes: maximum total size of the files, except those that this process has pinned.
    """

    def __init__(self, folder: str, max_bytes: int) -> None:
        self.folder = Path(folder)
        self._max_bytes = max_bytes
        self._lock = ForkLock()
        self._size_bytes: int | None = None  # determined when a file is added
        self._pinned: dict[Path, int] = {}  # sizes of containers that readers have opened
        self._verified: dict[Path, tuple[int, int, int]] = {}  # size, inode and time of files that were verified
        self._is_full = False

    def entry_path(self, key: str) -> Path:
        """Return the path of the entry for a key, whether or not it exists."""
        return self.folder / file_name(key)

    def copy_path(self, key: str) -> Path:
        """Return the path of the plain file for a key, whether or not it exists."""
        return self.folder / f"{file_name(key)}{_COPY}"

    def paths_in(self, text: str) -> list[str]:
        """Return the paths of copies in a string, for example in an error message of a library."""
        return re.findall(re.escape(f"{self.folder}{os.sep}") + r"[0-9a-f]{32}\.copy", text)

    @property
    def is_writable(self) -> bool:
        """Whether new copies can be written."""
        return not self._is_full

    def read(self, path: Path) -> Bytes | None:
        """Return the contents of an entry, or None if it is absent or damaged; a damaged entry is deleted."""
        try:
            descriptor = os.open(path, OPEN_FLAGS | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return None
        try:
            file = file_memory(os.fstat(descriptor).st_size)
            file = file[: read_at(descriptor, file, 0)]
        except OSError:
            return None
        finally:
            os.close(descriptor)
        contents = file[_HEADER.size :]
        if bytes(file[: _HEADER.size]) != _header(contents):
            _unlink(path)
            return None
        with suppress(OSError):
            os.utime(path)
        return contents

    def write_entry(self, path: Path, contents: bytes) -> None:
        """Write an entry if there is space."""
        if self._is_full or len(contents) + sum(self._pinned.values()) > self._max_bytes:
            return
        try:
            self._write(path, [_header(contents), contents])
        except FileNotFoundError:  # the folder is being deleted; the next file creates it again
            return
        except OSError as error:
            self.stop_writing(error)
            return
        self._evict(_HEADER.size + len(contents))

    def write_copy(self, path: Path, parts: Iterable[bytes]) -> None:
        """Write a plain file and its checksum file.

        Raises:
            OSError: the file cannot be written; a partial file is removed.
            Exception: any exception of ``parts``.
        """
        size_bytes = checksum = 0

        def with_checksum() -> Iterator[bytes]:
            nonlocal size_bytes, checksum
            for part in parts:
                size_bytes, checksum = size_bytes + len(part), crc32(part, checksum)
                yield part

        self._write(path, with_checksum())
        self._write_checksum(path, size_bytes, checksum)

    def has_copy(self, path: Path) -> bool:
        """Return whether a plain file exists with its original contents.

        Another file is not deleted, because another process may have just written it, and its checksum file is not
        written yet. The next copy replaces it.
        """
        try:
            status = path.lstat()
        except OSError:
            return False
        seen = status.st_size, status.st_ino, status.st_mtime_ns
        if self._verified.get(path) == seen:
            return True
        found = self.read(path.with_suffix(_CHECKSUM))
        stored = None if found is None else _Checksum(*json.loads(found.tobytes()))
        if stored is not None and stat.S_ISREG(status.st_mode) and stored.size_bytes == status.st_size:
            if seen == (stored.size_bytes, stored.inode, stored.modified_ns):
                self._verified[path] = seen
                return True
            with suppress(OSError):  # moved, restored or changed: compare the contents
                if _checksum_of_file(path) == stored.checksum:
                    self._write_checksum(path, stored.size_bytes, stored.checksum)
                    return True
        return False

    def pin(self, path: Path, *, is_new: bool) -> None:
        """Exempt a plain file from eviction while this process runs.

        Args:
            path: path of the file.
            is_new: whether it was just written; other files are evicted for it.
        """
        with suppress(OSError):  # if another process has deleted it, opening it fails, too
            os.utime(path.with_suffix(_CHECKSUM))
            size = path.stat().st_size
            with self._lock:
                self._pinned[path] = size
            if is_new:
                self._evict(size)

    def delete(self, path: Path) -> None:
        """Delete a copy."""
        _unlink(path)
        if path.suffix == _COPY:
            _unlink(path.with_suffix(_CHECKSUM))
        with self._lock:
            self._verified.pop(path, None)
            self._pinned.pop(path, None)

    def stop_writing(self, error: OSError) -> None:
        """Stop writing to the cache, with a warning; existing copies are still used."""
        self._is_full = True
        why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
        warnings.warn(f"no more files are written to the cache {self.folder}: {why}.", stacklevel=2)

    def _write(self, path: Path, parts: Iterable[bytes]) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, parts, mode=_PRIVATE)

    def _write_checksum(self, path: Path, size_bytes: int, checksum: int) -> None:
        status = path.lstat()
        stored = json.dumps(_Checksum(size_bytes, checksum, status.st_ino, status.st_mtime_ns)).encode()
        self._write(path.with_suffix(_CHECKSUM), [_header(stored), stored])
        self._verified[path] = status.st_size, status.st_ino, status.st_mtime_ns

    def _evict(self, added: int) -> None:
        with self._lock:
            if self._size_bytes is None:
                self._size_bytes = sum(size for _, size, _ in self._files())
            else:
                self._size_bytes += added
            if self._size_bytes <= self._max_bytes:
                return
            files = sorted(self._files())
            total = sum(size for _, size, _ in files)  # other processes may write to it as well
            wanted = max(_KEPT_FRACTION * self._max_bytes, sum(self._pinned.values()))
            for _, size, path in files:
                if total <= wanted:
                    break
                if path not in self._pinned:
                    self.delete(path)
                    total -= size
            self._size_bytes = total

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return the time of last use, size and path of each copy."""
        used: dict[str, tuple[float, int]] = {}
        with os.scandir(self.folder) as entries:
            for entry in entries:
                name = _OWN_NAME.fullmatch(entry.name)
                if name is None:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # another process has just deleted it
                    continue
                if name[2] and time.time() - status.st_mtime < _UNFINISHED_S:
                    continue
                # A plain file is counted with its checksum file, which has the time of the last use.
                own = f"{name[1]}{_COPY}" if entry.name.endswith(_CHECKSUM) else entry.name
                last, size = used.get(own, (0.0, 0))
                counted = 0 if entry.name.endswith(_CHECKSUM) else status.st_size
                used[own] = max(last, status.st_mtime), size + counted
        return [(last, size, self.folder / name) for name, (last, size) in used.items()]


def file_name(key: str) -> str:
    """Return the file name for a key."""
    return sha256(key.encode(errors="surrogateescape")).hexdigest()[:32]


def _header(contents: Any) -> bytes:
    return _HEADER.pack(_MAGIC, len(contents), crc32(contents))


def _checksum_of_file(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while part := file.read(_CHUNK_BYTES):
            checksum = crc32(part, checksum)
    return checksum


def _unlink(path: Path) -> None:
    with suppress(OSError):  # already deleted, or in a read-only folder, where it is verified each time
        path.unlink()
