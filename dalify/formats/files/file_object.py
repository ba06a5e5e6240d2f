"""A file as a Python file object, for packages that require one. Threads do not share its position."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.formats.files.open_files import OpenFiles


class FileObject(io.RawIOBase):
    """A file that is read on demand, without read-ahead.

    Raises:
        ReaderError: the file is absent, or the storage does not respond.
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
        """Return the current position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def read(self, size: int = -1) -> Any:
        """Return the next ``size`` bytes as uint8 ``[n]``, fewer at the end; all if negative."""
        start = min(self._position, self._size)  # positions after the end are valid
        left = self._size - start
        contents = self._files.read(self._number, start, left if size < 0 else min(size, left), is_sample=False)
        self._position += len(contents)
        return contents

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer and return the number of bytes read; fewer only at the end of the file."""
        contents: NDArray[np.uint8] = self.read(len(buffer))
        buffer[: len(contents)] = contents.data
        return len(contents)
