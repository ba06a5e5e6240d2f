"""A file behind a URL as Python file object, for packages that want one.

Alone because parts of it are asked for as the storage module does it: with patience, and kept in the cache.
"""

from __future__ import annotations

import io
from typing import Any

from dalify.formats import storage

__all__ = ["RemoteFile"]


class RemoteFile(io.RawIOBase):
    """A file that is read part by part; nothing is read ahead.

    Args:
        url: where it lies.

    Raises:
        ReaderError: it is absent, or the storage does not answer.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._size = storage.size_of(url)
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go elsewhere, and return where that is."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill memory, and return how many bytes came; fewer only at the end."""
        size = min(len(buffer), max(self._size - self._position, 0))
        if size:
            buffer[:size] = storage.read(self._url, self._position, size).data
            self._position += size
        return size
