"""The functions for small index arrays return the same as NumPy's indexing."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.small_arrays import columns_at, counting, equal_rows, flat_indices, rows_at, with_column, zeros


@pytest.mark.parametrize("count", [0, 1, 31, 4096, 4097, 10_000])
def test_counting_is_arange(count: int) -> None:
    found = counting(count)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.arange(count))


@pytest.mark.parametrize("shape", [0, 5, 1000, (0, 3), (7, 0), (2, 3), (64, 40), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float32, np.uint8, np.bool_])
def test_zeros_equal_numpy(shape: int | tuple[int, ...], dtype: type) -> None:
    found = zeros(shape, dtype)
    np.testing.assert_array_equal(found, np.zeros(shape, dtype), strict=True)
    assert found.flags.writeable
    assert found.flags.aligned
    assert found.flags.c_contiguous


def test_the_cached_numbers_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        counting(8)[0] = 5
    assert counting(8)[0] == 0


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
@pytest.mark.parametrize("width", [0, 1, 3])
@pytest.mark.parametrize("indices", [[], [0], [6, 2, 2, 0]])
def test_rows_equal_those_of_indexing(dtype: type, width: int, indices: list[int]) -> None:
    table = np.random.default_rng(width).integers(0, 2, (7, width)).astype(dtype)
    at = np.array(indices, np.int64)
    found = rows_at(table, at)
    assert found.dtype == table.dtype
    assert found.flags.c_contiguous
    assert not np.shares_memory(found, table)
    np.testing.assert_array_equal(found, table[at])


@pytest.mark.parametrize("columns", [[], [1], [2, 0], [1, 1, 2]])
def test_columns_equal_those_of_indexing(columns: list[int]) -> None:
    table = np.arange(15).reshape(5, 3)
    found = columns_at(table, columns)
    assert not np.shares_memory(found, table)
    np.testing.assert_array_equal(found, table[:, columns] if columns else np.empty((5, 0)))


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("value", [7, np.arange(5)])
def test_columns_are_inserted(place: int, value: int | np.ndarray) -> None:
    table = np.arange(15).reshape(5, 3)
    found = with_column(table, place, value)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, np.insert(table, place, value, axis=1))


def test_flat_indices_address_what_take_along_axis_takes() -> None:
    generator = np.random.default_rng(3)
    table = generator.integers(0, 100, (6, 4))
    columns = generator.integers(0, 4, (6, 2))
    found = table.reshape(-1)[flat_indices(columns, 4)].reshape(columns.shape)
    np.testing.assert_array_equal(found, np.take_along_axis(table, columns, 1))


def test_equal_rows_are_grouped_in_order_of_appearance() -> None:
    table = np.array([[1, 2], [0, 5], [1, 2], [1, 3], [0, 5]])
    assert [numbers.tolist() for numbers in equal_rows(table)] == [[0, 2], [1, 4], [3]]
    assert [numbers.tolist() for numbers in equal_rows(table[:1])] == [[0]]
