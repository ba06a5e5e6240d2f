"""Problems of a cluster result in one error or one line in the log, and never in a hang."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

import dalify
from dalify import fn
from dalify.base.errors import ArgumentTypeError, PipelineStateError, WorkerError
from dalify.pipeline import pipeline_def
from dalify.pipeline.pipeline import parts_of
from tests.helpers.frameworks import imported
from tests.helpers.photo_pipelines import EPOCH, assert_equal, batches, photos
from tests.helpers.programs import LIMIT_S, running

ray = imported("ray")
from dalify.plugin.ray import RayPipeline  # noqa: E402
from tests.helpers.ray_cluster import RayCluster, eventually, worker_processes  # noqa: E402


def test_functions_that_cannot_be_sent_are_refused_with_their_line(ray_cluster: RayCluster) -> None:
    lock = threading.Lock()

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline():
        numbers = fn.random.uniform(range=[0.0, 1.0])
        return fn.python_function(numbers, function=lambda value: value + lock.locked(), parallel=True)

    pipe = RayPipeline(pipeline(), workers=1)
    with pytest.raises(ArgumentTypeError, match="cannot be sent to a worker process") as raised:
        pipe.build()
    assert "fn.python_function" in str(raised.value)
    assert "test_bad_input.py:" in str(raised.value)
    assert "py_start_method" not in str(raised.value)


def test_a_worker_without_the_data(
    ray_cluster: RayCluster, photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have another working folder, so a relative path is not there."""
    ray_cluster.fill_up()
    monkeypatch.chdir(photo_folder.parent)
    pipe = RayPipeline(photos(Path(photo_folder.name)), workers=1)
    with pytest.raises(WorkerError, match=f"has no {photo_folder.name}, which the pipeline reads") as raised:
        pipe.run()
    assert os.uname().nodename in str(raised.value)
    pipe.close()


@pytest.fixture
def other_version(tmp_path: Path) -> Path:
    """Return a folder with another version of dalify."""
    package = Path(dalify.__file__).parent
    shutil.copytree(package, tmp_path / "dalify", ignore=shutil.ignore_patterns("__pycache__"))
    # Ray puts the folders of the program in front of those of the node.
    (tmp_path / "sitecustomize.py").write_text("import dalify")
    init = tmp_path / "dalify/__init__.py"
    init.write_text(init.read_text().replace(f'__version__ = "{dalify.__version__}"', '__version__ = "0.0.9"'))
    return tmp_path


def test_a_node_with_another_version(
    ray_cluster: RayCluster, photo_folder: Path, other_version: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ray_cluster.fill_up()
    node = ray_cluster.add(resources={"odd": 1}, env_vars={"PYTHONPATH": str(other_version)})
    try:
        pipe = RayPipeline(photos(photo_folder), workers=1, resources={"odd": 0.1})
        with pytest.raises(WorkerError, match=f"has dalify 0.0.9, but this program has {dalify.__version__}"):
            pipe.run()
        pipe.close()
        with caplog.at_level(logging.WARNING, "dalify.ray"):
            pipe = RayPipeline(photos(photo_folder), workers=4)  # one for each node
            reference = photos(photo_folder)
            assert_equal(batches(pipe, EPOCH), batches(reference, EPOCH))
            eventually(lambda: "0.0.9" in caplog.text, "the log names the node")
        assert "The other workers continue" in caplog.text
        assert node.node_id not in pipe.nodes
        pipe.close()
        reference.close()
    finally:
        ray_cluster.kill(node)


def test_a_full_cluster(
    ray_cluster: RayCluster, photo_folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray_cluster.fill_up()
    pipe = RayPipeline(photos(photo_folder), workers=1, cpus_per_worker=2, start_timeout_s=1)
    with pytest.raises(
        WorkerError, match=r"each worker needs 2 CPUs, and .* of the cluster's .* the largest node has 1"
    ):
        pipe.run()
    pipe.close()
    monkeypatch.setattr("dalify.plugin.ray.worker_group._SILENT_START_S", 1.0)
    pipe, reference = RayPipeline(photos(photo_folder), workers=4), photos(photo_folder)
    with caplog.at_level(logging.WARNING, "dalify.ray"):
        assert_equal(batches(pipe, EPOCH), batches(reference, EPOCH))
        eventually(lambda: "1 of 4 workers are not ready: each worker needs 1 CPU," in caplog.text, "a line in the log")
    node = ray_cluster.add()
    try:
        eventually(lambda: len(pipe.nodes) == 4, "the fourth starts as soon as there is room")
    finally:
        pipe.close()
        reference.close()
        ray_cluster.kill(node)


def test_a_module_that_is_not_on_the_nodes(
    ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray_cluster.fill_up()
    (tmp_path / "only_here.py").write_text("def same(value):\n    return value\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # pyright: ignore[reportMissingImports]

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline():
        return fn.python_function(fn.random.uniform(range=[0.0, 1.0]), function=only_here.same, parallel=True)

    pipe = RayPipeline(pipeline(), workers=1)
    with pytest.raises(WorkerError, match="cannot load the pipeline: ModuleNotFoundError: No module named 'only_here'"):
        pipe.run()
    pipe.close()


def test_a_forked_child_is_refused(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()
    pipe = RayPipeline(photos(photo_folder), workers=1)
    pipe.run()
    built = parts_of(pipe).builder.built
    assert built is not None
    assert built.engine.remote is not None
    with pytest.raises(PipelineStateError, match="Ray cannot run in it"):
        built.engine.remote.renewed()
    pipe.close()


PROGRAM = """
import sys
from pathlib import Path
import ray
from tests.helpers.photo_pipelines import photos
from dalify.plugin.ray import RayPipeline

ray.init(sys.argv[2], logging_level="ERROR", log_to_driver=False)
pipe = RayPipeline(photos(Path(sys.argv[1])), workers=2)
pipe.run()
print("runs", flush=True)
while True:
    pipe.run()
"""


def test_ctrl_c_ends_everything(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()
    with running(PROGRAM, photo_folder, ray_cluster.cluster.address) as program:
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "runs", program.communicate()[1]
        # The first batch needs only one worker.
        eventually(lambda: len(worker_processes()) == 2, "the second worker has started")
        begin = time.monotonic()
        program.send_signal(signal.SIGINT)
        assert program.wait(LIMIT_S) != 0
        eventually(lambda: not worker_processes(), "the actors have ended")
        assert time.monotonic() - begin < 30  # usually 1


def test_a_trainer_that_is_killed_leaves_no_workers(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()
    with running(PROGRAM, photo_folder, ray_cluster.cluster.address) as program:
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "runs", program.communicate()[1]
        program.kill()
    eventually(lambda: not worker_processes(), "the actors have ended")
