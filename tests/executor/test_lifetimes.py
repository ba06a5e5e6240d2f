"""Lifetimes of threads, buffers, processes, and the interpreter."""

from __future__ import annotations

import gc
import os
import signal
import textwrap
import threading
import time
import zlib
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import PipelineStateError
from dalify.pipeline import Pipeline
from dalify.pipeline.pipeline import parts_of
from tests.helpers.platforms import needs_posix
from tests.helpers.programs import finished

SLOW_PIPELINE = """
    import sys, time
    import numpy as np
    from dalify import fn, pipeline_def

    def slow(x):
        time.sleep(0.02)
        return x

    @pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=3)
    def training():
        x = fn.external_source(lambda i: np.full((4, 3), i, np.float32))
        return fn.python_function(x + 1, function=slow)

    pipe = training()
"""


def program(text: str) -> str:
    return textwrap.dedent(SLOW_PIPELINE) + textwrap.dedent(text)


def training(size: int = 50_000, **options: Any) -> Pipeline:
    @pipeline_def(batch_size=4, num_threads=2)
    def batches() -> Any:
        data = fn.external_source(lambda i: np.full((4, size), i % 256, np.uint8))
        return data + np.uint8(1), fn.cast(data, dtype=np.float32)

    return batches(**options)


def checksum(outputs: Any) -> list[int]:
    return [zlib.crc32(item.as_array().tobytes()) for item in outputs]


# -- buffers -----------------------------------------------------------------------------------------------------------


def test_kept_outputs_never_change() -> None:
    pipe = training(size=4096)
    kept = []
    for _ in range(12):
        outputs = pipe.run()
        kept.append((outputs, [item.as_array() for item in outputs], checksum(outputs)))
    for number, (outputs, arrays, before) in enumerate(kept):
        assert checksum(outputs) == before
        assert arrays[0][0, 0] == number + 1
        assert arrays[1][0, 0] == number


def test_views_outlive_lists_and_pipeline() -> None:
    pipe = training(size=4096)
    views = [pipe.run()[1].at(2)[100:200] for _ in range(8)]
    for _ in range(8):
        pipe.run()
    del pipe
    gc.collect()
    assert [view.min() for view in views] == [view.max() for view in views] == list(range(8))


def test_dropped_buffers_are_reused() -> None:
    pipe = training()
    for _ in range(8):
        pipe.run()
    pool = parts_of(pipe).builder.engine()._runner._pool
    before = pool.allocations
    for _ in range(40):
        pipe.run()
    assert pool.allocations <= before + 1


def test_kept_buffers_are_not_reused() -> None:
    pipe = training()
    kept = [pipe.run() for _ in range(10)]
    addresses = [item.data_ptr() for outputs in kept for item in outputs]
    assert len(set(addresses)) == len(addresses)


# -- threads -----------------------------------------------------------------------------------------------------------


def threads_of(pipe_name: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(pipe_name)]


def waits_until(condition: Any, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_a_dropped_pipeline_ends_its_threads() -> None:
    pipe = training(num_threads=3)
    pipe.run()
    name = parts_of(pipe).builder.name + "-"
    assert len(threads_of(name)) == 3
    del pipe
    gc.collect()
    assert waits_until(lambda: not threads_of(name))


def test_close_ends_the_threads() -> None:
    pipe = training()
    pipe.run()
    pipe.close()
    assert not threads_of(parts_of(pipe).builder.name + "-")


def test_close_wakes_a_thread_that_waits_for_a_batch() -> None:
    enters, leaves = threading.Event(), threading.Event()

    def waits(x: Any) -> Any:
        enters.set()
        leaves.wait(60)
        return x

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def waiting() -> Any:
        return fn.python_function(np.float32(1), function=waits)

    pipe, errors = waiting(), []

    def run() -> None:
        try:
            pipe.run()
        except PipelineStateError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert enters.wait(60)
    threading.Timer(0.2, leaves.set).start()  # close waits for what is being computed, but the batch is given up
    pipe.close()
    thread.join(60)
    assert not thread.is_alive()
    assert "closed" in str(errors[0])


def test_a_pipeline_that_never_ran_has_no_threads() -> None:
    pipe = training()
    assert not threads_of(parts_of(pipe).builder.name + "-")


# -- processes ---------------------------------------------------------------------------------------------------------


@needs_posix
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_continues() -> None:
    pipe = training(size=64)
    assert [pipe.run()[1].as_array()[0, 0] for _ in range(3)] == [0, 1, 2]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            found = [int(pipe.run()[1].as_array()[0, 0]) for _ in range(4)]
            os.write(writing, repr(found).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert os.read(reading, 1000).decode() == "[3, 4, 5, 6]"
    os.close(reading)
    assert [pipe.run()[1].as_array()[0, 0] for _ in range(3)] == [3, 4, 5]


@needs_posix
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_continues_although_a_thread_was_in_run() -> None:
    pipe = training(size=4)
    pipe.run()
    ends = threading.Event()

    def run() -> None:
        while not ends.is_set():
            pipe.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(5):
            time.sleep(0.01)
            child = os.fork()
            if not child:
                signal.alarm(30)
                first, second = (int(pipe.run()[1].as_array()[0, 0]) for _ in range(2))
                os._exit(0 if second == (first + 1) % 256 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ends.set()
        thread.join(60)


def test_interpreter_ends_during_prefetching() -> None:
    assert finished(program("print(pipe.run()[0].as_array()[0, 0])")) == (0, "1.0\n", "")


def test_interpreter_ends_while_a_user_function_sleeps() -> None:
    text = """
    pipe2 = training(num_threads=1)
    pipe2.schedule_run()
    pipe.schedule_run()
    print("done")
    """
    assert finished(program(text)) == (0, "done\n", "")


def test_a_daemon_thread_that_runs_a_pipeline_ends_silently() -> None:
    text = """
    import threading

    started = threading.Event()

    def work():
        while True:
            pipe.run()
            started.set()

    threading.Thread(target=work, daemon=True).start()
    started.wait()
    print("done")
    """
    assert finished(program(text)) == (0, "done\n", "")
    parallel = """
    import numpy as np
    from dalify.pipeline import Pipeline

    pipe = Pipeline(batch_size=4, num_threads=1, py_num_workers=1)
    with pipe:
        pipe.set_outputs(fn.external_source(source=lambda info: np.zeros(3), parallel=True, batch=False))
    """
    assert finished(program(textwrap.dedent(parallel) + textwrap.dedent(text))) == (0, "done\n", "")


@pytest.mark.parametrize("options", ["", "processes=1", "debug=True"])
def test_a_daemon_thread_that_requests_a_batch_after_the_sources_have_ended(options: str) -> None:
    """Functions of atexit that are registered first are called last, after the sources have ended."""
    text = f"""
    import atexit
    import time

    atexit.register(time.sleep, 0.3)
    import threading

    import numpy as np

    from dalify import fn, pipeline_def

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, {options})
    def numbers():
        return fn.external_source(lambda: np.zeros((2, 3), np.float32)) * 2

    pipe = numbers()
    pipe.build()
    started = threading.Event()

    def work():
        while True:
            pipe.run()
            started.set()
            time.sleep(0.001)

    threading.Thread(target=work, daemon=True).start()
    started.wait()
    print("done")
    """
    assert finished(text) == (0, "done\n", "")


@pytest.mark.parametrize(
    "result",
    [
        "fn.random.uniform(shape=[1_000_000]) + 1",  # a batch that takes less than 0.3 ms needs no thread
        "fn.external_source(source=lambda info: np.zeros(3), parallel=True, batch=False)",
    ],
)
def test_a_pipeline_cannot_run_after_its_threads_have_ended(result: str) -> None:
    text = f"""
    import atexit
    import numpy as np

    atexit.register(lambda: pipe.run())

    from dalify import fn, pipeline_def

    @pipeline_def(batch_size=4, num_threads=2)
    def numbers():
        return {result}

    pipe = numbers()
    pipe.run()
    """
    _, _, error = finished(textwrap.dedent(text))
    assert "PipelineStateError: the pipeline's threads have ended: the program is ending" in error


def test_an_object_that_is_collected_with_its_pipeline_can_close_it() -> None:
    events: list[Any] = []

    class Owner:
        def __init__(self) -> None:
            self.pipe, self.cycle = training(), self
            self.pipe.run()

        def __del__(self) -> None:
            with pytest.raises(PipelineStateError, match="can only close it"):
                self.pipe.run()
            self.pipe.close()
            events.append("closed")

    Owner()
    gc.collect()
    assert events == ["closed"]


def test_ctrl_c_inside_a_source_leaves_the_others_in_step() -> None:
    """Batches of earlier sources are repeated, also in a state that is saved then."""
    interrupts = [3, 7]

    def second(iteration: int) -> list[np.ndarray]:
        if iteration in interrupts:
            interrupts.remove(iteration)
            raise KeyboardInterrupt
        return [np.array(iteration)]

    def make() -> Pipeline:
        pipe = Pipeline(batch_size=1, num_threads=1, prefetch_queue_depth=2)
        with pipe:
            first = fn.external_source(source=lambda iteration: [np.array(iteration)])
            pipe.set_outputs(first, fn.external_source(source=second))
        return pipe

    pipe = make()
    found: list[tuple[int, int]] = []
    states = []
    while len(found) < 10:
        try:
            one, other = pipe.run()
        except KeyboardInterrupt:
            states.append((len(found), pipe.state_dict()))
            continue
        found.append((int(one.as_array()[0]), int(other.as_array()[0])))
    assert found == [(number, number) for number in range(10)]
    assert not interrupts
    for count, state in states:
        again = make()
        again.load_state_dict(state)
        one, other = again.run()
        assert (int(one.as_array()[0]), int(other.as_array()[0])) == found[count]


@needs_posix
def test_after_ctrl_c_no_batch_is_lost() -> None:
    text = """
    import os, signal, threading
    seen = [int(pipe.run()[0].as_array()[0, 0])]
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            seen.append(int(pipe.run()[0].as_array()[0, 0]))
    except KeyboardInterrupt:
        pass
    seen += [int(pipe.run()[0].as_array()[0, 0]) for _ in range(5)]
    assert seen == list(range(1, len(seen) + 1)), seen
    print("complete")
    """
    assert finished(program(text)) == (0, "complete\n", "")
