"""Named pipes, sockets and folders in the place of files: an error with the name, without waiting for a writer."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dalify
from dalify.base.errors import DalifyError
from tests.helpers.platforms import needs_posix
from tests.helpers.videos import write_video
from tests.operators.readers.datasets import DATASETS, write_tar

pytestmark = [needs_posix, pytest.mark.timeout(120)]
COUNT = 6


def _listed_files(folder: Path, count: int) -> dict[str, Any]:
    return {**_in_a_list(folder, DATASETS["readers.file"](folder, count)["files"])}


def _in_a_list(folder: Path, files: list[str]) -> dict[str, Any]:
    (folder / "list.txt").write_text("".join(f"{path} 0\n" for path in files))
    return {"file_list": str(folder / "list.txt")}


def _videos(folder: Path, count: int) -> dict[str, Any]:
    paths = [write_video(folder / f"{number}.mp4", "mpeg4", count=4, size=(48, 64)) for number in range(count // 2)]
    return {"filenames": list(map(str, paths)), "sequence_length": 2}


def _listed_videos(folder: Path, count: int) -> dict[str, Any]:
    return {**_in_a_list(folder, _videos(folder, count)["filenames"]), "sequence_length": 2}


def _indexed_tar(folder: Path, count: int) -> dict[str, Any]:
    write_tar(folder / "0.tar", [(f"{number}.x", bytes([number])) for number in range(count)])
    lines = [f"x {512 * (2 * number + 1)} 1 {number}.x\n" for number in range(count)]
    (folder / "0.idx").write_text(f"v1.2 {count}\n{''.join(lines)}")
    return {"paths": [str(folder / "0.tar")], "index_paths": [str(folder / "0.idx")], "ext": ["x"]}


def _saved_coco(folder: Path, count: int) -> dict[str, Any]:
    given = DATASETS["readers.coco"](folder, count)
    (folder / "saved").mkdir()
    saving = {**given, "save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": f"{folder}/saved"}
    _pipeline("readers.coco", saving).run()
    (folder / "annotations.json").unlink()
    return {"file_root": str(folder), "preprocessed_annotations": f"{folder}/saved"}


def _pipeline(reader: str, arguments: dict[str, Any]) -> dalify.Pipeline:
    pipe = dalify.Pipeline(batch_size=2, num_threads=2, device_id=None, prefetch_queue_depth=1)
    with pipe:
        given = {key: value(dalify) if callable(value) else value for key, value in arguments.items()}
        made = functools.reduce(getattr, reader.split("."), dalify.fn)(name="reader", **given)
        outputs = list(made.values()) if isinstance(made, dict) else made
        pipe.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    return pipe


WRITERS: dict[str, tuple[str, Callable[[Path, int], dict[str, Any]]]] = {
    # zarr opens files of a store itself, when it reads a chunk.
    **{name: (name, write) for name, write in DATASETS.items() if name != "readers.zarr"},
    "listed files": ("readers.file", _listed_files),
    "saved annotations": ("readers.coco", _saved_coco),
    "indexed archives": ("readers.webdataset", _indexed_tar),
    "videos": ("readers.video", _videos),
    "listed videos": ("readers.video", _listed_videos),
    "videos, experimental": ("experimental.readers.video", _videos),
}


_NEEDED = {"readers.caffe": "lmdb", "readers.caffe2": "lmdb", "experimental.readers.fits": "astropy"}


def _put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
@pytest.mark.parametrize("name", sorted(WRITERS))
@pytest.mark.parametrize("is_built", [False, True])
def test_no_regular_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, is_built: bool) -> None:
    monkeypatch.chdir(tmp_path)  # paths of sockets are short
    reader, write = WRITERS[name]
    if name in _NEEDED:
        pytest.importorskip(_NEEDED[name])
    (tmp_path / "good").mkdir()
    write(tmp_path / "good", COUNT)
    files = sorted(path.relative_to(tmp_path / "good") for path in (tmp_path / "good").rglob("*") if path.is_file())
    firsts = {(file.suffix or file.name): file for file in reversed(files) if file.name != "lock.mdb"}
    for number, file in enumerate(firsts.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        pipe = _pipeline(reader, write(folder, COUNT))
        if is_built:
            pipe.build()
        (folder / file).unlink()
        {"pipe": os.mkfifo, "socket": _put_socket, "folder": Path.mkdir}[kind](folder / file)
        errors = []
        for _ in range(COUNT):
            try:
                pipe.run()
            except DalifyError as error:
                errors.append(str(error))
        assert is_built or errors or kind == "folder"  # in a folder of files, it is no file
        assert all(file.name in text or file.parent.name in text for text in errors)
        pipe.close()


def test_a_list_from_a_pipe_of_the_shell(tmp_path):
    files = DATASETS["readers.file"](tmp_path, COUNT)["files"]
    reading, writing = os.pipe()
    os.write(writing, "".join(f"{Path(path).name} {number}\n" for number, path in enumerate(files)).encode())
    os.close(writing)
    pipe = _pipeline("readers.file", {"file_root": str(tmp_path), "file_list": f"/dev/fd/{reading}"})
    labels = [pipe.run()[1].as_array().ravel().tolist() for _ in range(COUNT // 2)]
    os.close(reading)
    assert labels == [[0, 1], [2, 3], [4, 5]]
