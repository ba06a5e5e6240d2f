"""COCO annotations: boxes, labels and masks of images, in a few arrays.

Options determine the form of boxes, labels and polygons when the annotations are read. The arrays can be saved and
loaded in DALI's format. An invalid annotation is an error when its image is read.
"""

from __future__ import annotations

import json
import math
import warnings
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import BadSampleWarning, MissingPackageError, ReaderError, short_repr
from dalify.base.optional import LazyModule, is_loaded
from dalify.base.wording import counted
from dalify.formats.files.storage import read_copy

_MAX_EXTENT = (1 << 31) - 1
_MAX_FLOAT = float(np.finfo(np.float32).max)  # boxes and their edges, which are sums, are float32
_MAX_SHIFT = 60  # of a number in a mask that is written as a string; longer numbers are invalid

msgspec: Any = LazyModule("msgspec", "reading annotations quickly", "dalify[coco]")

Rle = tuple[int, int, NDArray[np.uint32]]
"""A run-length encoded mask: height, width, lengths of alternating runs of 0 and 1, column by column."""


@dataclass(frozen=True, slots=True)
class BoxOptions:
    """Which annotations are used, and in which form.

    Attributes:
        ltrb: whether boxes are left, top, right, bottom; otherwise x, y, width, height.
        ratio: whether boxes and vertices are fractions of the extents of the image.
        size_threshold: minimum width and height of objects in pixels; smaller objects are left out.
        skip_empty: whether images without objects are left out.
        include_iscrowd: whether crowd annotations (groups of objects) are included.
        avoid_class_remapping: whether labels are category ids; otherwise indices into the list of categories, from 1.
        has_masks: whether masks are read.
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
    """The annotations of all images; image ``n`` has the annotations ``firsts[n]:firsts[n + 1]``.

    Attributes:
        names: paths of the images relative to the root.
        ids: image ids, int32 ``[N]``; None if they were not saved.
        extents: height and width, int32 ``[N, 2]``; None if they were not saved.
        box_firsts: int64 ``[N + 1]``, for ``boxes`` and ``labels``.
        boxes: float32 ``[M, 4]``.
        labels: int32 ``[M]``.
        polygon_firsts: int64 ``[N + 1]``, for ``polygons``.
        polygons: index of the object, start and end of its vertices, all within the image, int32 ``[P, 3]``.
        vertex_firsts: int64 ``[N + 1]``, for ``vertices``.
        vertices: x, y, float32 ``[V, 2]``.
        rles: per image: index of the object and its run-length encoded mask.
        problems: per image: why its annotations are unusable.
        object_ids: annotation ids of ``boxes``, -1 if an annotation has none; None if unknown.
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
    problems: dict[int, str] = field(default_factory=dict)
    object_ids: array[int] | None = None


def read_annotations(path: str, images: Sequence[str] | None, options: BoxOptions) -> Annotations:
    """Read a JSON file of annotations.

    Args:
        path: path of the file.
        images: names of the requested images, in order; None for all images, sorted by id.
        options: which annotations are used, and in which form.

    Raises:
        ReaderError: the file is absent, is not COCO JSON, or does not contain a requested image.
    """
    document = _document(path, options.has_masks)
    listed_images, annotations = (_table(path, document, name) for name in ("images", "annotations"))
    by_id = _by_id(path, listed_images)
    labels: dict[int, int] | None = None
    if "categories" in document or not options.avoid_class_remapping:
        labels = {}
        for place, item in enumerate(_table(path, document, "categories"), 1):
            number = _number_of(item, "id")
            if number is not None:
                labels[number] = number if options.avoid_class_remapping else place
    objects = _by_image(path, annotations, options.include_iscrowd)
    collector = _Collector(options, labels)
    for number in _order(path, by_id, images):
        collector.add(number, by_id[number], objects.get(number, ()))
    return collector.result()


def _table(path: str, document: Mapping[str, Any], name: str) -> list[Any]:
    table = document.get(name)
    if not isinstance(table, list):
        state = "is missing" if table is None else "is not a list"
        hint = "With avoid_class_remapping=True, labels are the ids." if name == "categories" and table is None else ""
        raise ReaderError(f"{path!r} does not contain COCO annotations: {name!r} {state}.", hint=hint)
    return table


def _by_id(path: str, images: list[Any]) -> dict[int, Any]:
    """Return images by id; images without an id are left out with a warning."""
    numbers = [_number_of(item, "id") for item in images]
    _check_ids(path, "images", "id", numbers)
    return {number: item for number, item in zip(numbers, images, strict=True) if number is not None}


def _by_image(path: str, annotations: list[Any], include_iscrowd: bool) -> dict[int, list[Any]]:
    """Return annotations by image id; annotations without an image id are left out with a warning."""
    numbers = [_number_of(item, "image_id") for item in annotations]
    _check_ids(path, "annotations", "image_id", numbers)
    found: dict[int, list[Any]] = {}
    for number, item in zip(numbers, annotations, strict=True):
        if number is not None and (include_iscrowd or not item.get("iscrowd")):
            found.setdefault(number, []).append(item)
    return found


def _check_ids(path: str, table: str, name: str, numbers: list[int | None]) -> None:
    absent = numbers.count(None)
    if numbers and absent == len(numbers):
        raise ReaderError(f"{path!r} does not contain COCO annotations: no entry of {table!r} has an integer {name!r}.")
    if absent:
        warnings.warn(
            f"{path!r}: {absent} of {counted(len(numbers), 'entry')} of {table!r} have no integer {name!r} and are "
            f"left out; the first is entry {numbers.index(None)}.",
            BadSampleWarning,
            stacklevel=2,
        )


def _number_of(item: Any, name: str) -> int | None:
    """Return an integer id, or None. Strings of digits are accepted."""
    try:
        number = int(item[name])
    except (KeyError, TypeError, ValueError, OverflowError, IndexError):
        return None
    return number if abs(number) < 1 << 63 else None


# The parts of a document that are parsed. Most of it are the vertices of polygons, which are parsed only for masks.


class _Image(TypedDict, total=False):
    id: int
    file_name: str
    height: int
    width: int


class _Category(TypedDict, total=False):
    id: int


class _Object(TypedDict, total=False):
    id: Any
    image_id: int
    category_id: int
    iscrowd: int | bool
    bbox: list[float]


class _MaskedObject(_Object, total=False):
    # Parsed when the image is added, because parsing all at once would create millions of lists.
    segmentation: msgspec.Raw  # pyright: ignore[reportInvalidTypeForm] -- the package is loaded when it is needed


class _Document(TypedDict, total=False):
    images: list[_Image]
    categories: list[_Category]
    annotations: list[_Object]


class _MaskedDocument(TypedDict, total=False):
    images: list[_Image]
    categories: list[_Category]
    annotations: list[_MaskedObject]


def _document(path: str, has_masks: bool) -> Mapping[str, Any]:
    data = read_copy(path, "the annotations")
    try:
        document = _parsed(data, has_masks)
    except (ValueError, RecursionError) as error:
        raise ReaderError(f"{path!r} is not valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise ReaderError(f"{path!r} does not contain COCO annotations: the top-level value is not a dictionary.")
    return document


def _parsed(data: bytes, has_masks: bool) -> Any:
    try:
        return _decoder(has_masks).decode(data)  # about ten times as fast as json
    except (
        MissingPackageError,
        ValueError,
        RecursionError,
    ):  # msgspec is not installed, or rejects the document (for example numbers as strings)
        return json.loads(data)


@cache
def _decoder(has_masks: bool) -> Any:
    return msgspec.json.Decoder(_MaskedDocument if has_masks else _Document)


def _order(path: str, by_id: Mapping[int, Any], images: Sequence[str] | None) -> list[int]:
    if images is None:
        return sorted(by_id)
    numbers = {str(item.get("file_name")): number for number, item in by_id.items()}
    found = [numbers[name] for name in images if name in numbers]
    missing = [name for name in images if name not in numbers]
    if missing:
        text = f"{path!r} has no image {missing[0]!r}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
        if not found:
            raise ReaderError(f"{text}.", hint=f"Names in the file: {', '.join(list(numbers)[:4])} …")
        ignored = f"ignoring {len(missing)} of the {len(images)} names in images="
        warnings.warn(f"{text}; {ignored}.", BadSampleWarning, stacklevel=2)
    return found


class _Collector:
    """Collects annotations image by image."""

    def __init__(self, options: BoxOptions, labels: Mapping[int, int] | None) -> None:
        self._options = options
        self._labels = labels
        self._names: list[str] = []
        self._ids: list[int] = []
        self._extents: list[tuple[int, int]] = []
        self._boxes: list[Sequence[float]] = []
        self._box_labels: list[int] = []
        self._object_ids = array("q")
        self._box_firsts = [0]
        self._polygons: list[tuple[int, int, int]] = []
        self._polygon_firsts = [0]
        self._coordinates = array("f")
        self._vertex_firsts = [0]
        self._rles: dict[int, list[tuple[int, Rle]]] = {}
        self._problems: dict[int, str] = {}

    def add(self, number: int, image: Any, objects: Sequence[Any]) -> None:
        """Add an image with its objects, or the problem with them."""
        threshold = self._options.size_threshold
        name, extents = image.get("file_name"), (0, 0)
        try:
            extents = _extents(image)
            wanted = []
            for item in objects:
                box = _box(item)
                if box[2] >= threshold and box[3] >= threshold:
                    wanted.append((item, box))
            if not isinstance(name, str):
                raise _ProblemError(f"the image {number} has no string 'file_name'")
            if not wanted and self._options.skip_empty:
                return
            if wanted and self._options.ratio and 0 in extents:
                height, width = extents
                raise _ProblemError(f"ratio=True divides boxes by the size of the image, which is {width} x {height}")
            for index, (item, box) in enumerate(wanted):
                self._add_object(index, item, box)
        except _ProblemError as problem:
            for values in (self._boxes, self._box_labels, self._object_ids):
                del values[self._box_firsts[-1] :]
            del self._polygons[self._polygon_firsts[-1] :], self._coordinates[2 * self._vertex_firsts[-1] :]
            self._rles.pop(len(self._names), None)
            self._problems[len(self._names)] = f"{problem}."
        self._names.append(str(name))
        self._ids.append(number)
        self._extents.append(extents)
        self._box_firsts.append(len(self._boxes))
        self._polygon_firsts.append(len(self._polygons))
        self._vertex_firsts.append(len(self._coordinates) // 2)

    def _add_object(self, index: int, item: Any, box: Sequence[float]) -> None:
        category = _number_of(item, "category_id")
        label = category if category is None or self._labels is None else self._labels.get(category)
        if label is None:
            raise _ProblemError(f"{_name(item)} has an unknown 'category_id', {short_repr(item.get('category_id'))}")
        number = _number_of(item, "id")
        self._boxes.append(box)
        self._box_labels.append(label)
        self._object_ids.append(-1 if number is None else number)
        mask = item.get("segmentation") if self._options.has_masks else None
        try:
            if is_loaded("msgspec") and isinstance(mask, msgspec.Raw):
                mask = msgspec.json.decode(mask)
            if mask:
                self._add_mask(index, mask)
        except _ProblemError as problem:
            raise _ProblemError(f"{_name(item)}: {problem}") from None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            if isinstance(error, ReaderError):
                raise _ProblemError(f"{_name(item)}: {str(error).rstrip('.')}") from None
            raise _ProblemError(
                f"{_name(item)} has an invalid 'segmentation': it must be a list of polygons, each a list of numbers "
                "[x0, y0, x1, y1, ...], or a dictionary with 'counts' and 'size'"
            ) from None

    def _add_mask(self, index: int, mask: Any) -> None:
        if isinstance(mask, dict):
            counts = mask["counts"]
            height, width = map(int, mask["size"])
            runs = _runs(decode_runs(counts) if isinstance(counts, str) else counts)
            if min(height, width) < 0 or int(runs.sum(dtype=np.uint64)) != height * width:
                raise _ProblemError(f"the runs of its mask do not add up to {height} x {width} pixels")
            self._rles.setdefault(len(self._names), []).append((index, (height, width, runs)))
            return
        first_vertex = self._vertex_firsts[-1]
        for polygon in mask:
            own = array("f", polygon)
            if len(own) % 2:
                own.pop()
            if not math.isfinite(sum(own)):
                raise _ProblemError("a polygon has a coordinate that is not finite as float32")
            start = len(self._coordinates) // 2 - first_vertex
            self._coordinates.extend(own)
            self._polygons.append((index, start, start + len(own) // 2))

    def result(self) -> Annotations:
        """Return all annotations as arrays, with boxes and vertices in the requested form."""
        extents = np.array(self._extents, np.int32).reshape(-1, 2)
        box_firsts = np.array(self._box_firsts, np.int64)
        vertex_firsts = np.array(self._vertex_firsts, np.int64)
        boxes = np.array(self._boxes, np.float32).reshape(-1, 4)
        if self._options.ltrb:
            boxes[:, 2:] += boxes[:, :2]
        vertices = np.array(self._coordinates, np.float32).reshape(-1, 2)
        if self._options.ratio:
            scales = np.maximum(extents[:, ::-1], 1).astype(np.float32)  # extents of images with a problem may be 0
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
            self._problems,
            self._object_ids,
        )


class _ProblemError(Exception):
    """The annotations of an image are unusable."""


def _extents(image: Any) -> tuple[int, int]:
    found: list[int] = []
    for name in ("height", "width"):
        extent = _number_of(image, name)
        if extent is None or not 0 <= extent <= _MAX_EXTENT:
            raise _ProblemError(f"the image has an invalid {name}: {short_repr(image.get(name))}")
        found.append(extent)
    return found[0], found[1]


def _box(item: Any) -> tuple[float, float, float, float]:
    try:
        x, y, width, height = item["bbox"]
        if abs(x) + abs(y) + abs(width) + abs(height) <= _MAX_FLOAT:
            return x, y, width, height
    except (KeyError, TypeError, ValueError, OverflowError):
        pass
    raise _ProblemError(f"{_name(item)} has a 'bbox' that is not four finite numbers: {short_repr(item.get('bbox'))}")


def _runs(counts: Any) -> NDArray[np.uint32]:
    found = np.array(counts)
    is_valid = found.ndim == 1 and (found.size == 0 or found.dtype.kind in "iuf")
    if not is_valid or not ((found >= 0) & (found < 1 << 32)).all():
        raise _ProblemError("the runs of its mask are not a list of numbers from 0 to 2**32 - 1")
    return found.astype(np.uint32)


def _name(item: Any) -> str:
    return f"the annotation with id {short_repr(item.get('id'))}"


def decode_runs(text: str) -> list[int]:
    """Return the runs of a mask encoded as a string: 5 bits per character, differences from the third run on.

    Source: maskApi.c of the COCO API, which defines the format.
    """
    runs: list[int] = []
    place = 0
    while place < len(text):
        value = shift = 0
        more = True
        while more:
            if place >= len(text):
                raise ReaderError("a run-length encoded mask ends in the middle of a number.")
            bits = ord(text[place]) - 48
            if not 0 <= bits < 64 or shift > _MAX_SHIFT:
                raise ReaderError(f"a run-length encoded mask has an invalid character at position {place}.")
            value |= (bits & 31) << shift
            more = bool(bits & 32)
            place += 1
            shift += 5
            if not more and bits & 16:
                value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
    if any(run < 0 for run in runs):
        raise ReaderError("a run-length encoded mask has a negative run.")
    return runs
