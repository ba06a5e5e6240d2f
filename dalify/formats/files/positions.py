"""Opens files and reads at an offset, on every system.

Without ``preadv``, threads share the position of a descriptor.
"""

from __future__ import annotations

import os
import stat

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.base.fork_lock import ForkLock

__all__ = ["HAS_PREAD", "OPEN_FLAGS", "open_file", "read_at"]

# Without O_NONBLOCK, opening a named pipe waits for a writer. The flag has no effect on regular files.
OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK"))
# Whether the C library has ``pread``, which compiled loops call.
HAS_PREAD = hasattr(os, "preadv")
_lock = ForkLock()


def open_file(path: str, name: str | None = None) -> tuple[int, int]:
    """Open a regular file for reading; return the descriptor and the size in bytes.

    Args:
        path: path of the file.
        name: name for error messages; the path if None.

    Raises:
        ReaderError: the file is absent, cannot be opened, or is a folder, pipe or device.
    """
    name = path if name is None else name
    try:
        descriptor = os.open(path, OPEN_FLAGS)
    except OSError as error:
        raise ReaderError(f"cannot open the file {name!r}: {error.strerror}.") from None
    except ValueError as error:  # a null character in the path
        raise ReaderError(f"cannot open the file {name!r}: {error}.") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, socket or device, not a regular file"
        raise ReaderError(f"cannot read {name!r}: it is {what}.")
    return descriptor, status.st_size


def read_at(descriptor: int, memory: NDArray[np.uint8], offset: int) -> int:
    """Read from an offset of an open file into memory; return the number of bytes, fewer at the end.

    Raises:
        OSError: the read failed.
    """
    filled = 0
    while filled < memory.size:
        if HAS_PREAD:
            count = os.preadv(descriptor, [memory.data[filled:]], offset + filled)
        else:
            with _lock:
                os.lseek(descriptor, offset + filled, os.SEEK_SET)
                part = os.read(descriptor, memory.size - filled)
            count = len(part)
            memory.data[filled : filled + count] = part
        if count == 0:
            break
        filled += count
    return filled
