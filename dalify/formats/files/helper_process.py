"""Runs libraries that damaged files can crash or hang (libhdf5, decompressors of FITS images) in helper processes.

In a helper process, a crash is an error of one sample, and processor time is limited. Helpers are separate programs,
which can be started in daemons, in threads and after a fork. They end after some idle seconds, or with this process.
"""

from __future__ import annotations

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
from dalify.base.exit_hook import at_exit
from dalify.base.fork_hook import Owner
from dalify.base.fork_lock import ForkLock
from dalify.base.processors import available_processors
from dalify.base.recent import Recent
from dalify.formats.files import helper_main
from dalify.formats.files.memory import file_memory
from dalify.formats.files.positions import HAS_PREAD, open_file, opened

_MAX_HELPERS = min(4, available_processors())
# Processor time allowed for a call: _PROCESSOR_S, plus one second per _BYTES_PER_S bytes of its result.
_PROCESSOR_S = 2.0
_BYTES_PER_S = 1 << 22
# Maximum time that a helper may wait for a disk or network.
_MAX_WAIT_S = 600.0
_POLL_MS = 1000
_PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ on Linux
_KINDS = {"reader": ReaderError, "dtype": DTypeError}
# Number of calls that crashed or timed out, which are not repeated.
_MAX_REMEMBERED = 256
# Modules that extend a library when imported.
_EXTENSIONS = ("hdf5plugin",)


class _EndedError(Exception):
    """The helper process has ended.

    Args:
        was_idle: whether it ended before the request.
    """

    def __init__(self, was_idle: bool = False) -> None:
        super().__init__()
        self.was_idle = was_idle


class _Helper:
    """One helper process."""

    def __init__(self) -> None:
        self.owner = Owner()
        executable = os.fsdecode(spawn.get_executable() or "")
        program = [executable, "-I", str(Path(helper_main.__file__)), str(os.getpid())]
        try:
            self._process = opened(
                lambda: subprocess.Popen(
                    program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
                )
            )
        except (OSError, ValueError) as error:
            raise ReaderError(
                f"cannot start the helper process that reads this format: {error}.",
                hint="If Python is embedded, set the interpreter: multiprocessing.set_executable(...).",
            ) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        if HAS_PREAD:  # `select` accepts only the first 1,024 descriptors of a process
            self._responses = select.poll()
            self._responses.register(self._from, select.POLLIN)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # only slower without it
                importlib.import_module("fcntl").fcntl(self._from, _SET_PIPE_SIZE, _PIPE_BYTES)
        with contextlib.suppress(_EndedError):  # the next request reports it
            self._send((list(sys.path), [name for name in _EXTENSIONS if name in sys.modules]))

    def call(self, request: tuple[Any, ...], out: NDArray[Any] | None) -> tuple[Any, list[NDArray[Any]]]:
        """Send a request; return the header of the response and its arrays."""
        self._send(request)
        try:
            self._fill(np.empty(len(helper_main.RECEIVED), np.uint8))
        except _EndedError:
            # A process that was killed may accept a request until the last of its threads has ended.
            raise _EndedError(was_idle=True) from None
        size = np.empty(helper_main.SIZE.size, np.uint8)
        self._fill(size)
        (header_bytes,) = helper_main.SIZE.unpack(size.data)
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
        left = memoryview(helper_main.SIZE.pack(len(pickled)) + pickled)
        try:
            while left:
                left = left[os.write(self._to, left) :]
        except OSError:
            raise _EndedError(was_idle=True) from None

    def _fill(self, memory: NDArray[np.uint8]) -> None:
        """Fill memory with data from the helper."""
        left = memory.data
        last = time.monotonic()
        while left:
            # The end of the helper is also detected by polling, because a forked process may keep the pipe open.
            if HAS_PREAD and not self._responses.poll(_POLL_MS):
                is_late = time.monotonic() - last > _MAX_WAIT_S
                if is_late or self._process.poll() is not None:
                    raise _EndedError
                continue
            last = time.monotonic()
            count = os.readv(self._from, [left]) if HAS_PREAD else self._process.stdout.readinto(left)  # pyright: ignore
            if not count:
                raise _EndedError
            left = left[count:]

    def end(self, timeout_s: float = 0.2) -> int:
        """End the process; return its exit code.

        Args:
            timeout_s: time after which it is killed.
        """
        if self._process.poll() is None:
            try:
                self._process.wait(timeout_s)
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
        """Return a free helper, and whether it is new."""
        with self._lock:
            while self._idle:
                helper = self._idle.pop()
                if helper.owner.is_this_process:  # others belong to the parent process of a fork
                    return helper, False
        return _Helper(), True

    def give(self, helper: _Helper) -> None:
        """Return a helper to the pool."""
        with self._lock:
            if len(self._idle) < _MAX_HELPERS:
                self._idle.append(helper)
                return
        helper.end()

    def end(self) -> None:
        """End all helpers of this process."""
        with self._lock:
            mine = [helper for helper in self._idle if helper.owner.is_this_process]
            self._idle = []
        for helper in mine:  # they wait for requests and do not end by themselves
            helper.end(0.0)


_helpers = _Helpers()
_failures: Recent[str] = Recent(_MAX_REMEMBERED)
at_exit(_helpers.end)


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
        function: name of the function.
        path: local path of the file.
        arguments: arguments after the path.
        result_bytes: approximate size of the result, which determines the limits of processor time and memory.
            None: 16 times the size of the file.
        out: memory for the returned array, used if dtype and shape match.
        library: lazy module used by the function.
        what: expected format of the file, for error messages, such as ``HDF5``.

    Raises:
        ReaderError: the file cannot be read, is damaged, or has another format.
        LimitError: the file declares more than the limits allow.
        DTypeError: elements cannot be converted to arrays.
        ArgumentValueError: a requested item is not in the file.
        MissingPackageError: the library is not installed.
    """
    descriptor, size = open_file(path)  # raises an error for pipes, which would block
    changed_ns = os.fstat(descriptor).st_mtime_ns
    os.close(descriptor)
    # Helpers keep the working folder in which they were started.
    located = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH117, PTH118
    file_key = repr((located, size, changed_ns))
    call_key = file_key + repr((function, arguments))
    for key in (file_key, call_key):
        known = _failures.get(key)
        if known is not None:
            raise ReaderError(known)
    result_bytes = 16 * size if result_bytes is None else result_bytes
    processor_s = _PROCESSOR_S + result_bytes / _BYTES_PER_S
    request = (function, (located, *arguments), processor_s, result_bytes)
    while True:
        helper, is_new = _helpers.take()
        try:
            header, arrays = helper.call(request, out)
        except _EndedError as ended:
            code = helper.end()
            if not is_new and (ended.was_idle or code == 0):  # it timed out while idle, or was killed
                continue
            message = f"the {what} file {path!r} is damaged: {_reason(code, processor_s)}."
            # After a crash, other rows may be readable. After a timeout, other rows and datasets would take as long, so
            # all calls for the file fail.
            _failures.put(file_key if code == -getattr(signal, "SIGPROF", 0) else call_key, message)
            raise ReaderError(message) from None
        except BaseException:
            helper.end()  # the response was not read completely
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
            _ = library.__version__  # raises an error that says what to install
        case "refused":
            raise _refused(*header[1:], path=path)
    raise ReaderError(f"{path!r} cannot be read or is not a valid {what} file: {header[1]}.")


def _refused(kind: str, message: str, hint: str, path: str) -> Exception:
    if kind == "argument":
        known = hint.split("\n") if hint else []
        return ArgumentValueError(
            f"{path!r} has no dataset {message!r}.{suggestion(message, known)}",
            hint=f"Available: {', '.join(map(repr, known[:30])) or 'none'}.",
        )
    if kind == "limit":
        limits.check_sample_bytes(int(hint), message)
    if kind == "dimensions":
        limits.check_dimensions(int(hint), message)
    return _KINDS[kind](message, hint=hint)


def _reason(code: int, processor_s: float) -> str:
    """Return why a helper ended."""
    if code == -getattr(signal, "SIGPROF", 0):
        return f"reading it takes more than {processor_s:.0f} s of processor time"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"the library that reads it crashed ({name})"
    return f"the process that reads it ended with exit code {code}"
