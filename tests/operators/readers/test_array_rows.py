"""readers.hdf5 and readers.zarr compared with their packages, and with damaged data."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn, samplers
from dalify.base.errors import ArgumentValueError, DTypeError, ReaderError
from dalify.formats.arrays.array_rows import ArrayRows
from dalify.formats.arrays.hdf5_file import Hdf5File
from dalify.formats.arrays.zarr_file import ZarrStore
from tests.operators.readers.datasets import run_reader

h5py = pytest.importorskip("h5py", reason="the extra dalify[hdf5]")
zarr = pytest.importorskip("zarr", reason="the extra dalify[zarr]")

COUNT = 17
_RANDOM = np.random.default_rng(8)
TYPES = ["u1", "i1", "<u2", ">i4", "<i8", ">u8", "<f2", ">f4", "<f8", "?"]
SHAPES = [(), (5,), (2, 3), (0,), (2, 1, 3)]


def _array(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return _RANDOM.integers(0, 2 if dtype == "?" else 100, (COUNT, *shape)).astype(dtype)


def assert_rows(found: list[np.ndarray], wanted: Any) -> None:
    for array, row in zip(found, wanted, strict=True):
        row = np.asarray(row)
        assert array.dtype == row.dtype.newbyteorder("=")
        assert array.dtype.isnative
        assert array.shape == row.shape
        assert array.flags.writeable
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array, row)


@pytest.mark.parametrize("threads", [1, 4])
def test_hdf5_rows_are_what_h5py_reads(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a.h5"
    names = []
    with h5py.File(path, "w") as file:
        for dtype in TYPES:
            for shape in SHAPES:
                name = f"{dtype.strip('<>?') or 'bool'}/{len(names)}"
                file[name] = _array(dtype, shape)
                names.append(name)
        for chunk, options in ((1, {}), (4, {"compression": "gzip", "shuffle": True}), (50, {"compression": "lzf"})):
            name = f"chunks/{chunk}"
            array = _array(">f4", (6, 5))
            file.create_dataset(name, data=array, chunks=(min(chunk, COUNT), 3, 5), **options)
            names.append(name)
    _, batches, _ = run_reader(dalify, "readers.hdf5", 3, COUNT, threads, paths=[str(path)], datasets=names)
    with h5py.File(path) as file:
        for outputs in batches:
            for name, found in zip(names, outputs, strict=True):
                assert_rows(found, file[name])


LARGE = 5000  # elements of four bytes: rows that are large enough to be read directly


@pytest.mark.parametrize(
    ("chunks", "options", "is_read_past"),
    [
        ((4, LARGE, 1), {}, True),
        ((1, LARGE, 1), {}, True),
        ((40, LARGE, 1), {"maxshape": (None, LARGE, 1)}, True),
        ((4, LARGE - 1, 1), {}, False),
        ((4, LARGE, 1), {"compression": "gzip"}, False),
        ((4, LARGE, 1), {"fletcher32": True}, False),
        (None, {}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["<f4", ">i4"])
def test_large_rows_in_chunks(tmp_path: Path, chunks: Any, options: Any, is_read_past: bool, dtype: str) -> None:
    """Whole rows in unfiltered chunks are read directly, without HDF5."""
    array = _RANDOM.integers(0, 1000, (COUNT, LARGE, 1)).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", array.shape, array.dtype, chunks=chunks, **options)
        for row in _RANDOM.permutation(COUNT):  # chunks are in any order
            dataset[row] = array[row]
        file["label"] = np.arange(COUNT)
    opened = Hdf5File(str(tmp_path / "a.h5"), ["x", "label"])
    assert (opened.arrays[0].chunk_rows == 1) == is_read_past
    rows = ArrayRows([opened], ["x", "label"], 1)
    for numbers in ([*range(COUNT)], [3, 4, 5], [16, 2, 2, 9], [7]):
        found = rows.read_many(np.array(numbers))
        assert found is not None
        assert_rows([*found[0]], array[numbers])
        assert found[1].tolist() == numbers
        assert_rows([rows[number].read()[0] for number in numbers], array[numbers])


def test_chunks_that_were_never_written_are_filled(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", (8, LARGE), "f4", chunks=(2, LARGE), fillvalue=7)
        dataset[4] = 1
    rows = ArrayRows([Hdf5File(str(tmp_path / "a.h5"), ["x"])], ["x"], 1)
    found = rows.read_many(np.arange(8))
    assert found is not None
    assert found[0][:, -1].tolist() == [7, 7, 7, 7, 1, 7, 7, 7]


def test_hdf5_rows_of_any_length(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    strings = ["", "a", "gr\u00fcn"]
    with h5py.File(path, "w") as file:
        file["texts"] = strings
        file["fixed"] = np.array([text.encode() for text in strings])
        file["opaque"] = np.array([b"abc", b"de", b"f"], "V3")
        lists = file.create_dataset("lists", (3,), h5py.vlen_dtype(np.float32))
        encoded = file.create_dataset("encoded", (3,), h5py.vlen_dtype(np.uint8), chunks=(2,))
        for row in range(3):
            lists[row] = np.arange(row, dtype=np.float32)
            encoded[row] = np.arange(row + 1, dtype=np.uint8)
    names = ["texts", "fixed", "opaque", "lists", "encoded"]
    found = run_reader(dalify, "readers.hdf5", 1, 3, paths=[str(path)], datasets=names)[1][0]
    for column in found[:2]:
        assert [array.tobytes().decode() for array in column] == strings
    assert [array.tobytes() for array in found[2]] == [b"abc", b"de\0", b"f\0\0"]
    assert_rows(found[3], [np.arange(row, dtype=np.float32) for row in range(3)])
    assert_rows(found[4], [np.arange(row + 1, dtype=np.uint8) for row in range(3)])


def test_files_with_leading_bytes(tmp_path: Path) -> None:
    """A user block moves all data."""
    path = tmp_path / "a.h5"
    array = _array("<f4", (3,))
    with h5py.File(path, "w", userblock_size=512) as file:
        file["x"] = array
    assert_rows(run_reader(dalify, "readers.hdf5", 1, COUNT, paths=[str(path)], datasets=["x"])[1][0][0], array)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_rows_are_what_zarr_reads(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    names = []
    for number, dtype in enumerate(TYPES):
        for shape, rows in zip(SHAPES, (4, 1, 17, 3, 5), strict=True):
            if 0 in shape:
                continue
            name = f"{number}/{len(names)}"
            array = _array(dtype, shape)
            group.create_array(name, data=array, chunks=(rows, *shape))
            names.append(name)
    if version == 3:
        group.create_array("sharded", data=_array("<f4", (4, 4)), chunks=(2, 2, 4), shards=(4, 4, 4))
        names.append("sharded")
    _, batches, _ = run_reader(dalify, "readers.zarr", 2, COUNT, 4, paths=[str(path)], arrays=names)
    for outputs in batches:
        for name, found in zip(names, outputs, strict=True):
            assert_rows(found, np.asarray(group[name][:]))


def test_zarr_stores_of_other_kinds(tmp_path: Path) -> None:
    array = _array("<f4", (3,))
    zarr.save_array(str(tmp_path / "one.zarr"), array)
    found = run_reader(dalify, "readers.zarr", 1, COUNT, paths=[str(tmp_path / "one.zarr")], arrays=[""])[1]
    assert_rows(found[0][0], array)
    store = zarr.storage.ZipStore(str(tmp_path / "a.zip"), mode="w")
    zarr.open_group(store, mode="w").create_array("x", data=array)
    store.close()
    assert_rows(
        run_reader(dalify, "readers.zarr", 1, COUNT, paths=[str(tmp_path / "a.zip")], arrays=["x"])[1][0][0], array
    )
    zarr.open_group("memory://a/b.zarr", mode="w").create_array("x", data=array, chunks=(4, 3))
    for _ in range(2):
        found = run_reader(dalify, "readers.zarr", 1, COUNT, paths=["memory://a/b.zarr"], arrays=["x"])[1]
        assert_rows(found[0][0], array)


def test_chunks_are_read_once_in_a_shuffled_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.repeat(np.arange(3000, dtype=np.int64)[:, None], 4, axis=1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(100, 4), compression="gzip")
        file.create_dataset("label", data=array[:, 0] % 3, chunks=(1000,))
    reads: list[tuple[int, int]] = []
    original = dalify.formats.arrays.hdf5_file.Hdf5File.read

    def counted(self: Any, array: int, start: int, stop: int, *out: Any) -> Any:
        reads.append((array, start))
        return original(self, array, start, stop, *out)

    monkeypatch.setattr(dalify.formats.arrays.hdf5_file.Hdf5File, "read", counted)
    options = {"random_shuffle": True, "initial_fill": 500, "cache_bytes": 80_000}
    _, batches, _ = run_reader(
        dalify, "readers.hdf5", 30, 100, 3, paths=[str(tmp_path / "a.h5")], datasets=["x", "label"], **options
    )
    seen = [int(sample[3]) for outputs in batches for sample in outputs[0]]
    assert sorted(seen) == array[:, 0].tolist()
    assert [int(sample) for outputs in batches for sample in outputs[1]] == [number % 3 for number in seen]
    assert sum(which == 0 for which, _ in reads) == 30
    assert len({number // 100 for number in seen[:500]}) == 5


def test_samplers_know_labels_and_files(tmp_path: Path) -> None:
    for number, count in enumerate((9, 3)):
        label = np.array([0] + [1] * (count - 1), np.uint8)
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["x"], file["label"] = np.full(count, number), label
        group = zarr.open_group(str(tmp_path / f"{number}.zarr"), mode="w")
        group.create_array("x", data=np.full(count, number))
        group.create_array("label", data=label)
    for kind, given, end in (("hdf5", "datasets", "h5"), ("zarr", "arrays", "zarr")):
        paths = [str(tmp_path / f"{number}.{end}") for number in range(2)]
        for sampler, column, ones in ((samplers.ClassBalanced(), "label", 6), (samplers.Mixture(by="source"), "x", 3)):
            options: dict[str, Any] = {"paths": paths, given: [column], "sampler": sampler}
            seen = [int(sample) for sample in run_reader(dalify, f"readers.{kind}", 1, 12, **options)[1][0][0]]
            assert seen.count(1) == ones


# -- bad data


def reading(reader: str, path: Path, *names: str, **options: Any) -> dalify.Pipeline:
    pipe = dalify.Pipeline(batch_size=2, num_threads=2, device_id=None, seed=1)
    with pipe:
        options["datasets" if reader == "hdf5" else "arrays"] = list(names)
        found = getattr(fn.readers, reader)(paths=[str(path)], name="Reader", **options)
        pipe.set_outputs(*(found if isinstance(found, list) else [found]))
    return pipe


def test_bad_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros((5, 3))
        file["group/y"] = np.zeros(4)
        file["alone"] = 3
        file["complex"] = np.zeros(5, np.complex64)
        file["compound"] = np.zeros(5, [("a", "i4"), ("b", "f4")])
        file["texts"] = [["a", "b"], ["c", "d"]]
    for name in ("none.h5", "text.h5", "cut.h5"):
        bad = tmp_path / name
        if name == "text.h5":
            bad.write_bytes(b"no HDF5 at all" * 100)
        if name == "cut.h5":
            bad.write_bytes(path.read_bytes()[:700])
        with pytest.raises(ReaderError, match=name):
            reading("hdf5", bad, "x").build()
    with pytest.raises(ArgumentValueError, match=r"no dataset 'grou/y'\. Did you mean 'group/y'\?"):
        reading("hdf5", path, "grou/y").build()
    with pytest.raises(ArgumentValueError, match="no dataset 'group'"):
        reading("hdf5", path, "group").build()
    with pytest.raises(ReaderError, match="'group/y' has 4 rows and 'x' has 5"):
        reading("hdf5", path, "x", "group/y").build()
    with pytest.raises(ReaderError, match=r"'alone' .* scalar"):
        reading("hdf5", path, "alone").build()
    for name in ("complex", "compound", "texts"):
        with pytest.raises(DTypeError, match=name):
            reading("hdf5", path, name).build()
    with pytest.raises(ArgumentValueError, match="datasets must not be empty"):
        reading("hdf5", path)
    with pytest.raises(ArgumentValueError, match="cache_bytes"):
        reading("hdf5", path, "x", cache_bytes=0).build()


def test_hdf5_that_becomes_shorter(tmp_path: Path) -> None:
    """Rows that still exist are read; the others fail their batch."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(4000.0)
    pipe = reading("hdf5", path, "x")
    pipe.build()
    contents = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(len(contents) - 16_000)
    for _ in range(990):
        pipe.run()
    with pytest.raises(ReaderError, match=r"a\.h5"):
        _run_to_the_end(pipe)


def _run_to_the_end(pipe: dalify.Pipeline) -> None:
    for _ in range(1000):
        pipe.run()


@pytest.mark.parametrize("version", [2, 3])
def test_damaged_arrays_of_a_zarr_store(version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Others can be read, and asyncio logs no errors of tasks."""
    path = tmp_path / "a.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    for name in ("x", "y", "z"):
        group.create_array(name, data=np.arange(COUNT))
        if name != "x":
            (path / name / ("zarr.json" if version == 3 else ".zarray")).write_bytes(b"\xff")
    found = run_reader(dalify, "readers.zarr", 1, COUNT, paths=[str(path)], arrays=["x"])[1]
    np.testing.assert_array_equal(found[0][0], np.arange(COUNT))
    for name in ("y", "z"):
        with pytest.raises(ReaderError, match=r"a\.zarr' cannot be read or is not a valid Zarr file"):
            reading("zarr", path, name).build()
    gc.collect()
    assert not caplog.records


def test_bad_zarr(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    group = zarr.open_group(str(path), mode="w")
    group.create_array("x", data=np.arange(12.0).reshape(6, 2), chunks=(2, 2))
    group.create_array("g/y", data=np.zeros(4))
    group.create_array("complex", data=np.zeros(6, np.complex64))
    with pytest.raises(ReaderError, match=r"none\.zarr"):
        reading("zarr", tmp_path / "none.zarr", "x").build()
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(ReaderError, match=r"empty\.zarr"):
        reading("zarr", tmp_path / "empty.zarr", "x").build()
    with pytest.raises(ArgumentValueError, match=r"no array 'g/z'\. Did you mean 'g/y'\?"):
        reading("zarr", path, "g/z").build()
    with pytest.raises(ReaderError, match="'g/y' has 4 rows and 'x' has 6"):
        reading("zarr", path, "x", "g/y").build()
    with pytest.raises(DTypeError, match="complex"):
        reading("zarr", path, "complex").build()
    with pytest.raises(ArgumentValueError, match="arrays must not be empty"):
        reading("zarr", path)
    pipe = reading("zarr", path, "x")
    pipe.build()
    (path / "x" / "c" / "1" / "0").write_bytes(b"damaged")
    assert pipe.run()[0].as_array().tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ReaderError, match=r"a\.zarr"):
        pipe.run()
    assert pipe.run()[0].as_array().tolist() == [[8, 9], [10, 11]]


@pytest.mark.parametrize("cache_bytes", [1, 1 << 20])
@pytest.mark.parametrize("dtype", ["<i4", ">i4", "?"])
@pytest.mark.parametrize("chunk_rows", [None, 1, 3])
@pytest.mark.parametrize("kind", [Hdf5File, ZarrStore])
def test_rows_read_together_equal_rows_read_separately(
    tmp_path: Path, kind: Any, chunk_rows: int | None, dtype: str, cache_bytes: int
) -> None:
    everything = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 1000, (20, 4, 2)).astype(dtype)
    for number, values in enumerate((everything[:10], everything[10:])):
        chunks = None if chunk_rows is None else (chunk_rows, 4, 2)
        if kind is Hdf5File:
            with h5py.File(tmp_path / str(number), "w") as file:
                file.create_dataset("x", data=values, chunks=chunks)
                file["label"] = np.arange(10)
        else:
            group = zarr.open_group(str(tmp_path / str(number)), mode="w")
            group.create_array("x", data=values, chunks=chunks or "auto")
            group.create_array("label", data=np.arange(10))
    names = ["x", "label"]
    rows = ArrayRows([kind(str(tmp_path / str(number)), names) for number in range(2)], names, cache_bytes)
    assert rows.read_many(np.array([9, 10])) is None  # of two files
    for numbers in (
        [3, 4, 5, 6, 7, 8],
        [0, 1, 2, 9, 8, 7],
        [12, 19, 12, 10, 14],
        [11, 10, 12],
        [19],
        [3, 5, 4],
        [*range(10)],
    ):
        together = rows.read_many(np.array(numbers))
        assert together is not None
        assert_rows([*together[0]], everything[numbers])
        assert together[1].tolist() == [number % 10 for number in numbers]
        for column, expected in zip(together, zip(*(rows[n].read() for n in numbers), strict=True), strict=True):
            np.testing.assert_array_equal(column, expected)


def test_consumers_may_change_rows_that_were_read_together(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(4 * 1000).reshape(4, 1000)
    pipe = dalify.Pipeline(batch_size=4, num_threads=1, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(fn.readers.hdf5(paths=[str(tmp_path / "a.h5")], datasets=["x"]))
    for _ in range(3):
        found = pipe.run()[0].as_array()
        np.testing.assert_array_equal(found, np.arange(4 * 1000).reshape(4, 1000))
        found[...] = -1
    pipe.close()
