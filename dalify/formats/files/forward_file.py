"""Reads selected parts of a file, such as headers, in one pass from beginning to end.

The file is not mapped, because truncation of a mapped file would end the process.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.formats.files.positions import open_file, read_at
from dalify.formats.files.storage import local_copy

_AHEAD_BYTES = 1 << 16
# For parts that are further apart, read-ahead takes longer than another call.
_NEAR_BYTES = 1 << 14
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")  # gzip, Zstandard, bzip2, xz


class ForwardFile:
    """A local file, or a local copy of a remote file. A context manager.

    Raises:
        ReaderError: the file is absent, or not a regular file.

    Attributes:
        size: size of the file in bytes.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor, self.size = open_file(local_copy(path), path)
        self._last = 0

    def __enter__(self) -> ForwardFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read_from(self, offset: int, needed_bytes: int) -> NDArray[np.uint8]:
        """Return data of the file from an offset on, uint8 ``[n]``, n at least ``needed_bytes``.

        Args:
            offset: offset of the first byte.
            needed_bytes: number of bytes needed; they must be within the file.

        Raises:
            ReaderError: the file cannot be read, or was truncated.
        """
        is_near = offset - self._last < _NEAR_BYTES
        self._last = offset
        wanted = min(max(needed_bytes, _AHEAD_BYTES if is_near else 0), self.size - offset)
        data = np.empty(wanted, np.uint8)
        try:
            filled = read_at(self._descriptor, data, offset)
        except OSError as error:
            raise ReaderError(f"cannot read the file {self._path!r}: {error.strerror}.") from None
        if filled < needed_bytes:
            raise ReaderError(f"the file {self._path!r} was truncated while it was read.")
        return data[:filled]

    def compression_hint(self) -> str:
        """Return a hint for errors if the whole file is compressed, otherwise an empty string."""
        is_compressed = self.read_from(0, 0).tobytes().startswith(_COMPRESSED)
        return "The file is compressed. Decompress it: it is read at random positions." if is_compressed else ""
