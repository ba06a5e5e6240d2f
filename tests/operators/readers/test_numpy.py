"""readers.numpy compared with DALI: windows, policies, types, folders, and damaged files."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import format as numpy_format

import dalify
from dalify.base.errors import ArgumentValueError, DalifyError, DecodeError, IndexingError, ReaderError
from dalify.formats.arrays.numpy_window import read_numpy_header, read_window
from dalify.formats.files.open_files import OpenFiles
from dalify.registry import catalog
from tests.operators.readers.datasets import run_reader

ARRAY = np.arange(120, dtype=np.float32).reshape(4, 6, 5)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", ARRAY)
    return tmp_path / "a.npy"


def read(package: Any, *files: Path, batches: int = 1, **options: Any) -> list[np.ndarray]:
    given = {"files": list(map(str, files)), **options} if files else options
    return run_reader(package, "readers.numpy", batches, max(len(files), 1), **given)[1][-1][0]


WINDOWS = [
    {"roi_start": [1, 2, 0], "roi_end": [3, 5, 4]},
    {"roi_start": [1, 2, 3]},
    {"roi_end": [3, 5, 1]},
    {"roi_shape": [2, 3, 5]},
    {"roi_start": [1], "roi_end": [3]},
    {"roi_start": [1, 2, 1], "roi_shape": [2, 3, 0]},
    {"rel_roi_start": [0.25, 0.5, 0.1], "rel_roi_end": [0.75, 0.9, 0.7]},
    {"rel_roi_start": [0.3, 0.3, 0.5], "rel_roi_shape": [0.5, 0.5, 0.24]},
    {"rel_roi_start": [0.4, 0.24, 0.9], "rel_roi_shape": [0.25, 0.26, 0.1]},
    {"roi_start": [1, 2, 0], "rel_roi_end": [0.9, 0.9, 0.9]},
    {"rel_roi_start": [0.3, 0.3, 0.1], "roi_shape": [2, 2, 2]},
    {"roi_start": [2], "roi_axes": [1]},
    {"roi_start": [2, 1], "roi_end": [4, 3], "roi_axes": [-1, 0]},
    {"roi_axes": [0]},
    {"roi_start": [3, 3, 3], "roi_end": [3, 4, 5]},
    {"roi_start": [-1, -1, 2], "roi_end": [5, 7, 9], "out_of_bounds_policy": "pad", "fill_value": 9.5},
    {"roi_start": [-1, -1, 2], "roi_end": [3, 7, 9], "out_of_bounds_policy": "trim_to_shape"},
    {"roi_start": [5, 3, 0], "roi_end": [7, 4, 2], "out_of_bounds_policy": "trim_to_shape"},
    {"roi_start": [-1, -1, 2], "roi_end": [3, 7, 9], "out_of_bounds_policy": "constant", "fill_value": 3.0},
    {"roi_start": [5, 3, 0], "roi_end": [7, 4, 2], "out_of_bounds_policy": "pad"},
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_windows_equal_dali(oracle: ModuleType, tmp_path: Path, window: dict[str, Any], order: Any):
    np.save(tmp_path / "a.npy", np.asarray(ARRAY, order=order))
    (ours,) = read(dalify, tmp_path / "a.npy", cache_header_information=True, **window)
    (theirs,) = read(oracle, tmp_path / "a.npy", **window)
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d"])
def test_types(oracle: ModuleType, tmp_path: Path, name: str):
    np.save(tmp_path / "a.npy", (np.arange(12).reshape(3, 4) % 7).astype(name))
    options = {"roi_start": [1, 1], "roi_end": [4, 6], "out_of_bounds_policy": "pad", "fill_value": 1.0}
    for given_options in ({}, options):
        (ours,) = read(dalify, tmp_path / "a.npy", **given_options)
        (theirs,) = read(oracle, tmp_path / "a.npy", **given_options)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_folders_equal_dali(oracle: ModuleType, tmp_path: Path):
    """Files of the folder first, then those of its sub-folders, in byte order; deeper folders are ignored."""
    places = ["a.npy", "z/a.npy", "b/c/d.npy", "B/x.npy", "b/y.npy", "c.npy", "b/10.npy", "b/2.npy", "b/other.txt"]
    for number, place in enumerate(places):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.save(file, np.array([number]))
    for pattern in ("*.npy", "[a-b]*", "?.npy"):
        options = {"file_root": str(tmp_path), "file_filter": pattern, "batches": 8}
        ours = [run_reader(dalify, "readers.numpy", 8, 1, file_root=str(tmp_path), file_filter=pattern)[1]]
        theirs = [run_reader(oracle, "readers.numpy", 8, 1, file_root=str(tmp_path), file_filter=pattern)[1]]
        assert np.array_equal(ours, theirs), options


def test_file_lists(oracle: ModuleType, file: Path, tmp_path: Path):
    np.save(tmp_path / "b b.npy", ARRAY + 1)
    (tmp_path / "list.txt").write_text("a.npy\nb b.npy\n")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "list.txt").write_text("a.npy\nb b.npy\n")
    for options in (
        {"file_list": str(tmp_path / "list.txt")},
        {"file_list": str(tmp_path / "lists" / "list.txt"), "file_root": str(tmp_path)},
    ):
        for one, two in zip(read(dalify, batches=2, **options), read(oracle, batches=2, **options), strict=True):
            np.testing.assert_array_equal(one, two)


@given(st.data())
def test_windows_are_numpy_slices(data: st.DataObject):
    """Any window of any array, in both orders and byte orders."""
    import tempfile

    shape = data.draw(st.lists(st.integers(0, 5), max_size=4))
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(data.draw(st.sampled_from(["<i2", ">f4", "u1"])))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.npy"
        np.save(path, np.asarray(array, order=data.draw(st.sampled_from("CF"))))
        start = [data.draw(st.integers(0, extent)) for extent in shape]
        stop = [data.draw(st.integers(first, extent)) for first, extent in zip(start, shape, strict=True)]
        files = OpenFiles([path])
        found = read_window(files, read_numpy_header(files), start, stop)
    expected = array[tuple(slice(first, last) for first, last in zip(start, stop, strict=True))]
    assert found.dtype.isnative
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)


TOGETHER = [
    {},
    {"roi_start": [1, 2, 1], "roi_shape": [2, 3, 3]},
    {"rel_roi_start": [0.1, 0.2, 0.3], "rel_roi_end": [0.9, 0.8, 0.7]},
    {"roi_start": [2], "roi_axes": [1]},
    {"roi_end": [3, 0, 2]},
    {"roi_start": [-1, 0, 0], "roi_end": [3, 7, 5], "out_of_bounds_policy": "pad", "fill_value": 3},
    {"roi_start": [0, 0, 0], "roi_end": [9, 5, 5], "out_of_bounds_policy": "trim_to_shape"},
]
# Of a dataset: shapes, types and orders of its files.
KINDS = {
    "alike": [((4, 6, 5), "<f4", "C")] * 16,
    "one is odd": [((4, 6, 5), "<f4", "C"), ((4, 5, 6), "<f4", "C")] + [((4, 6, 5), "<f4", "C")] * 14,
    "two kinds": [((4, 6, 5), "<f4", "C")] * 8 + [((5, 6, 7), "<f4", "C")] * 8,
    "uneven": [((4 + number % 5, 6, 5), "<f4", "C") for number in range(16)],
    "Fortran": [((4, 6, 5), "<f4", "F")] * 16,
    "foreign": [((4, 6, 5), ">i2", "C")] * 16,
    "booleans": [((4, 6, 5), "?", "C")] * 16,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", TOGETHER, ids=str)
def test_read_together_equals_read_separately(
    kind: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    paths = [tmp_path / f"{number}.npy" for number in range(16)]
    for path, (shape, name, order) in zip(paths, KINDS[kind], strict=True):
        np.save(path, random.integers(0, 100, shape).astype(name, order=cast("Any", order)))
    operator = catalog.find("readers.numpy")
    with monkeypatch.context() as patch:
        patch.setattr(operator, "read_many_function", None)
        expected = read(dalify, *paths, **options)
    are_together = options in TOGETHER[:4] if kind in ("alike", "booleans") else kind == "uneven" and not options
    if are_together:

        def refuse(*_: Any, **__: Any) -> Any:
            raise AssertionError("read by itself")

        monkeypatch.setattr(operator.read_function, "function", refuse)
    for _ in range(2):
        for batches in (1, 2):  # what was learned of the first files is not true of all that follow
            for one, two in zip(read(dalify, *paths, batches=batches, **options), expected, strict=True):
                assert one.dtype == two.dtype
                np.testing.assert_array_equal(one, two, strict=True)


def _last_of_three(pipe: Any) -> Any:
    """Run past what was read ahead."""
    return [pipe.run() for _ in range(3)][-1][0]


@pytest.mark.parametrize("options", [{}, {"roi_start": [1, 2, 1]}], ids=str)
@pytest.mark.parametrize(("size", "error"), [(0, DecodeError), (300, DecodeError), (None, ReaderError)], ids=str)
def test_file_that_changes_is_one_bad_sample(
    options: dict[str, Any], size: int | None, error: type[DalifyError], tmp_path: Path
) -> None:
    paths = [tmp_path / f"{number}.npy" for number in range(6)]
    for number, path in enumerate(paths):
        np.save(path, ARRAY + number)

    def made(**more: Any) -> Any:
        pipe = dalify.Pipeline(batch_size=6, num_threads=1, device_id=None, prefetch_queue_depth=1)
        with pipe:
            pipe.set_outputs(dalify.fn.readers.numpy(files=list(map(str, paths)), **options, **more))
        pipe.build()
        return pipe

    strict, patient = made(), made(on_error="replace")
    for pipe in (strict, patient):
        pipe.run()
    if size is None:
        paths[3].unlink()
    else:
        os.truncate(paths[3], size)
    with pytest.raises(error, match=r"sample 3 of the batch, from .*3\.npy"):
        _last_of_three(strict)
    output = _last_of_three(patient)
    window = ARRAY[1:, 2:, 1:] if options else ARRAY
    for number in range(6):
        expected = window * 0 if number == 3 else window + number
        np.testing.assert_array_equal(np.array(output.at(number)), expected)
    assert {bad.source for bad in patient.bad_samples()} == {str(paths[3])}


def test_windows_per_sample(oracle: ModuleType, file: Path):
    def run(package: Any) -> list[np.ndarray]:
        starts = [np.array([number, 1, 0], np.int32) for number in range(3)]
        pipe = package.Pipeline(batch_size=3, num_threads=2, device_id=None, prefetch_queue_depth=1)
        with pipe:
            start = package.fn.external_source(lambda: starts)
            pipe.set_outputs(package.fn.readers.numpy(files=[str(file)] * 3, roi_start=start, roi_shape=[1, 2, 3]))
        pipe.build()
        (output,) = pipe.run()
        return [np.array(output.at(index)) for index in range(3)]

    for one, two in zip(run(dalify), run(oracle), strict=True):
        np.testing.assert_array_equal(one, two)


def test_windows_from_a_condition_are_refused(file: Path):
    @dalify.pipeline_def(batch_size=2, num_threads=1)
    def graph() -> Any:
        start = dalify.fn.external_source(lambda: [np.zeros(3, np.int32)] * 2, dtype=dalify.types.INT32, ndim=1)
        if start[0] == 0:
            array = dalify.fn.readers.numpy(files=[str(file)] * 2, roi_start=start + 1)
        else:
            array = dalify.fn.readers.numpy(files=[str(file)] * 2)
        return array

    with pytest.raises(DalifyError, match="inside a condition"):
        graph().build()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(tmp_path: Path, version: tuple[int, int]):
    with (tmp_path / "a.npy").open("wb") as file:
        numpy_format.write_array(file, ARRAY, version=version)
    np.testing.assert_array_equal(read(dalify, tmp_path / "a.npy")[0], ARRAY)
    np.testing.assert_array_equal(read(dalify, tmp_path / "a.npy", roi_start=[1])[0], ARRAY[1:, 1:, 1:])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"roi_start": [1, 2]}, ArgumentValueError, "got 2"),
        ({"roi_start": [1, 2], "roi_axes": [0]}, ArgumentValueError, "got 2"),
        ({"roi_start": [1, 1], "roi_axes": [0, -3]}, ArgumentValueError, "twice"),
        ({"roi_start": [1], "roi_axes": [3]}, IndexingError, "out of range"),
        ({"roi_start": [-1, 0, 0]}, IndexingError, "extends outside"),
        ({"roi_end": [5, 6, 5]}, IndexingError, "extends outside"),
        ({"roi_start": [3, 3, 3], "roi_end": [2, 4, 4]}, ArgumentValueError, "before its start"),
        ({"roi_shape": [-1, 2, 2]}, ArgumentValueError, "before its start"),
        ({"rel_roi_start": [float("nan")] * 3}, ArgumentValueError, "must be numbers"),
        ({"roi_start": [1, 2, 3], "rel_roi_start": [0.1] * 3}, ArgumentValueError, "mutually exclusive"),
        ({"roi_end": [1, 2, 3], "roi_shape": [1] * 3}, ArgumentValueError, "mutually exclusive"),
        ({"out_of_bounds_policy": "reflect"}, ArgumentValueError, "must be one of"),
        ({"file_list": "x"}, ArgumentValueError, "files and file_list"),
    ],
)
def test_mistakes(file: Path, options: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message) as caught:
        read(dalify, file, **options)
    assert "fn.readers.numpy" in str(caught.value)


def test_no_files(tmp_path: Path):
    for options, message in (
        ({}, "one of file_root"),
        ({"files": []}, "empty list"),
        ({"file_root": str(tmp_path / "no")}, "cannot read the folder"),
        ({"file_root": str(tmp_path)}, "no file in"),
        ({"file_list": str(tmp_path / "no")}, "cannot read the file list"),
    ):
        with pytest.raises(DalifyError, match=message):
            read(dalify, **options)


def _saved(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"garbage",
        _saved(ARRAY)[:100],
        _saved(ARRAY)[:-1],
        _saved(np.zeros(3, np.complex64)),
        _saved(np.zeros(3, [("a", "i4")])),
        _saved(np.array(["ab"])),
        _saved(np.array([{}], object)),
    ],
    ids=range(8),
)
@pytest.mark.parametrize("options", [{}, {"roi_start": [0]}], ids=["whole", "window"])
def test_damaged_files(tmp_path: Path, contents: bytes, options: dict[str, Any]):
    path = tmp_path / "a.npy"
    path.write_bytes(contents)
    with pytest.raises(DecodeError, match=r"a\.npy" if contents else r"(?s)file is empty.*a\.npy"):
        read(dalify, path, **options)


def test_types_must_agree(tmp_path: Path):
    np.save(tmp_path / "a.npy", ARRAY)
    for other in (ARRAY.astype(np.int32), ARRAY[0]):
        np.save(tmp_path / "b.npy", other)
        with pytest.raises(DalifyError):
            read(dalify, tmp_path / "a.npy", tmp_path / "b.npy")
    with pytest.raises(ReaderError, match="cannot open"):
        read(dalify, tmp_path / "none.npy")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shapes", [[(3, 4), (3, 4)], [(3, 4), (5, 6)]])
def test_bytes_after_the_elements_are_ignored(tmp_path, order, shapes):
    """As in DALI, the header determines how many bytes are read."""
    arrays = [np.asarray(np.arange(math.prod(shape), dtype=np.float32).reshape(shape), order=order) for shape in shapes]
    for index, array in enumerate(arrays):
        np.save(tmp_path / f"{index}.npy", array)
        with (tmp_path / f"{index}.npy").open("ab") as file:
            file.write(b"x" * 5000 * index + b"yz")

    @dalify.pipeline_def(batch_size=len(arrays), num_threads=1)
    def pipeline():
        files: dict[str, Any] = {"file_root": str(tmp_path), "file_filter": "*.npy"}
        whole = dalify.fn.readers.numpy(**files)
        window = dalify.fn.readers.numpy(**files, roi_start=[1, 1], roi_end=[3, 3])
        return whole, window

    whole, window = pipeline().run()
    for index, array in enumerate(arrays):
        np.testing.assert_array_equal(np.array(whole[index]), array)
        np.testing.assert_array_equal(np.array(window[index]), array[1:3, 1:3])


def test_direct_reading_needs_reading_without_mapping(file: Path, oracle: ModuleType) -> None:
    for package in (dalify, oracle):
        assert read(package, file, use_o_direct=True, dont_use_mmap=True)[0].shape == ARRAY.shape
        with pytest.raises(Exception, match=r"use_o_direct.*dont_use_mmap"):
            read(package, file, use_o_direct=True)
