"""Rows of windows in files, near and far from each other, compared with NumPy's slices."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dalify.base.errors import ReaderError
from dalify.base.regular_files import OPEN_FLAGS
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.paths import Paths
from dalify.formats.files.runs import Runs, read_runs_of_files

# Shapes, windows, in elements of two bytes: rows that are adjacent, near, far, and fit or exceed the size of one read.
WINDOWS = [
    ((7,), [(0, 7)]),
    ((7,), [(2, 3)]),
    ((1,), [(0, 1)]),
    ((50, 40), [(3, 50), (0, 40)]),
    ((50, 40), [(3, 50), (5, 39)]),
    ((50, 40), [(49, 50), (39, 40)]),
    ((300, 1000), [(0, 300), (1, 1000)]),
    ((20, 5000), [(1, 19), (7, 100)]),
    ((6, 70_000), [(1, 6), (3, 69_990)]),
    ((6, 70_000), [(1, 6), (3, 2000)]),
    ((6, 65_537), [(1, 6), (0, 65_536)]),
    ((5, 6, 3000), [(1, 5), (2, 4), (100, 2900)]),
    ((5, 6, 3000), [(1, 5), (2, 4), (100, 101)]),
    ((5, 6, 7, 8), [(1, 5), (2, 3), (0, 7), (0, 8)]),
    ((5, 6, 7, 8), [(0, 5), (2, 6), (1, 6), (0, 8)]),
    ((2, 1, 3, 1), [(0, 2), (0, 1), (1, 2), (0, 1)]),
]
IN_FRONT = 100


def _runs(shape: tuple[int, ...], window: list[tuple[int, int]]) -> Runs:
    """Take every axis but the last as an outer one."""
    strides = [2 * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    first = IN_FRONT + sum(start * stride for (start, _), stride in zip(window, strides, strict=True))
    counts = [stop - start for start, stop in window]
    return Runs(first, 2 * counts[-1], np.array(counts[:-1], np.int64), np.array(strides[:-1], np.int64))


@pytest.mark.parametrize(("shape", "window"), WINDOWS, ids=str)
def test_rows_equal_numpy(shape: tuple[int, ...], window: list[tuple[int, int]], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    arrays = random.integers(0, 1 << 16, (3, *shape), np.uint16)
    header = np.full(IN_FRONT, 7, np.uint8)
    paths = [str(tmp_path / str(number)) for number in range(3)]
    for path, array in zip(paths, arrays, strict=True):
        Path(path).write_bytes(header.tobytes() + array.tobytes())
    runs = _runs(shape, window)
    expected = arrays[(slice(None), *(slice(*bounds) for bounds in window))].reshape(3, -1)
    assert runs.total_bytes == expected[0].nbytes
    np.testing.assert_array_equal(OpenFiles(paths).read_runs(1, runs).view(np.uint16), expected[1])
    span = OpenFiles(paths).read(1, runs.first, runs.span_bytes)
    np.testing.assert_array_equal(runs.of(span).view(np.uint16), expected[1])
    names = list(map(os.fsencode, paths))
    found = read_runs_of_files(Paths.of(names), OPEN_FLAGS, header, IN_FRONT + arrays[0].nbytes, runs)
    assert found is not None
    np.testing.assert_array_equal(found.view(np.uint16), expected)
    # Different or missing files.
    assert read_runs_of_files(Paths.of(names), OPEN_FLAGS, header, IN_FRONT + arrays[0].nbytes + 1, runs) is None
    assert read_runs_of_files(Paths.of(names), OPEN_FLAGS, header[1:] + 1, IN_FRONT + arrays[0].nbytes, runs) is None
    for bad in (os.fsencode(tmp_path / "absent"), os.fsencode(tmp_path)):
        assert (
            read_runs_of_files(Paths.of([*names, bad]), OPEN_FLAGS, header, IN_FRONT + arrays[0].nbytes, runs) is None
        )


def test_a_file_that_ends_early_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(IN_FRONT + 4000))
    files = OpenFiles([str(path)])
    runs = _runs((50, 40), [(3, 50), (5, 39)])
    assert files.read_runs(0, runs).size == 47 * 34 * 2
    os.truncate(path, 3000)
    with pytest.raises(ReaderError, match=r"a' ends before byte"):
        files.read_runs(0, runs)
