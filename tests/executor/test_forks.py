"""A process is forked while another thread computes: the child continues, or raises an error immediately."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base import fork_gate
from dalify.base.errors import PipelineStateError
from dalify.base.fork_gate import working
from dalify.pipeline import Pipeline
from tests.helpers.photos import write_photo_folder
from tests.helpers.platforms import needs_linux, needs_posix
from tests.helpers.processes import is_running
from tests.helpers.programs import finished, running

pytestmark = [
    needs_posix,
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]

LIMIT_S = 60


@pytest.fixture
def gate() -> Iterator[Any]:
    yield fork_gate._state
    assert not fork_gate._state.held


def in_child(function: Callable[[], Any]) -> int:
    """Run a function in a forked child; return its exit status: the result of the function, or 99 for an error."""
    child = os.fork()
    if not child:
        status = 99
        try:
            signal.alarm(LIMIT_S)
            status = int(function() or 0)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class At(threading.Thread):
    """A thread in a block of ``working()`` until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.is_inside, self.leaves = threading.Event(), threading.Event()
        self.start()
        assert self.is_inside.wait(LIMIT_S)

    def run(self) -> None:
        with working(), working():
            self.is_inside.set()
            self.leaves.wait(LIMIT_S)

    def end(self) -> None:
        self.leaves.set()
        self.join(LIMIT_S)


# -- the gate


def test_a_fork_waits_for_work(gate: Any) -> None:
    thread = At()
    begins = time.monotonic()
    timer = threading.Timer(0.3, thread.leaves.set)
    timer.start()
    assert in_child(lambda: not fork_gate.is_clean_fork()) == 0
    assert time.monotonic() - begins > 0.25
    thread.end()
    timer.join()


def test_work_waits_for_a_fork(gate: Any) -> None:
    """Work that a thread starts during a fork starts after the fork."""
    order: list[str] = []

    def work() -> None:
        with working():
            order.append("work")

    thread = threading.Thread(target=work)
    fork_gate._before_fork()
    try:
        thread.start()
        time.sleep(0.1)
        order.append("fork")
    finally:
        fork_gate._continue_in_parent()
    thread.join(LIMIT_S)
    assert order == ["fork", "work"]


def test_a_fork_does_not_wait_for_itself(gate: Any) -> None:
    with working():
        assert in_child(lambda: not fork_gate.is_clean_fork()) == 0
    assert in_child(lambda: not fork_gate.is_clean_fork()) == 0


def test_a_child_works_and_forks_itself(gate: Any) -> None:
    def child() -> int:
        with working():
            pass
        At().end()
        return in_child(lambda: not fork_gate.is_clean_fork())

    with working():
        assert in_child(child) == 0


def test_a_fork_does_not_wait_forever(gate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_gate, "_LONGEST_WAIT_S", 0.1)
    pipe = counting()
    pipe.run()
    thread = At()

    def child() -> int:
        try:
            pipe.run()
        except PipelineStateError as error:
            text = str(error)
            is_grandchild_signaled = in_child(lambda: fork_gate.is_clean_fork()) == 0
            fine = counting().run()[0].as_array()[0, 0] == 1  # its own pipeline runs
            return not ("was forked while another thread" in text and is_grandchild_signaled and fine)
        return 98

    assert in_child(child) == 0
    thread.end()
    assert pipe.run()[0].as_array()[0, 0] == 2
    assert in_child(lambda: pipe.run()[0].as_array()[0, 0] != 3) == 0  # the next fork is a clean one


def test_ctrl_c_while_a_fork_waits_comes_after_it() -> None:
    code, out, errors = finished(
        """
        import os, signal, threading, time
        from dalify.base.fork_gate import working

        def work():
            with working():
                inside.set()
                time.sleep(1000)

        inside = threading.Event()
        threading.Thread(target=work, daemon=True).start()
        inside.wait()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        if not os.fork():
            os._exit(0)
        os.wait()
        os.write(1, b"forked")  # print writes the end of the line by itself, possibly after the interrupt
        time.sleep(100)
        """
    )
    assert (code, out) == (-signal.SIGINT, "forked")
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


# -- pipelines


def counting() -> Pipeline:
    @pipeline_def(batch_size=2, num_threads=2, prefetch_queue_depth=3)
    def numbers() -> Any:
        return fn.external_source(lambda iteration: np.full((2, 3), iteration, np.int64)) + 1

    return numbers()


def test_a_slow_function_of_a_user_is_not_waited_for() -> None:
    """It may wait for the thread that forks."""
    enters, leaves = threading.Event(), threading.Event()

    def waits(x: Any) -> Any:
        enters.set()
        leaves.wait(LIMIT_S)
        return x

    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.python_function(np.float32(1), function=waits))
    pipe.schedule_run()
    assert enters.wait(LIMIT_S)
    begins = time.monotonic()
    assert in_child(lambda: 0) == 0
    assert time.monotonic() - begins < LIMIT_S / 2
    leaves.set()
    assert pipe.share_outputs()
    pipe.close()


def test_a_process_of_a_dataset_is_replaced_while_threads_wait_for_it() -> None:
    """The replacement is forked in a thread that others wait for; this must not be a deadlock."""

    class Items:
        def __len__(self) -> int:
            return 40

        def __getitem__(self, number: int) -> np.ndarray:
            if number % 8 == 5:
                os._exit(3)
            return np.array(number)

    pipe = Pipeline(batch_size=4, num_threads=3, on_error="skip", prefetch_queue_depth=3)
    with pipe:
        pipe.set_outputs(fn.readers.dataset(dataset=Items(), num_outputs=1, processes=2))
    begins = time.monotonic()
    for _ in range(10):
        pipe.run()
    assert time.monotonic() - begins < LIMIT_S
    pipe.close()


FIRST_BATCH = """
    import faulthandler, os, sys, threading, time

    folder, delay, mode = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    from dalify import eager, fn, pipeline_def
    from dalify.base.errors import PipelineStateError

    @pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=3)
    def photos():
        encoded, _ = fn.readers.file(file_root=folder)
        image = fn.resize(fn.decoders.image(encoded), size=[60, 60])
        angle = fn.random.uniform(range=[-20, 20])
        return fn.crop_mirror_normalize(fn.rotate(image, angle=angle, fill_value=0), mean=[128.0] * 3, std=[60.0] * 3)

    pipe = photos()
    if mode != "unbuilt":
        pipe.build()
    if mode == "running":
        pipe.run()

    def compute():
        while True:
            pipe.run()

    threading.Thread(target=compute, daemon=True).start()
    time.sleep(delay)
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(90, exit=True)
        try:
            for _ in range(3):
                pipe.run()
        except PipelineStateError as error:
            print(error)
            os._exit(7)
        os._exit(0)
    print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fork")
    write_photo_folder(folder)
    return folder


@pytest.mark.parametrize("mode", ["unbuilt", "built", "running"])
@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.1, 0.4])
def test_a_fork_while_the_first_batch_is_computed(photos: Path, mode: str, delay_s: float) -> None:
    code, out, errors = finished(FIRST_BATCH, photos, delay_s, mode)
    assert (code, out, errors) == (0, "status 0\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.5, 2.0])
def test_a_fork_while_kernels_are_compiled(photos: Path, tmp_path: Path, delay_s: float) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}  # empty: all has to be compiled
    _, out, errors = finished(FIRST_BATCH, photos, delay_s, "built", environment=environment)
    assert out.endswith(("status 0\n", "status 7\n"))  # on a very slow machine, the fork waits no longer
    assert errors == ""


def test_a_fork_and_another_program(photos: Path) -> None:
    """``fork`` and ``exec`` work while a pipeline runs."""
    pipe = counting()
    pipe.run()
    child = os.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", "raise SystemExit(5)"])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    assert pipe.run()[0].as_array()[0, 0] == 2


def test_a_fork_in_the_middle_of_an_epoch_with_worker_processes() -> None:
    """The child cannot use the workers and gets an error immediately; the parent continues, and no process remains."""
    pipe = Pipeline(batch_size=2, num_threads=1, py_num_workers=2)
    with pipe:
        pipe.set_outputs(
            fn.external_source(lambda iteration: np.full((2, 1), iteration), parallel=True, prefetch_queue_depth=2)
        )
    pipe.run()

    def child() -> int:
        errors = 0
        for _ in range(6):
            try:
                pipe.run()
            except RuntimeError as error:
                errors += "belong to the process that this one was forked from" in str(error)
        pipe.close()
        pipe.close()
        return errors == 0

    assert in_child(child) == 0
    assert [int(pipe.run()[0].as_array()[0, 0]) for _ in range(5)] == [1, 2, 3, 4, 5]
    pipe.close()


def test_a_child_that_drops_its_batches_takes_none_of_the_parent() -> None:
    """It has the memory in which the parent tells its workers which tasks to skip."""
    pipe = Pipeline(batch_size=4, num_threads=1, py_num_workers=2)
    with pipe:
        pipe.set_outputs(fn.external_source(_slow_sample, batch=False, parallel=True, prefetch_queue_depth=3))
    for batch in range(4):
        assert pipe.run()[0].as_array()[:, 0].tolist() == list(range(4 * batch, 4 * batch + 4))
        assert in_child(pipe.reset) == 0
    pipe.close()


def _slow_sample(info: Any) -> np.ndarray:
    time.sleep(0.05)
    return np.full(1, info.idx_in_epoch)


def test_a_forked_child_with_processes_of_a_dataset_starts_its_own() -> None:
    pipe = Pipeline(batch_size=2, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.readers.dataset(dataset=[(number,) for number in range(20)], num_outputs=1, processes=2))
    assert pipe.run()[0].as_array().ravel().tolist() == [0, 1]

    def child() -> int:
        found = [pipe.run()[0].as_array().ravel().tolist() for _ in range(3)]
        pipe.close()
        return found != [[2, 3], [4, 5], [6, 7]]

    assert in_child(child) == 0
    assert pipe.run()[0].as_array().ravel().tolist() == [2, 3]
    pipe.close()


def test_a_child_of_a_program_that_has_ended_ends_too() -> None:
    """Workers detect the end of their parent although a forked child of it is still running."""
    program = """
        import os, sys, time
        import numpy as np
        from dalify import fn, pipeline_def

        def source(iteration):
            os.write(1, b"%d\\n" % os.getpid())
            time.sleep(1000)

        @pipeline_def(batch_size=2, num_threads=1, py_num_workers=1)
        def numbers():
            return fn.external_source(source, parallel=True)

        pipe = numbers()
        pipe.build()
        if not os.fork():
            time.sleep(1000)
        pipe.run()
    """
    with running(program) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        process.kill()
        process.wait(LIMIT_S)
        deadline = time.monotonic() + LIMIT_S
        while is_running(worker):
            assert time.monotonic() < deadline
            time.sleep(0.01)


# -- threads that end, and OpenCV's own


ENDINGS = """
    import ctypes, os, threading, time
    from dalify.base.fork_gate import working

    library = ctypes.CDLL(None)
    key = ctypes.c_uint()
    # As libraries do: called at the end of a thread, with the value that the thread has set.
    assert library.pthread_key_create(ctypes.byref(key), library.usleep) == 0

    def work():
        {working}
        library.pthread_setspecific(key, ctypes.c_void_p(400_000))

    thread = threading.Thread(target=work)
    thread.start()
    number = thread.native_id
    while thread.is_alive():  # join() waits for the libraries, too, since Python 3.13
        time.sleep(0.01)
    time.sleep(0.05)  # Python has done with it
    assert os.path.exists(f"/proc/self/task/{{number}}")
    if not os.fork():
        os._exit(0)
    print("exists", os.path.exists(f"/proc/self/task/{{number}}"))
    os.wait()
"""


@needs_linux
def test_a_fork_waits_for_threads_that_end() -> None:
    """Libraries free the data of a thread after Python has finished it. Threads that never computed may end."""
    worked = "with working(): pass"
    assert finished(ENDINGS.format(working=worked)) == (0, "exists False\n", "")
    assert finished(ENDINGS.format(working="pass")) == (0, "exists True\n", "")


def test_many_ended_threads_are_freed(gate: Any) -> None:
    def work() -> None:
        with working():
            pass

    for _ in range(500):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(gate.ending) <= 101
    assert in_child(lambda: not fork_gate.is_clean_fork()) == 0
    assert not gate.ending


STORM = """
    import os, random, sys, threading, time
    import cv2
    import numpy as np
    from dalify import eager, fn, pipeline_def

    photo = np.random.default_rng(0).integers(0, 255, (400, 400, 3), np.uint8)
    jpeg = cv2.imencode(".jpg", photo)[1]

    @pipeline_def(batch_size=2, num_threads=2, prefetch_queue_depth=2)
    def photos():
        image = fn.decoders.image(fn.external_source(lambda: [jpeg.ravel()] * 2))
        return fn.gaussian_blur(fn.resize(image, size=[300, 300]), sigma=1.0)

    def drop_pipelines():
        while not ends.is_set():
            pipe = photos()
            pipe.run()
            del pipe

    def call():
        while not ends.is_set():
            eager.gaussian_blur(photo, sigma=1.0)
            thread = threading.Thread(target=eager.gaussian_blur, args=(photo,), kwargs={{"sigma": 1.0}})
            thread.start()
            thread.join()

    cv2.setNumThreads(4)
    pipe = photos()
    pipe.run()
    ends = threading.Event()
    threads = [threading.Thread(target=target) for target in (drop_pipelines, call)]
    for thread in threads:
        thread.start()
    chance = random.Random(1)
    status = []
    until = time.monotonic() + {seconds}
    while time.monotonic() < until:
        time.sleep(chance.uniform(0, 0.005))
        child = os.fork()
        if not child:
            import signal
            signal.alarm(30)
            pipe.run()
            cv2.GaussianBlur(photo, (5, 5), 1.0)
            thread = threading.Thread(target=cv2.GaussianBlur, args=(photo, (5, 5), 1.0))
            thread.start()
            thread.join()
            os._exit(cv2.getNumThreads() != 4)
        status.append(os.waitpid(child, 0)[1])
    ends.set()
    for thread in threads:
        thread.join()
    assert cv2.getNumThreads() == 4
    print(len(status) > 5, set(status))
"""


def test_children_use_opencv() -> None:
    """Forked while pipelines are dropped, their threads end, and OpenCV computes with its own threads."""
    code, out, errors = finished(STORM.format(seconds=4))
    assert (code, out) == (0, "True {0}\n"), errors


@pytest.mark.parametrize("kind", ["processes", "parallel source"])
@pytest.mark.parametrize("runs", ["long", "shortly"])
def test_batches_that_a_forked_child_holds_do_not_change(kind: str, runs: str) -> None:
    """Also with more children than slots; the memory is used again when they have ended."""

    @pipeline_def(batch_size=2, num_threads=1, processes=int(kind == "processes"), py_num_workers=1)
    def pipeline() -> Any:
        if kind == "processes":
            numbers = fn.external_source(lambda number: np.full((2, 1), number, np.int32))
            return numbers * fn.ones(shape=50_000, dtype=types.INT32)
        return fn.external_source(
            lambda number: np.full((2, 50_000), number, np.int32), parallel=True, batch=True, batch_info=False
        )

    def compare(batch: Any, number: int) -> bool:
        os.read(reader, 1)
        return not (batch == number).all()

    children: list[int] = []
    with pipeline() as pipe:
        pipe.build()
        reader, writer = os.pipe()  # later, because the workers would keep it open
        for number in range(12):
            batch = pipe.run()[0].as_array()
            assert (batch == number).all()
            child = os.fork()
            if not child:
                status = 99
                try:
                    signal.alarm(LIMIT_S)
                    os.close(writer)
                    status = int(compare(batch, number))
                finally:
                    os._exit(status)
            children.append(child)
            if runs == "shortly" and number == 5:
                os.write(writer, b"-" * len(children))
                assert [os.waitpid(each, 0)[1] for each in children] == [0] * len(children)
                children.clear()
        os.close(writer)
        del batch
        assert [os.waitpid(each, 0)[1] for each in children] == [0] * len(children)
        addresses = {pipe.run()[0].as_array().__array_interface__["data"][0] for _ in range(30)}
        assert len(addresses) <= 4
    os.close(reader)
