"""The bytes of one file, read without detours."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dalify.base.errors import ReaderError
from dalify.formats import storage
from dalify.formats.memory import file_memory

__all__ = ["read_file"]

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)


def read_file(path: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the contents of a file as 1-D uint8; empty for an empty file. The GIL is free while data come.

    Args:
        path: on this machine, or any URL that fsspec knows.

    Raises:
        ReaderError: the file is absent, a folder, or cannot be read.
    """
    if storage.is_remote(path):
        return storage.read(path)
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        raise ReaderError(f"cannot open the file {path!r}: {error.strerror}.") from None
    try:
        contents = file_memory(os.fstat(descriptor).st_size)
        filled = 0
        while filled < contents.size:
            count = os.readv(descriptor, [contents.data[filled:]])
            if count == 0:  # the file has become shorter since it was opened
                contents = contents[:filled]
            filled += count
    except OSError as error:
        raise ReaderError(f"cannot read the file {path!r}: {error.strerror}.") from None
    finally:
        os.close(descriptor)
    return contents
