"""File names in data must not point outside of the folder of the dataset, in any reader."""

from __future__ import annotations

import json
import os
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ReaderError
from dalify.formats.files import helper_process, storage
from dalify.formats.files.data_root import DataRoot
from tests.helpers.web_server import web_server

INSIDE = ["a.jpg", "sub/a.jpg", "./a.jpg", "a..jpg", "..a/b..", "...", "~a", "a:b.jpg", "100%.jpg", "a\\b.jpg", "-"]
OUTSIDE = [
    "../a.jpg",
    "sub/../../a.jpg",
    "..",
    "./..",
    "/etc/hostname",
    "//etc/hostname",
    "file:///etc/hostname",
    "http://127.0.0.1:1/x.jpg",
    "s3://bucket/x.jpg",
    "memory://x",
    "reference://a.jpg::http://127.0.0.1:1/evil.json",
    "reference://b.jpg::file:///tmp/evil.json",
    "simplecache::http://127.0.0.1:1/y.jpg",
    "zip://a.jpg::file:///tmp/x.zip",
    "HTTP://127.0.0.1/x",
]


@pytest.mark.parametrize("name", INSIDE)
def test_names_inside(tmp_path: Path, name: str) -> None:
    root = DataRoot(str(tmp_path), allow_outside_root=False)
    assert root.relative(name, "list.txt") == name
    assert Path(os.path.normpath(root.path(name, "list.txt"))).is_relative_to(tmp_path)


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_outside(tmp_path: Path, name: str) -> None:
    root = DataRoot(str(tmp_path), allow_outside_root=False)
    with pytest.raises(ReaderError) as caught:
        root.relative(name, "list.txt", "line", 7)
    text = str(caught.value)
    assert text.startswith(f"list.txt, line 7: the name {name!r} points outside the folder {str(tmp_path)!r}.")
    assert "allow_outside_root=True" in text
    assert DataRoot(str(tmp_path), allow_outside_root=True).relative(name, "list.txt") == name


def test_absolute_names_inside(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    root = DataRoot(str(tmp_path / "link"), allow_outside_root=False)
    for folder in ("link", "real"):  # a program that wrote the list may have resolved the link
        name = str(tmp_path / folder / "a.jpg")
        assert root.path(name, "list.txt") == name
    for name in (str(tmp_path / "link"), str(tmp_path / "linked" / "a.jpg"), str(tmp_path / "link" / ".." / "a.jpg")):
        with pytest.raises(ReaderError, match="points outside"):
            root.path(name, "list.txt")


def test_links_in_the_folder_are_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "other" / "deep" / "a.txt").write_text("linked")
    (tmp_path / "other" / "secret.txt").write_text("secret")
    (tmp_path / "root" / "secret.txt").write_text("own")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "other" / "deep")
    root = DataRoot(str(tmp_path / "root"), allow_outside_root=False)
    assert Path(root.path("link/a.txt", "list.txt")).read_text() == "linked"
    # The system would leave the target of the link.
    assert Path(root.path("link/../secret.txt", "list.txt")).read_text() == "own"


@pytest.mark.parametrize("folder", ["", None, "."])
def test_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str | None) -> None:
    monkeypatch.chdir(tmp_path)
    root = DataRoot(folder, allow_outside_root=False)
    assert Path(root.path("a.jpg", "")) == Path("a.jpg")
    assert root.path(str(tmp_path / "a.jpg"), "") == str(tmp_path / "a.jpg")
    with pytest.raises(ReaderError):
        root.path(str(tmp_path.parent / "a.jpg"), "")


def test_root_of_the_file_system() -> None:
    assert DataRoot("/", allow_outside_root=False).path("/etc/hostname", "") == "/etc/hostname"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jpg", "s3://bucket/set/a.jpg"),
        ("sub/a b.jpg", "s3://bucket/set/sub/a b.jpg"),
        ("100%.jpg", "s3://bucket/set/100%.jpg"),
        ("s3://bucket/set/a.jpg", "s3://bucket/set/a.jpg"),
        ("s3://bucket/setting/a.jpg", None),
        ("s3://bucket/set/../a.jpg", None),
        ("s3://other/a.jpg", None),
        ("../a.jpg", None),
        ("sub/../a.jpg", None),
        ("%2e%2e/a.jpg", None),
        ("sub/%2E%2e%2fa.jpg", None),
        ("..\\a.jpg", None),
        ("/etc/hostname", None),
        ("a.jpg::file", None),
        ("reference://x::s3://bucket/set/a.jpg", None),
        ("s3://bucket/set/http://elsewhere/a.jpg", None),
    ],
)
def test_remote_roots(name: str, expected: str | None) -> None:
    root = DataRoot("s3://bucket/set/", allow_outside_root=False)
    if expected is None:
        with pytest.raises(ReaderError, match="points outside"):
            root.path(name, "list.txt")
    else:
        assert root.path(name, "list.txt") == expected


# -- each reader


def _list(folder: Path, name: str, entry: str) -> dict[str, Any]:
    (folder / "list.txt").write_text(entry.format(name=name), encoding="utf-8")
    return {"file_list": str(folder / "list.txt")}


def _coco(folder: Path, name: str) -> dict[str, Any]:
    document = {
        "images": [{"id": 1, "file_name": name, "width": 5, "height": 4}],
        "categories": [{"id": 1}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 3, 3]}],
    }
    (folder / "annotations.json").write_text(json.dumps(document))
    return {"file_root": str(folder), "annotations_file": str(folder / "annotations.json")}


def _saved_coco(folder: Path, name: str) -> dict[str, Any]:
    saving = _coco(folder, "a.jpg")
    saved = folder / "saved"
    source = {**saving, "save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(saved)}
    pipe = _first(fn.readers.coco, source)
    pipe.build()
    pipe.close()
    (saved / "filenames.dat").write_text(f"{name}\n")
    return {"file_root": str(folder), "preprocessed_annotations": str(saved)}


def _nemo(folder: Path, name: str) -> dict[str, Any]:
    (folder / "manifest.json").write_text(json.dumps({"audio_filepath": name, "duration": 0.01}))
    return {"manifest_filepaths": [str(folder / "manifest.json")]}


def _table(name: str) -> Any:
    pa = pytest.importorskip("pyarrow")
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({"image": pa.array([{"bytes": None, "path": name}], kind)})


def _parquet(folder: Path, name: str) -> dict[str, Any]:
    table = _table(name)
    pytest.importorskip("pyarrow.parquet").write_table(table, folder / "rows.parquet")
    return {"paths": [str(folder / "rows.parquet")], "columns": ["image"]}


def _arrow(folder: Path, name: str) -> dict[str, Any]:
    return {"source": _table(name), "columns": ["image"]}


READERS: dict[str, tuple[Any, Callable[[Path, str], dict[str, Any]], str]] = {
    "file": (fn.readers.file, lambda folder, name: _list(folder, name, "a.jpg 0\n{name} 1\n"), "list.txt, line 2"),
    "numpy": (fn.readers.numpy, lambda folder, name: _list(folder, name, "{name}\n"), "list.txt, line 1"),
    "fits": (fn.experimental.readers.fits, lambda folder, name: _list(folder, name, "\n{name}\n"), "list.txt, line 2"),
    "video": (
        lambda **given: fn.readers.video(sequence_length=1, **given),
        lambda folder, name: _list(folder, name, "{name} 0\n"),
        "list.txt, line 1",
    ),
    "experimental video": (
        lambda **given: fn.experimental.readers.video(sequence_length=1, **given),
        lambda folder, name: _list(folder, name, "{name} 0\n"),
        "list.txt, line 1",
    ),
    "coco": (fn.readers.coco, _coco, "annotations.json, image 0"),
    "saved coco": (fn.readers.coco, _saved_coco, "saved, image 0"),
    "nemo": (fn.readers.nemo_asr, _nemo, "manifest.json, entry at character 0"),
    "parquet": (fn.readers.parquet, _parquet, "its field 'path'"),
    "arrow": (fn.readers.arrow, _arrow, "its field 'path'"),
}


def _first(reader: Any, arguments: dict[str, Any]) -> Any:
    @pipeline_def(batch_size=1, num_threads=1)
    def reading() -> Any:
        found = reader(**arguments)
        return tuple(found) if isinstance(found, (list, tuple)) else found

    return reading()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data, which is also the working directory, next to a file outside of it."""
    root = tmp_path / "data"
    root.mkdir()
    for place in (root, tmp_path):
        (place / "a.jpg").write_bytes(b"contents")
        np.save(place / "a.npy", np.arange(3))
        with wave.open(str(place / "a.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(bytes(200))
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["../a.jpg", "/etc/hostname", "file:///etc/hostname", "URL", "reference://a::URL"])
def test_readers_reject_names_outside_of_their_folder(
    folder: Path, asked: tuple[str, list[str]], reader: str, name: str
) -> None:
    function, arguments, place = READERS[reader]
    pipe = _first(function, arguments(folder, name.replace("URL", asked[0])))
    with pytest.raises(ReaderError, match="points outside the folder") as caught:
        pipe.run()
    assert place in str(caught.value)
    assert not asked[1]


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """The URL of a file, and the requests to its server."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "x.jpg").write_bytes(b"contents")
    storage.configure(timeout_s=60, retries=0)
    with web_server(tmp_path / "served") as (url, behavior):
        yield f"{url}/x.jpg", behavior.asked
    storage.configure()


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("file", "../a.jpg"),
        ("file", "ABSOLUTE/a.jpg"),
        ("numpy", "../a.npy"),
        ("coco", "../a.jpg"),
        ("nemo", "../a.wav"),
        ("nemo", "ABSOLUTE/a.wav"),
        ("parquet", "../a.jpg"),
        ("arrow", "ABSOLUTE/a.jpg"),
        ("file", "URL"),
        ("coco", "URL"),
        ("parquet", "URL"),
    ],
)
def test_users_may_trust_their_data(folder: Path, asked: tuple[str, list[str]], reader: str, name: str) -> None:
    function, arguments, _ = READERS[reader]
    name = name.replace("URL", asked[0]).replace("ABSOLUTE", str(folder.parent))
    pipe = _first(function, {**arguments(folder, name), "allow_outside_root": True})
    pipe.run()
    pipe.close()


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("file", "a.jpg"),
        ("file", "x/../a.jpg"),
        ("file", "ABSOLUTE/a.jpg"),
        ("numpy", "ABSOLUTE/a.npy"),
        ("coco", "a.jpg"),
        ("coco", "ABSOLUTE/a.jpg"),
        ("nemo", "a.wav"),
        ("nemo", "ABSOLUTE/a.wav"),
        ("parquet", "a.jpg"),
        ("arrow", "ABSOLUTE/a.jpg"),
    ],
)
def test_names_in_the_folder_are_read(
    folder: Path, reader: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reader != "arrow":  # a table in memory has no other folder
        monkeypatch.chdir(tmp_path)
    function, arguments, _ = READERS[reader]
    pipe = _first(function, arguments(folder, name.replace("ABSOLUTE", str(folder))))
    pipe.run()
    pipe.close()


def test_files_given_individually_belong_to_the_user(folder: Path, asked: tuple[str, list[str]]) -> None:
    files = ["../a.jpg", str(folder.parent / "a.jpg"), asked[0]]
    pipe = _first(fn.readers.file, {"files": files})
    for _ in files:
        assert pipe.run()[0].at(0).tobytes() == b"contents"
    pipe.close()


def test_remote_dataset_with_a_list(tmp_path: Path) -> None:
    served = tmp_path / "served"
    (served / "set").mkdir(parents=True)
    (served / "secret.jpg").write_bytes(b"secret")
    (served / "set" / "a.jpg").write_bytes(b"contents")
    with web_server(served) as (url, behavior):
        (served / "set" / "list.txt").write_text(f"a.jpg 0\n{url}/set/a.jpg 1\n")
        pipe = _first(fn.readers.file, {"file_list": f"{url}/set/list.txt"})
        for _ in range(2):
            assert pipe.run()[0].at(0).tobytes() == b"contents"
        pipe.close()
        for name in ("../secret.jpg", f"{url}/secret.jpg", "%2e%2e/secret.jpg"):
            (served / "set" / "list.txt").write_text(f"{name} 0\n")
            with pytest.raises(ReaderError, match=r"line 1: the name .* points outside"):
                _first(fn.readers.file, {"file_list": f"{url}/set/list.txt"}).run()
        assert not [path for path in behavior.asked if "secret" in path]


@pytest.mark.parametrize("name", ["line\u2028separator.jpg", "next\x85line.jpg", "form\x0cfeed.jpg", "caf\udce9.jpg"])
def test_saved_annotations_keep_every_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"contents")
    arguments = _coco(tmp_path, name)
    saved = str(tmp_path / "saved")
    saving = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": saved}
    for given in ({**arguments, **saving}, {"file_root": str(tmp_path), "preprocessed_annotations": saved}):
        pipe = _first(fn.readers.coco, given)
        assert pipe.run()[0].at(0).tobytes() == b"contents"
        pipe.close()


@pytest.mark.parametrize(
    "kind", ["external storage", "virtual", "external link", "virtual of the file itself", "chain"]
)
@pytest.mark.parametrize("is_inside", [False, True])
def test_hdf5_files_that_name_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_inside: bool
) -> None:
    """Relative names are relative to the file, not to the working directory."""
    h5py = pytest.importorskip("h5py")
    helper_process._helpers.end()  # a process that has read other files may resolve names differently
    root = tmp_path / "data"
    root.mkdir()
    monkeypatch.chdir(tmp_path)
    place = root if is_inside else tmp_path
    prefix = "" if is_inside else "../"
    (place / "raw").write_bytes(bytes(range(8)))
    with h5py.File(place / "other.h5", "w") as file:
        file["x"] = np.arange(8, dtype=np.uint8).reshape(2, 4)

    def virtual(file: Any, source: Any) -> None:
        layout = h5py.VirtualLayout((2, 4), "u1")
        layout[:] = source
        file.create_virtual_dataset("x", layout)

    external = {"shape": (2, 4), "dtype": "u1", "external": [(f"{prefix}raw", 0, 8)]}
    with h5py.File(root / "data.h5", "w") as file:
        if kind == "external storage":
            file.create_dataset("x", **external)
        elif kind == "virtual":
            virtual(file, h5py.VirtualSource(f"{prefix}other.h5", "x", (2, 4)))
        elif kind == "virtual of the file itself":
            virtual(file, h5py.VirtualSource(file.create_dataset("y", **external)))
        elif kind == "chain":
            with h5py.File(root / "between.h5", "w") as between:
                between.create_dataset("x", **external)
            virtual(file, h5py.VirtualSource("between.h5", "x", (2, 4)))
        else:
            file["x"] = h5py.ExternalLink(f"{prefix}other.h5", "/x")
    pipe = _first(fn.readers.hdf5, {"paths": [str(root / "data.h5")], "datasets": ["x"]})
    if is_inside:
        assert pipe.run()[0].at(0).tolist() == [0, 1, 2, 3]
        pipe.close()
    else:
        with pytest.raises(ReaderError, match="outside the folder"):
            pipe.build()


def test_virtual_datasets_of_the_file_itself(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["y"] = np.arange(8, dtype=np.uint8).reshape(2, 4)
        layout = h5py.VirtualLayout((2, 4), "u1")
        layout[:] = h5py.VirtualSource(file["y"])
        file.create_virtual_dataset("x", layout)
    pipe = _first(fn.readers.hdf5, {"paths": [str(tmp_path / "data.h5")], "datasets": ["x"]})
    assert pipe.run()[0].at(0).tolist() == [0, 1, 2, 3]
    pipe.close()
