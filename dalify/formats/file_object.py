"""A file as Python file object, for packages that want one.

Parts of it are read as all parts of files are: on this machine without moving a position that threads share, and from
URLs with retries and the cache.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.formats.open_files import OpenFiles

__all__ = ["FileObject"]


class FileObject(io.RawIOBase):
    """A file that is read part by part; nothing is read ahead.

    Args:
        files: open files.
        number: of the file.

    Raises:
        ReaderError: it is absent, or the storage does not answer.
    """

    def __init__(self, files: OpenFiles, number: int) -> None:
        super().__init__()
        self._files = files
        self._number = number
        self._size = files.size(number)
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

    def read(self, size: int = -1) -> Any:
        """Return the bytes that follow as uint8 ``[n]``, ``size`` of them, or fewer at the end; all where negative."""
        left = max(self._size - self._position, 0)
        contents = self._files.read(
            self._number, self._position, left if size < 0 else min(size, left), is_sample=False
        )
        self._position += len(contents)
        return contents

    def readinto(self, buffer: Any) -> int:
        """Fill memory, and return how many bytes came; fewer only at the end."""
        contents: NDArray[np.uint8] = self.read(len(buffer))
        buffer[: len(contents)] = contents.data
        return len(contents)
