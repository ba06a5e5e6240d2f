"""What a worker process does: take tasks, do them, and send back what became of them.

It imports little, holds no lock (a process that is killed would keep it), and survives whatever the user's code does
except being killed.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import struct
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from numpy.typing import NDArray

from dalify.base.errors import WorkerError
from dalify.base.optional import LazyModule
from dalify.base.source_line import SourceLine
from dalify.sources.shared_memory import Slot

__all__ = [
    "IDLE",
    "READING",
    "STARTING",
    "Calls",
    "Failure",
    "Result",
    "Task",
    "Work",
    "WorkMaker",
    "error_of",
    "failure_of",
    "progress_in",
    "run_worker",
    "trace_of",
]

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = LazyModule("fcntl", "a worker process")  # Windows does not have it

# States of a worker in shared memory; from 0 on, the number of the task that it does.
STARTING = -3
IDLE = -2
READING = -1


class Task(NamedTuple):
    """Something to do.

    Attributes:
        number: counted by the pool.
        receiver: number of the receiver in the pool.
        generation: tasks of a generation before the receiver's current one are skipped.
        details: six integers from 0 to 2**64 - 1; their meaning is the receiver's.
    """

    number: int
    receiver: int
    generation: int
    details: tuple[int, ...]

    def packed(self) -> bytes:
        """Return the task as bytes of a fixed length, which a pipe gives to one reader as a whole."""
        return _TASK.pack(self.number, self.receiver, self.generation, *self.details)

    @classmethod
    def unpacked(cls, record: bytes) -> Task:
        """Return the task of which ``packed`` made these bytes."""
        number, receiver, generation, *details = _TASK.unpack(record)
        return cls(number, receiver, generation, tuple(details))

    @classmethod
    def read_from(cls, file: int) -> Task | None:
        """Return the next task in a pipe; None where the other end is closed.

        Raises:
            BlockingIOError: there is none now.
        """
        record = os.read(file, _TASK.size)
        return cls.unpacked(record) if record else None


_TASK = struct.Struct("<3q6Q")


class Failure(NamedTuple):
    """An exception of the user's code, on its way to the user.

    Attributes:
        pickled: the exception, or None where it cannot travel.
        text: its type and message.
        trace: the traceback in the worker; "" where it tells nothing.
    """

    pickled: bytes | None
    text: str
    trace: str


class Result(NamedTuple):
    """What became of a task.

    Attributes:
        number: of the task.
        outcome: what ``Work.run`` returned; None for a task that was skipped; a ``Failure`` where the result cannot
            be sent.
    """

    number: int
    outcome: Any


class Calls:
    """Notes which call of the user's code is under way, and bounds its time.

    Args:
        progress: of this worker, in shared memory: the number of the task, the number of the call in it.
        timeout_s: longest time of a call in seconds; a longer one ends this process with SIGALRM. None: any.
    """

    def __init__(self, progress: NDArray[Any], timeout_s: float | None) -> None:
        self._progress = progress
        self._timeout_s = timeout_s

    def begin(self, call: int) -> None:
        """Note that a call begins; the one before it has ended."""
        self._progress[1] = call
        if self._timeout_s is not None:
            # The kernel ends the process, also one that computes in C or holds the interpreter's lock.
            signal.setitimer(signal.ITIMER_REAL, self._timeout_s)

    def end(self) -> None:
        """Note that no call is under way."""
        if self._timeout_s is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)


class Work(Protocol):
    """Does the tasks of one receiver, in a worker process."""

    def run(self, task: Task, calls: Calls) -> Any:
        """Do a task; must not raise an ``Exception``."""
        ...


class WorkMaker(Protocol):
    """Travels to a worker process and makes a ``Work`` there."""

    def make(self) -> Work:
        """Return the work. The user's objects are unpickled with the first task: then their errors are a batch's."""
        ...


def progress_in(control: Slot, receivers: int, workers: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what a pool and its workers share.

    Args:
        control: shared memory.
        receivers: how many.
        workers: how many.

    Returns:
        the current generation of each receiver ``[receivers]``; of each worker its state, and the number of the call
        in its task ``[workers, 2]``. Both are int64.
    """
    generations = control.array(0, "<i8", (receivers,))
    return generations, control.array(8 * receivers, "<i8", (workers, 2))


def run_worker(
    number: int,
    makers: list[WorkMaker],
    shared_tasks: Connection,
    own_tasks: Connection,
    results: Connection,
    lifeline: Connection,
    control: Slot,
    workers: int,
    timeout_s: float | None,
) -> None:
    """Work until the other end of the task pipes is closed.

    Args:
        number: of this worker.
        makers: of all receivers.
        shared_tasks: tasks that any worker may take.
        own_tasks: tasks that only this worker can do.
        results: takes pickled results.
        lifeline: its other end is closed when the process that gives the tasks has ended.
        control: see ``progress_in``.
        workers: how many there are.
        timeout_s: see ``Calls``.
    """
    _end_with(lifeline)
    # Ctrl-C reaches all processes of a terminal; this one ends when its parent has cleaned up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGALRM})  # children inherit the mask
    gc.freeze()  # what the fork brought along is never garbage here; looking at it would copy its pages
    # A process that the user's code forks must not keep the pipes that tell when this one has ended.
    pipes = (shared_tasks, own_tasks, results, lifeline)
    os.register_at_fork(after_in_child=lambda: [pipe.close() for pipe in pipes])
    works = [maker.make() for maker in makers]
    generations, progress = progress_in(control, len(makers), workers)
    mine = progress[number]
    calls = Calls(mine, timeout_s)
    ready_pipes = selectors.DefaultSelector()
    ready_pipes.register(shared_tasks.fileno(), selectors.EVENT_READ)
    ready_pipes.register(own_tasks.fileno(), selectors.EVENT_READ)
    mine[0] = IDLE
    while True:
        for key, _ in ready_pipes.select():
            # Whoever finds this worker dead knows what it held: a task is noted as soon as it is taken.
            mine[0] = READING
            try:
                task = Task.read_from(key.fd)
            except BlockingIOError:  # another worker was quicker
                mine[0] = IDLE
                continue
            if task is None:
                return
            mine[1] = -1  # no call yet
            mine[0] = task.number
            outcome = None
            if task.generation >= generations[task.receiver]:
                outcome = works[task.receiver].run(task, calls)
            try:
                content = pickle.dumps(Result(task.number, outcome))
            except Exception as error:  # for instance: memory ran out
                content = pickle.dumps(Result(task.number, failure_of(error, trace_of(error))))
            try:
                results.send_bytes(content)
            except (BrokenPipeError, ConnectionResetError):
                return
            del outcome, content
            mine[0] = IDLE


def _end_with(lifeline: Connection) -> None:
    """End this process when the other end of a pipe is closed."""
    file = lifeline.fileno()
    try:
        # The kernel kills this process at the end of the pipe, also one that computes in C or holds the interpreter's
        # lock. Unlike with PR_SET_PDEATHSIG, it does not matter which thread of the parent started it.
        fcntl.fcntl(file, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_ASYNC)
    except (AttributeError, OSError):  # not Linux
        threading.Thread(target=_wait_for_end, args=(file,), name="dalify-lifeline", daemon=True).start()
    if lifeline.poll():  # it had ended before
        os._exit(1)


def _wait_for_end(file: int) -> None:
    with suppress(OSError):
        os.read(file, 1)
    os._exit(1)


def failure_of(error: Exception, trace: str) -> Failure:
    """Return an exception in a form that can be sent to another process.

    Args:
        error: the exception.
        trace: its traceback as text.
    """
    text = "".join(traceback.format_exception_only(error)).strip()
    error.__traceback__ = None
    for name in [name for name in vars(error) if name.startswith("__dalify")]:  # notes of the executor hold its graph
        delattr(error, name)
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # many exceptions can be pickled but not made again
    except Exception:
        return Failure(None, text, trace)
    return Failure(pickled, text, trace)


def trace_of(error: Exception, *own_files: str) -> str:
    """Return the traceback as text, from the user's first frame on where there is one.

    Args:
        error: the exception.
        own_files: files of dalify whose frames begin the traceback.
    """
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename in (__file__, *own_files):
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame or error.__traceback__))


def error_of(failure: Failure, subject: str, line: SourceLine | None = None) -> Exception:
    """Return the exception that a worker sent, with its traceback as a note.

    Args:
        failure: what the worker sent.
        subject: whose exception it is, for one that cannot travel: ``the source load()``.
        line: of the user's code.
    """
    error: BaseException | None = None
    if failure.pickled is not None:
        with suppress(Exception):  # a class that only the worker knows
            error = pickle.loads(failure.pickled)
    if not isinstance(error, Exception):
        error = WorkerError(f"{subject} failed in a worker process: {failure.text}", line=line)
    if failure.trace:
        error.add_note(f"In the worker process:\n{failure.trace}")
    return error
