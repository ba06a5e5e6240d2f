"""Iterable datasets of PyTorch and Hugging Face as sources: supported items, and resuming with their state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import IterableDataset

import dalify
from dalify import fn
from dalify.base.errors import SourceError

COUNT = 11
IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


class Items(IterableDataset):
    """Returns the results of a function of 0, 1, 2, …."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return map(self.make, range(COUNT))


class Stateful(Items):
    """Has a state, in the form of ``torchdata``."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        super().__init__(make)
        self.next_number = 0
        self.calls = 0

    def __iter__(self) -> Iterator[Any]:
        while self.next_number < COUNT:
            self.next_number += 1
            self.calls += 1
            yield self.make(self.next_number - 1)
        self.next_number = 0

    def state_dict(self) -> dict[str, Any]:
        return {"next": self.next_number}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.next_number = state["next"]


def piped(source: Any, num_outputs: int | None, **options: Any) -> dalify.Pipeline:
    pipe = dalify.Pipeline(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=2)
    with pipe:
        found = fn.external_source(source=source, num_outputs=num_outputs, batch=False, **options)
        pipe.set_outputs(*(found if isinstance(found, list) else [found]))
    pipe.build()
    return pipe


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda n: (np.full(n, n), n), lambda n: (np.full(n, n), n)),
        (lambda n: [torch.full((n, 2), n), float(n)], lambda n: (np.full((n, 2), n), float(n))),
        (lambda n: {"x": n, "y": -n}, lambda n: (n, -n)),
        (lambda n: {"x": n, "y": -n} if n % 2 == 0 else {"y": -n, "x": n}, lambda n: (n, -n)),
        (lambda n: (Image.fromarray(IMAGE), n), lambda n: (IMAGE, n)),
        (lambda n: (Image.fromarray(IMAGE[..., 0]), n), lambda n: (IMAGE[..., 0], n)),
        (
            lambda n: ("gr\u00fc" * n, b"ab" * n),
            lambda n: tuple(np.frombuffer(x, np.uint8) for x in (b"gr\xc3\xbc" * n, b"ab" * n)),
        ),
        (lambda n: {"image": {"bytes": b"a" * n, "path": None}, "label": n}, lambda n: (np.full(n, 97, np.uint8), n)),
    ],
    ids=["arrays", "tensors", "dictionary", "other order", "image", "gray image", "string", "hugging face"],
)
@pytest.mark.parametrize("parallel", [False, True], ids=["here", "in workers"])
def test_items(make: Callable[[int], Any], expected: Callable[[int], Any], parallel: bool) -> None:
    pipe = piped(Items(make), 2, parallel=parallel)
    for start in (0, 3, 6):
        outputs = pipe.run()
        for number in range(start, start + 3):
            for output, wanted in zip(outputs, expected(number), strict=True):
                np.testing.assert_array_equal(np.array(output.at(number - start)), wanted)
    pipe.close()


def test_dictionaries_in_wrong_numbers() -> None:
    with pytest.raises(
        SourceError, match=r"(?s)returned a dictionary, which has several outputs.*num_outputs=2: each key"
    ):
        piped(Items(lambda n: {"x": n, "y": n}), None).run()
    with pytest.raises(SourceError, match=r"(?s)returned 2 outputs, but num_outputs is 3.*num_outputs=2"):
        piped(Items(lambda n: {"x": n, "y": n}), 3).run()
    pipe = piped(Items(lambda n: {"x": n, "z" if n == 1 else "y": n}), 2)
    with pytest.raises(SourceError, match=r"(?s)with the keys 'x', 'z'; before, they were 'x', 'y'.*sample 1"):
        pipe.run()
    assert pipe.run()[0].as_array().tolist() == [3, 4, 5]


def test_a_batch_may_be_a_dictionary() -> None:
    pipe = dalify.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(*fn.external_source(source=lambda: {"x": [1, 2], "y": ["a", "bc"]}, num_outputs=2))
    numbers, strings = pipe.run()
    assert numbers.as_array().tolist() == [1, 2]
    assert [np.array(strings.at(index)).tobytes() for index in range(2)] == [b"a", b"bc"]


def _resumed_at_every_step(make: Callable[[], Any], num_outputs: int | None, epochs: int = 2) -> None:
    """Iterate over a source, and again from each of its states."""

    def following(pipe: dalify.Pipeline, states: list[Any] | None = None) -> list[Any]:
        found: list[Any] = []
        while len(found) < epochs * (COUNT // 3):
            if states is not None:
                states.append(pipe.state_dict())
            try:
                found.append([output.as_array().tolist() for output in pipe.run()])
            except StopIteration:
                if states is not None:
                    states.pop()
                if len(found) % (COUNT // 3) or not found:
                    raise
                pipe.reset()
        return found

    states: list[Any] = []
    whole = following(piped(make(), num_outputs, cycle="raise"), states)
    for step, state in enumerate(states):
        again = piped(make(), num_outputs, cycle="raise")
        again.load_state_dict(state)
        left = len(whole) - step
        found: list[Any] = []
        while len(found) < left:
            try:
                found.append([output.as_array().tolist() for output in again.run()])
            except StopIteration:
                again.reset()
        assert found == whole[step:]


def test_resuming_by_the_state_of_the_source() -> None:
    _resumed_at_every_step(lambda: Stateful(lambda n: (n, -n)), 2)
    pipe = piped(Stateful(lambda n: n), None)
    for _ in range(2):
        pipe.run()
    source = Stateful(lambda n: n)
    again = piped(source, None)
    again.load_state_dict(pipe.state_dict())
    assert again.run()[0].as_array().tolist() == [6, 7, 8]
    assert source.calls <= 9 - 6 + 2 + 3  # prefetched items, and none of the earlier ones


def test_resuming_a_dataset_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"x": list(range(COUNT)), "y": [-n for n in range(COUNT)]})
    _resumed_at_every_step(lambda: rows.to_iterable_dataset(num_shards=2), 2, epochs=3)
    shuffled = piped(rows.to_iterable_dataset().shuffle(seed=1, buffer_size=100), 2, cycle="raise")
    epochs = []
    for _ in range(2):
        epochs.append([shuffled.run()[0].as_array().tolist() for _ in range(3)])
        with pytest.raises(StopIteration):
            shuffled.run()
        shuffled.reset()
    assert epochs[0] != epochs[1]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_resuming_a_stateful_loader() -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    _resumed_at_every_step(lambda: stateful.StatefulDataLoader(Stateful(lambda n: n), batch_size=None), None)
