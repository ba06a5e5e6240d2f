"""readers.arrow and readers.parquet compared with pyarrow's ``to_pylist``, of every type, and with bad data."""

from __future__ import annotations

import contextlib
import pickle
import struct
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn, samplers
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ReaderError
from dalify.formats.files.block_cache import BlockCache
from tests.operators.readers.datasets import run_reader

pa = pytest.importorskip("pyarrow", reason="the extra dalify[arrow]")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

COUNT = 23
_RANDOM = np.random.default_rng(4)


def _values() -> dict[str, Any]:
    """Return a column of each type, by name."""
    numbers = list(range(COUNT))
    strings = [f"row {n}" * (n % 3) for n in numbers]
    columns: dict[str, Any] = {
        str(kind): pa.array(numbers, kind)
        for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
    }
    columns |= {
        "half": pa.array(np.array(numbers, np.float16)),
        "float": pa.array([n / 3 for n in numbers], pa.float32()),
        "double": pa.array([n / 3 for n in numbers]),
        "bool": pa.array([n % 3 == 0 for n in numbers]),
        "binary": pa.array([text.encode() for text in strings]),
        "large_binary": pa.array([text.encode() for text in strings], pa.large_binary()),
        "fixed_binary": pa.array([bytes([n, n + 1]) for n in numbers], pa.binary(2)),
        "string": pa.array(strings),
        "large_string": pa.array(strings, pa.large_string()),
        "string_view": pa.array(strings, pa.string_view()),
        "category": pa.array(strings).dictionary_encode(),
        "list": pa.array([list(range(n % 4)) for n in numbers], pa.list_(pa.int16())),
        "large_list": pa.array([[n / 2] * (n % 3) for n in numbers], pa.large_list(pa.float32())),
        "list of bool": pa.array([[bool(n % 2)] * (n % 3) for n in numbers]),
        "boxes": pa.array([[[n, k, 1, 2] for k in range(n % 3 + 1)] for n in numbers], pa.list_(pa.list_(pa.int32()))),
        "fixed boxes": pa.array(
            [[[n, k] for k in range(n % 3 + 1)] for n in numbers], pa.list_(pa.list_(pa.float32(), 2))
        ),
        "fixed_list": pa.array([[n, n + 1, n + 2] for n in numbers], pa.list_(pa.int64(), 3)),
        "matrix": pa.array([[[n, 1], [2, 3], [4, 5]] for n in numbers], pa.list_(pa.list_(pa.int8(), 2), 3)),
        "struct": pa.array([{"bytes": bytes([n]) * 3, "path": None} for n in numbers]),
    }
    return columns


COLUMNS = _values()
TABLE = pa.table(COLUMNS)


def expected(value: Any) -> np.ndarray:
    if isinstance(value, dict):
        value = value["bytes"]
    if isinstance(value, str):
        value = value.encode()
    return np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.array(value)


def assert_rows(found: list[np.ndarray], name: str) -> None:
    for value, array in zip(TABLE.column(name).to_pylist(), found, strict=True):
        wanted = expected(value)
        assert array.size == wanted.size
        np.testing.assert_array_equal(array.reshape(wanted.shape), wanted)
        assert array.flags.writeable


def _written(folder: Path, kind: str) -> Any:
    """Write the table, with a slice that starts inside its buffers, and return the source."""
    if kind == "table":
        return pa.concat_tables([TABLE.slice(0, 5), TABLE.slice(5, 9), TABLE.slice(14)])
    path = folder / f"data.{kind}"
    plain = TABLE.drop_columns(["string_view"]) if kind == "parquet" else TABLE
    if kind == "parquet":
        pq.write_table(plain, path, row_group_size=6)
    elif kind.startswith("feather"):
        feather.write_feather(plain, str(path), compression="zstd" if "packed" in kind else None, chunksize=7)
    else:
        with pa.ipc.new_stream(path, TABLE.schema) as file:
            file.write_table(TABLE, max_chunksize=6)
    return str(path)


@pytest.mark.parametrize("kind", ["table", "parquet", "feather", "feather packed", "stream"])
def test_every_type_is_what_pyarrow_says(tmp_path: Path, kind: str) -> None:
    source = _written(tmp_path, kind)
    names = [name for name in COLUMNS if kind != "parquet" or name != "string_view"]
    _, batches, _ = run_reader(dalify, "readers.arrow", 1, COUNT, source=source, columns=names)
    for name, samples in zip(names, batches[0], strict=True):
        assert_rows(samples, name)
        kinds = {sample.dtype for sample in samples}
        assert len(kinds) == 1
        assert len({sample.ndim for sample in samples}) == 1


def test_types_and_dimensions(tmp_path: Path) -> None:
    names = ["int16", "half", "bool", "boxes", "matrix", "string"]
    _, batches, _ = run_reader(dalify, "readers.arrow", 1, COUNT, source=TABLE, columns=names)
    found = [(samples[1].dtype.name, samples[1].shape) for samples in batches[0]]
    assert found == [
        ("int16", ()),
        ("float16", ()),
        ("bool", ()),
        ("int32", (2, 4)),
        ("int8", (3, 2)),
        ("uint8", (5,)),
    ]


def test_tensors_have_their_shape(tmp_path: Path) -> None:
    values = _RANDOM.normal(size=(5, 2, 3)).astype(np.float32)
    table = pa.table({"tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(values)})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, str(tmp_path / "a.parquet")):
        _, batches, _ = run_reader(dalify, "readers.arrow", 1, 5, source=source, columns=["tensor"])
        np.testing.assert_array_equal(np.stack(batches[0][0]), values)


def test_files_named_by_rows(tmp_path: Path) -> None:
    """Images of a local folder have a path and no bytes; a relative one begins at the folder of the file."""
    (tmp_path / "a.jpg").write_bytes(b"abc")
    rows = [{"bytes": b"xy", "path": "b.jpg"}, {"bytes": None, "path": "a.jpg"}]
    rows.append({"bytes": None, "path": str(tmp_path / "a.jpg")})
    pq.write_table(pa.table({"image": rows}), tmp_path / "a.parquet")
    found = run_reader(dalify, "readers.parquet", 1, 3, paths=[str(tmp_path / "a.parquet")], columns=["image"])[1]
    assert [sample.tobytes() for sample in found[0][0]] == [b"xy", b"abc", b"abc"]


# -- orders


def test_row_groups_are_decoded_once_in_a_shuffled_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The window of a shuffle fits into the cache, for any batches and threads."""
    table = pa.table({"number": list(range(30_000)), "weight": _RANDOM.normal(size=30_000)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1000)
    loads: list[int] = []
    original = dalify.formats.tables.arrow_tables.ParquetSource.load
    monkeypatch.setattr(
        dalify.formats.tables.arrow_tables.ParquetSource,
        "load",
        lambda self, block: loads.append(block) or original(self, block),
    )
    options: dict[str, Any] = {"paths": [str(tmp_path / "a.parquet")], "columns": ["number"]}
    # The cache holds about 12 of 30 row groups of 8000 bytes; a window has five.
    options |= {"random_shuffle": True, "initial_fill": 5000, "cache_bytes": 100_000}
    _, batches, _ = run_reader(dalify, "readers.parquet", 60, 500, 3, **options)
    seen = [int(sample) for outputs in batches for sample in outputs[0]]
    assert sorted(seen) == list(range(30_000))
    assert sorted(loads) == list(range(30))
    for start in range(0, 30_000, 5000):
        assert len({number // 1000 for number in seen[start : start + 5000]}) == 5
    assert len({number // 1000 for number in seen[:100]}) == 5


def test_rows_that_can_be_read_alone_are_shuffled_exactly() -> None:
    table = pa.table({"number": list(range(5000))})
    options = {"source": table, "columns": ["number"], "random_shuffle": True, "initial_fill": 10}
    seen = [int(sample) for sample in run_reader(dalify, "readers.arrow", 1, 5000, **options)[1][0][0]]
    assert sorted(seen) == list(range(5000))
    assert np.abs(np.corrcoef(seen, np.arange(5000))[0, 1]) < 0.1


def test_samplers_know_labels_and_files(tmp_path: Path) -> None:
    for number, count in enumerate((9, 3)):
        table = pa.table({"x": [number] * count, "label": [0] + [1] * (count - 1)})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=2)
    paths = [str(tmp_path / "0.parquet"), str(tmp_path / "1.parquet")]
    for sampler, column in ((samplers.ClassBalanced(), "label"), (samplers.Mixture(by="source", weights=None), "x")):
        options = {"paths": paths, "columns": [column], "sampler": sampler}
        seen = [int(sample) for sample in run_reader(dalify, "readers.parquet", 1, 12, **options)[1][0][0]]
        assert seen.count(1) == (6 if column == "label" else 3)


# -- datasets of Hugging Face


def test_a_dataset_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["a", "b"]),
            "map": datasets.Array2D((2, 3), "float32"),
        }
    )
    rows = [
        {"image": {"bytes": bytes([n]) * (n + 1), "path": None}, "label": n % 2, "map": np.full((2, 3), n, np.float32)}
        for n in range(12)
    ]
    dataset = datasets.Dataset.from_list(rows, features=features)
    columns = ["image", "label", "map"]
    for chosen, numbers in (
        (dataset, list(range(12))),
        (dataset.select([7, 1, 1, 4]), [7, 1, 1, 4]),
        (dataset.select(range(3, 9)), list(range(3, 9))),
        (dataset.filter(lambda label: label == 1, input_columns=["label"]), [1, 3, 5, 7, 9, 11]),
    ):
        _, batches, _ = run_reader(dalify, "readers.arrow", 1, len(numbers), source=chosen, columns=columns)
        images, labels, maps = batches[0]
        assert [sample.tobytes() for sample in images] == [bytes([n]) * (n + 1) for n in numbers]
        assert [int(sample) for sample in labels] == [n % 2 for n in numbers]
        np.testing.assert_array_equal(np.stack(maps)[:, 1, 2], numbers)
    shuffled = dataset.shuffle(seed=3)
    _, batches, _ = run_reader(dalify, "readers.arrow", 1, 12, source=shuffled, columns=["label"])
    assert [int(sample) for sample in batches[0][0]] == shuffled["label"][:]
    index = dalify.registry.catalog.find("readers.arrow").index_function(shuffled, ["label"], 1 << 20, False, False)
    assert index.labels.tolist() == shuffled["label"][:]
    assert [int(row.read()[0]) for row in pickle.loads(pickle.dumps(index))] == shuffled["label"][:]
    with pytest.raises(ArgumentValueError, match="transform"):
        reading(source=dataset.with_transform(lambda row: row)).build()
    with pytest.raises(ArgumentTypeError, match="Select one of its splits: source\\['train'\\]"):
        reading(source=datasets.DatasetDict({"train": dataset})).build()
    with pytest.raises(ArgumentTypeError, match=r"fn\.external_source"):
        reading(source=dataset.to_iterable_dataset()).build()


def test_what_is_known_of_such_a_dataset_suffices() -> None:
    """The package itself is not needed."""
    chosen = pa.table({"indices": pa.array([4, 2, 2], pa.uint64())})
    dataset = SimpleNamespace(data=SimpleNamespace(table=TABLE), features={}, _indices=chosen, format={"type": None})
    _, batches, _ = run_reader(dalify, "readers.arrow", 1, 3, source=dataset, columns=["int16"])
    assert [int(sample) for sample in batches[0][0]] == [4, 2, 2]


# -- bad data


def reading(reader: str = "arrow", columns: Any = ("label",), **options: Any) -> dalify.Pipeline:
    pipe = dalify.Pipeline(batch_size=2, num_threads=2, device_id=None, seed=1)
    with pipe:
        found = getattr(fn.readers, reader)(columns=list(columns), name="Reader", **options)
        pipe.set_outputs(*(found if isinstance(found, list) else [found]))
    return pipe


def test_bad_files(tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    pq.write_table(pa.table({"label": list(range(1000)), "day": pa.array([1] * 1000, pa.date32())}), good)
    arrow_file = tmp_path / "good.arrow"
    feather.write_feather(pa.table({"label": list(range(1000))}), str(arrow_file), compression="uncompressed")
    for name, contents in (
        ("empty", b""),
        ("text", b"this is no table at all"),
        ("cut.parquet", good.read_bytes()[:-20]),
        ("cut.arrow", arrow_file.read_bytes()[:-20]),
        ("magic", b"PAR1"),
    ):
        (tmp_path / name).write_bytes(contents)
        with pytest.raises(ReaderError, match=name):
            reading(source=str(tmp_path / name)).build()
        with pytest.raises(ReaderError, match=name):
            reading("parquet", paths=[str(tmp_path / name)]).build()
    with pytest.raises(ReaderError, match="No such file"):
        reading("parquet", paths=[str(tmp_path / "none.parquet")]).build()
    with pytest.raises(ReaderError, match="is a folder"):
        reading(source=str(tmp_path)).build()
    with pytest.raises(ReaderError, match=r"use fn\.readers\.arrow"):
        reading("parquet", paths=[str(arrow_file)]).build()
    with pytest.raises(ArgumentValueError, match=r"Did you mean 'label'\?"):
        reading("parquet", columns=["label_"], paths=[str(good)]).build()
    with pytest.raises(DTypeError, match=r"'day' of .* has the type date32"):
        reading("parquet", columns=["day"], paths=[str(good)]).build()
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"label": [0.5]}), other)
    with pytest.raises(DTypeError, match=r"int64 in .*good.* and double in .*other"):
        reading("parquet", paths=[str(good), str(other)]).build()
    with pytest.raises(ArgumentTypeError, match="got int"):
        reading(source=3).build()
    with pytest.raises(ReaderError, match="list of paths is empty"):
        reading(source=[]).build()
    with pytest.raises(ArgumentValueError, match="columns must not be empty"):
        reading(columns=[], source=str(good))
    with pytest.raises(ArgumentValueError, match="cache_bytes"):
        reading(source=str(good), cache_bytes=0).build()
    with pytest.raises(ArgumentValueError, match="2 columns 'a'"):
        reading(columns=["a"], source=pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])).build()


def test_arrow_files_cannot_list_a_large_batch_many_times(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, pa.schema({"label": pa.int64()})) as file:
        for count in (1000, 0, 0):
            file.write_batch(pa.record_batch({"label": np.arange(count)}))
    assert len(reading(source=str(path)).run()[0]) == 2
    contents = bytearray(path.read_bytes())
    # The blocks of the footer, at the end of the file: offset, size of the metadata, padding, size of the body.
    blocks = struct.Struct("<qi4xq")
    first = max(
        place
        for place in range(len(contents) - 3 * blocks.size)
        if blocks.unpack_from(contents, place)[2] == 8000 and blocks.unpack_from(contents, place + blocks.size)[2] == 0
    )
    contents[first : first + 3 * blocks.size] = 3 * contents[first : first + blocks.size]
    path.write_bytes(contents)
    with pytest.raises(ReaderError, match=r"a\.arrow.* is not a valid Arrow file"):
        reading(source=str(path)).build()


def test_damaged_row_groups_fail_only_their_batches(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"label": _RANDOM.integers(0, 1 << 40, 400)}), path, row_group_size=100, write_page_checksum=True
    )
    contents = bytearray(path.read_bytes())
    contents[200:260] = b"\xff" * 60
    path.write_bytes(contents)
    pipe = reading("parquet", paths=[str(path)])
    pipe.build()
    with pytest.raises(ReaderError, match=r"a\.parquet"):
        pipe.run()
    for _ in range(49):
        with pytest.raises(ReaderError):
            pipe.run()
    assert len(pipe.run()[0]) == 2


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pa.array([1, None, 3, 4]), "null"),
        (pa.array([True, None, True, True]), "null"),
        (pa.array([b"a", None, b"c", b"d"]), "null"),
        (pa.array([[1], None, [2], [3]]), "null"),
        (pa.array([[1], [1, None], [2], [3]]), "null"),
        (pa.array([[1, 2], [1, None], [2, 2], [3, 3]], pa.list_(pa.int32(), 2)), "null"),
        (pa.array([[[1]], [[1], [2, 3]], [[2]], [[3]]]), "different lengths"),
        (pa.array([{"bytes": b"a"}, None, {"bytes": b"c"}, {"bytes": b"d"}]), "null"),
        (pa.array([{"bytes": b"a"}, {"bytes": None}, {"bytes": b"c"}, {"bytes": b"d"}]), "null"),
    ],
    ids=str,
)
def test_rows_that_are_not_arrays(values: Any, problem: str) -> None:
    """The error names row and column; the next batch comes; another row may take the place."""
    table = pa.table({"good": [1, 2, 3, 4], "bad": values})
    pipe = reading(columns=["good", "bad"], source=table)
    pipe.build()
    with pytest.raises(ReaderError, match=f"the column 'bad' in row 1 of the table: .*{problem}"):
        pipe.run()
    assert pipe.run()[0].as_array().tolist() == [3, 4]
    skipping = reading(columns=["good", "bad"], source=table, on_error="skip")
    skipping.build()
    first = skipping.run()[0].as_array().tolist()
    assert first[0] == 1
    assert first[1] in (1, 3, 4)


def test_nulls_of_float16_are_refused() -> None:
    with pytest.raises(ReaderError, match="row 0"):
        reading(columns=["x"], source=pa.table({"x": pa.array([None, 1.5, 2.5], pa.float16())})).run()


# -- the cache of blocks


def test_a_block_is_loaded_once_by_many_threads() -> None:
    loads: list[int] = []
    barrier = threading.Barrier(8)

    def load(number: int) -> tuple[str, int]:
        loads.append(number)
        return f"block {number}", 10

    cache = BlockCache(load, 1000)

    def ask() -> None:
        barrier.wait()
        for number in range(50):
            assert cache.get(number) == f"block {number}"

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(loads) == list(range(50))


def test_the_least_used_blocks_go_first() -> None:
    loads: list[int] = []
    cache = BlockCache(lambda number: (loads.append(number) or number, 10), 30)
    for number in (0, 1, 2, 0, 3, 0, 1):
        assert cache.get(number) == number
    assert loads == [0, 1, 2, 3, 1]
    huge = BlockCache(lambda number: (loads.append(number) or number, 1000), 30)
    loads.clear()
    for number in (0, 1, 0, 1, 2, 1):
        huge.get(number)
    assert loads == [0, 1, 2]


def test_a_block_that_cannot_be_loaded_is_tried_again() -> None:
    attempts: list[int] = []

    def load(number: int) -> tuple[int, int]:
        attempts.append(number)
        if len(attempts) == 1:
            raise ReaderError("not now.")
        return number, 1

    cache = BlockCache(load, 10)
    with pytest.raises(ReaderError):
        cache.get(4)
    assert cache.get(4) == 4


def test_a_thread_that_waited_for_a_failed_block_does_not_fill_the_cache() -> None:
    loads: list[int] = []
    is_loading, fails = threading.Event(), threading.Event()

    def load(number: int) -> tuple[int, int]:
        loads.append(number)
        if len(loads) == 1:
            is_loading.set()
            fails.wait(10)
            raise ReaderError("not now.")
        return number, 100

    def ask() -> None:
        with contextlib.suppress(ReaderError):
            cache.get(0)

    cache = BlockCache(load, 300)
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
        is_loading.wait(10)
    time.sleep(0.1)  # the others wait for the first thread
    fails.set()
    for thread in threads:
        thread.join()
    for number in (0, 1, 2, 0, 1, 2):
        cache.get(number)
    assert loads.count(1) == loads.count(2) == 1  # three blocks of 100 bytes stay
