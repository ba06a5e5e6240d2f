"""Copies of what lies elsewhere, in a folder of bounded size that processes share.

Alone because disks fill up, and other processes write and drop in the same folder: no reader should have to know.
"""

from __future__ import annotations

import errno
import os
import threading
import warnings
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dalify.base.fork_lock import ForkLock

__all__ = ["DiskCache", "file_name", "write_whole"]

# Dropped down to this part of the bound, so that not every new file makes the folder be gone through.
_KEPT_PART = 0.9

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class DiskCache:
    """A folder of files, the last used ones.

    Args:
        folder: made where it does not exist.
        most_bytes: bound; what was not used for longest is dropped beyond. What this process holds stays.
    """

    def __init__(self, folder: str, most_bytes: int) -> None:
        self._folder = Path(folder)
        self._most_bytes = most_bytes
        self._lock = ForkLock()
        self._size_bytes: int | None = None  # counted when something is added
        self._held: dict[Path, int] = {}  # sizes of containers that readers have open
        self._is_full = False

    def path(self, key: str) -> Path:
        """Return where the copy for a key lies, or would lie."""
        return self._folder / file_name(key)

    @property
    def takes(self) -> bool:
        """Whether new copies can be written."""
        return not self._is_full

    def read(self, path: Path) -> Bytes | None:
        """Return the contents of a copy; None where there is none."""
        try:
            contents = np.fromfile(path, np.uint8)
            os.utime(path)
        except OSError:
            return None
        return contents

    def keep(self, path: Path, contents: bytes) -> None:
        """Keep a copy, where there is room."""
        if self._is_full or len(contents) + sum(self._held.values()) > self._most_bytes:
            return
        try:
            write_whole(path, [contents])
        except OSError as error:
            self.refuse(error)
            return
        self._make_room(len(contents))

    def hold(self, path: Path, *, is_new: bool) -> None:
        """Keep a copy from being dropped while this process lives.

        Args:
            path: of the copy.
            is_new: it was just written; others are dropped for it.
        """
        with suppress(OSError):  # another process may just have dropped it: then opening it fails, too
            os.utime(path)
            size = path.stat().st_size
            with self._lock:
                self._held[path] = size
            if is_new:
                self._make_room(size)

    def refuse(self, error: OSError) -> None:
        """Write nothing more, with a warning; what is there is used all the same."""
        self._is_full = True
        why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
        warnings.warn(f"nothing more is kept in the cache {self._folder}: {why}.", stacklevel=2)

    def _make_room(self, added: int) -> None:
        with self._lock:
            if self._size_bytes is None:
                self._size_bytes = sum(size for _, size, _ in self._files())
            else:
                self._size_bytes += added
            if self._size_bytes <= self._most_bytes:
                return
            files = sorted(self._files())
            total = sum(size for _, size, _ in files)  # other processes may write there, too
            wanted = max(_KEPT_PART * self._most_bytes, sum(self._held.values()))
            for _, size, path in files:
                if total <= wanted:
                    break
                if path not in self._held:
                    path.unlink(missing_ok=True)
                    total -= size
            self._size_bytes = total

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return time of last use, size and path of each file."""
        found: list[tuple[float, int, Path]] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                except FileNotFoundError:  # another process has just dropped it
                    continue
                found.append((status.st_mtime, status.st_size, self._folder / entry.name))
        return found


def file_name(key: str) -> str:
    """Return the name of the file for a key."""
    return sha256(key.encode()).hexdigest()[:32]


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file so that others see it whole or not at all.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with unfinished.open("wb") as file:
            file.writelines(parts)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
