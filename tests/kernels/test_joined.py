"""The elements of samples as one array."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.data.samples import Samples
from dalify.kernels.arrays import joined


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
def test_rows_are_repeated(dtype: type) -> None:
    rows = np.arange(1, 13).astype(dtype).reshape(4, 3)
    sizes = np.array([7, 0, 2, 300])
    expected = np.concatenate([np.resize(row, size) for row, size in zip(rows, sizes, strict=True)])
    np.testing.assert_array_equal(joined.repeated_rows(rows, sizes), expected)
    same = np.broadcast_to(rows[:1], (4, 3))
    expected = np.concatenate([np.resize(rows[0], size) for size in sizes])
    np.testing.assert_array_equal(joined.repeated_rows(same, sizes), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("shapes", [[(2, 3), (0, 4), (1, 5)], [(2, 3)] * 3, [(4, 1)], [(0, 3), (2, 2)]])
def test_elements_are_concatenated_and_separated(shapes: list[tuple[int, int]], dtype: type) -> None:
    samples = Samples.empty(np.array(shapes, np.int64), np.dtype(dtype))
    expected = np.arange(sum(rows * columns for rows, columns in shapes)).astype(dtype)
    joined.separate(samples, expected)
    starts = np.cumsum([0, *(rows * columns for rows, columns in shapes)])
    for array, shape, start in zip(samples.arrays(), shapes, starts, strict=False):
        np.testing.assert_array_equal(array, expected[start : start + array.size].reshape(shape))
    np.testing.assert_array_equal(joined.joined(samples).reshape(-1), expected)


@pytest.mark.parametrize("sizes", [[], [5], [12], [4, 4, 4], [4, 4, 4, 1], [20, 1, 1], [1, 20, 1], [3] * 9])
def test_blocks_have_all_samples_in_order(sizes: list[int]) -> None:
    found = joined.blocks(np.array(sizes, np.int64), 10)
    assert np.concatenate(found).tolist() == list(range(len(sizes)))
    # A block begins with the first sample that starts at a multiple of the limit or behind it.
    starts = np.cumsum([0, *sizes])[:-1] // 10
    assert [starts[block].tolist() for block in found] == [
        starts[starts == number].tolist() for number in dict.fromkeys(starts.tolist() or [0])
    ]
