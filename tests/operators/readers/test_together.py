"""Readers that read the records of a chunk in one call return the same as one by one, for any records."""

from __future__ import annotations

import functools
import itertools
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn, tfrecord, types
from dalify.base.errors import ReaderError
from dalify.formats.records import webdataset as formats_webdataset
from dalify.registry import catalog
from tests.helpers.containers import (
    caffe2_record,
    caffe2_tensor,
    caffe_datum,
    example,
    write_lmdb,
    write_recordio,
    write_tfrecord,
)
from tests.helpers.photo_pipelines import assert_same_samples, values
from tests.operators.readers.datasets import write_tar

COUNT = 9
READERS = ("file", "coco", "tfrecord", "webdataset", "mxnet", "caffe", "caffe2")
every_reader = pytest.mark.parametrize("reader", READERS)


def _contents(number: int) -> bytes:
    """Return bytes of odd lengths: a few, some thousand, and more than a page of the system."""
    return bytes([number + 1]) * (1 + 700 * number if number % 3 else 20_000 + number)


def _write(reader: str, folder: Path) -> dict[str, Any]:
    """Write a dataset; return the arguments of its reader."""
    if reader == "file":
        for number in range(COUNT):
            (folder / f"{number}.x").write_bytes(_contents(number))
        return {
            "files": [f"{number}.x" for number in range(COUNT)],
            "file_root": str(folder),
            "labels": [*range(COUNT)],
        }
    if reader == "coco":
        for number in range(COUNT):
            (folder / f"{number}.x").write_bytes(_contents(number))
        objects = [(n, k) for n in range(COUNT) for k in range(n % 4)]  # of some images there are none
        found = {
            "images": [{"id": n, "file_name": f"{n}.x", "width": 50, "height": 40} for n in range(COUNT)],
            "categories": [{"id": 3}, {"id": 7}],
            "annotations": [
                {"id": n * 10 + k, "image_id": n, "category_id": (3, 7)[k % 2], "bbox": [n, k, 5 + k, 6], "iscrowd": 0,
                 "area": 30, "segmentation": [[n, k, n + 4, k, n + 4, k + 5]]}
                for n, k in objects
            ],
        }  # fmt: skip
        (folder / "a.json").write_text(json.dumps(found))
        given = {"file_root": str(folder), "annotations_file": str(folder / "a.json")}
        return {**given, "polygon_masks": True, "image_ids": True, "ratio": True}
    if reader == "tfrecord":
        records = [example({"image": _contents(n), "label": [n, -n], "score": [n / 4]}) for n in range(COUNT)]
        write_tfrecord(folder / "a", records, folder / "a.idx")
        features = {
            "image": tfrecord.FixedLenFeature([], tfrecord.string, ""),
            "label": tfrecord.FixedLenFeature([2], tfrecord.int64, 0),
            "score": tfrecord.FixedLenFeature([1], tfrecord.float32, 0.0),
        }
        return {"path": str(folder / "a"), "index_path": str(folder / "a.idx"), "features": features}
    if reader == "webdataset":
        for archive, numbers in (("a.tar", range(5)), ("b.tar", range(5, COUNT))):
            files = [(f"{n}.{end}", data) for n in numbers for end, data in (("jpg", _contents(n)), ("cls", b"%d" % n))]
            write_tar(folder / archive, files)
        return {"paths": [str(folder / "a.tar"), str(folder / "b.tar")], "ext": ["jpg", "cls"]}
    if reader == "mxnet":
        write_recordio(folder / "a", folder / "a.idx", [(_contents(n), float(n)) for n in range(COUNT)])
        return {"path": [str(folder / "a")], "index_path": [str(folder / "a.idx")]}
    pytest.importorskip("lmdb", reason="the extra dalify[lmdb]")
    if reader == "caffe":
        write_lmdb(folder / "lmdb", [caffe_datum(_contents(n), n - 3, encoded=True) for n in range(COUNT)])
    else:
        records = [caffe2_record(caffe2_tensor(_contents(n)), caffe2_tensor([n - 3])) for n in range(COUNT)]
        write_lmdb(folder / "lmdb", records)
    return {"path": str(folder / "lmdb")}


def _pipeline(reader: str, arguments: dict[str, Any], **options: Any) -> dalify.Pipeline:
    pipe = dalify.Pipeline(batch_size=COUNT, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        result: Any = getattr(fn.readers, reader)(**arguments, **options)
        pipe.set_outputs(*(result.values() if isinstance(result, dict) else result))
    pipe.build()
    return pipe


def _samples(pipe: dalify.Pipeline) -> list[list[np.ndarray]]:
    return values(pipe.run())


def _run_often(pipe: dalify.Pipeline) -> None:
    """Run past what was read ahead."""
    for _ in range(4):
        pipe.run()


def _one_by_one(reader: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[list[np.ndarray]]:
    operator = catalog.find(f"readers.{reader}")
    with monkeypatch.context() as patch:
        patch.setattr(operator, "read_many_function", None)
        return _samples(_pipeline(reader, arguments))


def _together(reader: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[list[np.ndarray]]:
    """Run a reader; none of its records may be read by itself."""
    operator = catalog.find(f"readers.{reader}")

    def read(entry: Any, **_: Any) -> Any:
        raise AssertionError("read by itself")

    with monkeypatch.context() as patch:
        patch.setattr(operator.read_function, "function", read)
        return _samples(_pipeline(reader, arguments))


@every_reader
def test_read_together_equals_read_separately(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = _write(reader, tmp_path)
    found = _together(reader, arguments, monkeypatch)
    assert [sample.tobytes() for sample in found[0]] == [_contents(number) for number in range(COUNT)]
    assert_same_samples(found, _one_by_one(reader, arguments, monkeypatch))


def test_several_labels_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [[0.5, 1.5], 2.0, [3.0], [1.0, 2.0, 3.0]]
    write_recordio(tmp_path / "a", tmp_path / "a.idx", [(_contents(n), label) for n, label in enumerate(labels)])
    arguments = {"path": [str(tmp_path / "a")], "index_path": [str(tmp_path / "a.idx")]}
    found = _together("mxnet", arguments, monkeypatch)
    assert [sample.tolist() for sample in found[1][:4]] == [np.atleast_1d(label).tolist() for label in labels]


def test_record_in_parts_is_read_separately(tmp_path: Path) -> None:
    mark = np.uint32(0xCED7230A).tobytes()
    contents = [b"abcd" + mark + b"efgh", b"plain"]
    write_recordio(tmp_path / "a", tmp_path / "a.idx", [(data, 1.0) for data in contents])
    arguments = {"path": [str(tmp_path / "a")], "index_path": [str(tmp_path / "a.idx")]}
    found = _samples(_pipeline("mxnet", arguments))
    assert [sample.tobytes() for sample in found[0][:2]] == contents


def test_missing_files_and_elements_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [("0.a", b"12345678"), ("1.b", b"1234"), ("2.a", b"x" * 4000), ("2.b", b""), ("3.b", b"abcdefgh")]
    write_tar(tmp_path / "a.tar", files)
    arguments = {"paths": [str(tmp_path / "a.tar")], "ext": ["a", "b"], "dtypes": [types.UINT16, types.FLOAT]}
    found = _together("webdataset", arguments, monkeypatch)
    assert_same_samples(found, _one_by_one("webdataset", arguments, monkeypatch))
    assert [sample.size for sample in found[0][:4]] == [4, 0, 2000, 0]


@pytest.mark.parametrize("check_crc", [False, True])
def test_features_of_every_kind(check_crc: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        example({"text": b"abc", "one": [1], "any": [1.0, 2.0]}),
        example({"one": [2], "any": []}),
        example({"text": b"", "one": [-3]}),
    ]
    write_tfrecord(tmp_path / "a", records, tmp_path / "a.idx")
    features = {
        "text": tfrecord.FixedLenFeature([], tfrecord.string, ""),
        "one": tfrecord.FixedLenFeature([1], tfrecord.int64, 0),
        "any": tfrecord.VarLenFeature(tfrecord.float32, 0.0),
        "absent": tfrecord.VarLenFeature(tfrecord.int64, 0),
    }
    arguments = {"path": str(tmp_path / "a"), "index_path": str(tmp_path / "a.idx"), "features": features}
    found = _together("tfrecord", {**arguments, "check_crc": check_crc}, monkeypatch)
    assert_same_samples(found, _one_by_one("tfrecord", arguments, monkeypatch))
    assert [sample.tobytes() for sample in found[0][:3]] == [b"abc", b"", b""]
    assert [sample.tolist() for sample in found[2][:3]] == [[1.0, 2.0], [], []]


@every_reader
def test_what_consumers_write_stays_with_them(reader: str, tmp_path: Path) -> None:
    arguments = _write(reader, tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    pipe = _pipeline(reader, arguments)
    for _ in range(3):  # epochs
        outputs = pipe.run()
        kept = [[output.at(index) for index in range(COUNT)] for output in outputs]
        assert [sample.tobytes() for sample in kept[0]] == [_contents(number) for number in range(COUNT)]
        for sample in kept[0]:
            sample[:] = 255
        assert all((sample == 255).all() for sample in kept[0])
    for path, contents in files.items():
        assert path.read_bytes() == contents


@pytest.mark.parametrize("reader", ["tfrecord", "webdataset", "mxnet"])
def test_file_that_was_cut_off_names_the_sample(reader: str, tmp_path: Path) -> None:
    arguments = _write(reader, tmp_path)
    pipe = _pipeline(reader, arguments)
    _samples(pipe)
    cut = Path(arguments["paths"][0] if reader == "webdataset" else tmp_path / "a")
    os.truncate(cut, 100)
    with pytest.raises(ReaderError, match="ends before byte") as raised:
        _run_often(pipe)
    assert "sample 0" in str(raised.value)
    assert str(cut) in str(raised.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [("vanish", r"cannot open the file.*No such file"), ("folder", r"cannot read .*it is a folder")],
)
def test_file_that_cannot_be_read_is_one_bad_sample(change: str, message: str, tmp_path: Path) -> None:
    arguments = _write("file", tmp_path)
    (tmp_path / "4.x").unlink()
    if change == "folder":
        (tmp_path / "4.x").mkdir()
    with pytest.raises(ReaderError, match=message) as raised:
        _samples(_pipeline("file", arguments))
    assert "sample 4" in str(raised.value)
    assert str(tmp_path / "4.x") in str(raised.value)
    pipe = _pipeline("file", arguments, on_error="replace")
    found = _samples(pipe)
    expected = [b"" if number == 4 else _contents(number) for number in range(COUNT)]
    assert [sample.tobytes() for sample in found[0]] == expected
    assert [sample.tolist() for sample in found[1]] == [[number] for number in range(COUNT)]
    assert [bad.source for bad in pipe.bad_samples()] == [str(tmp_path / "4.x")]


def test_a_file_that_changes_its_size_is_read_as_it_is(tmp_path: Path) -> None:
    pipe = _pipeline("file", _write("file", tmp_path))
    _samples(pipe)
    (tmp_path / "3.x").write_bytes(b"")
    (tmp_path / "5.x").write_bytes(b"longer" * 100_000)
    _run_often(pipe)
    found = _samples(pipe)
    assert (found[0][3].size, found[0][5].tobytes()) == (0, b"longer" * 100_000)
    assert found[0][8].tobytes() == _contents(8)


@every_reader
def test_substitutes(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One unreadable record does not affect the others."""
    arguments = _write(reader, tmp_path)
    operator = catalog.find(f"readers.{reader}")
    assert operator.read_function is not None
    read = operator.read_function.function
    whole = _samples(_pipeline(reader, arguments))
    calls = iter(range(100))

    @functools.wraps(read)
    def failing(entry: Any, **names: Any) -> Any:
        if next(calls) == 4:
            raise ReaderError("this one is bad.")
        return read(entry, **names)

    monkeypatch.setattr(operator.read_function, "function", failing)
    monkeypatch.setattr(operator.read_many_function, "function", lambda index, numbers, **_: None)
    pipe = _pipeline(reader, arguments, on_error="replace")
    found = _samples(pipe)
    assert [number for number, sample in enumerate(found[0]) if not sample.size] == [4]
    assert len(pipe.bad_samples()) == 1
    for one, other in zip(found, whole, strict=True):
        assert one[4].dtype == other[4].dtype
        assert one[4].ndim == other[4].ndim
        np.testing.assert_array_equal(one[3], other[3])
    if reader in ("file", "webdataset"):
        np.testing.assert_array_equal(found[1][4], whole[1][4])  # the label is known
    else:
        assert not found[1][4].any()


NAMES = ("a", "b.c", "d/a", "d/.x", "d/b", ".h", "e/", "f" * 90 + "/a", "f" * 90 + "/" + "g" * 20)
ENDS = (".jpg", ".JPG", ".cls", ".seg.png", "", ".x")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("missing", ["empty", "skip", "error"])
@pytest.mark.parametrize("form", ["ustar", "gnu", "pax"])
def test_the_fast_search_equals_the_slow_one(
    seed: int, missing: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(seed)
    names = [f"{NAMES[random.integers(len(NAMES))]}" for _ in range(12)]
    files = []
    for number, name in enumerate(names):
        for end in random.permutation(ENDS)[: random.integers(1, 4)].tolist():
            own = name.replace("a", f"a{number}") if seed % 2 else name
            if not own.endswith("/"):
                files.append((own + end, b"z" * int(random.integers(0, 3) * 2)))
    forms = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
    write_tar(tmp_path / "a.tar", files, forms[form])

    def found(index: Path | None, *, folds: bool) -> Any:
        try:
            samples = formats_webdataset.samples_of(
                [str(tmp_path / "a.tar")],
                None if index is None else [str(index)],
                ["jpg;seg.png", "cls", "jpg"],
                [types.UINT16, types.UINT8, types.UINT8],
                missing=missing,
                case_sensitive=not folds,
            )
        except ReaderError as error:
            return str(error)
        return samples.places.tolist()

    index = None
    if len(files) % 2:
        index = tmp_path / "a.idx"
        formats_webdataset.write_index(str(tmp_path / "a.tar"), str(index))
    with monkeypatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        for folds in (False, True):
            quick = found(index, folds=folds)
            patch.setattr(formats_webdataset, "places_in_archive", lambda *_: None)
            patch.setattr(formats_webdataset, "places_in_index", lambda *_: None)
            assert quick == found(index, folds=folds)
            patch.undo()
            patch.setattr("warnings.warn", lambda *_, **__: None)


def test_samples_across_parts_of_the_search(tmp_path: Path) -> None:
    """The search takes some thousand files at a time; a sample may lie on both sides of the border."""
    write_tar(tmp_path / "a.tar", [(f"{n}.{end}", b"") for n in range(2100) for end in "xyz"])
    samples = formats_webdataset.samples_of(
        [str(tmp_path / "a.tar")], None, ["x", "z"], [types.UINT8] * 2, missing="error", case_sensitive=True
    )
    assert samples.places[:, 0, 0].tolist() == [512 + 1536 * number for number in range(2100)]
    assert samples.places[:, 1, 0].tolist() == [1536 * (number + 1) for number in range(2100)]


@pytest.mark.parametrize(
    "text",
    [
        b"v1.1 2\nx 512 1\n",
        b"v1.1 1\nx 512\n",
        b"v1.1 1\nx a 1\n",
        b"v1.1 1\nx -1 1\n",
        b"v1.1 1\n\n",
        b"v1.1 1\nx 512 99999999999999999999\n",
        b"v1.1 1\nx 5\x00 1\n",
        b"v1.1 99999999999999999999\n",
        b"v1.2 1\nx 512 1\n",
    ],
)
def test_damaged_index(text: bytes, tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", [("0.x", b"1")])
    (tmp_path / "a.idx").write_bytes(text)
    with pytest.raises(ReaderError, match=r"a\.idx"):
        formats_webdataset.samples_of(
            [str(tmp_path / "a.tar")],
            [str(tmp_path / "a.idx")],
            ["x"],
            [types.UINT8],
            missing="empty",
            case_sensitive=True,
        )


@pytest.mark.parametrize("text", [b"v1.1 1\r\nx 512 1\r\n", b"v1.1 1\nx\t512  1", b"v1.1 1\n x 512 1 \n\nrest"])
def test_index_with_other_blanks(text: bytes, tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", [("0.x", b"1")])
    (tmp_path / "a.idx").write_bytes(text)
    samples = formats_webdataset.samples_of(
        [str(tmp_path / "a.tar")],
        [str(tmp_path / "a.idx")],
        ["x"],
        [types.UINT8],
        missing="empty",
        case_sensitive=True,
    )
    assert samples.places.tolist() == [[[512, 1]]]


@pytest.mark.parametrize("options", [{}, {"random_shuffle": True}], ids=str)
def test_shuffle_after_epoch_shuffles_files(options: dict[str, Any], tmp_path: Path) -> None:
    """As in DALI: the order within a file stays, unless random_shuffle is added; shards share the data."""
    paths = []
    for archive in range(5):
        paths.append(str(tmp_path / f"{archive}.tar"))
        write_tar(Path(paths[-1]), [(f"{n}.x", bytes([10 * archive + n])) for n in range(archive + 2)])
    everything = sorted(10 * archive + number for archive in range(5) for number in range(archive + 2))
    orders = []
    pipes = []
    for shard in range(2):
        pipe = dalify.Pipeline(batch_size=10, num_threads=1, device_id=None, seed=shard)
        with pipe:
            pipe.set_outputs(
                fn.readers.webdataset(
                    paths=paths, ext=["x"], shuffle_after_epoch=True, num_shards=2, shard_id=shard, **options
                )
            )
        pipes.append(pipe)
    for _ in range(3):
        values = [int(sample[0]) for pipe in pipes for sample in _samples(pipe)[0]]
        assert sorted(values) == everything
        orders.append(tuple(values))
        goes_on = sum(two == one + 1 for one, two in itertools.pairwise(values))
        assert (goes_on == len(everything) - 5) == (not options)
    assert len(set(orders)) > 1
