"""Read images with boxes, labels and masks from COCO datasets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError
from dalify.base.wording import counted
from dalify.data import Batch, DALIDataType, Entries
from dalify.formats.annotations.coco import Annotations, BoxOptions, read_annotations
from dalify.formats.annotations.coco_masks import pixelwise_mask, pycocotools
from dalify.formats.annotations.coco_rows import boxes_and_labels
from dalify.formats.annotations.coco_saved import load, save
from dalify.formats.files.data_root import DataRoot
from dalify.formats.files.file_list import FileList
from dalify.formats.files.identity import file_identity
from dalify.formats.files.storage import is_remote, joined
from dalify.formats.files.whole_file import read_file
from dalify.registry import Parameters, Spec, reader


class _Image(NamedTuple):
    images: _Images
    number: int


class _Images(Entries[_Image]):
    """All images of the reader."""

    def __init__(self, root: str, annotations: Annotations) -> None:
        self.root = root
        self.annotations = annotations
        self.files = FileList([joined(root, "")], [len(annotations.names)], annotations.names)

    def __len__(self) -> int:
        return len(self.annotations.names)

    @property
    def is_remote(self) -> bool:
        """Whether the images are on another machine."""
        return is_remote(self.root)

    def _entry(self, number: int) -> _Image:
        return _Image(self, number)


@dataclass(slots=True)
class _Outputs(Parameters):
    """The outputs for each image.

    Attributes:
        image_ids: also return the ID of the image.
        masks: deprecated form of `polygon_masks`: start and end are in coordinates instead of vertices.
        pixelwise_masks: return an image of labels; needs ``pip install dalify[coco]``.
        polygon_masks: return the outlines of the objects. Objects with a run-length-encoded mask have none.
        ratio: boxes and vertices are fractions of the extents of the image.
    """

    image_ids: bool = False
    masks: bool = False
    pixelwise_masks: bool = False
    polygon_masks: bool = False
    ratio: bool = False

    @property
    def has_polygons(self) -> bool:
        """Whether outlines are returned."""
        return self.polygon_masks or self.masks

    @property
    def saved(self) -> dict[str, bool]:
        """The contents of saved annotations, by name."""
        return {
            "has_masks": self.has_polygons or self.pixelwise_masks,
            "has_ids": self.image_ids,
            "has_extents": self.pixelwise_masks,
        }

    @property
    def specs(self) -> list[Spec]:
        """Specs of the outputs after boxes and labels."""
        specs = [Spec(DALIDataType.INT32, 2, ""), Spec(DALIDataType.FLOAT, 2, "")] if self.has_polygons else []
        if self.pixelwise_masks:
            specs.append(Spec(DALIDataType.INT32, 3, "HWC"))
        if self.image_ids:
            specs.append(Spec(DALIDataType.INT32, 1, ""))
        return specs


@dataclass(slots=True)
class _Source(Parameters):
    """Which images and objects are read.

    Attributes:
        annotations_file: the JSON file of the annotations.
        avoid_class_remapping: labels are the category IDs of the file; otherwise their positions in the list of
            categories, from 1 (0 is the background).
        file_root: folder of the images.
        images: names of the images to read, as in the file, in order, with repetitions; by default, and if empty, all
            images, in the order of their IDs. (A name that is not in the file is an error; DALI skips it.)
        include_iscrowd: include groups of objects (``iscrowd``).
        ltrb: boxes are left, top, right, bottom; False: x, y, width, height.
        preprocessed_annotations: folder of saved annotations, instead of `annotations_file`; used as saved.
        save_preprocessed_annotations: save the annotations, as returned, in DALI's format.
        save_preprocessed_annotations_dir: folder for the saved annotations.
        size_threshold: skip objects whose width or height in pixels is smaller.
        skip_empty: skip images without objects.
    """

    annotations_file: str = ""
    avoid_class_remapping: bool = False
    file_root: str | None = None
    images: list[str] | None = None
    include_iscrowd: bool = True
    ltrb: bool = False
    preprocessed_annotations: str = ""
    save_preprocessed_annotations: bool = False
    save_preprocessed_annotations_dir: str = ""
    size_threshold: float = 0.1
    skip_empty: bool = False

    def check(self) -> None:
        """Raise ArgumentValueError for arguments that are missing or mutually exclusive."""
        if bool(self.annotations_file) == bool(self.preprocessed_annotations):
            raise ArgumentValueError("specify either annotations_file or preprocessed_annotations.")
        if self.preprocessed_annotations and self.images is not None:
            raise ArgumentValueError("images and preprocessed_annotations are mutually exclusive.")
        if self.file_root is None:
            raise ArgumentValueError("file_root, the folder of the images, is required.")
        if self.save_preprocessed_annotations and not self.save_preprocessed_annotations_dir:
            raise ArgumentValueError("save_preprocessed_annotations requires save_preprocessed_annotations_dir.")

    @property
    def annotations(self) -> str:
        """The file or folder of the annotations."""
        return self.annotations_file or self.preprocessed_annotations


def _has_polygons(given: Mapping[str, Any]) -> bool:
    return given["polygon_masks"] or given["masks"]


def _effect(arguments: Mapping[str, Any]) -> str:
    return "writes files" if arguments.get("save_preprocessed_annotations") else ""


@reader(
    outputs=lambda given: 3 + 2 * _has_polygons(given) + given["pixelwise_masks"] + given["image_ids"],
    needs=lambda given: (pycocotools,) if given["pixelwise_masks"] else (),
    effect=_effect,
    alphabetical=True,
)
def coco(*, allow_outside_root: bool = False, source: _Source, returned: _Outputs) -> tuple[Spec, ...]:
    """Read images of a COCO dataset with the boxes, labels and masks of their objects.

    Args:
        allow_outside_root: allow image names that leave `file_root`, and URLs. Only for trusted annotations.

    Returns:
        image: the encoded image, uint8 ``[bytes]``; all outputs are on the CPU.
        boxes: float32 ``[M, 4]``.
        labels: int32 ``[M]``.
        polygons: with `polygon_masks`; index of the object, start and end of its vertices, int32 ``[P, 3]``.
        vertices: with `polygon_masks`; x, y, float32 ``[V, 2]``.
        mask: with `pixelwise_masks`; int32 ``[H, W, 1]``, layout HWC: the label of each pixel, 0 for none.
        image_id: with `image_ids`; int32 ``[1]``.

    Raises:
        ReaderError: a missing or damaged file; or incomplete or invalid annotations of an image, when it is read.
            ``on_error`` skips or replaces such images.
        LimitError: a mask that is larger than the limits allow.
        ArgumentValueError: mutually exclusive arguments.

    Example:
        >>> encoded, boxes, labels = fn.readers.coco(
        ...     file_root="train2017", annotations_file="instances_train2017.json", ltrb=True, ratio=True
        ... )  # doctest: +SKIP
    """
    if returned.pixelwise_masks and returned.has_polygons:
        raise ArgumentValueError("pixelwise_masks and polygon_masks are mutually exclusive.")
    if returned.polygon_masks and returned.masks:
        raise ArgumentValueError("masks is the deprecated form of polygon_masks: specify one of them.")
    source.check()
    boxes, labels = Spec(DALIDataType.FLOAT, 2, ""), Spec(DALIDataType.INT32, 1, "")
    return (Spec(DALIDataType.UINT8, 1, ""), boxes, labels, *returned.specs)


@coco.index
def _(allow_outside_root: bool, source: _Source, returned: _Outputs) -> _Images:
    if source.preprocessed_annotations:
        found = load(source.preprocessed_annotations, **returned.saved)
    else:
        options = BoxOptions(
            source.ltrb,
            returned.ratio,
            source.size_threshold,
            source.skip_empty,
            source.include_iscrowd,
            source.avoid_class_remapping,
            returned.saved["has_masks"],
        )
        found = read_annotations(source.annotations_file, source.images or None, options)
    if not found.names:
        raise ReaderError(f"{source.annotations!r} has no annotations of images that match the arguments.")
    if source.save_preprocessed_annotations:
        if found.problems:
            number, problem = next(iter(found.problems.items()))
            raise ReaderError(
                f"the annotations cannot be saved: {counted(len(found.problems), 'image')} of the file have invalid "
                f"annotations. The first is {found.names[number]!r}: {problem}"
            )
        save(source.save_preprocessed_annotations_dir, found, **returned.saved)
    folder = source.file_root or ""
    root = DataRoot(folder, allow_outside_root=allow_outside_root)
    found.names = [root.relative(name, source.annotations, "image", number) for number, name in enumerate(found.names)]
    return _Images(folder, found)


@coco.read
def _(image: _Image, *, source: _Source, returned: _Outputs) -> tuple[NDArray[Any], ...]:
    problem = image.images.annotations.problems.get(image.number)
    if problem is not None:
        raise ReaderError(f"{source.annotations!r}: {problem}")
    return read_file(_path(image)), *_annotations(image, returned)


@coco.read_many
def _(images: _Images, numbers: NDArray[np.int64], *, returned: _Outputs) -> tuple[Any, ...] | None:
    if images.annotations.problems and not images.annotations.problems.keys().isdisjoint(numbers.tolist()):
        return None
    found = images.annotations
    boxes, labels = map(Batch.of_rows, boxes_and_labels(found.boxes, found.labels, found.box_firsts, numbers))
    contents = images.files.read_many(numbers)
    if contents is None:
        return None
    columns: list[Any] = [contents, boxes, labels]
    if returned.image_ids or returned.pixelwise_masks or returned.has_polygons:
        others = [_more_annotations(images[number], returned) for number in numbers.tolist()]
        columns += map(list, zip(*others, strict=True))
    return tuple(columns)


@coco.substitute
def _(image: _Image, *, returned: _Outputs) -> tuple[NDArray[Any] | None, ...]:
    outputs: list[NDArray[Any]] | list[None] = [None] * (2 + len(returned.specs))
    with suppress(DalifyError):  # invalid annotations become zeros
        outputs = _annotations(image, returned)
    return np.empty(0, np.uint8), *outputs


def _annotations(image: _Image, returned: _Outputs) -> list[NDArray[Any]]:
    """Return the outputs after the image."""
    found = image.images.annotations
    objects = _objects(image)
    return [found.boxes[objects].copy(), found.labels[objects].copy(), *_more_annotations(image, returned)]


def _objects(image: _Image) -> slice:
    """Return the places of the boxes of an image."""
    firsts = image.images.annotations.box_firsts
    return slice(int(firsts[image.number]), int(firsts[image.number + 1]))


def _more_annotations(image: _Image, returned: _Outputs) -> list[NDArray[Any]]:
    """Return the outputs after boxes and labels."""
    number = image.number
    found = image.images.annotations
    results: list[NDArray[Any]] = []
    if returned.has_polygons:
        polygons, vertices = _outlines(found, number)
        if returned.masks:
            polygons[:, 1:] *= 2
        results += [polygons, vertices]
    if returned.pixelwise_masks:
        assert found.extents is not None, "dalify bug: masks without extents"
        objects = _objects(image)
        height, width = found.extents[number].tolist()
        polygons, vertices = _outlines(found, number)
        if returned.ratio:
            vertices = vertices * np.array([width, height], np.float32)  # rounded as in DALI
        ids = None if found.object_ids is None else found.object_ids[objects]
        runs = found.rles.get(number, ())
        results.append(pixelwise_mask(height, width, found.labels[objects], polygons, vertices, runs, ids))
    if returned.image_ids:
        assert found.ids is not None, "dalify bug: IDs of images were not read"
        results.append(found.ids[number : number + 1].copy())
    return results


def _outlines(found: Annotations, number: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return copies of the polygons and vertices of an image."""
    assert found.polygon_firsts is not None, "dalify bug: masks were not read"
    assert found.vertex_firsts is not None, "dalify bug: masks were not read"
    assert found.polygons is not None, "dalify bug: masks were not read"
    assert found.vertices is not None, "dalify bug: masks were not read"
    return (
        found.polygons[int(found.polygon_firsts[number]) : int(found.polygon_firsts[number + 1])].copy(),
        found.vertices[int(found.vertex_firsts[number]) : int(found.vertex_firsts[number + 1])].copy(),
    )


def _path(image: _Image) -> str:
    return joined(image.images.root, image.images.annotations.names[image.number])


@coco.identity(
    "annotations_file",
    "avoid_class_remapping",
    "include_iscrowd",
    "ltrb",
    "preprocessed_annotations",
    "size_threshold",
)
def _(image: _Image) -> tuple[str, str]:
    return file_identity(_path(image), image.number)


@coco.origin
def _(image: _Image) -> str:
    return _path(image)


@coco.source_info
def _(image: _Image, output: int) -> str:
    return "" if output else image.images.annotations.names[image.number]  # boxes and labels have none
