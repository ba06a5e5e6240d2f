"""readers.coco beside DALI with every option, damaged annotations, and annotations that were saved."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import ArgumentValueError, DalifyError, MissingPackageError, ReaderError
from dalify.formats import coco
from tests.operators.readers.datasets import run_reader

POLYGONS = [[10.0, 10.0, 30.0, 10.0, 30.0, 40.5], [1.0, 2.0, 13.0, 4.0, 5.0, 17.0, 2.0, 9.5]]


def document() -> dict[str, Any]:
    return {
        "images": [
            {"id": 30, "file_name": "1.jpg", "width": 100, "height": 50},
            {"id": 7, "file_name": "0.jpg", "width": 60, "height": 40},
            {"id": 31, "file_name": "2.jpg", "width": 10, "height": 10},
            {"id": 40, "file_name": "3.jpg", "width": 20, "height": 20},
        ],
        "categories": [{"id": 90, "name": "a"}, {"id": 3, "name": "b"}, {"id": 17, "name": "c"}],
        "annotations": [
            {"id": 1, "image_id": 30, "category_id": 17, "bbox": [1.5, 2, 30, 20], "segmentation": POLYGONS},
            {"id": 2, "image_id": 7, "category_id": 90, "bbox": [5, 6, 0.05, 10], "segmentation": POLYGONS[:1]},
            {
                "id": 3,
                "image_id": 7,
                "category_id": 3,
                "bbox": [5, 6, 10, 10],
                "iscrowd": 1,
                "segmentation": {"size": [40, 60], "counts": [100, 50, 2250]},
            },
            {"id": 4, "image_id": 30, "category_id": 3, "bbox": [0, 0, 100, 50], "segmentation": POLYGONS[1:]},
            {"id": 5, "image_id": 40, "category_id": 3, "bbox": [0, 0, 10, 0.05], "segmentation": POLYGONS[1:]},
            {"id": 6, "image_id": 40, "category_id": 3, "bbox": [1, 1, 10, 5], "segmentation": [[1, 1, 12, 1, 12, 6]]},
            {"id": 7, "image_id": 40, "category_id": 90, "bbox": [2, 2, 4, 9], "segmentation": [[2, 2, 6, 2, 6, 11]]},
        ],
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"{number}.jpg").write_bytes(bytes([number] * 3))
    for item in (written := document())["annotations"]:
        item.setdefault("iscrowd", 0)
    (tmp_path / "annotations.json").write_text(json.dumps(written))
    return tmp_path


def read(package: Any, data: Path, **options: Any) -> Any:
    arguments = {"file_root": str(data), "annotations_file": str(data / "annotations.json"), **options}
    return run_reader(package, "readers.coco", 1, 4, **{k: v for k, v in arguments.items() if v is not None})


def assert_parity(oracle: ModuleType, data: Path, **options: Any) -> None:
    layouts, (ours,), meta = read(dalify, data, **options)
    their_layouts, (theirs,), their_meta = read(oracle, data, **options)
    assert layouts == their_layouts
    assert meta["epoch_size"] == their_meta["epoch_size"]
    assert len(ours) == len(theirs)
    for own, other in zip(ours, theirs, strict=True):
        for one, two in zip(own, other, strict=True):
            assert one.dtype == two.dtype
            assert one.shape == two.shape
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ltrb": True},
        {"ratio": True},
        {"ltrb": True, "ratio": True, "image_ids": True},
        {"skip_empty": True},
        {"avoid_class_remapping": True},
        {"include_iscrowd": False},
        {"size_threshold": 15.0},
        {"images": ["2.jpg", "0.jpg", "0.jpg"]},
        {"images": ["2.jpg", "0.jpg"], "skip_empty": True, "image_ids": True},
        {"polygon_masks": True},
        {"polygon_masks": True, "ratio": True, "image_ids": True},
        {"masks": True},
        {"save_img_ids": True},
    ],
    ids=lambda options: ",".join(options),
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_options_are_those_of_dali(oracle: ModuleType, data: Path, options: dict[str, Any]):
    assert_parity(oracle, data, **options)


@pytest.mark.parametrize("options", [{}, {"ratio": True, "ltrb": True, "image_ids": True}, {"include_iscrowd": False}])
def test_masks_of_pixels_are_those_of_dali(oracle: ModuleType, data: Path, options: dict[str, Any]):
    pytest.importorskip("pycocotools", reason="the extra dalify[coco]")
    assert_parity(oracle, data, pixelwise_masks=True, **options)


def test_masks_by_runs_that_are_text(data: Path):
    """The compressed form is that of pycocotools."""
    package = pytest.importorskip("pycocotools.mask", reason="the extra dalify[coco]")
    written = json.loads((data / "annotations.json").read_text())
    random = np.random.default_rng(5)
    pixels = np.asfortranarray(random.random((40, 60)) < np.linspace(0, 1, 60), np.uint8)
    text = package.encode(pixels)["counts"].decode()
    written["annotations"][2]["segmentation"]["counts"] = text
    (data / "annotations.json").write_text(json.dumps(written))
    _, (outputs,), _ = read(dalify, data, pixelwise_masks=True)
    np.testing.assert_array_equal(outputs[3][0][..., 0], pixels * 2)


@pytest.mark.parametrize("wanted", [{}, {"polygon_masks": True, "image_ids": True}, {"pixelwise_masks": True}])
def test_saved_annotations(oracle: ModuleType, data: Path, wanted: dict[str, Any]):
    """What either saves, the other reads, to the byte."""
    if "pixelwise_masks" in wanted:
        pytest.importorskip("pycocotools", reason="the extra dalify[coco]")
    folders = {"ours": dalify, "theirs": oracle}
    for name, package in folders.items():
        (data / name).mkdir()
        options = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(data / name)}
        read(package, data, ltrb=True, ratio=True, **wanted, **options)
    files = sorted(path.name for path in (data / "ours").iterdir())
    assert files == sorted(path.name for path in (data / "theirs").iterdir())
    for file in files:
        assert (data / "ours" / file).read_bytes() == (data / "theirs" / file).read_bytes(), file
    ratio = {"ratio": True} if "pixelwise_masks" in wanted else {}
    options = {"annotations_file": None, "preprocessed_annotations": str(data / "theirs"), **wanted, **ratio}
    for own, other in zip(
        read(dalify, data, **options)[1][0], read(dalify, data, ltrb=True, ratio=True, **wanted)[1][0], strict=True
    ):
        for one, two in zip(own, other, strict=True):
            np.testing.assert_array_equal(one, two)
    missing = {"polygon_masks": True} if not wanted else {"image_ids": True, "pixelwise_masks": True}
    with pytest.raises(ReaderError, match="Save the annotations anew"):
        read(dalify, data, annotations_file=None, preprocessed_annotations=str(data / "ours"), **missing)
    (data / "ours" / "labels.dat").write_bytes(b"\x05\0\0\0")
    with pytest.raises(ReaderError, match="damaged"):
        read(dalify, data, annotations_file=None, preprocessed_annotations=str(data / "ours"))


def _with_texts(item: Any) -> Any:
    """Numbers of pictures and categories as texts, as some tools write them."""
    return {key: str(value) if key.endswith("id") else value for key, value in item.items()}


@pytest.mark.parametrize("way", ["texts", "booleans", "no package", "more is said"])
def test_every_way_to_read_gives_the_same(data: Path, way: str, monkeypatch: pytest.MonkeyPatch):
    masks = {"polygon_masks": True, "include_iscrowd": False, "image_ids": True}
    expected = read(dalify, data, **masks)[1]
    told = document()
    for place in ("images", "annotations", "categories"):
        if way == "texts":
            told[place] = [_with_texts(item) for item in told[place]]
        if way == "more is said":
            told[place] = [{"license": [1, {"a": None}], **item, "note": "\u00e9"} for item in told[place]]
    if way == "booleans":
        for item in told["annotations"]:
            item["iscrowd"] = bool(item.get("iscrowd"))
    if way == "no package":
        monkeypatch.setattr(coco, "_decoder", _no_package)
    (data / "annotations.json").write_text(json.dumps(told))
    for outputs, others in zip(expected, read(dalify, data, **masks)[1], strict=True):
        for own, other in zip(outputs, others, strict=True):
            for one, two in zip(own, other, strict=True):
                np.testing.assert_array_equal(one, two)


def _no_package(has_masks: bool) -> Any:
    raise MissingPackageError("msgspec is not installed.")


def without(key: str, place: str) -> dict[str, Any]:
    damaged = document()
    for item in damaged[place]:
        item.pop(key)
    return damaged


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("", "no JSON"),
        ('{"images": [', "no JSON"),
        ("[]", "no dictionary"),
        ("{}", "'images' is missing"),
        ('{"images": [1], "annotations": [], "categories": []}', "no annotations of COCO"),
        (without("bbox", "annotations"), "'bbox' is missing"),
        (without("file_name", "images"), "'file_name' is missing"),
        (without("width", "images"), "'width' is missing"),
        ({**document(), "categories": []}, "17 is missing or unknown|3 is missing or unknown|90"),
    ],
)
def test_damaged_annotations(data: Path, contents: Any, message: str):
    text = contents if isinstance(contents, str) else json.dumps(contents)
    (data / "annotations.json").write_text(text)
    with pytest.raises(ReaderError, match=message):
        read(dalify, data, polygon_masks=True)


@pytest.mark.parametrize("mask", [[[1, 2, 3]], [[1, 2, 3, 4]], [3], {"size": [40, 60], "counts": [5]}, {"size": [1]}])
def test_damaged_masks(data: Path, mask: Any):
    damaged = document()
    for item in damaged["annotations"]:
        item["segmentation"] = mask
    (data / "annotations.json").write_text(json.dumps(damaged))
    with pytest.raises(ReaderError):
        read(dalify, data, polygon_masks=True)
    read(dalify, data)  # without masks nobody looks at them


@pytest.mark.parametrize(
    "options",
    [
        {"polygon_masks": True, "pixelwise_masks": True},
        {"polygon_masks": True, "masks": True},
        {"annotations_file": None},
        {"preprocessed_annotations": "x"},
        {"file_root": None},
        {"annotations_file": None, "preprocessed_annotations": "x", "images": ["0.jpg"]},
        {"save_preprocessed_annotations": True},
    ],
)
def test_arguments_that_do_not_go_together(data: Path, options: dict[str, Any]):
    with pytest.raises(ArgumentValueError):
        read(dalify, data, **options)


def test_pictures_that_are_not_there(data: Path):
    with pytest.raises(ReaderError, match=r"has no picture 'zz\.jpg'"):
        read(dalify, data, images=["2.jpg", "zz.jpg"])
    with pytest.raises(ReaderError, match="cannot read the annotations"):
        read(dalify, data, annotations_file=str(data / "none.json"))
    (data / "3.jpg").unlink()
    with pytest.raises(DalifyError, match=r"3\.jpg"):
        read(dalify, data)
