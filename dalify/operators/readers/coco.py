"""Read pictures with boxes, labels and masks from COCO data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError
from dalify.data import DALIDataType
from dalify.data.origin import Origin
from dalify.formats.coco import Annotations, BoxOptions, read_annotations
from dalify.formats.coco_masks import pixelwise_mask, pycocotools
from dalify.formats.coco_saved import load, save
from dalify.formats.data_root import DataRoot
from dalify.formats.identity import file_identity
from dalify.formats.storage import is_remote, joined
from dalify.formats.whole_file import read_file
from dalify.registry import Spec, operator


class _Picture(NamedTuple):
    pictures: _Pictures
    number: int


class _Pictures(Sequence[_Picture]):
    """All pictures of the reader."""

    def __init__(self, root: str, annotations: Annotations) -> None:
        self.root = root
        self.annotations = annotations

    def __len__(self) -> int:
        return len(self.annotations.names)

    @property
    def is_remote(self) -> bool:
        """Whether the pictures lie on another machine."""
        return is_remote(self.root)

    @overload
    def __getitem__(self, index: int) -> _Picture: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Picture]: ...
    def __getitem__(self, index: int | slice) -> _Picture | list[_Picture]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= number < len(self):
            raise IndexError(f"picture {index} of {len(self)}")
        return _Picture(self, number)


def _has_polygons(given: Mapping[str, Any]) -> bool:
    return given["polygon_masks"] or given["masks"]


def _effect(arguments: Mapping[str, Any]) -> str:
    return "writes files" if arguments.get("save_preprocessed_annotations") else ""


@operator(
    outputs=lambda given: 3 + 2 * _has_polygons(given) + given["pixelwise_masks"] + given["image_ids"],
    reader=True,
    needs=lambda given: (pycocotools,) if given["pixelwise_masks"] else (),
    effect=_effect,
)
def coco(
    *,
    allow_outside_root: bool = False,
    annotations_file: str = "",
    avoid_class_remapping: bool = False,
    file_root: str | None = None,
    image_ids: bool = False,
    images: list[str] | None = None,
    include_iscrowd: bool = True,
    ltrb: bool = False,
    masks: bool = False,
    pixelwise_masks: bool = False,
    polygon_masks: bool = False,
    preprocessed_annotations: str = "",
    ratio: bool = False,
    save_preprocessed_annotations: bool = False,
    save_preprocessed_annotations_dir: str = "",
    size_threshold: float = 0.1,
    skip_empty: bool = False,
) -> tuple[Spec, ...]:
    """Read pictures of a COCO data set with the boxes, labels and masks of the objects in them.

    Args:
        allow_outside_root: names of images may lead out of `file_root`, and be URLs. Only for annotations that can be
            trusted.
        annotations_file: the JSON file of the annotations.
        avoid_class_remapping: labels are the numbers of the categories as they stand in the file; otherwise their
            places in the list of categories, from 1 (0 is left for the background).
        file_root: folder of the pictures.
        image_ids: give the number of the picture, too.
        images: names of the wanted pictures, as in the file, in the wanted order, also repeatedly; all, in the order
            of their numbers, where not given. (A name that is not in the file is an error; DALI leaves it out.)
        include_iscrowd: take groups of objects (``iscrowd``), too.
        ltrb: boxes are left, top, right, bottom; otherwise x, y, width, height.
        masks: the old form of `polygon_masks`: begin and end count coordinates instead of vertices.
        pixelwise_masks: give a picture of labels; needs ``pip install dalify[coco]``.
        polygon_masks: give the outlines of the objects. Objects whose mask is written by runs have none.
        preprocessed_annotations: folder of annotations that were saved, instead of `annotations_file`; in the form in
            which they were saved.
        ratio: boxes and vertices are parts of the picture's extents.
        save_preprocessed_annotations: save the annotations, as they are at the outputs, in DALI's format.
        save_preprocessed_annotations_dir: where to.
        size_threshold: objects whose width or height is smaller, in pixels, are left out.
        skip_empty: leave out pictures without objects.

    Returns:
        image: the encoded picture, uint8 ``[bytes]``; all outputs are on the CPU.
        boxes: float32 ``[M, 4]``.
        labels: int32 ``[M]``.
        polygons: with `polygon_masks`; number of the object, begin and end of its vertices, int32 ``[P, 3]``.
        vertices: with `polygon_masks`; x, y, float32 ``[V, 2]``.
        mask: with `pixelwise_masks`; int32 ``[H, W, 1]``, layout HWC: the label of each pixel, 0 for none.
        image_id: with `image_ids`; int32 ``[1]``.

    Raises:
        ReaderError: a file that is missing or damaged; or, when an image is read, annotations of it that lack something
            or are out of range. ``on_error`` skips or replaces such images.
        LimitError: a mask that is larger than the limits allow.
        ArgumentValueError: arguments that exclude each other.

    Example:
        >>> encoded, boxes, labels = fn.readers.coco(
        ...     file_root="train2017", annotations_file="instances_train2017.json", ltrb=True, ratio=True
        ... )  # doctest: +SKIP
    """
    if pixelwise_masks and (polygon_masks or masks):
        raise ArgumentValueError("pixelwise_masks and polygon_masks exclude each other.")
    if polygon_masks and masks:
        raise ArgumentValueError("masks is the old form of polygon_masks: keep one of them.")
    if bool(annotations_file) == bool(preprocessed_annotations):
        raise ArgumentValueError("either annotations_file or preprocessed_annotations is needed.")
    if preprocessed_annotations and images is not None:
        raise ArgumentValueError("images and preprocessed_annotations exclude each other.")
    if file_root is None:
        raise ArgumentValueError("file_root, the folder of the pictures, is needed.")
    if save_preprocessed_annotations and not save_preprocessed_annotations_dir:
        raise ArgumentValueError("save_preprocessed_annotations_dir is needed to save annotations.")
    specs = [Spec(DALIDataType.UINT8, 1, ""), Spec(DALIDataType.FLOAT, 2, ""), Spec(DALIDataType.INT32, 1, "")]
    if polygon_masks or masks:
        specs += [Spec(DALIDataType.INT32, 2, ""), Spec(DALIDataType.FLOAT, 2, "")]
    if pixelwise_masks:
        specs.append(Spec(DALIDataType.INT32, 3, "HWC"))
    if image_ids:
        specs.append(Spec(DALIDataType.INT32, 1, ""))
    return tuple(specs)


@coco.index
def _(
    allow_outside_root: bool,
    annotations_file: str,
    avoid_class_remapping: bool,
    file_root: str,
    image_ids: bool,
    images: Sequence[str] | None,
    include_iscrowd: bool,
    ltrb: bool,
    masks: bool,
    pixelwise_masks: bool,
    polygon_masks: bool,
    preprocessed_annotations: str,
    ratio: bool,
    save_preprocessed_annotations: bool,
    save_preprocessed_annotations_dir: str,
    size_threshold: float,
    skip_empty: bool,
) -> _Pictures:
    has_masks = polygon_masks or masks or pixelwise_masks
    if preprocessed_annotations:
        found = load(preprocessed_annotations, has_masks=has_masks, has_ids=image_ids, has_extents=pixelwise_masks)
    else:
        options = BoxOptions(
            ltrb,
            ratio,
            size_threshold,
            skip_empty,
            include_iscrowd,
            avoid_class_remapping,
            has_masks,
        )
        found = read_annotations(annotations_file, images, options)
    if not found.names:
        place = preprocessed_annotations or annotations_file
        raise ReaderError(f"{place!r} has no annotations of images that can be read with these arguments.")
    if save_preprocessed_annotations:
        if found.problems:
            number, problem = next(iter(found.problems.items()))
            raise ReaderError(
                f"the annotations cannot be saved: those of {len(found.problems)} images cannot be used. The first is "
                f"{found.names[number]!r}: {problem}"
            )
        save(
            save_preprocessed_annotations_dir,
            found,
            has_masks=has_masks,
            has_ids=image_ids,
            has_extents=pixelwise_masks,
        )
    root = DataRoot(file_root, allow_outside=allow_outside_root)
    source = annotations_file or preprocessed_annotations
    found.names = [root.relative(name, source, "image", number) for number, name in enumerate(found.names)]
    return _Pictures(file_root, found)


@coco.read
def _(
    picture: _Picture,
    *,
    image_ids: bool,
    masks: bool,
    pixelwise_masks: bool,
    polygon_masks: bool,
    ratio: bool,
) -> tuple[NDArray[Any], ...]:
    problem = picture.pictures.annotations.problems.get(picture.number)
    if problem is not None:
        raise ReaderError(problem)
    outputs = _annotations(picture, image_ids, masks, pixelwise_masks, polygon_masks, ratio)
    return read_file(_path(picture)), *outputs


@coco.stand_in
def _(
    picture: _Picture,
    *,
    image_ids: bool,
    masks: bool,
    pixelwise_masks: bool,
    polygon_masks: bool,
    ratio: bool,
) -> tuple[NDArray[Any] | None, ...]:
    count = 2 + 2 * (polygon_masks or masks) + pixelwise_masks + image_ids
    outputs: list[NDArray[Any]] | list[None] = [None] * count
    with suppress(DalifyError):  # annotations that cannot be used become zeros
        outputs = _annotations(picture, image_ids, masks, pixelwise_masks, polygon_masks, ratio)
    return np.empty(0, np.uint8), *outputs


def _annotations(
    picture: _Picture, image_ids: bool, masks: bool, pixelwise_masks: bool, polygon_masks: bool, ratio: bool
) -> list[NDArray[Any]]:
    """Return the outputs behind the picture."""
    number = picture.number
    found = picture.pictures.annotations
    own = slice(int(found.box_firsts[number]), int(found.box_firsts[number + 1]))
    results: list[NDArray[Any]] = [found.boxes[own].copy(), found.labels[own].copy()]
    if polygon_masks or masks:
        polygons, vertices = _outlines(found, number)
        if masks:
            polygons[:, 1:] *= 2
        results += [polygons, vertices]
    if pixelwise_masks:
        assert found.extents is not None, "dalify bug: masks without extents"
        height, width = found.extents[number].tolist()
        polygons, vertices = _outlines(found, number)
        if ratio:
            vertices = vertices * np.array([width, height], np.float32)  # with the rounding of DALI
        ids = None if found.object_ids is None else found.object_ids[own]
        runs = found.rles.get(number, ())
        results.append(pixelwise_mask(height, width, found.labels[own], polygons, vertices, runs, ids))
    if image_ids:
        assert found.ids is not None, "dalify bug: numbers of pictures were not read"
        results.append(found.ids[number : number + 1].copy())
    return results


def _outlines(found: Annotations, number: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return copies of the polygons and vertices of a picture."""
    assert found.polygon_firsts is not None, "dalify bug: masks were not read"
    assert found.vertex_firsts is not None, "dalify bug: masks were not read"
    assert found.polygons is not None, "dalify bug: masks were not read"
    assert found.vertices is not None, "dalify bug: masks were not read"
    return (
        found.polygons[int(found.polygon_firsts[number]) : int(found.polygon_firsts[number + 1])].copy(),
        found.vertices[int(found.vertex_firsts[number]) : int(found.vertex_firsts[number + 1])].copy(),
    )


def _path(picture: _Picture) -> str:
    return joined(picture.pictures.root, picture.pictures.annotations.names[picture.number])


@coco.identity(
    "annotations_file",
    "avoid_class_remapping",
    "include_iscrowd",
    "ltrb",
    "preprocessed_annotations",
    "size_threshold",
)
def _(picture: _Picture) -> tuple[str, str]:
    return file_identity(_path(picture), picture.number)


@coco.origin
def _(picture: _Picture) -> str:
    return Origin(_path(picture), picture.pictures.annotations.names[picture.number])
