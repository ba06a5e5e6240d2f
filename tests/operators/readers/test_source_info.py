"""``source_info`` of a file equals that of the real DALI; messages name its whole path."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import DecodeError
from dalify.data.origin import Origin, source_info


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, photo_folder: Path) -> Path:
    photo = (photo_folder / "cat" / "000.jpg").read_bytes()
    for place in ("photos/a/0.jpg", "photos/b/1.jpg", "coco/one.jpg"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo)
    (tmp_path / "photos" / "list.txt").write_text(f"a/0.jpg 1\n{tmp_path}/photos/b/1.jpg 2\n")
    (tmp_path / "arrays").mkdir()
    np.save(tmp_path / "arrays" / "x.npy", np.zeros(3))
    (tmp_path / "arrays" / "list.txt").write_text("x.npy\n")
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 3, 3], "iscrowd": 0, "area": 9}
    described = {
        "images": [{"id": 1, "file_name": "one.jpg", "width": 40, "height": 40}],
        "annotations": [box],
        "categories": [{"id": 1, "name": "thing"}],
    }
    (tmp_path / "coco" / "all.json").write_text(json.dumps(described))
    return tmp_path


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
    "arrays and root": lambda fn, at: fn.readers.numpy(file_root=str(at / "arrays"), files=["x.npy"]),
    "arrays of a list": lambda fn, at: fn.readers.numpy(
        file_root=str(at / "arrays"), file_list=str(at / "arrays" / "list.txt")
    ),
    "coco": lambda fn, at: fn.readers.coco(file_root=str(at / "coco"), annotations_file=str(at / "coco" / "all.json"))[
        0
    ],
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
def test_names_are_dalis(name: str, folder: Path, oracle: Any) -> None:
    __import__("nvidia.dali.fn")
    assert names(dalify, READERS[name], folder) == names(oracle, READERS[name], folder)


def test_names_begin_below_the_root(folder: Path) -> None:
    assert names(dalify, READERS["class folders"], folder) == ["a/0.jpg", "b/1.jpg"]


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


def test_origins_travel() -> None:
    origin = pickle.loads(pickle.dumps(Origin("/data/a/0.jpg", "a/0.jpg")))
    assert (origin, source_info(origin)) == ("/data/a/0.jpg", "a/0.jpg")
    assert (source_info("sound.wav"), source_info(None)) == ("sound.wav", None)
