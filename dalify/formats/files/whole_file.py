"""Reads whole files.

The files of a chunk are opened and read in a compiled loop, because the overhead of Python is as large as the time for
reading an image. They are read one by one only in special cases.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dalify.base import limits
from dalify.base.errors import ReaderError
from dalify.base.regular_files import OPEN_FLAGS
from dalify.data.batch import Batch
from dalify.formats.files import storage
from dalify.formats.files.memory import file_memory
from dalify.formats.files.paths import Paths
from dalify.formats.files.pieces import ALIGNMENT_BYTES, fill_with_files
from dalify.formats.files.positions import HAS_PREAD, open_file, read_at

_MAX_BYTES = 1 << 26
# Files share memory blocks of at most this size, which are kept alive by each of their files.
_BLOCK_BYTES = 1 << 24


def read_file(path: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the contents of a file as 1-D uint8; empty for an empty file. The GIL is released.

    Args:
        path: local path, or any URL that fsspec supports.

    Raises:
        ReaderError: the file is absent, a folder or a pipe, or cannot be read.
        LimitError: the file is larger than ``max_sample_bytes``.
    """
    if storage.is_remote(path):
        return storage.read(path)
    descriptor, size = open_file(path)
    try:
        limits.check_sample_bytes(size, f"the file {path!r}")
        contents = file_memory(size)
        contents = contents[: read_at(descriptor, contents, 0)]  # it may have been truncated since it was opened
    except OSError as error:
        raise ReaderError(f"cannot read the file {path!r}: {error.strerror}.") from None
    finally:
        os.close(descriptor)
    return contents


def read_files(paths: Paths, typical_bytes: int) -> Batch | None:
    """Return the contents of local files, uint8 ``[bytes]`` each. The GIL is released during the read.

    Args:
        paths: paths of the files.
        typical_bytes: typical size of a file, to allocate memory for all; 0 if unknown.

    Returns:
        the contents. None if each file must be read separately, because one cannot be read, is empty, large or not a
        regular file, or the system has no ``pread``.
    """
    if not HAS_PREAD:
        return None
    parts: list[Batch] = []
    left, wanted_bytes, expected_bytes, largest_bytes = paths, 0, typical_bytes, 0
    while left.starts.size:
        space_bytes = expected_bytes * 9 // 8 + ALIGNMENT_BYTES
        size_bytes = max(wanted_bytes, min(_BLOCK_BYTES, space_bytes * left.starts.size))
        largest_bytes = max(largest_bytes, size_bytes)
        part, wanted_bytes = fill_with_files(left, OPEN_FLAGS, file_memory(size_bytes))
        if not 0 <= wanted_bytes <= _MAX_BYTES:
            return None
        if part is not None:
            parts.append(part)
            if not wanted_bytes:
                break
            left = left[len(part) :]
        expected_bytes = max(typical_bytes, wanted_bytes)
    contents = parts[0] if len(parts) == 1 else Batch(samples=[sample for part in parts for sample in part.samples])
    max_bytes = limits.current().max_sample_bytes
    is_within = largest_bytes <= max_bytes or max(contents.shape_array().tolist())[0] <= max_bytes
    return contents if is_within else None
