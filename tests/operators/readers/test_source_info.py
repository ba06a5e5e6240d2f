"""``source_info`` of a file equals that of the real DALI; messages name its whole path."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import DecodeError
from dalify.data.origin import Origin, source_info
from tests.helpers.containers import caffe_datum, example, write_lmdb, write_recordio, write_tfrecord


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, photo_folder: Path) -> Path:
    photo = (photo_folder / "cat" / "000.jpg").read_bytes()
    for place in ("photos/a/0.jpg", "photos/b/1.jpg", "coco/one.jpg"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo)
    (tmp_path / "photos" / "list.txt").write_text(f"a/0.jpg 1\n{tmp_path}/photos/b/1.jpg 2\n")
    (tmp_path / "arrays" / "more").mkdir(parents=True)
    np.save(tmp_path / "arrays" / "x.npy", np.zeros(3))
    np.save(tmp_path / "arrays" / "more" / "y.npy", np.zeros(3))
    (tmp_path / "arrays" / "list.txt").write_text("x.npy\n")
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 3, 3], "iscrowd": 0, "area": 9}
    described = {
        "images": [{"id": 1, "file_name": "one.jpg", "width": 40, "height": 40}],
        "annotations": [box],
        "categories": [{"id": 1, "name": "thing"}],
    }
    (tmp_path / "coco" / "all.json").write_text(json.dumps(described))
    features = {"image": [photo], "label": [3]}
    write_tfrecord(tmp_path / "a.tfrecord", [example(features)] * 2, tmp_path / "a.idx")
    write_recordio(tmp_path / "a.rec", tmp_path / "a.ridx", [(photo, 1.0), (photo, 2.0)])
    (tmp_path / "lmdb").mkdir()
    write_lmdb(tmp_path / "lmdb", [caffe_datum(data=photo, label=3)] * 2)
    _write_tar(
        tmp_path / "a.tar", tarfile.USTAR_FORMAT, ["a/0.jpg", "a/0.cls", "a/1.jpg", f"a/{'n' * 40}/{'m' * 90}.jpg"]
    )
    return tmp_path


def _write_tar(path: Path, form: int, names: list[str]) -> dict[str, int]:
    """Write files of one byte; return the offsets of their contents."""
    with tarfile.open(path, "w", format=form) as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"1"))
    with tarfile.open(path) as archive:
        return {member.name: member.offset_data for member in archive}


def _records(fn: Any, at: Path) -> Any:
    library = __import__(fn.__name__.removesuffix(".fn"), fromlist=["tfrecord"])
    feature = library.tfrecord.FixedLenFeature
    kinds = {"image": feature([], library.tfrecord.string, ""), "label": feature([1], library.tfrecord.int64, 0)}
    return fn.readers.tfrecord(path=str(at / "a.tfrecord"), index_path=str(at / "a.idx"), features=kinds)


READERS: dict[str, Callable[[Any, Path], Any]] = {
    "class folders": lambda fn, at: fn.readers.file(file_root=str(at / "photos"))[0],
    "class folders, separator": lambda fn, at: fn.readers.file(file_root=f"{at}/photos/")[0],
    "list beside files": lambda fn, at: fn.readers.file(file_list=str(at / "photos" / "list.txt"))[0],
    "list and root": lambda fn, at: fn.readers.file(
        file_root=str(at / "photos"), file_list=str(at / "photos" / "list.txt")
    )[0],
    "files": lambda fn, at: fn.readers.file(files=[str(at / "photos" / "a" / "0.jpg")])[0],
    "files and root": lambda fn, at: fn.readers.file(file_root=str(at / "photos"), files=["a/0.jpg"])[0],
    "arrays": lambda fn, at: fn.readers.numpy(files=[str(at / "arrays" / "x.npy")]),
    "arrays of a folder": lambda fn, at: fn.readers.numpy(file_root=str(at / "arrays")),
    "arrays of a folder, separator": lambda fn, at: fn.readers.numpy(file_root=f"{at}/arrays/"),
    "arrays, relative to the root": lambda fn, at: fn.readers.numpy(file_root=str(at / "arrays"), files=["./x.npy"]),
    "arrays and root": lambda fn, at: fn.readers.numpy(file_root=str(at / "arrays"), files=["x.npy"]),
    "arrays of a list": lambda fn, at: fn.readers.numpy(
        file_root=str(at / "arrays"), file_list=str(at / "arrays" / "list.txt")
    ),
    "coco": lambda fn, at: fn.readers.coco(file_root=str(at / "coco"), annotations_file=str(at / "coco" / "all.json"))[
        0
    ],
    "labels of files": lambda fn, at: fn.readers.file(file_root=str(at / "photos"))[1],
    "boxes": lambda fn, at: fn.readers.coco(file_root=str(at / "coco"), annotations_file=str(at / "coco" / "all.json"))[
        1
    ],
    "records": lambda fn, at: _records(fn, at)["image"],
    "labels of records": lambda fn, at: _records(fn, at)["label"],
    "mxnet": lambda fn, at: fn.readers.mxnet(path=str(at / "a.rec"), index_path=str(at / "a.ridx"))[0],
    "labels of mxnet": lambda fn, at: fn.readers.mxnet(path=str(at / "a.rec"), index_path=str(at / "a.ridx"))[1],
    "caffe": lambda fn, at: fn.readers.caffe(path=str(at / "lmdb"))[0],
    "labels of caffe": lambda fn, at: fn.readers.caffe(path=str(at / "lmdb"))[1],
    "archive": lambda fn, at: fn.readers.webdataset(paths=str(at / "a.tar"), ext=["jpg", "cls"])[0],
    "labels of an archive": lambda fn, at: fn.readers.webdataset(paths=str(at / "a.tar"), ext=["jpg", "cls"])[1],
}


def names(library: Any, make: Callable[[Any, Path], Any], at: Path) -> list[str]:
    """Of the first batch, by the operator."""

    @library.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def graph() -> Any:
        return library.fn.get_property(make(library.fn, at), key="source_info")

    pipe = graph()
    pipe.build()
    (found,) = pipe.run()
    return [bytes(np.array(found[index])).decode() for index in range(len(found))]


@pytest.mark.parametrize("name", READERS)
def test_names_equal_dali(name: str, folder: Path, oracle: Any) -> None:
    __import__("nvidia.dali.fn")
    assert names(dalify, READERS[name], folder) == names(oracle, READERS[name], folder)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_in_archives(form: int, tmp_path: Path) -> None:
    """Long names have separate headers; Python's tarfile gives the expected names and offsets."""
    path = tmp_path / "a.tar"
    long = f"{'f' * 60}/{'n' * 60}.jpg" if form == tarfile.USTAR_FORMAT else f"{'f' * 150}/{'n' * 1100}.jpg"
    places = _write_tar(path, form, ["a.jpg", long, "b/c.jpg", "b/\u00e4.jpg"])

    @dalify.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def graph() -> Any:
        return dalify.fn.readers.webdataset(paths=str(path), ext=["jpg"])

    (found,) = graph().run()
    assert [found[index].source_info() for index in range(4)] == [f"{path}:{places[name]}:{name}" for name in places]


def test_outputs_of_worker_processes_have_their_own_names(folder: Path) -> None:
    @dalify.pipeline_def(batch_size=2, num_threads=1, device_id=None, processes=1)
    def graph() -> Any:
        return tuple(dalify.fn.readers.webdataset(paths=str(folder / "a.tar"), ext=["jpg", "cls"]))

    pipe = graph()
    names = [[output[index].source_info().rpartition(":")[2] for index in range(2)] for output in pipe.run()]
    assert names == [["a/0.jpg", "a/1.jpg"], ["a/0.cls", ""]]


def test_names_begin_below_the_root(folder: Path) -> None:
    assert names(dalify, READERS["class folders"], folder) == ["a/0.jpg", "b/1.jpg"]


def test_names_of_arrays_in_folders(folder: Path) -> None:
    """DALI lists a folder as a subfolder "." of itself."""
    assert names(dalify, READERS["arrays of a folder"], folder) == ["./x.npy", "more/y.npy"]


def test_a_message_names_the_whole_path(folder: Path) -> None:
    (folder / "photos" / "b" / "1.jpg").write_bytes(b"nothing")

    @dalify.pipeline_def(batch_size=2, num_threads=1, device_id=None, on_error="skip")
    def graph() -> Any:
        return dalify.fn.decoders.image(dalify.fn.readers.file(file_root=str(folder / "photos"))[0])

    pipe = graph()
    pipe.run()
    assert pipe.bad_samples()[0].source == str(folder / "photos" / "b" / "1.jpg")
    with pytest.raises(DecodeError, match=str(folder / "photos" / "b" / "1.jpg")):
        dalify.pipeline_def(batch_size=2, num_threads=1, device_id=None)(
            lambda: dalify.fn.decoders.image(dalify.fn.readers.file(file_root=str(folder / "photos"))[0])
        )().run()


def test_origins_are_pickled() -> None:
    origin = pickle.loads(pickle.dumps(Origin("/data/a/0.jpg", "a/0.jpg")))
    assert (origin, source_info(origin)) == ("/data/a/0.jpg", "a/0.jpg")
    assert (source_info("sound.wav"), source_info(None)) == ("sound.wav", None)
