"""The elements of samples as one array."""

from __future__ import annotations

import numpy as np
import pytest

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
