"""Batches computed by Ray actors equal those of one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DecodeError, PipelineStateError
from dalify.pipeline import Pipeline, pipeline_def
from tests.helpers.frameworks import imported
from tests.helpers.photo_pipelines import (
    EPOCH,
    Samples,
    assert_equal,
    batches,
    photos,
    shard,
    values,
    write_damaged_photos,
)

ray = imported("ray")
from dalify.plugin.numpy import DALIGenericIterator  # noqa: E402
from dalify.plugin.ray import RayPipeline, RayPool  # noqa: E402
from tests.helpers.ray_cluster import RayCluster, eventually  # noqa: E402


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_batches_equal_those_of_one_process(
    ray_cluster: RayCluster, photo_folder: Path, expected: list[Samples], workers: int
) -> None:
    ray_cluster.fill_up()
    pipe = RayPipeline(photos(photo_folder), workers=workers)
    pipe.build()
    eventually(lambda: len(pipe.nodes) == workers, "all workers ready")
    assert len(set(pipe.nodes)) == workers
    assert_equal(batches(pipe, 2 * EPOCH), expected)
    pipe.close()


def test_a_state_can_be_loaded_by_the_other_kind(
    ray_cluster: RayCluster, photo_folder: Path, expected: list[Samples]
) -> None:
    ray_cluster.fill_up()
    kinds = [
        lambda: photos(photo_folder),
        lambda: RayPipeline(photos(photo_folder), workers=2),
        lambda: photos(photo_folder, processes=2, py_start_method="spawn"),
        lambda: RayPipeline(photos(photo_folder), workers=1),
        lambda: photos(photo_folder),
    ]
    state, found = None, []
    for kind in kinds:
        pipe = kind()
        if state is not None:
            pipe.load_state_dict(state)
        found += batches(pipe, 1)
        state = pipe.state_dict()
        pipe.close()
    assert_equal(found, expected[: len(kinds)])


def test_iterators_and_their_states(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()

    def iterator(pipe: Pipeline) -> Any:
        return DALIGenericIterator(pipe, ["b", "labels"], reader_name="Reader", auto_reset=True)

    def whole() -> Pipeline:
        return shard(photo_folder, 0, 1)

    reference, mine = iterator(whole()), iterator(RayPipeline(whole(), workers=2))
    for _ in range(2):
        theirs = [batch[0]["b"] for batch in reference]
        ours = [batch[0]["b"].copy() for batch in mine]
        assert len(theirs) == EPOCH
        np.testing.assert_array_equal(np.stack(theirs), np.stack(ours))
    expected = [next(reference)[0]["b"] for _ in range(2)]
    np.testing.assert_array_equal(next(mine)[0]["b"], expected[0])
    state = json.loads(json.dumps(mine.state_dict()))
    other = iterator(whole())
    other.load_state_dict(state)
    np.testing.assert_array_equal(next(other)[0]["b"], expected[1])
    np.testing.assert_array_equal(next(mine)[0]["b"], expected[1])


def test_what_a_pipeline_reports(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()
    shown = []
    for make in (lambda pipe: pipe, lambda pipe: RayPipeline(pipe, workers=2)):
        pipe = make(photos(photo_folder, taps=["decoded"], enable_memory_stats=True))
        pipe.run()
        tapped = values([pipe.tap("decoded")])
        sizes = pipe.executor_statistics()["CPU_decoded"]["real_memory_size"]
        shown.append((tapped, sizes, pipe.epoch_size(), pipe.reader_meta("Reader")["epoch_size"]))
        pipe.start_epoch(1)
        shown[-1] += (batches(pipe, 1),)
        pipe.close()
    assert_equal([shown[0][0]], [shown[1][0]])
    assert all(size > 0 for _, sizes, *_ in shown for size in sizes)  # of batches ahead, too
    assert shown[0][2:4] == shown[1][2:4]
    assert_equal(shown[0][4], shown[1][4])


def test_functions_with_a_state_run_in_this_process(ray_cluster: RayCluster) -> None:
    ray_cluster.fill_up()
    seen = []

    def remember(value: np.ndarray) -> np.ndarray:
        seen.append(int(value))
        return value

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline():
        numbers = fn.external_source(source=lambda info: np.int64(info.idx_in_epoch), batch=False)
        return fn.python_function(fn.stack(numbers + 1)[0], function=remember)

    pipe = RayPipeline(pipeline(), workers=2)
    assert [int(pipe.run()[0].at(1)) for _ in range(5)] == [2, 4, 6, 8, 10]
    assert seen[:10] == list(range(1, 11))
    pipe.close()


def test_large_inputs_and_the_end_of_a_source(ray_cluster: RayCluster) -> None:
    ray_cluster.fill_up()
    large = [np.random.default_rng(number).random((2, 300_000)) for number in range(4)]

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline():
        return fn.external_source(source=iter(large), batch=True) * 2.0

    pipe = RayPipeline(pipeline(), workers=2)
    for expected in large:
        np.testing.assert_array_equal(pipe.run()[0].as_array(), expected * np.float32(2))
    with pytest.raises(StopIteration):
        pipe.run()
    pipe.close()


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def floats(side: int):
    return fn.random.uniform(range=[0.0, 1.0], shape=[3, side, side])


def test_consumers_may_write_and_hold_more_than_the_stores_do(ray_cluster: RayCluster) -> None:
    """Twenty batches of 12 MB in stores of 80 MB: views of the store, copies of further ones."""
    ray_cluster.fill_up()
    reference, pipe = floats(500), RayPipeline(floats(500), workers=3)
    held = [pipe.run()[0].as_array() for _ in range(20)]
    expected = [reference.run()[0].as_array() for _ in range(20)]
    for mine, theirs in zip(held, expected, strict=True):
        assert mine.flags.writeable
        np.testing.assert_array_equal(mine, theirs)
        mine += 1
    np.testing.assert_array_equal(pipe.run()[0].as_array(), reference.run()[0].as_array())
    pipe.close()
    for mine, theirs in zip(held, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs + 1)


def test_values_are_not_copied_by_the_consumer(ray_cluster: RayCluster) -> None:
    """A batch is an address in Ray's shared memory."""
    ray_cluster.fill_up()
    pipe = RayPipeline(floats(500), workers=1)
    address = pipe.run()[0].as_array().__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(text, 16) for text in line.split()[0].split("-"))
        if low <= address < high:
            assert "plasma" in line
            break
    else:
        raise AssertionError("the address is mapped nowhere")
    pipe.close()


# -- what fails


def test_errors_equal_those_of_threads(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()

    def fails(image: np.ndarray) -> np.ndarray:
        raise LookupError("no such color")

    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=str(photo_folder))
        images = fn.resize(fn.decoders.image(encoded), size=[20, 20])
        if fn.squeeze(labels, axes=0) == 1:
            images = fn.python_function(images, function=fails, parallel=True)
        return images

    notes = []
    for pipe in (pipeline(), RayPipeline(pipeline(), workers=2)):
        pipe.run()
        with pytest.raises(LookupError, match="no such color") as raised:
            pipe.run()
        notes.append(raised.value.__notes__[0])
        pipe.run()  # the next batch is the next one
        pipe.close()
    assert notes[0] == notes[1]
    assert "test_batches.py:" in notes[0]


@pytest.fixture
def damaged(photo_folder: Path, tmp_path: Path) -> Path:
    """Return photos of which three are damaged."""
    write_damaged_photos(photo_folder, tmp_path)
    return tmp_path


@pipeline_def(batch_size=4, num_threads=2, seed=5)
def labeled(folder: Path):
    encoded, labels = fn.readers.file(file_root=str(folder), random_shuffle=True)
    return fn.decoders.image(encoded), labels


def test_bad_samples(ray_cluster: RayCluster, damaged: Path) -> None:
    ray_cluster.fill_up()
    for policy in ("skip", "replace"):
        found = []
        for make in (lambda pipe: pipe, lambda pipe: RayPipeline(pipe, workers=2)):
            pipe = make(labeled(damaged, on_error=policy))
            mine, flags = [], []
            for _ in range(2 * EPOCH):
                mine.append(values(pipe.run()))
                flags.append(pipe.valid.tolist())
            found.append((mine, flags, pipe.bad_samples()))
            pipe.close()
        assert_equal(found[0][0], found[1][0])
        assert found[0][1:] == found[1][1:]
        assert len(found[0][2]) >= 3


def test_a_damaged_sample_is_an_error_that_names_it(ray_cluster: RayCluster, damaged: Path) -> None:
    ray_cluster.fill_up()
    strings: list[list[str]] = []
    for pipe in (labeled(damaged), RayPipeline(labeled(damaged), workers=1)):
        strings.append([])
        for _ in range(EPOCH):
            try:
                pipe.run()
            except DecodeError as error:
                strings[-1].append(str(error))
        pipe.close()
    assert strings[0] == strings[1]
    assert strings[0]
    assert all(".jpg" in text and "test_batches.py:" in text for text in strings[0])


# -- several trainers, and a number of workers that changes


def trained(pool: RayPool, folder: Path, shard_id: int) -> list[Samples]:
    """Return the batches of a trainer in two epochs of its shard."""
    pipe = RayPipeline(shard(folder, shard_id, 2), pool=pool)
    found = batches(pipe, 4)
    pipe.close()
    return found


def test_several_trainers_share_a_pool(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()
    with RayPool(workers=2) as pool:
        train = ray.remote(num_cpus=0)(trained)
        found = ray.get([train.remote(pool, photo_folder, number) for number in range(2)], timeout=90)
        for number in range(2):
            assert_equal(found[number], batches(shard(photo_folder, number, 2), 4))
        assert len(workers_of(pool)) == 2  # the trainers have ended, the pool has not
        again = trained(pool, photo_folder, 1)
        assert_equal(again, found[1])
    eventually(lambda: not workers_of(pool), "the pool has ended")


def workers_of(pool: RayPool) -> list[str]:
    """Return the names of the running workers of a pool."""
    names = ray.util.list_named_actors(all_namespaces=True)
    return [item["name"] for item in names if pool.name in item["name"]]


def late(value: np.ndarray) -> np.ndarray:
    """Take longer than the consumer."""
    import time

    time.sleep(0.02)
    return value


def test_workers_are_added_where_the_consumer_waits_and_removed_where_they_idle(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray_cluster.fill_up()
    monkeypatch.setattr("dalify.plugin.ray.worker_group._IDLE_S", 1.0)

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline():
        numbers = fn.external_source(source=lambda info: np.int64(info.idx_in_epoch), batch=False)
        return fn.python_function(numbers, function=late, parallel=True)

    pipe = RayPipeline(pipeline(), min_workers=1, max_workers=2)
    found: list[int] = []

    def has_two() -> bool:
        found.extend(int(pipe.run()[0].at(0)) for _ in range(20))
        return len(pipe.nodes) == 2

    pipe.build()
    eventually(has_two, "a second worker")
    eventually(lambda: len(pipe.nodes) == 1, "one worker left")
    found.append(int(pipe.run()[0].at(0)))
    assert found == list(range(0, 2 * len(found), 2))
    pipe.close()


# -- arguments


def test_invalid_worker_options(photo_folder: Path) -> None:
    for given, error in (
        ({"workers": 0}, "workers must be between 1 and 4096; got 0"),
        ({"workers": 2, "max_workers": 4}, "cannot be used together"),
        ({"min_workers": 3, "max_workers": 2}, "min_workers=3 is greater than max_workers=2"),
        ({"cpus_per_worker": 0}, "cpus_per_worker must be above 0"),
        ({"workers": 2, "pool": RayPool(workers=2)}, "pool cannot be used together with workers"),
    ):
        with pytest.raises(ArgumentValueError, match=error):
            RayPipeline(photos(photo_folder), **given)
    with pytest.raises(ArgumentTypeError, match="workers must be an integer; got 'two'"):
        RayPipeline(photos(photo_folder), workers="two")
    with pytest.raises(ArgumentValueError, match="processes= cannot be used together with Ray"):
        RayPipeline(photos(photo_folder, processes=2))
    with pytest.raises(ArgumentTypeError, match="takes a Pipeline; got a str"):
        RayPipeline("photos")
    built = photos(photo_folder)
    built.build()
    with pytest.raises(PipelineStateError, match="was built already"):
        RayPipeline(built)
