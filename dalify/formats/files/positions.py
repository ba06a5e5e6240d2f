"""Opens files and reads at an offset, on every system.

Without ``preadv``, threads share the position of a descriptor. If the process has too many open files, idle ones, which
are kept open for the next read, are closed, and a thread waits for others that are reading.
"""

from __future__ import annotations

import errno
import os
import time
import weakref
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.base.fork_hook import at_fork
from dalify.base.fork_lock import ForkLock
from dalify.base.regular_files import NotRegularError, open_regular

T = TypeVar("T")

# Whether the C library has ``pread``, which compiled loops call.
HAS_PREAD = hasattr(os, "preadv")
_lock = ForkLock()
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_PATIENCE_S, _PAUSE_S = 10.0, 0.001
_MAX_IDLE = 128
# Thread -> number of files that it holds for a read, or is about to open.
_held: dict[int, int] = {}
at_fork(_held.clear)


class _Closing(Protocol):
    def close_idle(self) -> None: ...


_holders: set[weakref.ref[_Closing]] = set()


def closes_when_needed(holder: _Closing) -> None:
    """Register an object, kept by a weak reference, whose ``close_idle`` closes files that no thread is reading."""
    _holders.add(weakref.ref(holder, _holders.discard))


class Holding:
    """Context manager of a read. A thread that cannot open another file waits for the files of this thread.

    Args:
        count: number of files. With several, this thread does not wait, because two threads might wait for each other.
    """

    __slots__ = ("_count",)

    def __init__(self, count: int = 1) -> None:
        self._count = count

    def __enter__(self) -> None:
        """Begin the read; the files are opened later."""
        _held[get_ident()] = self._count

    def __exit__(self, *_: object) -> None:
        """End the read; the files were closed, or are idle."""
        _held.pop(get_ident(), None)


def _max_open() -> int:
    limit = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 512  # Windows has no limit of this kind
    return limit if limit > 0 else 1 << 20


def most_idle() -> int:
    """Return the number of files that a reader may keep open: a quarter of the limit of the process, at most 128."""
    return min(_MAX_IDLE, max(1, _max_open() // 4))


def leave_some(descriptor: int) -> None:
    """Close idle files if two thirds of the files that the process may open are open.

    Others are needed, for example to import modules.

    Args:
        descriptor: a file that was just opened; all lower numbers are in use.
    """
    if descriptor >= 2 * _max_open() // 3:
        _close_idle()


def is_within_limit(count: int) -> bool:
    """Return whether a read may hold a number of files: all threads together may hold half the limit of the process."""
    return count <= 1 or (count <= _MAX_IDLE and count + sum(list(_held.values())) <= _max_open() // 2)


def _close_idle() -> None:
    for reference in list(_holders):
        holder = reference()
        if holder is not None:
            holder.close_idle()


def opened(open_once: Callable[[], T]) -> T:
    """Open a file with a function, and return the result.

    If too many files are open, idle files are closed, and the call is repeated while other threads hold files.

    Raises:
        OSError: the file cannot be opened.
    """
    try:
        return open_once()
    except OSError as error:
        if error.errno not in _TOO_MANY:
            raise
    thread, end = get_ident(), time.monotonic() + _PATIENCE_S
    own = _held.pop(thread, 0)  # others do not wait for this thread
    try:
        while True:
            # In this order: if a thread ends its read after this line, its files are closed below.
            are_busy = bool(_held) and own <= 1 and time.monotonic() < end
            _close_idle()
            try:
                return open_once()
            except OSError as error:
                if error.errno not in _TOO_MANY or not are_busy:
                    raise
            time.sleep(_PAUSE_S)
    finally:
        if own:
            _held[thread] = own


def opening_hint(path: str, error: OSError) -> str:
    """Return a hint for a path that cannot be opened, or ""."""
    if error.errno in _TOO_MANY:
        return "Raise the limit of the process, for example with: ulimit -n 4096"
    if error.errno != errno.ENOENT:
        return ""
    if path.startswith("~"):
        return "'~' is not expanded: use os.path.expanduser(path)."
    if set(path) & set("*?{"):
        return "Patterns are not expanded: pass a list of paths, for example sorted(glob.glob(pattern))."
    with suppress(OSError):  # not a link, or the working directory was deleted
        return f"It is a symbolic link to {str(Path(path).readlink())!r}, which does not exist."
    with suppress(OSError):
        return "" if Path(path).is_absolute() else f"The working directory is {str(Path.cwd())!r}."
    return ""


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
        descriptor = opened(lambda: open_regular(path))
    except NotRegularError as error:
        raise ReaderError(f"cannot read {name!r}: {error.strerror}.") from None
    except OSError as error:
        text = f"cannot open the file {name!r}: {error.strerror}."
        # With its reason, this is not a bad sample.
        reason = error if error.errno in _TOO_MANY else None
        raise ReaderError(text, hint=opening_hint(path, error)) from reason
    except ValueError as error:  # a null character in the path
        raise ReaderError(f"cannot open the file {name!r}: {error}.") from None
    return descriptor, os.fstat(descriptor).st_size


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
