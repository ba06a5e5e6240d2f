"""NumPy files of different shapes that are read together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify.base.limits import Limits, applied
from dalify.data import Batch
from dalify.data.batch import block_offsets
from dalify.formats.arrays import ragged_arrays
from dalify.formats.arrays.ragged_arrays import read_ragged
from dalify.formats.files.paths import Paths

random = np.random.default_rng(3)


def saved(folder: Path, arrays: list[Any]) -> list[bytes]:
    paths = [folder / f"{number:03d}.npy" for number in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return [os.fsencode(path) for path in paths]


def arrays_of(count: int, dtype: Any = np.float32, extent: int = 9) -> list[np.ndarray]:
    return [random.integers(0, 100, (extent + number % 4, 7, 3)).astype(dtype) for number in range(count)]


def read(paths: list[bytes]) -> list[np.ndarray] | None:
    found = read_ragged(Paths.of(paths))
    return found.samples if isinstance(found, Batch) else found


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.bool_, np.int64, np.float16])
@pytest.mark.parametrize("count", [1, 5, 64, 65, 150])
def test_arrays(dtype, count, tmp_path):
    arrays = arrays_of(count, dtype)
    before = open_files()
    found = read(saved(tmp_path, arrays))
    assert open_files() <= before  # threads of earlier tests may close theirs
    assert found is not None
    for one, two in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(one, two, strict=True)
        assert one.flags.c_contiguous
        assert one.flags.aligned


def test_large_arrays_do_not_share_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(ragged_arrays, "LARGE_BYTES", 1000)
    arrays = arrays_of(6)
    found = read(saved(tmp_path, arrays))
    assert found is not None
    for one, two in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(one, two, strict=True)
    assert len({id(array.base) for array in found}) == 6


def test_arrays_of_few_files_share_memory(tmp_path):
    found = read_ragged(Paths.of(saved(tmp_path, arrays_of(64))))
    assert isinstance(found, Batch)
    assert found.ragged is not None


def test_single_numbers_and_vectors(tmp_path):
    for arrays in ([np.float32(3), np.float32(4)], [np.arange(3), np.arange(5)]):
        found = read(saved(tmp_path, arrays))
        assert found is not None
        for one, two in zip(found, arrays, strict=True):
            np.testing.assert_array_equal(one, two)
            assert one.shape == np.shape(two)


def test_offsets_equal_those_of_other_batches(tmp_path):
    arrays = [random.integers(0, 100, (n, 7), np.uint8) for n in (1, 30, 27, 28, 55, 100)]
    found = read_ragged(Paths.of(saved(tmp_path, arrays)))
    assert isinstance(found, Batch)
    assert found.ragged is not None
    shapes = np.array([array.shape for array in arrays])
    np.testing.assert_array_equal(found.ragged[1], block_offsets(shapes, 1)[0])


HEADERS = {
    "as written by NumPy": "(3, 4), }",
    "without the last comma": "(3, 4)}",
    "other blanks": "(3,4), }",
    "leading zeros": "(003, 4), }",
    "comma after the last extent": "(3, 4,), }",
    "many digits": "(0000000000000000003, 4), }",
    "other extents": "(4, 3), }",
}
REFUSED = {
    "too large": "(3, 5), }",
    "overflow": "(4611686018427387905, 4), }",
    "many large digits": "(36893488147419103232, 4), }",
    "negative": "(-3, -4), }",
    "empty": "(0, 4), }",
    "no number": "(, 4), }",
    "one extent": "(12,), }",
    "a number": "(12), }",
    "none": "(), }",
    "open": "(3, 4",
    "text after it": "(3, 4), } x",
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("end", [*HEADERS.values(), *REFUSED.values()], ids=[*HEADERS, *REFUSED])
def test_headers_that_others_write(end, place, tmp_path):
    """Each is parsed as by NumPy, or by the reader of single files."""
    arrays = [np.arange(12, dtype=np.uint8).reshape(3, 4), np.arange(20, dtype=np.uint8).reshape(5, 4)]
    paths = saved(tmp_path, arrays)
    text = ("{'descr': '|u1', 'fortran_order': False, 'shape': " + end).ljust(117) + "\n"
    assert len(text) == 118
    odd = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(range(12))
    Path(os.fsdecode(paths[place])).write_bytes(odd)
    found = read(paths)
    assert (found is None) == (end in REFUSED.values())
    if found is not None:
        shape = (4, 3) if end == "(4, 3), }" else (3, 4)
        np.testing.assert_array_equal(found[place], np.arange(12).reshape(shape))
        np.testing.assert_array_equal(found[1 - place], arrays[1 - place])


ODD = {
    "another type": np.ones((4, 7, 3), np.float64),
    "another number of dimensions": np.ones((4, 7), np.float32),
    "Fortran": np.asfortranarray(np.ones((4, 7, 3), np.float32)),
    "foreign": np.ones((4, 7, 3), ">f4"),
    "empty": np.ones((0, 7, 3), np.float32),
    "long header": np.ones((1,) * 31 + (2,), np.float32),
    "texts": np.array(["a"]),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("place", [0, 3, 70])
def test_unusual_arrays_are_left_to_the_general_function(odd, place, tmp_path):
    arrays: list[Any] = arrays_of(80)
    arrays[place] = odd
    before = open_files()
    assert read(saved(tmp_path, arrays)) is None
    assert open_files() <= before  # threads of earlier tests may close theirs


@pytest.mark.parametrize("place", [0, 3, 70])
@pytest.mark.parametrize("size", [None, 0, 5, 100, 128, 300, 100_000])
def test_damaged_files_are_left_to_the_general_function(size, place, tmp_path):
    paths = saved(tmp_path, arrays_of(80))
    if size is None:
        Path(os.fsdecode(paths[place])).unlink()
    else:
        os.truncate(paths[place], size)
    before = open_files()
    assert read(paths) is None
    assert open_files() <= before  # threads of earlier tests may close theirs


def test_limits(tmp_path):
    paths = saved(tmp_path, arrays_of(3, extent=20))
    assert read(paths) is not None
    for limits in (Limits(max_sample_bytes=100), Limits(max_dimensions=2)):
        with applied(limits):
            assert read(paths) is None
    assert read(paths) is not None


def test_limits_of_unknown_headers(tmp_path):
    paths = saved(tmp_path, arrays_of(3))
    with applied(Limits(max_sample_bytes=100)):
        assert read(paths) is None
    assert read(paths) is not None
