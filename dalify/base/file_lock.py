"""File locks between the processes of a machine.

The operating system releases a lock when its process ends, also after a crash.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dalify.base.optional import LazyModule

if TYPE_CHECKING:
    import fcntl
    import msvcrt
else:  # each operating system has one of them
    fcntl = LazyModule("fcntl", "locks between processes")
    msvcrt = LazyModule("msvcrt", "locks between processes")

LOCK_FLAGS = os.O_RDWR | os.O_CREAT | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW"))
_PAUSE_S = 0.001


def try_lock(descriptor: int) -> bool:
    """Lock an open file without waiting; return whether it succeeded. Closing the file releases the lock.

    Args:
        descriptor: descriptor of a file that is open for writing. Locks of separate open calls
            exclude each other, also within one process.
    """
    try:
        if os.name == "nt":
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def locked(path: Path, timeout_s: float) -> Generator[int | None]:
    """Lock a file inside a ``with`` block.

    Args:
        path: path of the file; created if it does not exist.
        timeout_s: maximum time to wait, in seconds.

    Yields:
        The descriptor; None if another process kept the lock for this time.

    Raises:
        OSError: the file cannot be opened.
    """
    descriptor = os.open(path, LOCK_FLAGS, 0o600)
    try:
        deadline = time.monotonic() + timeout_s
        while not (is_locked := try_lock(descriptor)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        yield descriptor if is_locked else None
    finally:
        os.close(descriptor)
