"""Addresses and shapes of samples for compiled code."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from dalify.data import Batch
from dalify.data import samples as samples_module
from dalify.data.batch import packed
from dalify.data.samples import Samples


def _ragged(arrays: list[Any]) -> Batch:
    return packed(Batch(None, arrays), lambda size_bytes: np.empty(size_bytes, np.uint8))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "rows of a larger array", "block", "part of a block", "list"])
def test_addresses_equal_those_of_the_samples(form: str, dtype: type[Any]) -> None:
    random = np.random.default_rng(1)
    shapes = [(3, 4)] * 5 if form in ("dense", "rows of a larger array") else [(n + 1, 7 - n) for n in range(5)]
    arrays = [(100 * random.random(shape)).astype(dtype) for shape in shapes]
    batch = Batch(None, arrays)
    if form == "dense":
        batch = Batch(np.stack(arrays))
    elif form == "rows of a larger array":
        batch = Batch(np.stack([np.stack(arrays), np.stack(arrays)], 1)[:, 0])
    elif form == "block":
        batch = _ragged(arrays)
    elif form == "part of a block":
        batch, arrays = _ragged(arrays).slice(1, 4), arrays[1:4]
    samples = Samples.of_batch(batch)
    assert samples.shapes.tolist() == [list(array.shape) for array in arrays]
    found = [array.__array_interface__["data"][0] for array in batch.samples]
    assert samples.addresses.tolist() == found
    for array, expected in zip(samples.arrays(), arrays, strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("is_dense", [True, False])
def test_windows(is_dense: bool) -> None:
    random = np.random.default_rng(2)
    arrays = [random.random((6, 5, 4) if is_dense else (4 + n, 7 - n, 4)) for n in range(3)]
    start, extents = np.array([[1, 0, 2], [0, 3, 0], [2, 1, 1]]), np.array([[2, 4, 1], [4, 1, 4], [1, 2, 3]])
    samples = Samples.of_batch(Batch(np.stack(arrays)) if is_dense else _ragged(arrays))
    for n, window in enumerate(samples.window(start, extents).arrays()):
        part = tuple(slice(low, low + size) for low, size in zip(start[n], extents[n], strict=True))
        np.testing.assert_array_equal(window, arrays[n][part])


def test_threads_never_get_addresses_that_are_not_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = np.zeros((4, 3), np.float32)
    samples = Samples.of_dense(dense)
    compiled: Any = samples_module.compiled
    fill, seen = compiled.fill_in_block, []

    def slow(*arguments: Any) -> None:
        """Fill in the addresses after another thread has asked for them, which happens while a kernel is loaded."""
        monkeypatch.setattr(compiled, "fill_in_block", fill)
        other = threading.Thread(target=lambda: seen.append(samples.addresses.tolist()))
        other.start()
        other.join()
        fill(*arguments)

    monkeypatch.setattr(compiled, "fill_in_block", slow)
    first = dense.__array_interface__["data"][0]
    assert samples.addresses.tolist() == [first, first + 12, first + 24, first + 36]
    assert seen == [samples.addresses.tolist()]


def test_tables_of_an_array_are_computed_once() -> None:
    samples = Samples.of_dense(np.zeros((3, 2, 4), np.float32))
    assert (len(samples), samples.ndim) == (3, 2)
    assert samples.shapes is samples.shapes
    assert samples.addresses is samples.addresses
    np.testing.assert_array_equal(samples.shapes, [[2, 4]] * 3)
    np.testing.assert_array_equal(np.diff(samples.addresses), [32, 32])
    assert not hasattr(samples, "shape")
