"""The epoch number that external sources receive, compared with the real DALI."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.pipeline import Pipeline
from dalify.plugin.pytorch import DALIGenericIterator

BATCHES = 3
Epoch = list[tuple[int, int]]
EXPECTED = [[(epoch, number) for number in range(BATCHES)] for epoch in range(3)]


def batch(info: Any) -> list[np.ndarray]:
    if info.iteration >= BATCHES:
        raise StopIteration
    return [np.array([info.epoch_idx, info.iteration])] * 2


def sample(info: Any) -> np.ndarray:
    return batch(info)[0]


SOURCES: dict[str, dict[str, Any]] = {
    "batches": {"source": batch, "batch_info": True},
    "samples": {"source": sample, "batch": False},
}


class Package:
    """The parts of dalify, or of the real DALI, under the same names."""

    def __init__(self, functions: Any, define: Any, iterator: Any) -> None:
        self.functions = functions
        self.define = define
        self.iterator = iterator

    def make(self, source: str, depth: int = 2, parallel: bool = False) -> Any:
        options = {"batch_size": 2, "num_threads": 1, "device_id": None, "prefetch_queue_depth": depth}
        return self.define(**options)(lambda: self.functions.external_source(parallel=parallel, **SOURCES[source]))()

    def over(self, pipe: Any, **options: Any) -> Any:
        return self.iterator(pipe, ["x"], **options)


OURS = Package(fn, pipeline_def, DALIGenericIterator)


@pytest.fixture(params=["dalify", "DALI"])
def package(request: pytest.FixtureRequest) -> Iterator[Package]:
    if request.param == "dalify":
        yield OURS
        return
    oracle: ModuleType = request.getfixturevalue("oracle")
    torch_plugin = pytest.importorskip("nvidia.dali.plugin.pytorch")
    yield Package(oracle.fn, oracle.pipeline_def, torch_plugin.DALIGenericIterator)


def walked(batches: Any, most: int = 100) -> Epoch:
    found: Epoch = []
    for ((item),) in batches:
        epoch, number = item["x"][0].tolist()
        found.append((epoch, number))
        if len(found) == most:
            break
    return found


def ran(pipe: Any) -> Epoch:
    found: Epoch = []
    while True:
        try:
            epoch, number = np.asarray(pipe.run()[0].at(0)).tolist()
        except StopIteration:
            return found
        found.append((epoch, number))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("auto_reset", [False, True])
@pytest.mark.parametrize("resets", ["iterator", "pipeline", "both", "none"])
@pytest.mark.parametrize("prepares", [False, True])
def test_a_new_iterator_for_each_epoch(
    package: Package, source: str, auto_reset: bool, resets: str, prepares: bool
) -> None:
    if package is not OURS and resets == "none" and not auto_reset:
        pytest.skip("the real DALI finds no data then")
    pipe = package.make(source)
    found = []
    for _ in range(3):
        iterator = package.over(pipe, auto_reset=auto_reset, prepare_first_batch=prepares)
        found.append(walked(iterator))
        if resets in ("iterator", "both"):
            iterator.reset()
        if resets in ("pipeline", "both"):
            pipe.reset()
    assert found == EXPECTED


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("auto_reset", [False, True])
@pytest.mark.parametrize("resets", [0, 1, 2])
def test_one_iterator(package: Package, source: str, auto_reset: bool, resets: int) -> None:
    pipe = package.make(source)
    iterator = package.over(pipe, auto_reset=auto_reset)
    found = []
    for _ in range(3):
        found.append(walked(iterator))
        for _ in range(resets):
            iterator.reset()
    assert found == EXPECTED


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("after", [1, 3])
def test_resets_without_iterator(package: Package, source: str, depth: int, before: int, after: int) -> None:
    pipe = package.make(source, depth)
    pipe.build()
    for _ in range(before):
        pipe.reset()
    found = []
    for _ in range(3):
        found.append(ran(pipe))
        for _ in range(after):
            pipe.reset()
    assert found == EXPECTED


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("new", [False, True])
def test_a_break_ends_the_epoch(new: bool, parallel: bool) -> None:
    pipe = OURS.make("samples", parallel=parallel)
    iterator = OURS.over(pipe)
    found = []
    for _ in range(3):
        found.append(walked(iterator, 2))
        iterator.reset()
        iterator = OURS.over(pipe) if new else iterator
    assert found == [epoch[:2] for epoch in EXPECTED]
    pipe.close()


@pytest.mark.parametrize("parallel", [False, True])
def test_a_reset_before_the_first_batch_loses_nothing(parallel: bool) -> None:
    """Prefetched batches are kept, because an iterator cannot return its items again."""

    def items() -> Iterator[list[np.ndarray]]:
        for number in range(4):
            yield [np.array([number])]

    pipe = Pipeline(batch_size=1, num_threads=1, prefetch_queue_depth=2)
    with pipe:
        pipe.set_outputs(fn.external_source(source=items() if not parallel else items, parallel=parallel))
    pipe.build()
    pipe.prepare()
    pipe.reset()
    pipe.start_epoch(0)
    assert [int(pipe.run()[0].as_array()[0, 0]) for _ in range(4)] == [0, 1, 2, 3]
    pipe.close()


def test_an_empty_epoch_counts() -> None:
    def source(info: Any) -> list[np.ndarray]:
        if info.epoch_idx == 1 or info.iteration:
            raise StopIteration
        return [np.array([info.epoch_idx])]

    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.external_source(source=source, batch_info=True))
    found: list[Any] = []
    for _ in range(6):
        try:
            found.append(int(pipe.run()[0].as_array()[0, 0]))
        except StopIteration:
            found.append("end")
            pipe.reset()
    assert found == [0, "end", "end", 2, "end", 3]


def test_an_error_counts() -> None:
    def source(info: Any) -> list[np.ndarray]:
        if info.epoch_idx == 0:
            raise OSError("nothing today")
        return [np.array([info.epoch_idx])]

    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.external_source(source=source, batch_info=True))
    with pytest.raises(OSError, match="nothing today"):
        pipe.run()
    pipe.reset()
    assert int(pipe.run()[0].as_array()[0, 0]) == 1


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_restored_run_knows_whether_its_epoch_has_begun(count: int) -> None:
    pipe = OURS.make("batches")
    for _ in range(count):
        pipe.run()
    again = OURS.make("batches")
    again.load_state_dict(pipe.state_dict())
    again.reset()
    assert ran(again) == EXPECTED[count > 0]


def test_a_break_of_a_loop_over_the_pipeline_loses_nothing() -> None:
    pipe = OURS.make("batches", depth=3)
    first = [np.asarray(output.at(0)).tolist() for _, (output,) in zip(range(2), pipe, strict=False)]
    rest = [np.asarray(output.at(0)).tolist() for (output,) in pipe]
    assert [tuple(item) for item in first] == EXPECTED[0][:2]
    assert [tuple(item) for item in rest] == EXPECTED[0][2:]


# -- readers


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("stops", [100, 2])
def test_a_new_iterator_continues_with_the_next_epoch_of_a_reader(resets: bool, stops: int) -> None:
    """As in DALI, its order differs from that of the first epoch."""

    @pipeline_def(batch_size=5, num_threads=1, seed=3)
    def numbers() -> Any:
        return fn.readers.dataset(
            dataset=[(np.array(number),) for number in range(20)], num_outputs=1, random_shuffle=True, name="Reader"
        )

    def epoch(iterator: Any) -> list[int]:
        found: list[int] = []
        for number, ((item),) in enumerate(iterator, 1):
            found += item["x"].ravel().tolist()
            if number == stops:
                break
        return found

    pipe = numbers()
    orders, epochs = [], []
    for _ in range(3):
        iterator = DALIGenericIterator(pipe, ["x"], reader_name="Reader")
        epochs.append(iterator.epoch)
        orders.append(epoch(iterator))
        if resets:
            iterator.reset()
    assert epochs == [0, 1, 2]
    one = DALIGenericIterator(numbers(), ["x"], reader_name="Reader")
    assert orders == [epoch(one) for _ in range(3)]
    assert orders[0] != orders[1] != orders[2]


def test_batches_of_run_are_not_part_of_the_first_epoch() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def numbers() -> Any:
        return fn.readers.dataset(dataset=[(np.array(number),) for number in range(4)], num_outputs=1, name="Reader")

    pipe = numbers()
    pipe.run()
    iterator = DALIGenericIterator(pipe, ["x"], reader_name="Reader")
    assert iterator.epoch == 0
    assert [item["x"].ravel().tolist() for ((item),) in iterator] == [[0, 1], [2, 3]]
