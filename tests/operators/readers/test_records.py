"""readers.mxnet, caffe and caffe2 compared with DALI, and with damaged records."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalify
from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.formats.records.caffe2_tensors import tensors_of
from dalify.formats.records.protobuf import fields
from dalify.tools import rec2idx
from tests.helpers.containers import caffe2_record as record
from tests.helpers.containers import caffe2_tensor as tensor
from tests.helpers.containers import caffe_datum, field, write_lmdb, write_recordio
from tests.operators.readers.datasets import run_reader

MARK = (0xCED7230A).to_bytes(4, "little")


def read(package: Any, name: str, count: int, **options: Any) -> list[list[Any]]:
    _, (outputs,), meta = run_reader(package, f"readers.{name}", 1, count, **options)
    return [meta["epoch_size"], *([(item.dtype.str, item.tolist()) for item in output] for output in outputs)]


# -- mxnet -------------------------------------------------------------------------------------------------------------


def test_records_of_all_kinds(oracle: ModuleType, tmp_path: Path):
    """One label, several, records that are cut at the mark, and empty ones."""
    items = [
        (b"hello", 3.0),
        (b"multi", [1.0, 2.0, 5.0]),
        (b"abcd" * 3 + MARK + b"zz", 4.0),
        (MARK * 3, 4.0),
        (b"a" + MARK, 1.5),
        (b"", 0.0),
    ]
    write_recordio(tmp_path / "a.rec", tmp_path / "a.idx", items)  # pyright: ignore[reportArgumentType]
    options = {"path": [str(tmp_path / "a.rec")], "index_path": [str(tmp_path / "a.idx")]}
    ours = read(dalify, "mxnet", 6, **options)
    assert ours == read(oracle, "mxnet", 6, **options)
    assert [bytes(values) for _, values in ours[1]] == [image for image, _ in items]


def test_indices_in_any_order_and_of_several_files(oracle: ModuleType, tmp_path: Path, capsys: Any):
    first, second = tmp_path / "a.rec", tmp_path / "b.rec"
    write_recordio(first, tmp_path / "a.idx", [(b"hello", 3.0), (b"multi", [1.0, 2.0]), (b"third", 4.0)])
    write_recordio(second, tmp_path / "b.idx", [(b"xx", 8.0), (b"yyy", 9.0)])
    lines = (tmp_path / "a.idx").read_text().splitlines()
    assert rec2idx.main([str(first), str(tmp_path / "own.idx")]) == 0
    assert (tmp_path / "own.idx").read_text().splitlines() == lines
    size = first.stat().st_size
    moved = [f"9{line.split()[0]}\t{int(line.split()[1]) + size}" for line in
             (tmp_path / "b.idx").read_text().splitlines()]  # fmt: skip
    (tmp_path / "all.idx").write_text("\n".join([*moved, lines[2], lines[0], lines[1]]) + "\n")
    options = {"path": [str(first), str(second)], "index_path": [str(tmp_path / "all.idx")]}
    ours = read(dalify, "mxnet", 5, **options)
    assert ours == read(oracle, "mxnet", 5, **options)
    assert ours == read(dalify, "mxnet", 5, path=options["path"], index_path=[str(tmp_path / "a.idx"), str(tmp_path / "b.idx")])  # fmt: skip # noqa: E501


def test_repeated_lines_of_an_index(oracle: ModuleType, tmp_path: Path):
    """A record is read once, whatever the keys of its lines."""
    index = tmp_path / "a.idx"
    write_recordio(tmp_path / "a.rec", index, [(b"hello", 3.0), (b"multi", 1.0), (b"third", 4.0)])
    lines = index.read_text().splitlines()
    index.write_text("\n".join([*lines, lines[1], lines[0], "9 " + lines[2].split()[1]]) + "\n")
    options = {"path": [str(tmp_path / "a.rec")], "index_path": [str(index)]}
    ours = read(dalify, "mxnet", 3, **options)
    assert ours == read(oracle, "mxnet", 3, **options)
    assert [bytes(values) for _, values in ours[1]] == [b"hello", b"multi", b"third"]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("", "is empty|is not a valid RecordIO index"),
        ("abc\n", "is not a valid RecordIO index"),
        ("0\t4\n", "the RecordIO magic number is missing"),
        ("0\t4000\n", "beyond the end of the data"),
    ],
)
def test_damaged_recordio_indices(tmp_path: Path, index: str, message: str):
    write_recordio(tmp_path / "a.rec", tmp_path / "a.idx", [(b"hello", 3.0)])
    (tmp_path / "a.idx").write_text(index)
    with pytest.raises(ReaderError, match=message):
        read(dalify, "mxnet", 1, path=str(tmp_path / "a.rec"), index_path=str(tmp_path / "a.idx"))


def test_a_truncated_recordio_index_is_a_warning(oracle: ModuleType, tmp_path: Path):
    """Of one file, and of several, of which the last ones are not in the index."""
    files = [tmp_path / "a.rec", tmp_path / "b.rec"]
    for file in files:
        write_recordio(file, file.with_suffix(".idx"), [(b"hello", 3.0), (b"multi", 1.0), (b"third", 4.0)])
    index = files[0].with_suffix(".idx")
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(lines[:2]))
    for paths, ends in ((files[:1], [80]), (files, [80, 0])):
        options = {"path": list(map(str, paths)), "index_path": [str(index)]}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours = read(dalify, "mxnet", 2, **options)
        assert ours == read(oracle, "mxnet", 2, **options)
        for warning, path, end in zip(caught, paths, ends, strict=True):
            assert f"a.idx' ends at byte {end} of {str(path)!r}, which has 120 bytes" in str(warning.message)


def test_damaged_recordio(tmp_path: Path, capsys: Any):
    write_recordio(tmp_path / "a.rec", tmp_path / "a.idx", [(b"hello" * 3, [3.0, 4.0])])
    good = (tmp_path / "a.rec").read_bytes()
    options = {"path": str(tmp_path / "a.rec"), "index_path": str(tmp_path / "a.idx")}
    for place in range(0, 12):
        for change in (1, 128):
            damaged = bytearray(good)
            damaged[place] ^= change
            (tmp_path / "a.rec").write_bytes(damaged)
            try:
                read(dalify, "mxnet", 1, **options)
            except ReaderError:
                continue
    (tmp_path / "a.rec").write_bytes(good[:20])
    with pytest.raises(ReaderError, match="damaged"):
        read(dalify, "mxnet", 1, **options)
    assert rec2idx.main([options["path"], str(tmp_path / "b.idx")]) == 1
    with pytest.raises(ArgumentValueError, match="one path, or one path for each"):
        read(dalify, "mxnet", 1, path=options["path"], index_path=["a", "b"])
    with pytest.raises(ReaderError, match="cannot read the RecordIO file"):
        read(dalify, "mxnet", 1, path=str(tmp_path / "none"), index_path=options["index_path"])


# -- caffe -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lmdb_package() -> Any:
    return pytest.importorskip("lmdb", reason="the extra dalify[lmdb]")


@pytest.mark.parametrize("options", [{}, {"image_available": False}, {"label_available": False}], ids=str)
def test_caffe(oracle: ModuleType, lmdb_package: Any, tmp_path: Path, options: dict[str, Any]):
    values = [
        caffe_datum(b"abc", 3, encoded=True),
        caffe_datum(b"", -4),
        caffe_datum(b"no label"),
        caffe_datum(bytes(24), 7, shape=(2, 3, 4)),
    ]
    write_lmdb(tmp_path / "a", values)
    write_lmdb(tmp_path / "b", [caffe_datum(b"second", 9)])
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert read(dalify, "caffe", 5, path=paths, **options) == read(oracle, "caffe", 5, path=paths, **options)


def test_caffe_mistakes(lmdb_package: Any, tmp_path: Path):
    write_lmdb(tmp_path / "damaged", [b"\xff\xff\xff\xff"])
    write_lmdb(tmp_path / "none", [])
    with pytest.raises(ReaderError, match="message is damaged"):
        read(dalify, "caffe", 1, path=str(tmp_path / "damaged"))
    with pytest.raises(ReaderError, match=r"nothing to read in path='.*none'"):
        read(dalify, "caffe", 1, path=str(tmp_path / "none"))
    with pytest.raises(ReaderError, match="cannot open the LMDB database"):
        read(dalify, "caffe", 1, path=str(tmp_path / "absent"))
    assert not (tmp_path / "absent").exists()
    with pytest.raises(ArgumentValueError, match="must not both be False"):
        read(dalify, "caffe", 1, path=str(tmp_path / "none"), image_available=False, label_available=False)
    with pytest.raises(NotImplementedError, match="at least one of image, label, box"):  # DALI's
        read(dalify, "caffe2", 1, path=str(tmp_path / "none"), image_available=False, label_type=4)


# -- caffe2 ------------------------------------------------------------------------------------------------------------

PIXELS = field(1, 4) + field(1, 5) + field(1, 3) + field(2, 3) + field(5, bytes(range(60)))
GRAY = field(1, 4) + field(1, 5) + field(2, 3) + field(5, bytes(20))
IMAGE = tensor(b"encoded")


@pytest.mark.parametrize(
    ("records", "options"),
    [
        ([record(IMAGE, tensor([3])), record(tensor(b""), tensor([-5]))], {}),
        ([record(PIXELS, tensor([1]))], {}),
        ([record(GRAY, tensor([1]))], {}),
        ([record(IMAGE, field(1, 1) + field(2, 2) + field(4, 3))], {}),
        ([record(IMAGE, tensor([4.5]))], {}),
        ([record(IMAGE, tensor([0.5, 0.25])), record(IMAGE, tensor([1.0, 0.0]))], {"label_type": 2, "num_labels": 2}),
        ([record(IMAGE, tensor([4, 5]))], {"label_type": 2}),
        ([record(IMAGE)], {"label_type": 4}),
        ([record(IMAGE, tensor([3]), tensor([1, 2, 3, 4]))], {"bbox": True}),
        ([record(IMAGE, tensor([3]), tensor([1.0, 2.0, 3.0]), tensor([7, 8]))], {"additional_inputs": 2}),
        ([record(IMAGE, tensor([3]), tensor([1.0] * 4, (2, 2)))], {"additional_inputs": 1}),
        ([record(IMAGE, tensor([1.0]), tensor([7, 8, 9, 1]))], {"additional_inputs": 1, "bbox": True, "label_type": 4}),
        ([record(tensor([3]))], {"image_available": False}),
    ],
    ids=range(13),
)
def test_caffe2(oracle: ModuleType, lmdb_package: Any, tmp_path: Path, records: list[bytes], options: dict[str, Any]):
    write_lmdb(tmp_path / "a", records)
    arguments = {"path": str(tmp_path / "a"), **options}
    assert read(dalify, "caffe2", len(records), **arguments) == read(oracle, "caffe2", len(records), **arguments)


def test_sparse_labels(lmdb_package: Any, tmp_path: Path):
    """DALI fails on these two kinds of labels."""
    write_lmdb(tmp_path / "a", [record(IMAGE, tensor([3, 1]), tensor([0.5, 0.25]))])
    arguments = {"path": str(tmp_path / "a"), "num_labels": 5}
    assert read(dalify, "caffe2", 1, label_type=1, **arguments)[2] == [("<i4", [0, 1, 0, 1, 0])]
    assert read(dalify, "caffe2", 1, label_type=3, **arguments)[2] == [("<f4", [0, 0.25, 0, 0.5, 0])]
    with pytest.raises(ReaderError, match="must be between 0 and 2"):
        read(dalify, "caffe2", 1, label_type=1, path=arguments["path"], num_labels=3)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (record(IMAGE), {}, "has 1 tensors; expected at least 2"),
        (record(IMAGE, tensor([4, 5])), {}, "has 2 labels"),
        (record(IMAGE, field(1, 1) + field(2, 10) + field(10, b"\3")), {}, "must be FLOAT"),
        (record(tensor([1]), tensor([1])), {}, "must be BYTE"),
        (record(PIXELS[:-10], tensor([1])), {}, "damaged"),
        (record(field(1, 9) + PIXELS, tensor([1])), {}, "does not match its"),
        (record(IMAGE, tensor([3]), tensor(b"text")), {"additional_inputs": 1}, "must be FLOAT"),
        (record(IMAGE, tensor([3]), tensor([1.0] * 4)), {"bbox": True}, "four integers"),
        (record(IMAGE, tensor([0.5])), {"label_type": 1, "num_labels": 3}, "must be integers"),
        (record(IMAGE, tensor([1]), tensor([0.5, 1.5])), {"label_type": 3, "num_labels": 3}, "2 weights for 1"),
        (b"\xff\xff", {}, "damaged"),
    ],
)
def test_caffe2_damaged(lmdb_package: Any, tmp_path: Path, data: bytes, options: dict[str, Any], message: str):
    write_lmdb(tmp_path / "a", [data])
    with pytest.raises(ReaderError, match=message):
        read(dalify, "caffe2", 1, path=str(tmp_path / "a"), **options)


@pytest.mark.parametrize(
    "options",
    [{"label_type": 9}, {"additional_inputs": -1}, {"label_type": 4, "image_available": False},
     {"label_type": 1, "num_labels": 0}],
)  # fmt: skip
def test_caffe2_arguments(options: dict[str, Any]):
    with pytest.raises(ArgumentValueError):
        read(dalify, "caffe2", 1, path="/nowhere", **options)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_message_or_an_error(data: bytes):
    array = np.frombuffer(data, np.uint8)
    try:
        found = list(fields(array))
        tensors_of(array)
    except ReaderError:
        return
    assert all(item.stop <= len(data) for item in found)
