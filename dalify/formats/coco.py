"""COCO's annotations: boxes, labels and masks of pictures, in a few arrays.

Alone because what a box, a label and a polygon are at the output follows from options that are applied once, when the
annotations are read; and because the same arrays can be saved and read back in a moment, in DALI's format.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import MissingPackageError, ReaderError
from dalify.base.optional import LazyModule, is_loaded
from dalify.formats.storage import local_copy

__all__ = ["Annotations", "BoxOptions", "decompressed", "read_annotations"]

msgspec: Any = LazyModule("msgspec", "reading annotations quickly", "dalify[coco]")

Rle = tuple[int, int, NDArray[np.uint32]]
"""A mask by runs: height, width, lengths of runs of 0 and 1 in turns, column by column."""


@dataclass(frozen=True, slots=True)
class BoxOptions:
    """What is taken of the annotations, and in which form.

    Attributes:
        ltrb: boxes are left, top, right, bottom; otherwise x, y, width, height.
        ratio: boxes and vertices are parts of the picture's extents.
        size_threshold: objects whose width or height in pixels is smaller are left out.
        skip_empty: pictures without objects are left out.
        include_iscrowd: groups of objects are taken, too.
        avoid_class_remapping: labels are the numbers of the categories; otherwise their places in the list, from 1.
        has_masks: masks are read, too.
    """

    ltrb: bool
    ratio: bool
    size_threshold: float
    skip_empty: bool
    include_iscrowd: bool
    avoid_class_remapping: bool
    has_masks: bool


@dataclass(slots=True)
class Annotations:
    """The annotations of all pictures; those of picture ``n`` stand at ``firsts[n]:firsts[n + 1]``.

    Attributes:
        names: paths of the pictures below the root.
        ids: of the pictures, int32 ``[N]``; None where they were not saved.
        extents: height and width, int32 ``[N, 2]``; None where they were not saved.
        box_firsts: int64 ``[N + 1]``, for ``boxes`` and ``labels``.
        boxes: float32 ``[M, 4]``.
        labels: int32 ``[M]``.
        polygon_firsts: int64 ``[N + 1]``, for ``polygons``.
        polygons: number of the object in its picture, begin and end of its vertices in its picture, int32 ``[P, 3]``.
        vertex_firsts: int64 ``[N + 1]``, for ``vertices``.
        vertices: x, y, float32 ``[V, 2]``.
        rles: by picture, number of the object and its mask by runs.
    """

    names: list[str]
    ids: NDArray[np.int32] | None
    extents: NDArray[np.int32] | None
    box_firsts: NDArray[np.int64]
    boxes: NDArray[np.float32]
    labels: NDArray[np.int32]
    polygon_firsts: NDArray[np.int64] | None = None
    polygons: NDArray[np.int32] | None = None
    vertex_firsts: NDArray[np.int64] | None = None
    vertices: NDArray[np.float32] | None = None
    rles: dict[int, list[tuple[int, Rle]]] = field(default_factory=dict)


def read_annotations(path: str, images: Sequence[str] | None, options: BoxOptions) -> Annotations:
    """Read a JSON file of annotations.

    Args:
        path: of the file.
        images: names of the wanted pictures, in the wanted order; None: all, in the order of their numbers.
        options: what is taken.

    Raises:
        ReaderError: the file is absent or no such JSON, or lacks a wanted picture.
    """
    document = _document(path, options.has_masks)
    try:
        pictures = {int(item["id"]): item for item in document["images"]}
        labels = {
            int(item["id"]): int(item["id"]) if options.avoid_class_remapping else place
            for place, item in enumerate(document["categories"], 1)
        }
        objects: dict[int, list[Any]] = {}
        for item in document["annotations"]:
            if options.include_iscrowd or not item.get("iscrowd"):
                objects.setdefault(int(item["image_id"]), []).append(item)
    except KeyError as error:
        raise ReaderError(f"{path!r} are no annotations of COCO: {error} is missing.") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ReaderError(f"{path!r} are no annotations of COCO: {error}.") from None
    collector = _Collector(path, options, labels)
    for number in _order(path, pictures, images):
        collector.add(number, pictures[number], objects.get(number, ()))
    return collector.result()


# What is read of a document; most of it is vertices of polygons, of which no numbers are made where nobody wants masks.


class _Picture(TypedDict, total=False):
    id: int
    file_name: str
    height: int
    width: int


class _Category(TypedDict, total=False):
    id: int


class _Object(TypedDict, total=False):
    image_id: int
    category_id: int
    iscrowd: int | bool
    bbox: list[float]


class _MaskedObject(_Object, total=False):
    # Parsed when its picture is taken: all at once would be millions of lists.
    segmentation: msgspec.Raw  # pyright: ignore[reportInvalidTypeForm] -- the package is loaded when it is needed


class _Document(TypedDict, total=False):
    images: list[_Picture]
    categories: list[_Category]
    annotations: list[_Object]


class _MaskedDocument(TypedDict, total=False):
    images: list[_Picture]
    categories: list[_Category]
    annotations: list[_MaskedObject]


def _document(path: str, has_masks: bool) -> Mapping[str, Any]:
    try:
        document = _parsed(Path(local_copy(path)).read_bytes(), has_masks)
    except OSError as error:
        raise ReaderError(f"cannot read the annotations {path!r}: {error.strerror}.") from None
    except ValueError as error:
        raise ReaderError(f"{path!r} is no JSON: {error}.") from None
    if not isinstance(document, dict):
        raise ReaderError(f"{path!r} are no annotations of COCO: its top is no dictionary.")
    return document


def _parsed(data: bytes, has_masks: bool) -> Any:
    try:
        return _decoder(has_masks).decode(data)  # some ten times as quick
    except (MissingPackageError, ValueError):  # no such package; a number that is a text, and other things it refuses
        return json.loads(data)


@cache
def _decoder(has_masks: bool) -> Any:
    return msgspec.json.Decoder(_MaskedDocument if has_masks else _Document)


def _order(path: str, pictures: Mapping[int, Any], images: Sequence[str] | None) -> list[int]:
    if images is None:
        return sorted(pictures)
    numbers = {item.get("file_name"): number for number, item in pictures.items()}
    missing = [name for name in images if name not in numbers]
    if missing:
        raise ReaderError(
            f"{path!r} has no picture {missing[0]!r}" + (f" and {len(missing) - 1} more." if missing[1:] else "."),
            hint=f"Names there: {', '.join(list(map(str, numbers))[:4])} …",
        )
    return [numbers[name] for name in images]


class _Collector:
    """Gathers the annotations of pictures, one picture after the other."""

    def __init__(self, path: str, options: BoxOptions, labels: Mapping[int, int]) -> None:
        self._path = path
        self._options = options
        self._labels = labels
        self._names: list[str] = []
        self._ids: list[int] = []
        self._extents: list[tuple[int, int]] = []
        self._boxes: list[Sequence[float]] = []
        self._box_labels: list[int] = []
        self._box_firsts = [0]
        self._polygons: list[tuple[int, int, int]] = []
        self._polygon_firsts = [0]
        self._coordinates = array("f")
        self._vertex_firsts = [0]
        self._rles: dict[int, list[tuple[int, Rle]]] = {}

    def add(self, number: int, picture: Any, objects: Sequence[Any]) -> None:
        """Take a picture with its objects.

        Raises:
            ReaderError: something is missing, or is not what it should be.
        """
        threshold = self._options.size_threshold
        try:
            wanted = [item for item in objects if item["bbox"][2] >= threshold and item["bbox"][3] >= threshold]
            if not wanted and self._options.skip_empty:
                return
            self._names.append(str(picture["file_name"]))
            self._ids.append(number)
            self._extents.append((int(picture["height"]), int(picture["width"])))
            for index, item in enumerate(wanted):
                x, y, width, height = item["bbox"]
                self._boxes.append((float(x), float(y), float(width), float(height)))
                self._box_labels.append(self._labels[int(item["category_id"])])
                mask = item.get("segmentation") if self._options.has_masks else None
                if is_loaded("msgspec") and isinstance(mask, msgspec.Raw):
                    mask = msgspec.json.decode(mask)
                if mask:
                    self._add_mask(index, mask)
        except KeyError as error:
            raise ReaderError(f"{self._path!r}, picture {number}: {error} is missing or unknown.") from None
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, ReaderError):
                raise
            raise ReaderError(f"{self._path!r}, picture {number}: an annotation is damaged: {error}.") from None
        self._box_firsts.append(len(self._boxes))
        self._polygon_firsts.append(len(self._polygons))
        self._vertex_firsts.append(len(self._coordinates) // 2)

    def _add_mask(self, index: int, mask: Any) -> None:
        if isinstance(mask, dict):
            counts = mask["counts"]
            if isinstance(counts, str):
                counts = decompressed(counts)
            height, width = map(int, mask["size"])
            runs = np.array(counts, np.uint32)
            if runs.ndim != 1 or min(height, width) < 0 or int(runs.sum(dtype=np.uint64)) != height * width:
                raise ReaderError(f"{self._path!r}: a mask by runs does not fill its {height} x {width} pixels.")
            self._rles.setdefault(len(self._names) - 1, []).append((index, (height, width, runs)))
            return
        start_of_picture = self._vertex_firsts[-1]
        for polygon in mask:
            if len(polygon) % 2 or len(polygon) < 6:
                raise ReaderError(
                    f"{self._path!r}: a polygon of {len(polygon)} numbers; it needs pairs, three at least."
                )
            start = len(self._coordinates) // 2 - start_of_picture
            self._coordinates.extend(polygon)
            self._polygons.append((index, start, start + len(polygon) // 2))

    def result(self) -> Annotations:
        """Return all as arrays, boxes and vertices in the wanted form."""
        extents = np.array(self._extents, np.int32).reshape(-1, 2)
        box_firsts = np.array(self._box_firsts, np.int64)
        vertex_firsts = np.array(self._vertex_firsts, np.int64)
        boxes = np.array(self._boxes, np.float32).reshape(-1, 4)
        if self._options.ltrb:
            boxes[:, 2:] += boxes[:, :2]
        vertices = np.array(self._coordinates, np.float32).reshape(-1, 2)
        if self._options.ratio:
            scales = np.maximum(extents[:, ::-1], 1).astype(np.float32)
            boxes /= np.repeat(np.tile(scales, 2), np.diff(box_firsts), axis=0)
            vertices /= np.repeat(scales, np.diff(vertex_firsts), axis=0)
        return Annotations(
            self._names,
            np.array(self._ids, np.int64).astype(np.int32),
            extents,
            box_firsts,
            boxes,
            np.array(self._box_labels, np.int64).astype(np.int32),
            np.array(self._polygon_firsts, np.int64),
            np.array(self._polygons, np.int32).reshape(-1, 3),
            vertex_firsts,
            vertices,
            self._rles,
        )


def decompressed(text: str) -> list[int]:
    """Return the runs of a mask that is written as text: numbers of 5 bits a character, from the third on differences.

    Source: maskApi.c of the COCO API, whose format this is.
    """
    runs: list[int] = []
    place = 0
    while place < len(text):
        value = shift = 0
        more = True
        while more:
            if place >= len(text):
                raise ReaderError("a mask by runs ends in the middle of a number.")
            bits = ord(text[place]) - 48
            value |= (bits & 31) << shift
            more = bool(bits & 32)
            place += 1
            shift += 5
            if not more and bits & 16:
                value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
    if any(run < 0 for run in runs):
        raise ReaderError("a mask by runs has a negative run.")
    return runs
