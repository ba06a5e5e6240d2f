"""readers.coco compared with DALI with every option, damaged annotations, and annotations that were saved."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import (
    ArgumentValueError,
    BadSampleWarning,
    DalifyError,
    LimitError,
    MissingPackageError,
    ReaderError,
)
from dalify.formats.annotations import coco
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
        {"images": ["2.jpg", "none.jpg", "0.jpg"]},
        {"images": ["2.jpg", "0.jpg"], "skip_empty": True, "image_ids": True},
        {"polygon_masks": True},
        {"polygon_masks": True, "ratio": True, "image_ids": True},
        {"masks": True},
        {"save_img_ids": True},
    ],
    ids=lambda options: ",".join(options),
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_options_equal_dali(oracle: ModuleType, data: Path, options: dict[str, Any]):
    assert_parity(oracle, data, **options)


@pytest.mark.parametrize("options", [{}, {"ratio": True, "ltrb": True, "image_ids": True}, {"include_iscrowd": False}])
def test_masks_of_pixels_equal_dali(oracle: ModuleType, data: Path, options: dict[str, Any]):
    pytest.importorskip("pycocotools", reason="the extra dalify[coco]")
    assert_parity(oracle, data, pixelwise_masks=True, **options)


def test_masks_of_parts_of_extents_are_rounded_like_dalis(oracle: ModuleType, tmp_path: Path):
    """With ``ratio`` the vertices are divided and multiplied again, in 32 bits: some pixels at the rim depend on it."""
    pytest.importorskip("pycocotools", reason="the extra dalify[coco]")
    random = np.random.default_rng(0)
    written: dict[str, Any] = {"images": [], "annotations": [], "categories": [{"id": n, "name": "x"} for n in (1, 2)]}
    for number in range(20):
        (tmp_path / f"{number:02}.jpg").write_bytes(b"x")
        width, height = (int(extent) for extent in random.integers(20, 700, 2))
        written["images"].append({"id": number, "file_name": f"{number:02}.jpg", "width": width, "height": height})
        for _ in range(3):
            vertices = np.round(random.random((int(random.integers(3, 9)), 2)) * (width, height), 2)
            own = {"id": len(written["annotations"]), "image_id": number, "category_id": int(random.integers(1, 3))}
            shape = {"bbox": [0, 0, 5, 5], "iscrowd": 0, "segmentation": [vertices.ravel().tolist()]}
            written["annotations"].append({**own, **shape})
    (tmp_path / "annotations.json").write_text(json.dumps(written))
    options = {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "annotations.json")}
    masks = [
        run_reader(package, "readers.coco", 1, 20, ratio=True, pixelwise_masks=True, **options)[1][0][3]
        for package in (dalify, oracle)
    ]
    for ours, theirs in zip(*masks, strict=True):
        np.testing.assert_array_equal(ours, theirs)


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
    with pytest.raises(ReaderError, match="Save the annotations again"):
        read(dalify, data, annotations_file=None, preprocessed_annotations=str(data / "ours"), **missing)
    (data / "ours" / "labels.dat").write_bytes(b"\x05\0\0\0")
    with pytest.raises(ReaderError, match="damaged"):
        read(dalify, data, annotations_file=None, preprocessed_annotations=str(data / "ours"))


def _with_strings(item: Any) -> Any:
    """Numbers of images and categories as strings, as some tools write them."""
    return {key: str(value) if key.endswith("id") else value for key, value in item.items()}


@pytest.mark.parametrize("way", ["texts", "booleans", "no package", "more is said"])
def test_every_way_to_read_gives_the_same(data: Path, way: str, monkeypatch: pytest.MonkeyPatch):
    masks = {"polygon_masks": True, "include_iscrowd": False, "image_ids": True}
    expected = read(dalify, data, **masks)[1]
    reported = document()
    for place in ("images", "annotations", "categories"):
        if way == "texts":
            reported[place] = [_with_strings(item) for item in reported[place]]
        if way == "more is said":
            reported[place] = [{"license": [1, {"a": None}], **item, "note": "\u00e9"} for item in reported[place]]
    if way == "booleans":
        for item in reported["annotations"]:
            item["iscrowd"] = bool(item.get("iscrowd"))
    if way == "no package":
        monkeypatch.setattr(coco, "_decoder", _no_package)
    (data / "annotations.json").write_text(json.dumps(reported))
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
        ("", "not valid JSON"),
        ('{"images": [', "not valid JSON"),
        ("[]", "not a dictionary"),
        ("{}", "'images' is missing"),
        ('{"images": [1], "annotations": [], "categories": []}', "does not contain COCO annotations"),
        ("[" * 100_000, "not valid JSON"),
        ('{"images":' + "[" * 100_000, "not valid JSON"),
        ({**document(), "images": 1}, "'images' is not a list"),
        (without("id", "images"), "no entry of 'images' has an integer 'id'"),
        (without("image_id", "annotations"), "no entry of 'annotations' has an integer 'image_id'"),
        (without("bbox", "annotations"), "id .* has a 'bbox' that is not four finite numbers: None"),
        (without("file_name", "images"), "has no string 'file_name'"),
        (without("width", "images"), "invalid width: None"),
        ({**document(), "categories": []}, "unknown 'category_id', (17|3|90)"),
    ],
)
def test_damaged_annotations(data: Path, contents: Any, message: str):
    text = contents if isinstance(contents, str) else json.dumps(contents)
    (data / "annotations.json").write_text(text)
    with pytest.raises(ReaderError, match=message):
        read(dalify, data, polygon_masks=True)


def test_annotations_without_categories(oracle: ModuleType, data: Path):
    """DALI's labels are all 0, unless they are the ids."""
    without_categories = {name: table for name, table in document().items() if name != "categories"}
    (data / "annotations.json").write_text(json.dumps(without_categories))
    assert_parity(oracle, data, avoid_class_remapping=True)
    with pytest.raises(ReaderError, match=r"(?s)'categories' is missing.*avoid_class_remapping"):
        read(dalify, data)


def one_damaged(data: Path, place: str, **changes: Any) -> str:
    """Spoil the annotations of one image; return its name."""
    damaged = document()
    item = damaged[place][0]
    item.update(changes)
    (data / "annotations.json").write_text(json.dumps(damaged))
    number = item["image_id"] if place == "annotations" else item["id"]
    return next(image["file_name"] for image in document()["images"] if image["id"] == number)


BAD_MASKS = [
    [[1, 1, 1e8, 1, 1, 20]],
    [[1, 1, 1e9, 1, 1, 20]],
    [[1, 1, -1e30, 1, 1, 20]],
    [[1, 1, 1e39, 1, 1, 20]],
    [[1, 1, float("inf"), 1, 1, 20]],
    [[1, 1, float("nan"), 1, 1, 20]],
    [[1, 1, 10**400, 1, 1, 20]],
    [[1, 1, "x", 1, 1, 20]],
    [3],
    {"size": [40, 60], "counts": [5]},
    {"size": [40, 60], "counts": [2400, -5, 5]},
    {"size": [40, 60], "counts": [2**32, 2400]},
    {"size": [40, 60], "counts": [float("nan")]},
    {"size": [40, 60], "counts": [[2400]]},
    {"size": [40, 60], "counts": "o" * 200_000},
    {"size": [40, 60], "counts": "\x00\xff"},
    {"size": [2**40, 2**40], "counts": [1]},
    {"size": [1]},
    {"size": [41, 60], "counts": [2460]},
]
BAD_ANNOTATIONS = [
    *(("annotations", {"segmentation": mask}) for mask in BAD_MASKS),
    *(
        ("annotations", {"bbox": box})
        for box in (
            [1, 2, 3],
            [1, 2, float("nan"), 4],
            [1e400] * 4,
            "abcd",
            [10**400] * 4,
            [1e39, 1, 2, 3],
            [3e38, 1, 3e38, 2],
        )
    ),
    ("annotations", {"category_id": []}),
    ("annotations", {"category_id": 12345}),
    ("images", {"width": 2**40}),
    ("images", {"width": 2**31 - 1, "height": 2**31 - 1}),
    ("images", {"height": float("inf")}),
    ("images", {"height": -1}),
    ("images", {"height": "x"}),
    ("images", {"file_name": 5}),
]


@pytest.mark.parametrize(("place", "changes"), BAD_ANNOTATIONS, ids=lambda value: str(value)[:50])
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_a_bad_annotation_fails_one_sample(data: Path, place: str, changes: dict[str, Any], on_error: str):
    name = one_damaged(data, place, **changes)

    @dalify.pipeline_def(batch_size=len(document()["images"]), num_threads=1, device_id=None, on_error=on_error)
    def graph():
        return tuple(
            dalify.fn.readers.coco(
                file_root=str(data), annotations_file=str(data / "annotations.json"), pixelwise_masks=True
            )
        )

    pipe = graph()
    if on_error == "raise":
        with pytest.raises((ReaderError, LimitError), match="file_name" if "file_name" in changes else name):
            pipe.run()
        return
    pipe.run()
    assert {Path(bad.source).name for bad in pipe.bad_samples()} == {str(changes.get("file_name", name))}


def test_the_error_names_the_annotation(data: Path):
    one_damaged(data, "annotations", id=4711, bbox=[0, 0, 1, None])
    with pytest.raises(ReaderError, match="the annotation with id 4711 has a 'bbox'"):
        read(dalify, data)
    for coordinate in (1e8, 1e9):
        one_damaged(data, "annotations", id=4711, segmentation=[[1, 1, coordinate, 1, 1, 20]])
        with pytest.raises((LimitError, ReaderError), match="the annotation with id 4711"):
            read(dalify, data, pixelwise_masks=True)
    for mask in (5, [3], "x", [["a", "b"] * 3], {"size": [40, 60]}, {"counts": [2400]}, {"counts": [1], "size": 5}):
        one_damaged(data, "annotations", id=4711, segmentation=mask)
        with pytest.raises(ReaderError, match="id 4711 has an invalid 'segmentation': it must be a list of polygons"):
            read(dalify, data, polygon_masks=True)
    one_damaged(data, "annotations", id=4711, segmentation={"size": [40, 60], "counts": "\x00"})
    with pytest.raises(
        ReaderError, match=r"id 4711: a run-length encoded mask has an invalid character at position 0\.\n"
    ):
        read(dalify, data, polygon_masks=True)
    one_damaged(data, "annotations", id=4711, segmentation=[[1, 1, float("inf"), 1, 1, 20]])
    with pytest.raises(ReaderError, match="the annotation with id 4711: a polygon has a coordinate"):
        read(dalify, data, polygon_masks=True)


@pytest.mark.parametrize("changes", [{"width": 0}, {"height": 0}, {"width": 0, "height": 0}], ids=str)
def test_fractions_of_an_image_without_extents(data: Path, changes: dict[str, int]):
    name = one_damaged(data, "images", **changes)
    read(dalify, data)  # pixels need no extents
    with pytest.raises(ReaderError, match=r"ratio=True divides boxes by the size of the image") as caught:
        read(dalify, data, ratio=True)
    assert name in str(caught.value)


def test_annotations_of_no_image_are_left_out(data: Path):
    damaged = document()
    damaged["annotations"].append({"id": 1, "image_id": "none", "category_id": 1, "bbox": [0, 0, 1, 1]})
    damaged["annotations"].append(3)
    damaged["images"].append({"file_name": "x.jpg"})
    expected = read(dalify, data)[1]
    (data / "annotations.json").write_text(json.dumps(damaged))
    with pytest.warns(BadSampleWarning) as caught:
        found = read(dalify, data)[1]
    strings = " ".join(str(item.message) for item in caught)
    assert (
        "2 of 9 entries of 'annotations' have no integer 'image_id' and are left out; the first is entry 7" in strings
    )
    assert "1 of 5 entries of 'images' have no integer 'id' and are left out; the first is entry 4" in strings
    assert [len(outputs) for outputs in found] == [len(outputs) for outputs in expected]


@pytest.mark.parametrize(
    "polygons", [[[1, 1, 20, 20]], [[5, 5]], [[1, 1, 20, 1, 10]], [[]], [[1, 1, 20, 1, 10, 20, 7]]]
)
@pytest.mark.parametrize("options", [{"pixelwise_masks": True}, {"polygon_masks": True}], ids=str)
def test_polygons_of_few_vertices_equal_dali(data: Path, oracle: Any, polygons: Any, options: dict[str, Any]):
    one_damaged(data, "annotations", segmentation=polygons)
    if len(polygons[0]) % 2 == 0 or "pixelwise_masks" in options:
        assert_parity(oracle, data, **options)
        return
    # Behind a number too many, DALI's polygons begin half a vertex late.
    (ours,) = read(dalify, data, **options)[1]
    one_damaged(data, "annotations", segmentation=[polygons[0][:-1]])
    (expected,) = read(dalify, data, **options)[1]
    for own, other in zip(ours, expected, strict=True):
        for one, two in zip(own, other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_annotations_with_problems_are_not_saved(data: Path):
    one_damaged(data, "annotations", bbox=[])
    with pytest.raises(ReaderError, match="cannot be saved"):
        read(dalify, data, save_preprocessed_annotations=True, save_preprocessed_annotations_dir=str(data / "saved"))


@pytest.mark.parametrize("mask", [[3], {"size": [40, 60], "counts": [5]}, {"size": [1]}])
def test_damaged_masks(data: Path, mask: Any):
    damaged = document()
    for item in damaged["annotations"]:
        item["segmentation"] = mask
    (data / "annotations.json").write_text(json.dumps(damaged))
    with pytest.raises(ReaderError):
        read(dalify, data, polygon_masks=True)
    read(dalify, data)  # without masks they are not read


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


def test_missing_images(data: Path):
    with pytest.raises(ReaderError, match=r"has no image 'zz\.jpg'"):
        read(dalify, data, images=["zz.jpg"])
    with pytest.warns(BadSampleWarning, match=r"has no image 'zz\.jpg'; ignoring 1 of the 2 names in images="):
        found = read(dalify, data, images=["zz.jpg", "2.jpg"])
    assert found[2]["epoch_size"] == 1
    with pytest.raises(ReaderError, match="cannot read the annotations"):
        read(dalify, data, annotations_file=str(data / "none.json"))
    (data / "3.jpg").unlink()
    with pytest.raises(DalifyError, match=r"3\.jpg"):
        read(dalify, data)


@pytest.mark.parametrize(
    ("file", "place", "value", "message"),
    [
        ("polygon_data.dat", 4, 77, "a mask for object 77"),
        ("masks_rles_idx.dat", 4, -5, "a mask for object -5"),
        ("masks_rles.dat", 4, 2**31 - 1, "a run-length encoded mask"),
        ("masks_rles.dat", 20, 2**31 - 1, "damaged"),
        ("heights.dat", 4, 2**31 - 1, "a run-length encoded mask|max_image_pixels"),
        ("counts.dat", 4, -1, "are inconsistent"),
        ("boxes.dat", 0, 2**31 - 1, "damaged"),
    ],
)
def test_damage_of_saved_annotations(data: Path, file: str, place: int, value: int, message: str):
    saved = data / "saved"
    wanted = {"pixelwise_masks": True, "image_ids": True}
    read(dalify, data, save_preprocessed_annotations=True, save_preprocessed_annotations_dir=str(saved), **wanted)
    contents = bytearray((saved / file).read_bytes())
    contents[place : place + 4] = value.to_bytes(4, "little", signed=True)
    (saved / file).write_bytes(contents)
    with pytest.raises((ReaderError, LimitError), match=message):
        read(dalify, data, annotations_file=None, preprocessed_annotations=str(saved), **wanted)
