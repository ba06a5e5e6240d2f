"""Map-style datasets of PyTorch and others as readers, in threads and in processes."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset, WeightedRandomSampler

from dalify import Pipeline, fn, samplers
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, ReaderError, SourceError, WorkerError
from tests.helpers.processes import children
from tests.helpers.programs import LIMIT_S, running

STARTS = ["fork", "spawn"]


class Squares(Dataset):
    """Number and square; gray images of that shade."""

    def __init__(self, count: int = 12, fails: tuple[int, ...] = ()) -> None:
        self.count = count
        self.fails = fails
        self.targets = [number % 3 for number in range(count)]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Any:
        if number in self.fails:
            raise OSError(f"item {number} is broken")
        return Image.new("RGB", (4 + number, 3), (number,) * 3), number * number


class Ending(Squares):
    """Calls ``next`` on an iterator that has ended."""

    def __getitem__(self, number: int) -> Any:
        return np.array(number), next(iter([number] if number != 5 else []))


class Drawing(Squares):
    def __getitem__(self, number: int) -> Any:
        return np.array([number, random.random(), np.random.random(), torch.rand(()).item()])


class Dying(Squares):
    def __getitem__(self, number: int) -> Any:
        if number == 5:
            os._exit(1)
        return np.array(number), number


def pipe_of(dataset: Any, num_outputs: int = 2, batch_size: int = 4, pipeline: Any = None, **options: Any) -> Pipeline:
    pipe = Pipeline(batch_size=batch_size, num_threads=2, seed=3, **(pipeline or {}))
    with pipe:
        found = fn.readers.dataset(dataset=dataset, num_outputs=num_outputs, name="Reader", **options)
        pipe.set_outputs(*(found if isinstance(found, list) else [found]))
    return pipe


def epoch(pipe: Pipeline, batches: int = 3) -> list[list[np.ndarray]]:
    """Return the outputs, samples in order."""
    found: list[list[np.ndarray]] = []
    for _ in range(batches):
        outputs = pipe.run()
        found += [[np.array(output.at(index)) for output in outputs] for index in range(len(outputs[0]))]
    return found


def test_items_as_they_are() -> None:
    for number, (image, square) in enumerate(epoch(pipe_of(Squares()))):
        assert image.shape == (3, 4 + number, 3)
        assert image.dtype == np.uint8
        assert (image == number).all()
        assert square.shape == ()
        assert square.dtype == np.int64
        assert square == number * number


@pytest.mark.parametrize("start", STARTS)
def test_processes_give_the_same(start: str) -> None:
    options: dict[str, Any] = {"random_shuffle": True}
    here = epoch(pipe_of(Squares(), **options), 6)
    pipe = pipe_of(Squares(), processes=2, pipeline={"py_start_method": start}, **options)
    for one, other in zip(here, epoch(pipe, 6), strict=True):
        for value, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(value, same)
    pipe.close()


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ((1, 2.5), [np.int64(1), np.float64(2.5)]),
        ([np.ones(2), (3, True)], [np.ones(2), np.int64(3), np.bool_(True)]),
        (
            {"image": torch.ones(2, 3), "name": "né"},
            [np.ones((2, 3), np.float32), np.frombuffer("né".encode(), np.uint8)],
        ),
        ([1, 2, 3], [np.array([1, 2, 3])]),
        (b"bytes", [np.frombuffer(b"bytes", np.uint8)]),
        (Image.new("L", (3, 2), 7), [np.full((2, 3, 1), 7, np.uint8)]),
        ([Image.new("RGB", (3, 2)), {"boxes": np.zeros((0, 4))}], [np.zeros((2, 3, 3), np.uint8), np.zeros((0, 4))]),
    ],
)
def test_kinds_of_items(item: Any, expected: list[np.ndarray]) -> None:
    pipe = pipe_of([item] * 4, len(expected))
    for values in epoch(pipe, 1):
        for value, wanted in zip(values, expected, strict=True):
            assert value.dtype == np.asarray(wanted).dtype
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize(
    ("items", "message"), [([(1, None)], "is or contains None"), ([(1, 2, 3)], "has 3 values; expected 2")]
)
def test_items_that_cannot_be_used(items: list[Any], message: str) -> None:
    """Threads and processes raise the same error, without a traceback of code that does not belong to the user."""
    texts = []
    for processes in (0, 1):
        pipe = pipe_of(items, batch_size=1, processes=processes)
        with pytest.raises(ReaderError, match=message) as caught:
            pipe.run()
        texts.append("".join([str(caught.value), *getattr(caught.value, "__notes__", ())]))
        pipe.close()
    assert texts[0] == texts[1]


def test_tensor_dataset_and_torchvision_labels() -> None:
    data = TensorDataset(torch.arange(24).reshape(12, 2), torch.arange(12))
    assert [values[1].item() for values in epoch(pipe_of(data))] == list(range(12))
    balanced = pipe_of(Squares(9), sampler=samplers.ClassBalanced(num_samples=6), batch_size=6)
    classes = [int(square**0.5) % 3 for _, square in epoch(balanced, 1)]
    assert sorted(classes) == [0, 0, 1, 1, 2, 2]
    weighted = pipe_of(Squares(9), sampler=WeightedRandomSampler([0] * 8 + [1], 6), batch_size=6)
    assert {int(square) for _, square in epoch(weighted, 1)} == {64}


@pytest.mark.parametrize("processes", [0, 2])
def test_resuming_at_every_step(processes: int) -> None:
    options: dict[str, Any] = {"processes": processes, "random_shuffle": True}
    whole = pipe_of(Drawing() if processes else Squares(), 1 if processes else 2, **options)
    states, values = [], []
    for _ in range(6):
        states.append(whole.state_dict())
        values.append(epoch(whole, 1))
    for step, state in enumerate(states):
        again = pipe_of(Drawing() if processes else Squares(), 1 if processes else 2, **options)
        again.load_state_dict(state)
        for one, other in zip(epoch(again, 1), values[step], strict=True):
            for value, same in zip(one, other, strict=True):
                np.testing.assert_array_equal(value, same)
        again.close()
    whole.close()


def test_draws_of_items_do_not_depend_on_the_number_of_processes() -> None:
    runs = [np.array(epoch(pipe_of(Drawing(), 1, processes=processes), 6)) for processes in (1, 3)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert len(np.unique(runs[0][..., 1:])) == runs[0][..., 1:].size  # no two samples draw the same


@pytest.mark.parametrize("processes", [0, 2])
def test_items_that_fail(processes: int) -> None:
    pipe = pipe_of(Squares(fails=(5,)), processes=processes)
    pipe.run()
    with pytest.raises(OSError, match="item 5 is broken") as caught:
        pipe.run()
    assert any("item 5 of the dataset" in note for note in caught.value.__notes__)
    assert pipe.run()[1].as_array().tolist() == [64, 81, 100, 121]
    pipe.close()
    skipping = pipe_of(Squares(fails=(5,)), processes=processes, on_error="skip")
    squares = [int(square) for _, square in epoch(skipping)]
    assert 25 not in squares
    assert len(squares) == 12
    assert next(sample.source for sample in skipping.bad_samples()) == "item 5 of the dataset"
    skipping.close()


@pytest.mark.parametrize("processes", [0, 2])
def test_an_item_does_not_end_the_epoch(processes: int) -> None:
    """StopIteration would end a loop over the batches, and the other items would be missing without an error."""
    pipe = pipe_of(Ending(), processes=processes)
    pipe.run()
    with pytest.raises(SourceError, match="the dataset raised StopIteration") as caught:
        pipe.run()
    assert "sample 1 of the batch, from item 5 of the dataset" in str(caught.value)
    assert pipe.run()[1].as_array().tolist() == [8, 9, 10, 11]
    pipe.close()
    skipping = pipe_of(Ending(), processes=processes, on_error="skip")
    numbers = [int(number) for _, number in epoch(skipping)]
    assert 5 not in numbers
    assert len(numbers) == 12
    skipping.close()


def test_a_process_that_dies_fails_only_its_batch() -> None:
    pipe = pipe_of(Dying(), processes=2, pipeline={"prefetch_queue_depth": 1})
    pipe.run()
    with pytest.raises(WorkerError, match="ended with exit code 1 in the dataset, called for a sample") as caught:
        pipe.run()
    assert "sample 1 of the batch, from item 5 of the dataset" in str(caught.value)
    assert pipe.run()[1].as_array().tolist() == [8, 9, 10, 11]
    pipe.close()


PROGRAM = """
    import time
    from dalify import fn, pipeline_def

    @pipeline_def(batch_size=2, num_threads=1)
    def reading():
        return fn.readers.dataset(dataset=[(1,), (2,), (3,)], num_outputs=1, processes=2)

    pipe = reading()
    pipe.run()
    print("reads", flush=True)
    time.sleep(60)
"""


def test_processes_end_when_the_program_is_killed() -> None:
    with running(PROGRAM) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reads\n"
        process.kill()
        # Not awaited before its output ends, which its workers have inherited: they must not wait for that themselves.
        assert process.communicate(timeout=LIMIT_S)[0] == ""


def test_no_process_is_left() -> None:
    before = children()
    pipe = pipe_of(Squares(), processes=2)
    pipe.run()
    assert len(children() - before) >= 2
    pipe.close()
    for _ in range(100):
        if children() <= before:
            break
        time.sleep(0.05)
    assert children() <= before


# -- mistakes


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(3))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: pipe_of(Stream()), ArgumentTypeError, r"an object with __len__ and __getitem__; got Stream"),
        (lambda: pipe_of(Squares), ArgumentTypeError, "__len__ and __getitem__; got the class Squares"),
        (lambda: pipe_of("photos"), ArgumentTypeError, r"(?s)got the path 'photos'.*fn\.readers\.file"),
        (lambda: pipe_of(Squares(), 0), ArgumentValueError, "num_outputs must be between 1 and 1024"),
        (lambda: pipe_of(Squares(), processes=-1), ArgumentValueError, "processes must be between 0 and 1024"),
        (lambda: pipe_of(Squares(), 3).run(), ReaderError, r"item 0 of the dataset has 2 values; expected 3"),
        (lambda: pipe_of([]).run(), ReaderError, "there is nothing to read"),
        (lambda: pipe_of([(1, None)]).run(), ReaderError, "item 0 of the dataset is or contains None"),
    ],
)
def test_mistakes(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        make().build()
    assert "test_dataset.py" in str(caught.value)


def test_a_lambda_under_spawn_that_cannot_be_sent() -> None:
    class Local(Squares):
        lock = threading.Lock()

        def __init__(self) -> None:
            super().__init__()
            self.own = self.lock

    with pytest.raises(ArgumentTypeError, match="cannot be sent to a worker process") as caught:
        pipe_of(Local(), processes=1, pipeline={"py_start_method": "spawn"}).build()
    assert "fn.readers.dataset" in str(caught.value)
