"""Opens regular files for reading. Folders, pipes, sockets and devices are errors; opening a pipe does not wait."""

from __future__ import annotations

import errno
import os
import stat

# Without O_NONBLOCK, opening a named pipe waits for a writer. The flag has no effect on regular files.
OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK"))


class NotRegularError(OSError):
    """A path that is no regular file."""


def open_regular(path: str | bytes) -> int:
    """Open a regular file, and return the descriptor.

    Raises:
        OSError: the file is absent or cannot be opened.
        NotRegularError: it is a folder, pipe, socket or device.
    """
    try:
        descriptor = os.open(path, OPEN_FLAGS)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular(stat.S_IFSOCK) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _not_regular(mode)
    return descriptor


def read_regular(path: str) -> bytes:
    """Return the contents of a regular file.

    Raises:
        OSError: see ``open_regular``, or the file cannot be read.
    """
    with open(open_regular(path), "rb") as file:
        return file.read()


def _not_regular(mode: int) -> NotRegularError:
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device, not a regular file"
    return NotRegularError(errno.EINVAL, f"it is {what}")
