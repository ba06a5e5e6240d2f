"""Turn bounding boxes with their image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, option_error_text
from dalify.data.dtypes import DALIDataType
from dalify.kernels.box_layout import from_corners, to_corners
from dalify.kernels.rotation import canvas_size, rotation_matrix
from dalify.registry import PerSample, Spec, operator

_MODES = ("expand", "fixed", "halfway")
_LAYOUTS = ("xyXY", "xyWH")


def _output_count(arguments: Mapping[str, Any]) -> int:
    return arguments["input_count"]


@operator(allocating=True, outputs=_output_count)
def bbox_rotate(
    bboxes: Spec,
    labels: Spec | None = None,
    /,
    *,
    angle: PerSample[float],
    bbox_layout: str = "xyXY",
    bbox_normalized: bool = True,
    input_shape: PerSample[list[int]],
    keep_size: bool = False,
    mode: str = "expand",
    remove_threshold: float = 0.1,
    shape_layout: str = "HW",
    size: PerSample[list[float]] | None = None,
) -> tuple[Spec, ...]:
    """Turn bounding boxes with their image, as fn.rotate turns it with the same `angle`, `keep_size` and `size`.

    Boxes are clipped to the canvas and dropped where less than `remove_threshold` of them remains.

    Args:
        bboxes: float32 [n, 4].
        labels: integers [n] or [n, 1], dropped with their boxes.
        angle: degrees, counter-clockwise as seen.
        bbox_layout: "xyXY" or "xyWH".
        bbox_normalized: boxes are relative to the image (0 to 1); False: in pixels.
        input_shape: extents of the image before it is turned, in the order of `shape_layout`; more may follow.
        keep_size: the image keeps its canvas.
        mode: "expand": a box that holds the turned one; "fixed": one of the size before, its sides exchanged beyond 45
            degrees; "halfway": in between.
        remove_threshold: 0 to 1; 0 drops none.
        shape_layout: names the extents of `input_shape`.
        size: height and width of the canvas; not with `keep_size`.

    Returns:
        Boxes in the same layout, relative to the canvas (or in pixels), and labels, if given.

    Raises:
        ArgumentValueError: an unknown option, or `size` with `keep_size`.
        DTypeError: boxes that are not float32.
        ShapeError: boxes that are not [n, 4], or not one label each.

    Example:
        >>> boxes, labels = fn.bbox_rotate(boxes, labels, angle=30, input_shape=images.shape())  # doctest: +SKIP
    """
    if bboxes.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(f"boxes must be float32; got {bboxes.dtype!s}.", hint="fn.cast(boxes, dtype=types.FLOAT)")
    if bboxes.shape is not None and (len(bboxes.shape) != 2 or bboxes.shape[1] != 4):
        raise ShapeError(f"boxes must be [n, 4]; got {bboxes.shape}.")
    for name, value, options in (("mode", mode, _MODES), ("bbox_layout", bbox_layout, _LAYOUTS)):
        if value not in options:
            raise ArgumentValueError(option_error_text(name, value, options))
    if keep_size and size is not None:
        raise ArgumentValueError("give either `keep_size` or `size`.")
    if not 0 <= remove_threshold <= 1:
        raise ArgumentValueError(f"remove_threshold must lie between 0 and 1; got {remove_threshold:g}.")
    if "H" not in shape_layout or "W" not in shape_layout:
        raise ArgumentValueError(f"shape_layout must name H and W; got {shape_layout!r}.")
    if labels is None:
        return (bboxes.replace(shape=None),)
    if bboxes.shape is not None and labels.shape is not None and labels.shape[:1] != bboxes.shape[:1]:
        raise ShapeError(f"{bboxes.shape[0]} boxes need as many labels; got {labels.shape}.")
    return bboxes.replace(shape=None), labels.replace(shape=None)


def _turned(corners: np.ndarray, image: np.ndarray, canvas: np.ndarray, matrix: np.ndarray, mode: str) -> np.ndarray:
    """Turn boxes [n, 4] in pixels about the centre of the image onto the canvas; both as (width, height)."""
    center, half = (corners[:, :2] + corners[:, 2:]) / 2, (corners[:, 2:] - corners[:, :2]) / 2
    # The matrix maps the canvas to the image: the points go the other way.
    moved = (center - image / 2) @ matrix + canvas / 2
    grown = half @ np.abs(matrix)
    if mode != "expand":
        if abs(matrix[0, 1]) > abs(matrix[0, 0]):  # nearer to a quarter turn: width and height change places
            half = half[:, ::-1]
        grown = half if mode == "fixed" else (grown + half) / 2
    return np.concatenate([moved - grown, moved + grown], axis=1)


@bbox_rotate.cpu
def _(
    bboxes, labels, *, angle, bbox_layout, bbox_normalized, input_shape, keep_size, mode, remove_threshold,
    shape_layout, size,
):  # fmt: skip
    outputs: list[list[np.ndarray]] = [[] for _ in range(1 + (labels is not None))]
    for n in range(len(bboxes)):
        if len(input_shape[n]) != len(shape_layout):
            raise ShapeError(f"input_shape must have the axes {shape_layout!r}; got {len(input_shape[n])} numbers.")
        if size is not None and np.size(size[n]) != 2:
            raise ShapeError(f"size must be a height and a width; got {np.size(size[n])} numbers.")
        extents = [int(input_shape[n][shape_layout.index(letter)]) for letter in "HW"]
        image = np.array(extents[::-1], np.float64)
        matrix = rotation_matrix(float(angle[n]))
        if size is not None:
            canvas = np.floor(np.asarray(size[n], np.float64)[::-1] + 0.5)
        else:
            canvas = image if keep_size else np.array(canvas_size(extents, [matrix])[::-1], np.float64)
        corners = to_corners(bboxes[n].astype(np.float64), bbox_layout)
        before = corners * np.tile(image, 2) if bbox_normalized else corners
        turned = _turned(before, image, canvas, matrix, mode)
        clipped = np.clip(turned, 0, np.tile(canvas, 2))
        areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (clipped, turned)]
        kept = areas[0] >= remove_threshold * areas[1]
        result = clipped[kept] / np.tile(canvas, 2) if bbox_normalized else clipped[kept]
        outputs[0].append(from_corners(result, bbox_layout).astype(np.float32))
        if labels is not None:
            outputs[1].append(labels[n][kept])
    return tuple(outputs) if labels is not None else outputs[0]
