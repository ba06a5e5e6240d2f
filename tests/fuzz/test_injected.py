"""A MemoryError at lines from which a pipeline waited forever, and at some others of every thread."""

from __future__ import annotations

import json
import pickle
import threading
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import PipelineStateError, WorkerError
from dalify.base.threads import ThreadPool
from dalify.executor.iteration import Iteration
from dalify.sources import worker_pool
from tests.fuzz.injected import BATCH_SIZE, Items
from tests.helpers.messages import own_text
from tests.helpers.platforms import needs_linux
from tests.helpers.programs import finished

pytestmark = needs_linux

_LOADER = "plugin/pytorch/dropin/iterators.py"
_READ = "result: Result = pickle.loads(worker.results.recv_bytes())"
# By scenario: whether a thread of the library gets the error, module, and code of the line.
LINES = {
    "threads": [
        (True, "base/threads.py", "task()"),
        (True, "executor/engine.py", "self._finish_stage(iteration, state)"),
        (True, "executor/engine.py", "self._enter_stage(iteration)"),
        (False, "executor/engine.py", "self._state_before_call = None"),
    ],
    "processes": [
        (True, "sources/worker_pool.py", _READ),
        (True, "sources/worker_pool.py", "self.collect(lambda: False)"),
        (True, "executor/process_stages.py", "self._finish_order(token)"),
        (True, "executor/remote.py", "if not self._is_finished:"),
    ],
    "reading processes": [
        (True, "sources/worker_pool.py", _READ),
        (True, "sources/reader_processes.py", "token.set_result(outcome)"),
    ],
    "parallel source": [
        (False, "sources/worker_pool.py", _READ),
        (False, "sources/parallel.py", "pending.outcomes[number] = outcome"),
        (False, "sources/worker_pool.py", "self._next_number += 1"),
    ],
    "read ahead": [(True, "executor/read_ahead.py", "future.set_result(function())")],
    "helper threads": [(True, "base/threads.py", "number, task = left.popleft()")],
    "lazy": [(False, "executor/engine.py", "self._leave_stage(iteration)")],
    "loader": [
        (True, _LOADER, "while not self.is_closed:"),
        (True, _LOADER, "del task"),
        (False, _LOADER, "self._put(task)"),
    ],
    "loader, own collate": [
        (True, _LOADER, "return self.fetcher.fetch(task.indices, self.draws)"),
        (False, _LOADER, "task.is_collated.set()"),
    ],
    "persistent loader": [
        (True, _LOADER, "waits = self.fetcher.collate is not None and self.fetcher.is_random"),
        (False, _LOADER, "self._put(task)"),
    ],
}
PROGRAM = """
    import json, sys
    from tests.fuzz.injected import wrong_at

    print(wrong_at(sys.argv[1], json.loads(sys.argv[2])))
"""


@pytest.mark.parametrize("scenario", LINES)
def test_nothing_waits_forever(scenario: str) -> None:
    status, out, errors = finished(PROGRAM, scenario, json.dumps(LINES[scenario]))
    assert (status, out.strip()) == (0, ""), errors


def _pipeline(**options: Any) -> Any:
    @pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None, **options)
    def batches() -> Any:
        return fn.readers.dataset(dataset=Items(), num_outputs=1) + 0

    return batches()


def _first_numbers(pipe: Any, calls: int) -> list[Any]:
    """Return the first number of each batch, or the error."""
    found: list[Any] = []
    for _ in range(calls):
        try:
            (batch,) = pipe.run()
            found.append(int(np.array(batch.at(0))[0]))
        except (WorkerError, PipelineStateError) as error:
            found.append(error)
    return found


def test_result_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches that workers have are lost, the workers are replaced, and later batches are computed."""
    failures = [MemoryError()]

    def loads(content: bytes) -> Any:
        if failures and threading.current_thread().name == "dalify-collect":
            raise failures.pop()
        return pickle.loads(content)

    class Pickle:
        pass

    Pickle.loads = staticmethod(loads)  # type: ignore[attr-defined]
    monkeypatch.setattr(worker_pool, "pickle", Pickle)
    with closing(_pipeline(processes=2)) as pipe:
        found = _first_numbers(pipe, 12)
    lost = [error for error in found if isinstance(error, WorkerError)]
    assert lost
    assert own_text(lost[0]).startswith("batch 0 is lost: a result of a worker process could not be read: MemoryError.")
    numbers = [number for number in found if not isinstance(number, WorkerError)]
    assert numbers == [4 * (call % 5) for call in range(len(lost), 12)]


@pytest.fixture
def second_batch_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def end_stage(iteration: Iteration) -> None:
        iteration.stage += 1
        if iteration.number == 1:
            raise MemoryError

    monkeypatch.setattr(Iteration, "end_stage", end_stage)


@pytest.mark.usefixtures("second_batch_fails")
def test_thread_that_fails_between_stages() -> None:
    with closing(_pipeline(prefetch_queue_depth=1)) as pipe:
        first, second, third = _first_numbers(pipe, 3)
    assert first == 0
    assert own_text(second).startswith("batch 1 is lost, because a thread of the pipeline failed: MemoryError.")
    assert own_text(third).startswith(
        "the pipeline cannot continue, because one of its threads failed: MemoryError.\n"
        "  Close the pipeline and build it again."
    )


@pytest.mark.usefixtures("second_batch_fails")
def test_worker_process_that_fails_between_stages() -> None:
    """It ends, because its threads may still write into the memory of the batch, and is replaced."""
    with closing(_pipeline(prefetch_queue_depth=1, processes=1)) as pipe:
        first, second, third = _first_numbers(pipe, 3)
    assert (first, third) == (0, 8)
    assert "ended with exit code 1 in the pipeline, called for batch 1, tried 5 times" in own_text(second)


def test_task_that_raises() -> None:
    """The caller is told, and the thread continues."""
    threads = ThreadPool(1, "dalify-test")
    told: list[BaseException] = []
    done = threading.Event()
    threads.submit(0, 0, [lambda: [][0]], told.append)
    threads.submit(0, 1, [done.set], told.append)
    assert done.wait(20)
    threads.close()
    assert [type(error) for error in told] == [IndexError]
