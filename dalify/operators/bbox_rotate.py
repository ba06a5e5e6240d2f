"""Rotate bounding boxes with their image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, check_option
from dalify.base.wording import counted
from dalify.data import DALIDataType, Rows
from dalify.kernels.arrays.upload_torch import selected_rows
from dalify.kernels.boxes.box_rotation import EXPAND, FIXED, HALFWAY, canvases, rotate_boxes, rotate_boxes_on_device
from dalify.registry import AnyShape, PerSample, Spec, Vectors, operator

_MODES = {"expand": EXPAND, "fixed": FIXED, "halfway": HALFWAY}
_LAYOUTS = ("xyXY", "xyWH")


def _output_count(arguments: Mapping[str, Any]) -> int:
    return arguments["input_count"]


@operator(outputs=_output_count)
def bbox_rotate(
    bboxes: Spec,
    labels: Spec | None = None,
    /,
    *,
    angle: PerSample[float],
    bbox_layout: str = "xyXY",
    bbox_normalized: bool = True,
    input_shape: PerSample[AnyShape[list[int]]],
    keep_size: bool = False,
    mode: str = "expand",
    remove_threshold: float = 0.1,
    shape_layout: str = "HW",
    size: PerSample[AnyShape[list[float]]] | None = None,
) -> tuple[Spec, ...]:
    """Rotate bounding boxes as fn.rotate rotates their image with the same `angle`, `keep_size` and `size`.

    Boxes are clipped to the canvas. A box is dropped if less than the fraction `remove_threshold` of its area remains,
    or if it has no area.

    Args:
        bboxes: float32 [n, 4].
        labels: integers [n] or [n, 1]; labels of dropped boxes are dropped.
        angle: degrees, counterclockwise.
        bbox_layout: "xyXY" or "xyWH".
        bbox_normalized: boxes are relative to the image (0 to 1); False: in pixels.
        input_shape: extents of the image before the rotation, in the order of `shape_layout`. Further extents are
            ignored.
        keep_size: the image keeps its canvas.
        mode: "expand": the box that encloses the rotated box; "fixed": a box of the original size, with its sides
            swapped beyond 45 degrees; "halfway": the mean of these two boxes.
        remove_threshold: a fraction in [0, 1]; 0 keeps every box that has an area.
        shape_layout: names the extents of `input_shape`.
        size: height and width of the canvas; not with `keep_size`.

    Returns:
        Boxes in the same layout, relative to the canvas (or in pixels), and labels if specified.

    Raises:
        ArgumentValueError: an unknown option, `size` together with `keep_size`, `remove_threshold` outside [0, 1], or
            an angle that is not finite.
        DTypeError: the boxes are not float32.
        ShapeError: the boxes are not [n, 4], the number of labels differs, or `input_shape` or `size` has the wrong
            number of extents.

    Example:
        >>> boxes, labels = fn.bbox_rotate(
        ...     boxes, labels, angle=30, input_shape=images.shape(), shape_layout="HWC"
        ... )  # doctest: +SKIP
    """
    if bboxes.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(
            f"boxes must be float32; got {bboxes.dtype_text}.", hint="Convert them: fn.cast(boxes, dtype=types.FLOAT)."
        )
    if bboxes.shape is not None and (len(bboxes.shape) != 2 or bboxes.shape[1] != 4):
        raise ShapeError(f"boxes must be [n, 4]; got {bboxes.shape}.")
    for name, value, options in (("mode", mode, tuple(_MODES)), ("bbox_layout", bbox_layout, _LAYOUTS)):
        check_option(name, value, options)
    if keep_size and size is not None:
        raise ArgumentValueError("specify either keep_size or size, not both.")
    if not 0 <= remove_threshold <= 1:
        raise ArgumentValueError(f"remove_threshold must be between 0 and 1; got {remove_threshold:g}.")
    if "H" not in shape_layout or "W" not in shape_layout:
        raise ArgumentValueError(f"shape_layout must name H and W; got {shape_layout!r}.")
    if labels is None:
        return (bboxes.replace(shape=None),)
    if bboxes.shape is not None and labels.shape is not None and labels.shape[:1] != bboxes.shape[:1]:
        raise ShapeError(
            f"there must be one label per box; got {counted(bboxes.shape[0], 'box')} and labels of "
            f"shape {labels.shape}."
        )
    return bboxes.replace(shape=None), labels.replace(shape=None)


@bbox_rotate.cpu_new_rows
@bbox_rotate.gpu_new_rows
def _(
    bboxes: Rows,
    labels: Rows | None,
    *,
    angle: np.ndarray,
    bbox_layout: str,
    bbox_normalized: bool,
    input_shape: Vectors,
    keep_size: bool,
    mode: str,
    remove_threshold: float,
    shape_layout: str,
    size: Vectors | None,
) -> Any:
    extents: Any = input_shape
    sizes: Any = size
    if extents.shape[1] <= max(shape_layout.index("H"), shape_layout.index("W")):
        raise ShapeError(
            f"input_shape must have one number for each axis of shape_layout {shape_layout!r}; got {extents.shape[1]}."
        )
    if sizes is not None and sizes.shape[1] != 2:
        raise ShapeError(f"size must be a height and a width; got {counted(sizes.shape[1], 'number')}.")
    image = extents[:, [shape_layout.index("W"), shape_layout.index("H")]].astype(np.float64)
    canvas, bad = canvases(image, angle, sizes, keep_size)
    if bad < len(bboxes):
        raise ArgumentValueError(f"angle must be a finite number of degrees; got {angle[bad]:g}.", sample=bad)
    rotate: Any = rotate_boxes if isinstance(bboxes.values, np.ndarray) else rotate_boxes_on_device
    result, kept = rotate(
        bboxes,
        angle,
        image,
        canvas,
        is_extent=bbox_layout == "xyWH",
        bbox_normalized=bbox_normalized,
        mode=_MODES[mode],
        threshold=remove_threshold,
    )
    if labels is None:
        return result
    values = labels.values
    of_kept = values[kept] if isinstance(values, np.ndarray) else selected_rows(values, kept)
    return result, Rows(of_kept, result.starts)
