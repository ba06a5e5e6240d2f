"""Calls of libraries that damaged files can crash or hang, in processes of their own.

libhdf5 and the decompressors of FITS images follow what a file says. A crash there would end the run, and a loop would
hang it, so they run in helper processes: a crash is an error of one sample, and processor time is bounded.

Helpers are started when they are needed, as programs of their own: that works in daemons, in threads and after a fork.
They end when they were idle for some seconds, or when this process is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from multiprocessing import spawn
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.errors import ArgumentValueError, DTypeError, ReaderError, suggestion
from dalify.base.fork_lock import ForkLock
from dalify.formats import helper_main
from dalify.formats.memory import file_memory
from dalify.formats.positions import HAS_POSITIONS, open_file

__all__ = ["call"]

_MOST_HELPERS = min(4, os.cpu_count() or 1)
# A call may take so much processor time, and a second more for each so many bytes that it returns.
_PROCESSOR_S = 2.0
_BYTES_PER_S = 1 << 22
# The longest that a helper may wait for a disk or network.
_LONGEST_WAIT_S = 600.0
_PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux
_KINDS = {"reader": ReaderError, "dtype": DTypeError}
# Calls that ended a helper are not repeated: that would take as long again.
_MOST_REMEMBERED = 256
# What adds to a library when it is imported.
_EXTENSIONS = ("hdf5plugin",)


class _EndedError(Exception):
    """The helper process has ended.

    Args:
        was_idle: before it was asked for anything.
    """

    def __init__(self, was_idle: bool = False) -> None:
        super().__init__()
        self.was_idle = was_idle


class _Helper:
    """One helper process."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        executable = os.fsdecode(spawn.get_executable() or "")
        program = [executable, "-I", str(Path(helper_main.__file__)), str(self.owner)]
        try:
            self._process = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
            )
        except (OSError, ValueError) as error:
            raise ReaderError(
                f"cannot start the helper process that reads such files: {error}.",
                hint="Where Python is embedded, name its program: multiprocessing.set_executable(...).",
            ) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # it is only slower
                importlib.import_module("fcntl").fcntl(self._from, _SET_PIPE_SIZE, _PIPE_BYTES)
        with contextlib.suppress(_EndedError):  # whoever asks is told
            self._send((list(sys.path), [name for name in _EXTENSIONS if name in sys.modules]))

    def ask(self, request: tuple[Any, ...], out: NDArray[Any] | None) -> tuple[Any, list[NDArray[Any]]]:
        """Send a request; return the header of the answer and the arrays behind it."""
        self._send(request)
        sizes = np.empty(helper_main.HEAD.size, np.uint8)
        self._fill(sizes)
        header_bytes, _ = helper_main.HEAD.unpack(sizes.data)
        pickled = np.empty(header_bytes, np.uint8)
        self._fill(pickled)
        header = pickle.loads(pickled.data)
        arrays: list[NDArray[Any]] = []
        if header[0] in ("array", "arrays"):
            for text, shape in header[1]:
                dtype = np.dtype(text)
                array = out
                if array is None or array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
                    size = dtype.itemsize * int(np.prod(shape, dtype=object))
                    array = file_memory(size).view(dtype).reshape(shape)
                self._fill(array.reshape(-1).view(np.uint8))
                arrays.append(array)
        return header, arrays

    def _send(self, message: Any) -> None:
        pickled = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        left = memoryview(helper_main.HEAD.pack(len(pickled), 0) + pickled)
        try:
            while left:
                left = left[os.write(self._to, left) :]
        except OSError:
            raise _EndedError(was_idle=True) from None

    def _fill(self, memory: NDArray[np.uint8]) -> None:
        """Fill memory with what the helper sends."""
        left = memory.data
        last = time.monotonic()
        while left:
            # The end of the pipe may be open in a process that was forked from this one: whether the helper lives is
            # asked now and then.
            if HAS_POSITIONS and not select.select([self._from], [], [], 1.0)[0]:
                is_late = time.monotonic() - last > _LONGEST_WAIT_S
                if is_late or self._process.poll() is not None:
                    raise _EndedError
                continue
            last = time.monotonic()
            count = os.readv(self._from, [left]) if HAS_POSITIONS else self._process.stdout.readinto(left)  # pyright: ignore
            if not count:
                raise _EndedError
            left = left[count:]

    def end(self, patience_s: float = 0.2) -> int:
        """End the process; return its exit code.

        Args:
            patience_s: how long it may take to end by itself.
        """
        if self._process.poll() is None:
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return code


class _Helpers:
    """The helpers of this process."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._idle: list[_Helper] = []

    def take(self) -> tuple[_Helper, bool]:
        """Return a helper that nobody else uses, and whether it is new."""
        with self._lock:
            while self._idle:
                helper = self._idle.pop()
                if helper.owner == os.getpid():  # others belong to the process from which this one was forked
                    return helper, False
        return _Helper(), True

    def give(self, helper: _Helper) -> None:
        """Take back a helper."""
        with self._lock:
            if len(self._idle) < _MOST_HELPERS:
                self._idle.append(helper)
                return
        helper.end()

    def end(self) -> None:
        """End all helpers of this process."""
        with self._lock:
            mine = [helper for helper in self._idle if helper.owner == os.getpid()]
            self._idle = []
        for helper in mine:  # they wait for requests: none ends by itself
            helper.end(0.0)


_helpers = _Helpers()
_known_to_end: dict[str, str] = {}
atexit.register(_helpers.end)


def call(
    function: str,
    path: str,
    *arguments: Any,
    result_bytes: int | None = None,
    out: NDArray[Any] | None = None,
    library: Any,
    what: str,
) -> Any:
    """Call a function of ``helper_main`` in a helper process.

    Args:
        function: its name.
        path: of the file, on this machine.
        arguments: of the function, after the path.
        result_bytes: size of what it returns, about; more processor time and memory are allowed for more. None: 16
            times the size of the file.
        out: memory for the array that it returns, used where type and shape are the same.
        library: lazy module that the function needs.
        what: the file should be, for messages, such as ``HDF5``.

    Returns:
        what the function returns.

    Raises:
        ReaderError: the file cannot be read, is damaged, or is no file of this kind.
        LimitError: the file declares more than the limits allow.
        DTypeError: elements that no arrays can be made of.
        ArgumentValueError: something that is not in the file.
        MissingPackageError: the library is not installed.
    """
    descriptor, size = open_file(path)  # a pipe would be waited for
    changed_ns = os.fstat(descriptor).st_mtime_ns
    os.close(descriptor)
    whole = repr((path, size, changed_ns))
    key = whole + repr((function, arguments))
    for known in (whole, key):
        if known in _known_to_end:
            raise ReaderError(_known_to_end[known])
    result_bytes = 16 * size if result_bytes is None else result_bytes
    processor_s = _PROCESSOR_S + result_bytes / _BYTES_PER_S
    request = (function, (path, *arguments), processor_s, result_bytes)
    while True:
        helper, is_new = _helpers.take()
        try:
            header, arrays = helper.ask(request, out)
        except _EndedError as ended:
            code = helper.end()
            if not is_new and (ended.was_idle or code == 0):  # it was idle for too long, or somebody ended it
                continue
            message = f"the {what} file {path!r} is damaged: {_reason(code, processor_s)}."
            # Other rows may be sound where some crash. Where reading does not end, they and other data sets would take
            # as long.
            _known_to_end[whole if code == -getattr(signal, "SIGPROF", 0) else key] = message
            while len(_known_to_end) > _MOST_REMEMBERED:
                _known_to_end.pop(next(iter(_known_to_end)), None)
            raise ReaderError(message) from None
        except BaseException:
            helper.end()  # the answer was not read to its end
            raise
        _helpers.give(helper)
        break
    match header[0]:
        case "array":
            return arrays[0]
        case "arrays":
            return arrays
        case "value":
            return header[1]
        case "missing":
            _ = library.__version__  # says what to install
        case "refused":
            raise _refused(*header[1:], path=path)
    raise ReaderError(f"{path!r} cannot be read, or is no {what} file: {header[1]}.")


def _refused(kind: str, message: str, hint: str, path: str) -> Exception:
    if kind == "argument":
        known = hint.split("\n") if hint else []
        return ArgumentValueError(
            f"{path!r} has no dataset {message!r}.{suggestion(message, known)}",
            hint=f"It has: {', '.join(map(repr, known[:30])) or 'none'}.",
        )
    if kind == "limit":
        limits.check_sample_bytes(int(hint), message)
    if kind == "dimensions":
        limits.check_dimensions(int(hint), message)
    return _KINDS[kind](message, hint=hint)


def _reason(code: int, processor_s: float) -> str:
    """Return why a helper has ended."""
    if code == -getattr(signal, "SIGPROF", 0):
        return f"reading it takes more than {processor_s:.0f} s of processor time"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"the library that reads it crashed ({name})"
    return f"the process that reads it ended with exit code {code}"
