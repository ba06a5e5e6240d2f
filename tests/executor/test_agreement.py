"""Samples with another dtype or number of dimensions than the first one of the batch are reported or replaced."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import MixedBatchError
from dalify.base.failure_context import failure_context
from dalify.executor.agreement import Agreement, NotDecided, agreed_samples
from tests.helpers.containers import caffe2_record, caffe2_tensor, write_lmdb

SIZE = 8

# -- by chunks, in any order


def like(number: int, kind: str) -> np.ndarray:
    return np.full((2,) if kind == "rank" else (2, 3), number, np.int64 if kind == "type" else np.float32)


def expected_odd(kinds: Sequence[str], blanks: set[int]) -> set[int]:
    """Return the positions of samples that differ from the first one that is not blank."""
    first = next((kind for number, kind in enumerate(kinds) if number not in blanks), None)
    return {number for number, kind in enumerate(kinds) if number not in blanks and kind != first}


@pytest.mark.parametrize("seed", range(60))
def test_chunks_agree_in_any_order(seed: int) -> None:
    """The first sample determines the dtype, for any order of chunks and any division of the batch."""
    chance = random.Random(seed)
    size = chance.randrange(1, 9)
    kinds = [chance.choice(("good", "good", "type", "rank")) for _ in range(size)]
    blanks = {number for number in range(size) if chance.random() < 0.2}
    cuts = sorted({0, size, *(chance.randrange(size) for _ in range(chance.randrange(4)))})
    chunks = list(pairwise(cuts))
    chance.shuffle(chunks)
    agreement, odd, results = Agreement(), set[int](), dict[tuple[int, int], Sequence[np.ndarray]]()

    def compute(chunk: tuple[int, int]) -> None:
        """Simulate the engine with ``on_error="replace"``."""
        start, stop = chunk
        while True:
            hidden = blanks | odd
            samples = [np.zeros(1) if n in hidden else like(n, kinds[n]) for n in range(start, stop)]
            try:
                results[chunk] = agreed_samples(samples, 7, chunk, agreement, lambda n: start + n in hidden)  # noqa: B023
            except NotDecided:
                return
            except MixedBatchError as error:
                odd.add(start + failure_context(error).sample)
                continue
            return

    for chunk in chunks:
        compute(chunk)
    for _ in range(3):
        for chunk in agreement.decide():
            compute(chunk)
    assert agreement.decide() == []
    assert odd == expected_odd(kinds, blanks)
    samples = [sample for chunk in sorted(results) for sample in results[chunk]]
    assert len(samples) == size
    assert len({(sample.dtype, sample.ndim) for sample in samples}) == 1


# -- pipelines


class Items:
    """A dataset whose items are results of a function of their indices."""

    def __init__(self, make: Callable[[int], np.ndarray]) -> None:
        self.make = make

    def __len__(self) -> int:
        return 4 * SIZE

    def __getitem__(self, number: int) -> tuple[np.ndarray]:
        return (self.make(number),)


def files_of(folder: Path, make: Callable[[int], np.ndarray]) -> list[str]:
    for number in range(4 * SIZE):
        np.save(folder / f"{number:02}.npy", make(number))
    return [f"{number:02}.npy" for number in range(4 * SIZE)]


def graph_of(kind: str, folder: Path, make: Callable[[int], np.ndarray]) -> Callable[[], Any]:
    if kind == "dataset":
        return lambda: fn.readers.dataset(dataset=Items(make), num_outputs=1) * np.float32(1)
    names = files_of(folder, make)
    if kind == "numpy":
        return lambda: fn.readers.numpy(file_root=str(folder), files=names)
    return lambda: fn.decoders.numpy(fn.readers.file(file_root=str(folder), files=names)[0])


def batches_of(pipe: Any, count: int) -> list[list[np.ndarray]]:
    found = []
    for _ in range(count):
        (batch,) = pipe.run()
        found.append([np.array(batch.at(place)) for place in range(SIZE)])
    return found


@pytest.mark.parametrize("kind", ["dataset", "numpy", "decoder"])
@pytest.mark.parametrize("other", ["type", "rank"])
@pytest.mark.parametrize("odd", [{1}, {5}, {7}, {4, 5, 6, 7}, {2, 3, 5}])
def test_samples_that_differ_are_named(tmp_path: Path, kind: str, other: str, odd: set[int]) -> None:
    """In the first batch, which has many chunks, and in the third, which has one."""

    def make(number: int) -> np.ndarray:
        is_odd = number // SIZE in (0, 2) and number % SIZE in odd
        return like(number, other if is_odd else "good")

    for policy in ("raise", "skip", "replace"):
        options: dict[str, Any] = {"batch_size": SIZE, "num_threads": 2, "on_error": policy}
        pipe = pipeline_def(**options)(graph_of(kind, tmp_path, make))()
        if policy == "raise":
            for number in range(4):
                if number % 2:
                    batches_of(pipe, 1)
                    continue
                with pytest.raises(MixedBatchError) as caught:
                    pipe.run()
                assert caught.value.sample == min(odd)
                wanted = (
                    f"item {SIZE * number + min(odd)} " if kind == "dataset" else f"{SIZE * number + min(odd):02}.npy"
                )
                assert wanted in str(caught.value)
                assert f"fn.{'decoders' if kind == 'decoder' else 'readers'}." in str(caught.value)
            continue
        found = batches_of(pipe, 4)
        assert {(bad.batch, bad.sample) for bad in pipe.bad_samples()} == {(n, place) for n in (0, 2) for place in odd}
        for number, batch in enumerate(found):
            for place, sample in enumerate(batch):
                assert (sample.dtype, sample.shape) == (np.float32, (2, 3))
                if number % 2 == 0 and place in odd:
                    assert policy == "skip" or not sample.any()
                else:
                    assert (sample == SIZE * number + place).all()
        pipe.close()


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_threads_change_nothing(tmp_path: Path, policy: str) -> None:
    chance = random.Random(3)
    kinds = [chance.choice(("good", "good", "good", "type", "rank")) for _ in range(4 * SIZE)]
    kinds[SIZE] = "type"  # the first of a batch: the others are the odd ones
    results = []
    for threads in (1, 2, 4):
        graph = graph_of("numpy", tmp_path, lambda number: like(number, kinds[number]))
        pipe = pipeline_def(batch_size=SIZE, num_threads=threads, on_error=policy)(graph)()
        found = [[sample.tolist() for sample in batch] for batch in batches_of(pipe, 3)]
        results.append((found, sorted(map(str, pipe.bad_samples()))))
        pipe.close()
    assert results[0] == results[1] == results[2]


def caffe2_labels(folder: Path, labels: Sequence[bytes | None]) -> str:
    records = [b"\xff" if label is None else caffe2_record(caffe2_tensor(b"image"), label) for label in labels]
    write_lmdb(folder, records)
    return str(folder)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_labels_of_caffe2(tmp_path: Path, policy: str) -> None:
    """Integers among floats, and a damaged record at the first position, whose blank label would be an integer."""
    whole, half = caffe2_tensor([3]), caffe2_tensor([0.5])
    path = caffe2_labels(tmp_path, [half if policy == "skip" else None, half, half, whole, half, half, half, half])

    @pipeline_def(batch_size=SIZE, num_threads=2, on_error=policy)
    def labels() -> Any:
        return fn.readers.caffe2(path=path, label_type=2)[1]

    pipe = labels()
    for _ in range(3):
        (batch,) = pipe.run()
        values = np.concatenate([np.array(batch.at(place)).ravel() for place in range(SIZE)])
        assert values.dtype == np.float32
        assert values.tolist() == ([0.5] * SIZE if policy == "skip" else [0, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0.5])
    assert {bad.sample for bad in pipe.bad_samples()} == ({3} if policy == "skip" else {0, 3})
    pipe.close()


def test_a_batch_of_blank_samples_only(tmp_path: Path) -> None:
    path = caffe2_labels(tmp_path, [None] * SIZE)

    @pipeline_def(batch_size=SIZE, num_threads=2, on_error="replace")
    def labels() -> Any:
        return fn.readers.caffe2(path=path, label_type=2)[1]

    batch: Any = labels().run()[0]
    assert batch.as_array().tolist() == [[0]] * SIZE


def test_a_decoder_says_how_to_convert(tmp_path: Path) -> None:
    names = files_of(tmp_path, lambda number: like(number, "type" if number == 3 else "good"))

    def graph(dtype: Any = None) -> Any:
        return fn.decoders.numpy(fn.readers.file(file_root=str(tmp_path), files=names)[0], dtype=dtype)

    with pytest.raises(MixedBatchError, match=r"dtype=types\.FLOAT"):
        pipeline_def(graph)(batch_size=SIZE, num_threads=2).run()
    batch: Any = pipeline_def(lambda: graph(dtype=types.FLOAT))(batch_size=SIZE, num_threads=2).run()[0]
    assert batch.as_array()[3].tolist() == [[3.0] * 3] * 2
