"""Opens files and reads at an offset, on every system.

Without ``preadv``, threads share the position of a descriptor. If the process has too many open files, those that are
only kept for the next read are closed.
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.base.fork_lock import ForkLock

__all__ = ["HAS_PREAD", "OPEN_FLAGS", "closes_when_needed", "open_file", "opened", "read_at"]

T = TypeVar("T")

# Without O_NONBLOCK, opening a named pipe waits for a writer. The flag has no effect on regular files.
OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK"))
# Whether the C library has ``pread``, which compiled loops call.
HAS_PREAD = hasattr(os, "preadv")
_lock = ForkLock()
_TOO_MANY = (errno.EMFILE, errno.ENFILE)


class _Closing(Protocol):
    def close_idle(self) -> None: ...


_holders: set[weakref.ref[_Closing]] = set()


def closes_when_needed(holder: _Closing) -> None:
    """Register an object, kept by a weak reference, whose ``close_idle`` closes files that no thread is reading."""
    _holders.add(weakref.ref(holder, _holders.discard))


def opened(open_once: Callable[[], T]) -> T:
    """Return what a function opens. If there are too many open files, idle ones are closed, and it is called again.

    Raises:
        OSError: the file cannot be opened.
    """
    try:
        return open_once()
    except OSError as error:
        if error.errno not in _TOO_MANY:
            raise
    for reference in list(_holders):
        holder = reference()
        if holder is not None:
            holder.close_idle()
    return open_once()


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
        descriptor = opened(lambda: os.open(path, OPEN_FLAGS))
    except OSError as error:
        hint = "Raise the limit of the process, for example with: ulimit -n 4096" if error.errno in _TOO_MANY else ""
        raise ReaderError(f"cannot open the file {name!r}: {error.strerror}.", hint=hint) from None
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
