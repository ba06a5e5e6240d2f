"""The main loop of a worker process: takes tasks, executes them, and sends the results.

It holds no lock, because a killed process would never release it. Exceptions of the user's code do not end it.
"""

from __future__ import annotations

import gc
import os
import pickle
import random
import selectors
import signal
import struct
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DalifyError, WorkerError
from dalify.base.fork_hook import at_fork
from dalify.base.forked_processes import forked_processes
from dalify.base.optional import LazyModule, is_loaded, torch
from dalify.base.source_line import SourceLine, is_own
from dalify.data.shared_memory import Slot

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = LazyModule("fcntl", "a worker process")  # Windows does not have it

# States of a worker in shared memory; a number from 0 on is that of its current task.
STARTING = -3
IDLE = -2
READING = -1


class Task(NamedTuple):
    """A task of a worker.

    Attributes:
        number: sequence number in the pool.
        receiver: number of the receiver in the pool.
        generation: tasks of a generation before the receiver's current one are skipped.
        details: six integers from 0 to 2**64 - 1; interpreted by the receiver.
    """

    number: int
    receiver: int
    generation: int
    details: tuple[int, ...]

    def packed(self) -> bytes:
        """Return the task as bytes of a fixed length, which a pipe delivers atomically to one reader."""
        return _TASK.pack(self.number, self.receiver, self.generation, *self.details)

    @classmethod
    def read_from(cls, file: int) -> Task | None:
        """Return the next task in a pipe; None if the other end is closed.

        Raises:
            BlockingIOError: the pipe is empty.
        """
        record = os.read(file, _TASK.size)
        if not record:
            return None
        number, receiver, generation, *details = _TASK.unpack(record)
        return cls(number, receiver, generation, tuple(details))


_TASK = struct.Struct("<3q6Q")


class Failure(NamedTuple):
    """An exception of the user's code, in a form that can be pickled.

    Attributes:
        pickled: the exception, or None if it cannot be pickled.
        text: its type and message.
        trace: the traceback in the worker; "" if it contains no useful information.
    """

    pickled: bytes | None
    text: str
    trace: str


class Result(NamedTuple):
    """The result of a task.

    Attributes:
        number: number of the task.
        outcome: result of ``TaskRunner.run``; None for a skipped task; a ``Failure`` if the result cannot be sent.
    """

    number: int
    outcome: Any


class Calls:
    """Records the current call of the user's code, and limits its time.

    Args:
        progress: state of this worker in shared memory: number of the task, index of the call in it.
        timeout_s: maximum time of a call in seconds, after which SIGALRM ends this process; None for no limit.
    """

    def __init__(self, progress: NDArray[Any], timeout_s: float | None) -> None:
        self._progress = progress
        self._timeout_s = timeout_s

    def begin(self, call: int) -> None:
        """Record the start of a call and the end of the previous one, and start the timer."""
        self._progress[1] = call
        if self._timeout_s is not None:
            # The kernel ends the process, even if it computes in C or holds the GIL.
            signal.setitimer(signal.ITIMER_REAL, self._timeout_s)

    def end(self) -> None:
        """Stop the timer."""
        if self._timeout_s is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)


class TaskRunner(Protocol):
    """Executes the tasks of one receiver in a worker process."""

    def run(self, task: Task, calls: Calls) -> Any:
        """Execute a task; must not raise an ``Exception``."""
        ...


# Creates the task runner in the worker process. The runner unpickles the user's objects with the first task, so that
# an error is raised for a batch.
RunnerFactory = Callable[[], TaskRunner]


def progress_in(control: Slot, receivers: int, workers: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the state that a pool and its workers share.

    Returns:
        The current generation of each receiver, ``[receivers]``; and for each worker its state and the index of the
        call in its task, ``[workers, 2]``. Both are int64.
    """
    generations = control.array(0, "<i8", (receivers,))
    return generations, control.array(8 * receivers, "<i8", (workers, 2))


def run_worker(
    number: int,
    factories: list[RunnerFactory],
    shared_tasks: Connection,
    own_tasks: Connection,
    results: Connection,
    lifeline: Connection,
    control: Slot,
    workers: int,
    timeout_s: float | None,
) -> None:
    """Execute tasks until the other end of the task pipes is closed.

    Args:
        number: index of this worker.
        factories: create the task runners of all receivers.
        shared_tasks: tasks that any worker may take.
        own_tasks: tasks that only this worker can execute.
        results: pipe for pickled results.
        lifeline: pipe; its other end is closed when the parent process ends.
        control: see ``progress_in``.
        workers: number of workers.
        timeout_s: see ``Calls``.
    """
    _follow_end_of(lifeline)
    # Ctrl-C reaches all processes of a terminal; this one ends after its parent has cleaned up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGALRM})  # children inherit the mask
    forked_processes.leave()
    gc.freeze()  # objects from before the fork are never garbage here; traversing them would copy their pages
    # Processes forked by the user's code must not keep these pipes open, because their end signals the end of this one.
    pipes = (shared_tasks, own_tasks, results, lifeline)
    at_fork(lambda: [pipe.close() for pipe in pipes])
    runners = [factory() for factory in factories]
    generations, progress = progress_in(control, len(runners), workers)
    own_progress = progress[number]
    calls = Calls(own_progress, timeout_s)
    ready_pipes = selectors.DefaultSelector()
    ready_pipes.register(shared_tasks.fileno(), selectors.EVENT_READ)
    ready_pipes.register(own_tasks.fileno(), selectors.EVENT_READ)
    own_progress[0] = IDLE
    while True:
        for key, _ in ready_pipes.select():
            # The task is recorded immediately, so that the pool can identify it if this worker dies.
            own_progress[0] = READING
            try:
                task = Task.read_from(key.fd)
            except BlockingIOError:  # another worker was faster
                own_progress[0] = IDLE
                continue
            if task is None:
                return
            own_progress[1] = -1  # no call yet
            own_progress[0] = task.number
            outcome = None
            if task.generation >= generations[task.receiver]:
                outcome = runners[task.receiver].run(task, calls)
            try:
                content = pickle.dumps(Result(task.number, outcome))
            except Exception as error:  # for example out of memory
                content = pickle.dumps(Result(task.number, failure_of(error, trace_of(error))))
            try:
                results.send_bytes(content)
            except (BrokenPipeError, ConnectionResetError):
                return
            del outcome, content
            own_progress[0] = IDLE


def _follow_end_of(lifeline: Connection) -> None:
    """End this process when the other end of a pipe is closed."""
    file = lifeline.fileno()
    try:
        # The kernel kills this process when the pipe is closed, even if it computes in C or holds the GIL. With
        # PR_SET_PDEATHSIG, it would be killed when the thread that started it ends.
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


def seed_generators(seed: int) -> None:
    """Seed the generators of Python and NumPy, which user code may use, and torch's generator if torch is loaded."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if is_loaded("torch"):
        torch.manual_seed(seed >> 1)


def failure_of(error: Exception, trace: str) -> Failure:
    """Return an exception in a form that can be sent to another process; deletes its traceback."""
    text = "".join(traceback.format_exception_only(error)).strip()
    error.__traceback__ = None
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # many exceptions can be pickled but not unpickled
    except Exception:
        return Failure(None, text, trace)
    return Failure(pickled, text, trace)


def trace_of(error: Exception, *own_files: str) -> str:
    """Return the formatted traceback, from the user's first frame on if there is one.

    It is empty for an error of dalify without frames of the user's code and without a cause, because the message is
    sufficient.

    Args:
        error: the exception.
        own_files: files of dalify whose leading frames are omitted.
    """
    is_explained = isinstance(error, DalifyError) and error.__cause__ is None
    if is_explained and all(is_own(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__)):
        return ""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename in (__file__, *own_files):
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame or error.__traceback__))


def error_of(failure: Failure, subject: str, line: SourceLine | None = None) -> Exception:
    """Return the exception from a worker, with its traceback as a note.

    Args:
        failure: the failure sent by the worker.
        subject: owner of the code, such as ``the source load()``, for an exception that cannot be unpickled.
        line: location of the user's code.
    """
    error: BaseException | None = None
    if failure.pickled is not None:
        with suppress(Exception):  # a class that only exists in the worker
            error = pickle.loads(failure.pickled)
    if not isinstance(error, Exception):
        error = WorkerError(f"{subject} failed in a worker process: {failure.text}", line=line)
    if failure.trace:
        error.add_note(f"In the worker process:\n{failure.trace}")
    return error
