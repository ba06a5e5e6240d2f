"""Pieces of files that are read in one call, compared with the contents of the files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.pieces import copy_rows, samples_in


@pytest.mark.parametrize(
    ("offset", "size"), [(0, 0), (0, 50), (50, 51), (-1, 5), (5, -1), (1 << 62, 5), (0, 1 << 62), (101, 0)]
)
def test_pieces_of_files(offset: int, size: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(100)))
    (tmp_path / "b").write_bytes(b"other")
    files = OpenFiles([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "absent")])
    pieces = files.read_many(np.array([1, 0, 0]), np.array([1, offset, 0]), np.array([3, size, 100]))
    if not 0 <= offset <= offset + size <= 100 and size:
        assert pieces is None
        return
    assert pieces is not None
    parts = [pieces.data[a:b].tobytes() for a, b in zip(pieces.starts, pieces.stops, strict=True)]
    assert parts == [b"the", bytes(range(100))[offset : offset + size], bytes(range(100))]
    (tmp_path / "a").write_bytes(b"longer" * 100)
    pieces = files.read_many(np.array([0]), np.array([100]), np.array([500]))
    assert pieces is not None
    assert pieces.data[:500].tobytes() == (b"longer" * 100)[100:]
    os.truncate(tmp_path / "a", 10)  # the end of the file, and so its size, is checked when it is read
    assert files.read_many(np.array([0]), np.array([5]), np.array([6])) is None
    assert files.read_many(np.array([0, 2]), np.array([0, 0]), np.array([1, 1])) is None


@pytest.mark.parametrize("has_bytes", [False, True])
def test_pieces_at_any_positions(has_bytes: bool, tmp_path: Path) -> None:
    """Pieces at any position: near, far, overlapping, in other files, empty."""
    random = np.random.default_rng(0)
    contents = random.integers(0, 256, (2, 40_000), np.uint8)
    for file in range(2):
        contents[file].tofile(tmp_path / str(file))
    files = OpenFiles([str(tmp_path / "0"), str(tmp_path / "1")])
    for _ in range(200):
        count = int(random.integers(1, 12))
        numbers = (random.random(count) < 0.2).astype(np.int64)
        sizes = random.choice([0, 1, 63, 64, 500, 512, 3000], count)
        steps = sizes + random.choice([0, 0, 1, 64, 448, 512, 2048, 2049, -64, -5000], count)
        offsets = np.clip(np.cumsum(steps) - steps, 0, 30_000) & -random.choice([1, 64, 512])
        pieces = files.read_many(numbers, offsets, sizes, has_bytes=has_bytes)
        assert pieces is not None
        assert has_bytes or not (pieces.starts % 64).any()
        assert (pieces.starts[1:] >= pieces.stops[:-1]).all()
        for number, offset, size, start, stop in zip(numbers, offsets, sizes, pieces.starts, pieces.stops, strict=True):
            np.testing.assert_array_equal(pieces.data[start:stop], contents[number, offset : offset + size])


@pytest.mark.parametrize("sizes", [[0, 1, 1024], [1024, 1025, 3], [1025, 5000], [0], [7] * 100], ids=str)
def test_small_slices_are_copies(sizes: list[int]) -> None:
    data = np.random.default_rng(0).integers(0, 256, sum(sizes) + 100, np.uint8)
    stops = np.cumsum(sizes) + 100
    starts = stops - np.array(sizes)
    expected = [data[start:stop].tobytes() for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
    samples = samples_in(data, starts, stops).samples
    assert [sample.tobytes() for sample in samples] == expected
    assert [np.shares_memory(sample, data) for sample in samples] == [size > 1024 for size in sizes]
    for sample in samples:  # each in separate memory
        sample[:] = 1
    assert all(sample.all() for sample in samples)


def test_rows_are_copies_of_slices() -> None:
    data = np.arange(256, dtype=np.uint8)
    starts = np.arange(0, 200, 7)[::2]
    rows = np.empty((len(starts), 3), np.uint8)
    copy_rows(data, starts, rows)
    np.testing.assert_array_equal(rows, [data[start : start + 3] for start in starts.tolist()])
    copy_rows(data, starts, np.empty((len(starts), 0), np.uint8))
