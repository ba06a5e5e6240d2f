"""No batch is lost if workers or nodes die."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dalify import fn
from dalify.base.errors import WorkerError
from dalify.executor.remote import Order
from dalify.pipeline import pipeline_def
from tests.helpers.frameworks import imported
from tests.helpers.photo_pipelines import EPOCH, Samples, assert_equal, batches, photos, values
from tests.helpers.programs import LIMIT_S, running

ray = imported("ray")
from dalify.plugin.ray import RayPipeline  # noqa: E402
from dalify.plugin.ray.stages import RayStages  # noqa: E402
from dalify.plugin.ray.worker_group import WorkerGroup  # noqa: E402
from tests.helpers.ray_cluster import RayCluster, eventually, separate_cluster, worker_processes  # noqa: E402

DEATHS = 10
NODE_DEATHS = 2  # of these
BATCHES = 6


def test_workers_and_nodes_that_are_killed_at_any_moment_lose_no_batch(
    ray_cluster: RayCluster, photo_folder: Path, expected: list[Samples]
) -> None:
    ray_cluster.fill_up()
    chance = random.Random(3)
    pipe = RayPipeline(photos(photo_folder), workers=3)
    reference = photos(photo_folder)
    killed = 0
    number = 0
    end = time.monotonic() + 150
    nodes_at = set(chance.sample(range(DEATHS), NODE_DEATHS))
    try:
        assert_equal(batches(pipe, 2 * EPOCH), expected)
        batches(reference, 2 * EPOCH)
        while killed < DEATHS:
            assert time.monotonic() < end, f"only {killed} deaths"
            assert_equal(batches(pipe, 1), batches(reference, 1))
            number += 1
            time.sleep(chance.random() * 0.1)
            if killed in nodes_at:
                ray_cluster.kill(chance.choice(ray_cluster.nodes))
                ray_cluster.add()
                killed += 1
            elif found := worker_processes():
                os.kill(chance.choice(found), signal.SIGKILL)
                killed += 1
        assert_equal(batches(pipe, EPOCH), batches(reference, EPOCH))
        eventually(lambda: len(pipe.nodes) == 3, "all workers are replaced")
    finally:
        pipe.close()
        reference.close()


def test_a_node_that_leaves_and_one_that_joins(
    ray_cluster: RayCluster, photo_folder: Path, expected: list[Samples]
) -> None:
    ray_cluster.fill_up()
    pipe = RayPipeline(photos(photo_folder), workers=3)
    found = batches(pipe, 2)
    eventually(lambda: len(set(pipe.nodes)) == 3, "a worker on each node")
    ray_cluster.kill(ray_cluster.nodes[0])
    found += batches(pipe, 2)
    eventually(lambda: len(pipe.nodes) == 2, "the others go on")
    node = ray_cluster.add()
    eventually(lambda: node.node_id in pipe.nodes, "the new node has a worker")
    found += batches(pipe, 2)
    assert_equal(found, expected)
    pipe.close()


def dies_once(folder: str, value: np.ndarray) -> np.ndarray:
    """End the process for the value 5, the first time."""
    mark = Path(folder, "died")
    if value == 5 and not mark.exists():
        mark.touch()
        os._exit(3)
    return value


def dies_always(value: np.ndarray) -> np.ndarray:
    """End the process for the value 5."""
    if value == 5:
        os._exit(3)
    return value


def hangs_once(folder: str, value: np.ndarray) -> np.ndarray:
    """Sleep for an hour for the value 5, the first time."""
    mark = Path(folder, "hung")
    if value == 5 and not mark.exists():
        mark.touch()
        time.sleep(3600)
    return value


@pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
def counted(function):
    numbers = fn.external_source(source=lambda info: np.int64(info.idx_in_epoch), batch=False)
    return fn.python_function(numbers, function=function, parallel=True)


def numbers_of(outputs) -> list[int]:
    return [int(sample) for sample in values(outputs)[0]]


@pytest.mark.parametrize("function", [dies_once, hangs_once])
def test_a_batch_whose_worker_dies_or_hangs_is_computed_again(
    ray_cluster: RayCluster, tmp_path: Path, function
) -> None:
    ray_cluster.fill_up()
    folder = str(tmp_path)
    timeout_s = 5.0 if function is hangs_once else None
    pipe = RayPipeline(
        counted(lambda value: function(folder, value), callback_timeout_s=timeout_s),
        workers=1,
    )
    assert [numbers_of(pipe.run()) for _ in range(5)] == [[2 * k, 2 * k + 1] for k in range(5)]
    assert list(tmp_path.iterdir())
    pipe.close()


def test_a_batch_that_kills_every_worker_is_an_error(ray_cluster: RayCluster) -> None:
    ray_cluster.fill_up()
    pipe = RayPipeline(counted(dies_always), workers=1)
    found = [numbers_of(pipe.run()) for _ in range(2)]
    with pytest.raises(WorkerError, match="batch 2 is lost: 5 workers died while they computed it"):
        pipe.run()
    found.append(numbers_of(pipe.run()))
    assert found == [[0, 1], [2, 3], [6, 7]]
    pipe.close()


def waits_until(mark: Path, value: np.ndarray) -> np.ndarray:
    """Wait for the file, for one value."""
    end = time.monotonic() + LIMIT_S
    while value == 41 and not mark.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return value


class _Watching(logging.Handler):
    """Creates a file when a worker is reported as slow with batch 20."""

    def __init__(self, mark: Path) -> None:
        super().__init__()
        self.mark = mark
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "has been computing batch 20" in record.getMessage():
            self.lines.append(record.getMessage())
            self.mark.touch()


def test_a_slow_node_is_named(ray_cluster: RayCluster, tmp_path: Path) -> None:
    ray_cluster.fill_up()
    watching = _Watching(tmp_path / "named")
    logger = logging.getLogger("dalify.ray")
    # The batch lasts until its worker is named: on a busy machine, the time that counts as slow is longer.
    pipe = RayPipeline(counted(partial(waits_until, watching.mark)), workers=1)
    logger.addHandler(watching)
    try:
        assert [numbers_of(pipe.run()) for _ in range(22)] == [[2 * k, 2 * k + 1] for k in range(22)]
    finally:
        logger.removeHandler(watching)
        pipe.close()
    assert len(watching.lines) == 1
    assert os.uname().nodename in watching.lines[0]


def test_workers_that_die_while_idle_are_replaced(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()
    pipe = RayPipeline(photos(photo_folder), workers=2)
    try:
        batches(pipe, 1)
        eventually(lambda: len(pipe.nodes) == 2, "both are ready")
        before = set(worker_processes())
        for process in before:  # nothing is asked for: what was prefetched is computed soon
            os.kill(process, signal.SIGKILL)
        eventually(lambda: len(set(worker_processes()) - before) == 2, "both are replaced")
        batches(pipe, EPOCH)
    finally:
        pipe.close()


def _numbered() -> Any:
    numbers = [np.full(3, number) for number in range(4 * BATCHES)]
    return fn.readers.dataset(dataset=numbers, num_outputs=1) + 0


@pytest.mark.parametrize("method", [(Order, "finish"), (RayStages, "_receive"), (WorkerGroup, "_handle_setup")])
def test_an_error_of_the_receiving_thread_loses_only_batches_in_progress(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch, method: tuple[type, str]
) -> None:
    """For example one for lack of memory: no call waits forever."""
    failures = [MemoryError("injected")]
    original = getattr(*method)

    def fails_once(*arguments: Any) -> Any:
        if failures and threading.current_thread().name == "dalify-ray":
            raise failures.pop()
        return original(*arguments)

    monkeypatch.setattr(*method, fails_once)
    ray_cluster.fill_up()
    pipe = RayPipeline(pipeline_def(batch_size=4, num_threads=1, device_id=None)(_numbered)(), workers=1)
    found: list[int] = []
    try:
        for _ in range(BATCHES):
            with suppress(MemoryError):
                found.append(int(values(pipe.run())[0][0][0]) // 4)
    finally:
        pipe.close()
    assert not failures
    assert found == sorted(set(found))
    assert found[-1] == BATCHES - 1


def test_a_worker_whose_start_fails_is_started_again() -> None:
    class Failing:
        def remote(self, *arguments: Any) -> Any:
            raise MemoryError("injected")

    started: list[int] = []

    def start_worker(number: int) -> Any:
        started.append(number)
        return SimpleNamespace(about=Failing(), set_up=Failing())

    pool: Any = SimpleNamespace(minimum=1, start_worker=start_worker)
    group = WorkerGroup(pool, "key", [], lambda *_: None)
    for _ in range(2):
        with pytest.raises(MemoryError):
            group.fill_up()
    assert started == [0, 0]


def test_nothing_is_left(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()
    pipe = RayPipeline(photos(photo_folder), workers=2)
    pipe.run()
    assert worker_processes()
    del pipe
    eventually(lambda: not worker_processes(), "the actors have ended")
    eventually(lambda: not any(thread.name == "dalify-ray" for thread in threading.enumerate()), "the thread has ended")


TRAINER = """
import json
import sys
import time
from functools import partial
from pathlib import Path
import ray
from tests.helpers.photo_pipelines import photos, values
from dalify.plugin.ray import RayPipeline

photo_folder, address, folder = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
ray.init(address, logging_level="ERROR", log_to_driver=False)
pipe = RayPipeline(photos(photo_folder), workers=1)
number = 0
while True:
    labels = [int(label.item()) for label in values(pipe.run())[2]]
    number += 1
    saved = folder / "saved"
    saved.write_text(json.dumps({"batches": number, "labels": labels, "state": pipe.state_dict()}))
    saved.replace(folder / "state")
    print(number, flush=True)
    time.sleep(0.1)
"""


def test_a_trainer_whose_cluster_loses_its_head_ends_and_can_be_resumed(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "3")  # usually 60
    with separate_cluster() as cluster, running(TRAINER, photo_folder, cluster.address, tmp_path) as program:
        assert program.stdout is not None
        assert [int(program.stdout.readline()) for _ in range(2)] == [1, 2]
        (head,) = cluster.head_node.all_processes["gcs_server"]
        os.kill(head.process.pid, signal.SIGKILL)
        assert program.wait(LIMIT_S) != 0
    last = json.loads((tmp_path / "state").read_text())
    reference, resumed = photos(photo_folder), photos(photo_folder)
    try:
        seen = batches(reference, last["batches"])
        assert [label.item() for label in seen[-1][2]] == last["labels"]
        resumed.load_state_dict(last["state"])
        assert_equal(batches(resumed, EPOCH), batches(reference, EPOCH))
    finally:
        reference.close()
        resumed.close()
