"""Simulate a pipeline on more cores than those of the machine: compiled calls sleep instead of computing.

A recording run measures the time of each compiled call: numba kernels that release the GIL, and functions of
simplejpeg, OpenCV, and soundfile. In a simulated run, these calls sleep for that time. Sleeping threads need no core,
and Python code, which needs the GIL, runs normally. So any number of threads can be simulated.

The model:

- The time of a call is proportional to the bytes of its array arguments: the recorded time of all calls of that
  function divided by the recorded bytes. Recorded times are CPU seconds of the calling thread, so other programs do not
  affect them.
- A library call that returns a new array returns a recorded result of a call with equal shapes. Decoded audio and the
  nonsilent region of a signal are those of a recorded call of equal length, because silence determines later shapes.
- Some calls are executed: kernels with results that determine later computations (they return a value, or write a small
  array), readers except those of NumPy arrays, because their bytes are parsed later, calls that take less than
  `SHORT_S` on average, and calls without a matching recorded result. NumPy cannot be intercepted and is executed, too.
  All of these share the real cores. `Simulated.real_share` is their fraction of the compiled time, without NumPy. The
  simulation is valid if that fraction times the number of threads does not exceed the number of cores.
- The CPU time of a thread includes the time in which it sleeps.
- A call holds the GIL while its arguments are unpacked. A simulated call holds it as long as an empty call with the
  same number of arrays, which is measured at the start of the simulation.
- Simulated cores do not share memory bandwidth, caches, or clock frequency. So the result is an upper bound.
- The outputs of other simulated calls contain uninitialized memory.

Calls are intercepted in numba's dispatcher class and in the namespaces of the libraries while the context managers
below are active. A POSIX system is required.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import types
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import cv2
import numba
import numpy as np
import simplejpeg
from numba.core.dispatcher import Dispatcher

from dalify.base.optional import LazyModule
from dalify.executor import engine
from dalify.formats.arrays.ragged_arrays import close_all

soundfile: Any = LazyModule("soundfile", "the simulation of audio decoders", "dalify[audio]")

SHORT_S = 20e-6
# A shorter sleep is added to the next one of the thread, because the system call takes longer.
SHORTEST_SLEEP_S = 60e-6
SMALL_BYTES = 4096
KERNELS = "dalify."
FILLED_FROM_RECORDING = ("SoundFile.read",)
# Kernels that write one number for each sample to some arguments: positions of these and of the shapes of the samples.
WRITES_PER_SAMPLE = {"dalify.kernels.audio.loudness._regions": ((0, 1), 3)}
REALLY_RUN = ("dalify.formats", "dalify.sources", "dalify.operators.readers")
# Functions whose results are only used by other simulated calls. They close the files in their first argument.
READS_ELEMENTS = ("dalify.formats.arrays.ragged_arrays._read_all",)
_PR_SET_TIMERSLACK = 29
_MONOTONIC = 6 if sys.platform == "darwin" else 1

Call = Callable[..., Any]


@dataclass
class Result:
    """The effects of one recorded call.

    Attributes:
        returned: the result, unless it is one of the arguments.
        argument: position of the array argument that shares memory with the result.
        wrote_small: True if a small array was changed.
        contents: contents of that argument, if they determine later computations.
    """

    returned: Any
    argument: int | None
    wrote_small: bool
    contents: np.ndarray[Any, Any] | None


@dataclass
class Function:
    """The recorded calls of one compiled function."""

    calls: int = 0
    seconds: float = 0.0
    size_bytes: int = 0
    is_decisive: bool = False
    last: Result | None = None
    by_shapes: dict[Any, Result] = field(default_factory=dict)

    def is_short(self) -> bool:
        """Whether calls are short enough to be executed in a simulation."""
        return self.calls == 0 or self.seconds / self.calls < SHORT_S


class Recording:
    """The recorded calls of all compiled functions.

    Attributes:
        functions: recordings by function name.
        per_sample: numbers of samples by function name and shape; see `WRITES_PER_SAMPLE`.
        overhead_s: CPU seconds of the recording itself.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.per_sample: dict[str, dict[tuple[int, ...], list[Any]]] = {name: {} for name in WRITES_PER_SAMPLE}
        self.overhead_s = 0.0
        self._lock = threading.Lock()

    @property
    def thread_s(self) -> float:
        """CPU seconds in compiled calls."""
        return sum(function.seconds for function in self.functions.values())

    def add_overhead(self, seconds: float) -> None:
        """Add the time of the recording of a call."""
        with self._lock:
            self.overhead_s += seconds

    def add(self, name: str, size_bytes: int, seconds: float, key: Any, result: Result | None) -> None:
        """Add a call; `result` is None if it failed."""
        with self._lock:
            function = self.functions.setdefault(name, Function())
            previous = function.last
            function.calls += 1
            function.seconds += seconds
            function.size_bytes += size_bytes
            if result is None:
                return
            returns_another = previous is not None and not _is_same(previous.returned, result.returned)
            function.is_decisive |= result.wrote_small or returns_another
            function.last = result
            function.by_shapes.setdefault(key, result)

    def note_samples(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Record the numbers that a call wrote for each sample."""
        written, shapes = WRITES_PER_SAMPLE[name]
        for number, shape in enumerate(arguments[shapes].tolist()):
            self.per_sample[name][tuple(shape)] = [arguments[position][number] for position in written]

    def fill_samples(self, name: str, arguments: tuple[Any, ...]) -> bool:
        """Write the recorded numbers; return whether all shapes were recorded."""
        written, shapes = WRITES_PER_SAMPLE[name]
        found = [self.per_sample[name].get(tuple(shape)) for shape in arguments[shapes].tolist()]
        for number, numbers in enumerate(found):
            for position, value in zip(written, numbers or (), strict=numbers is not None):
                arguments[position][number] = value
        return None not in found


@dataclass
class Simulated:
    """Totals of simulated runs, in recorded seconds."""

    slept_s: float = 0.0
    real_s: float = 0.0

    @property
    def real_share(self) -> float:
        """The fraction of the compiled time that was executed."""
        return self.real_s / max(self.real_s + self.slept_s, 1e-9)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    return type(one) is type(other) and bool(one == other)


def _key(arguments: tuple[Any, ...], arrays: list[Any]) -> Any:
    """Return a key for calls with exchangeable results: shapes, and the length of an audio file."""
    frames = getattr(arguments[0], "frames", None) if arguments else None
    return (frames, *(array.shape for array in arrays))


def _arrays(arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    return [value for value in (*arguments, *named.values()) if isinstance(value, np.ndarray)]


def _size_bytes(arrays: list[Any]) -> int:
    """Return the bytes of a call's arguments; samples are addresses, shapes, and an empty array of their dtype."""
    total = 0
    for number, array in enumerate(arrays):
        total += array.nbytes
        if array.ndim == 1 and array.dtype == np.int64 and number + 2 < len(arrays):
            shapes, like = arrays[number + 1], arrays[number + 2]
            if shapes.ndim == 2 and len(shapes) == len(array) and like.size == 0 and shapes.dtype == np.int64:
                total += int(shapes.prod(1).sum()) * like.itemsize
    return total


def _result(name: str, returned: Any, arrays: list[Any], before: list[tuple[int, Any]]) -> Result:
    wrote_small = any(old.tobytes() != arrays[number].tobytes() for number, old in before)
    argument = None
    if isinstance(returned, np.ndarray):
        argument = next((number for number, array in enumerate(arrays) if np.may_share_memory(array, returned)), None)
    if argument is None:
        return Result(returned, None, wrote_small, None)
    return Result(None, argument, wrote_small, returned.copy() if name in FILLED_FROM_RECORDING else None)


# -- interception
# -----------------------------------------------------------------------------------------------------------------


def _library_functions() -> list[tuple[Any, str]]:
    """Return the library functions that release the GIL: owner and name."""
    found: list[tuple[Any, str]] = [(simplejpeg, "decode_jpeg")]
    found += [(cv2, name) for name, value in vars(cv2).items() if isinstance(value, types.BuiltinFunctionType)]
    return found


@contextmanager
def _intercepted(
    handle: Callable[[str, Call, tuple[Any, ...], dict[str, Any]], Any], passed: Collection[str] = ()
) -> Iterator[None]:
    """Call `handle` instead of every compiled function of dalify, except those in ``passed``."""
    original = Dispatcher.__call__
    names: dict[Any, str] = {}

    def name_of(dispatcher: Any) -> str:
        function = dispatcher.py_func
        if function.__module__.startswith(KERNELS) and dispatcher.targetoptions.get("nogil"):
            names[dispatcher] = f"{function.__module__}.{function.__qualname__}"
        else:
            names[dispatcher] = ""
        return names[dispatcher]

    def call_kernel(dispatcher: Any, *arguments: Any, **named: Any) -> Any:
        name = names.get(dispatcher) or name_of(dispatcher)
        if not name or name in passed:
            return original(dispatcher, *arguments, **named)
        return handle(name, partial(original, dispatcher), arguments, named)

    saved = [(owner, name, getattr(owner, name)) for owner, name in _library_functions()]
    is_audio_installed = "soundfile" in sys.modules
    if is_audio_installed:
        saved.append((soundfile.SoundFile, "read", soundfile.SoundFile.read))

    def wrapped(name: str, function: Call) -> Call:
        return lambda *arguments, **named: handle(name, function, arguments, named)

    Dispatcher.__call__ = call_kernel
    for owner, name, function in saved:
        setattr(owner, name, wrapped(f"{owner.__name__}.{name}", function))
    try:
        yield
    finally:
        del Dispatcher.__call__
        for owner, name, function in saved:
            setattr(owner, name, function)


@contextmanager
def recording() -> Iterator[Recording]:
    """Record all compiled calls of a block."""
    made = Recording()
    depth = threading.local()

    def handle(name: str, call: Call, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if getattr(depth, "is_inside", False):  # a library function written in Python calls another one
            return call(*arguments, **named)
        entered = time.thread_time()
        arrays = _arrays(arguments, named)
        before = [
            (number, array.copy())
            for number, array in enumerate(arrays)
            if array.nbytes <= SMALL_BYTES and array.flags.writeable
        ]
        depth.is_inside = True
        start = time.thread_time()
        result: Result | None = None
        try:
            returned = call(*arguments, **named)
            seconds = time.thread_time() - start
            result = _result(name, returned, arrays, before)
            if name in WRITES_PER_SAMPLE:
                made.note_samples(name, arguments)
            return returned
        finally:
            if result is None:
                seconds = time.thread_time() - start
            depth.is_inside = False
            size_bytes = _size_bytes(arrays)
            made.add(name, size_bytes, seconds, _key(arguments, arrays), result)
            made.add_overhead(time.thread_time() - entered - seconds)

    with _intercepted(handle):
        yield made


# -- simulation
# -------------------------------------------------------------------------------------------------------------------

_usleep: Any = numba.types.ExternalFunction("usleep", numba.int32(numba.uint32))
_clock_gettime: Any = numba.types.ExternalFunction("clock_gettime", numba.int32(numba.int32, numba.uintp))


@numba.njit(nogil=True)
def _sleep(seconds: float, clock: np.ndarray[Any, Any]) -> float:
    """Sleep without the GIL and return the elapsed time in seconds, excluding the wait for the GIL afterwards."""
    _clock_gettime(_MONOTONIC, clock.ctypes.data)
    start = clock[0] + 1e-9 * clock[1]
    _usleep(np.uint32(seconds * 1e6))
    _clock_gettime(_MONOTONIC, clock.ctypes.data)
    return clock[0] + 1e-9 * clock[1] - start


@numba.njit(nogil=True)
def _empty_kernel(a, b, c, d, e, f, g, h, number, factor):
    """Do nothing; used to measure the time for unpacking arguments."""


class _Sleeper(threading.local):
    """Sleeps in its thread; the next sleep compensates the error of the previous one."""

    def __init__(self) -> None:
        self.clock = np.zeros(2, np.int64)
        self.owed_s = self.slept_s = 0.0
        if sys.platform == "linux":  # otherwise each sleep is 50 microseconds too long
            ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1000, 0, 0, 0)

    def sleep(self, seconds: float) -> None:
        self.owed_s += seconds
        if self.owed_s >= SHORTEST_SLEEP_S:
            slept = _sleep(self.owed_s, self.clock)
            self.owed_s -= slept
            self.slept_s += slept


def _hold(seconds: float) -> None:
    """Hold the GIL for a time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _seconds_of(call: Call, repeats: int = 300) -> float:
    call()
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _lock_costs() -> Callable[[str, int], float]:
    """Return a function from the name of a call and its number of arrays to the time in which it holds the GIL."""
    arrays = [np.zeros(4, np.float32)] * 8
    kernel_s = _seconds_of(lambda: _empty_kernel(*arrays, 1, 1.0))
    pixels = np.zeros((8, 8, 3), np.uint8)
    encoded = simplejpeg.encode_jpeg(pixels)
    jpeg_s = _seconds_of(lambda: simplejpeg.decode_jpeg(encoded, buffer=pixels))
    opencv_s = _seconds_of(lambda: cv2.flip(pixels, 1, dst=pixels))

    def held(name: str, count: int) -> float:
        if name.startswith(KERNELS):
            return kernel_s * (count + 2) / 10
        return jpeg_s if name.startswith("simplejpeg.") else opencv_s

    return held


@contextmanager
def simulating(made: Recording, done: Simulated) -> Iterator[None]:
    """Replace compiled calls of a block by sleeps of their recorded times; the times are added to `done`."""
    _sleep(0.0, np.zeros(2, np.int64))  # compiles
    sleeper = _Sleeper()
    held_by_call = _lock_costs()

    def handle(name: str, call: Call, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        function = made.functions.get(name)
        if function is None:
            return call(*arguments, **named)
        arrays = _arrays(arguments, named)
        size_bytes = _size_bytes(arrays)
        part = size_bytes / function.size_bytes if function.size_bytes else 1 / function.calls
        seconds = function.seconds * part
        result = function.last
        is_filled = name in WRITES_PER_SAMPLE and made.fill_samples(name, arguments)
        is_decisive = function.is_decisive and not is_filled
        if name not in READS_ELEMENTS and (name.startswith(REALLY_RUN) or (is_decisive and name.startswith(KERNELS))):
            result = None
        elif is_decisive or name in FILLED_FROM_RECORDING:
            result = function.by_shapes.get(_key(arguments, arrays))
        if result is None:
            done.real_s += seconds
            return call(*arguments, **named)
        done.slept_s += seconds
        _hold(held_by_call(name, len(arrays)))
        sleeper.sleep(seconds)
        if name in READS_ELEMENTS:
            close_all(arguments[0])
        if result.argument is None:
            return result.returned
        if result.contents is not None:
            np.copyto(arrays[result.argument], result.contents)
        return arrays[result.argument]

    # Not intercepted, because that would take as much time as the calls.
    short = {name for name, function in made.functions.items() if function.is_short()}
    thread_time, processors = time.thread_time, engine.available_processors
    engine.available_processors = lambda: sys.maxsize
    time.thread_time = lambda: thread_time() + sleeper.slept_s
    try:
        with _intercepted(handle, short):
            yield
    finally:
        time.thread_time, engine.available_processors = thread_time, processors
