"""Rotates bounding boxes with their images, for ``fn.bbox_rotate``, on the CPU and the accelerator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.data.rows import Rows, starts_of
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.upload_torch import selected_rows, uploaded
from dalify.kernels.arrays.wide_torch import widened

EXPAND, FIXED, HALFWAY = 0, 1, 2
_RADIANS = np.float32(math.pi / 180)
_TOLERANCE = 0.01  # pixels that a rotated image may exceed its canvas by, as in dalify.kernels.images.rotation


@njit(nogil=True, cache=True)
def _canvases(canvas, image, angles, size, keep_size):
    """Fill width and height of each canvas; return the first sample with an angle that is not finite, or N."""
    for n in range(angles.size):
        radians = np.float64(np.float32(angles[n]) * _RADIANS)
        if not math.isfinite(radians):
            return n
        if size.shape[0]:
            canvas[n, 0], canvas[n, 1] = math.floor(size[n, 1] + 0.5), math.floor(size[n, 0] + 0.5)
        elif keep_size:
            canvas[n] = image[n]
        else:
            cosine, sine = abs(math.cos(radians)), abs(math.sin(radians))
            for axis in range(2):
                own, other = image[n, axis], image[n, 1 - axis]
                extent = math.ceil(cosine * own + sine * other - _TOLERANCE)
                odd = (own if cosine > sine else other) % 2
                canvas[n, axis] = extent + (extent - odd) % 2
    return angles.size


def canvases(image: np.ndarray, angles: np.ndarray, size: np.ndarray | None, keep_size: bool) -> tuple[np.ndarray, int]:
    """Return the size of the canvas of each rotated image.

    Args:
        image: float64 [N, 2], width and height.
        angles: float32 [N], degrees.
        size: height and width of the canvas, [N, 2]; None for the size of fn.rotate.
        keep_size: whether the canvas has the size of the image.

    Returns:
        float64 [N, 2], width and height; and the index of the first sample with an angle that is not finite, or N.
    """
    canvas = np.empty_like(image)
    given = np.empty((0, 2)) if size is None else size.astype(np.float64)
    return canvas, _canvases(canvas, image, read_only(angles), given, keep_size)


@njit(nogil=True, cache=True, error_model="numpy")
def _rotate(out, out_starts, kept, boxes, starts, angles, image, canvas, is_extent, bbox_normalized, mode, threshold):
    filled = 0
    out_starts[0] = 0
    for n in range(starts.size - 1):
        radians = np.float64(np.float32(angles[n]) * _RADIANS)
        cosine, sine = math.cos(radians), math.sin(radians)
        # Positive if the angle is closer to an odd multiple of 90 degrees; compared in float32, as in DALI.
        tilt = np.float32(abs(sine)) - np.float32(abs(cosine))
        width, height = image[n, 0], image[n, 1]
        x_limit, y_limit = canvas[n, 0], canvas[n, 1]
        for row in range(starts[n], starts[n + 1]):
            left, top = np.float64(boxes[row, 0]), np.float64(boxes[row, 1])
            right, bottom = np.float64(boxes[row, 2]), np.float64(boxes[row, 3])
            if is_extent:
                right, bottom = left + right, top + bottom
            if bbox_normalized:
                left, right, top, bottom = left * width, right * width, top * height, bottom * height
            x, y = (left + right) / 2 - width / 2, (top + bottom) / 2 - height / 2
            # The matrix maps the canvas to the image; points are mapped in the opposite direction.
            x, y = x * cosine + y * sine + x_limit / 2, y * cosine - x * sine + y_limit / 2
            half_x, half_y = abs(right - left) / 2, abs(bottom - top) / 2
            grown_x = half_x * abs(cosine) + half_y * abs(sine)
            grown_y = half_x * abs(sine) + half_y * abs(cosine)
            if tilt > 0 or (tilt == 0 and half_y > half_x):
                half_x, half_y = half_y, half_x
            if mode == FIXED:
                grown_x, grown_y = half_x, half_y
            elif mode == HALFWAY:
                grown_x, grown_y = (grown_x + half_x) / 2, (grown_y + half_y) / 2
            left, right = min(max(x - grown_x, 0.0), x_limit), min(max(x + grown_x, 0.0), x_limit)
            top, bottom = min(max(y - grown_y, 0.0), y_limit), min(max(y + grown_y, 0.0), y_limit)
            area = ((x + grown_x) - (x - grown_x)) * ((y + grown_y) - (y - grown_y))
            kept[row] = (right - left) * (bottom - top) / area >= threshold  # false for boxes with area 0
            if not kept[row]:
                continue
            if bbox_normalized:
                left, right, top, bottom = left / x_limit, right / x_limit, top / y_limit, bottom / y_limit
            out[filled, 0], out[filled, 1] = left, top
            out[filled, 2] = right - left if is_extent else right
            out[filled, 3] = bottom - top if is_extent else bottom
            filled += 1
        out_starts[n + 1] = filled


def rotate_boxes(
    boxes: Rows, angles: np.ndarray, image: np.ndarray, canvas: np.ndarray, *, is_extent: bool, bbox_normalized: bool,
    mode: int, threshold: float,
) -> tuple[Rows, np.ndarray]:  # fmt: skip
    """Rotate boxes about the centers of their images.

    Args:
        boxes: float32 [n, 4].
        angles: float32 [N], degrees.
        image: float64 [N, 2], width and height.
        canvas: float64 [N, 2], width and height of the rotated image.
        is_extent: whether boxes are left, top, width, height; else left, top, right, bottom.
        bbox_normalized: whether boxes are relative to the image, and results to the canvas.
        mode: EXPAND, FIXED or HALFWAY.
        threshold: minimum fraction of a box that must remain on the canvas.

    Returns:
        the remaining boxes, and a mask of the input boxes, bool [n].
    """
    total = len(boxes.values)
    out, starts, kept = np.empty((total, 4), np.float32), np.empty(len(boxes) + 1, np.int64), np.empty(total, np.bool_)
    _rotate(
        out, starts, kept, read_only(boxes.values), boxes.starts, read_only(angles), image, canvas, is_extent,
        bbox_normalized, mode, threshold,
    )  # fmt: skip
    return Rows(out[: starts[-1]], starts), kept


def rotate_boxes_on_device(
    boxes: Rows, angles: np.ndarray, image: np.ndarray, canvas: np.ndarray, *, is_extent: bool, bbox_normalized: bool,
    mode: int, threshold: float,
) -> tuple[Rows, Any]:  # fmt: skip
    """`rotate_boxes` for a tensor of boxes; returns indices of the remaining boxes instead of a mask."""
    values, sample = boxes.values, boxes.sample_of_row()
    radians = (angles * _RADIANS).astype(np.float64)
    table = np.stack([np.cos(radians), np.sin(radians)], axis=1)[sample]
    cosine, sine = uploaded(table, values.device).unbind(1)
    source, target = (uploaded(item[sample], values.device) for item in (image, canvas))
    start, end = widened(values[:, :2]), widened(values[:, 2:])
    end = start + end if is_extent else end
    if bbox_normalized:
        start, end = start * source, end * source
    x, y = ((start + end) / 2 - source / 2).unbind(1)
    center = torch.stack([x * cosine + y * sine, y * cosine - x * sine], 1) + target / 2
    half = (end - start).abs() / 2
    shares = torch.stack([cosine.abs(), sine.abs()], 1)
    grown = torch.stack([(half * shares).sum(1), (half * shares.flip(1)).sum(1)], 1)
    if mode != EXPAND:
        tilt = sine.abs().float() - cosine.abs().float()
        is_swapped = (tilt > 0) | (tilt == 0) & (half[:, 1] > half[:, 0])
        half = torch.where(is_swapped[:, None], half.flip(1), half)
        grown = half if mode == FIXED else (grown + half) / 2
    turned = torch.stack([center - grown, center + grown], 1)
    clipped = torch.minimum(turned.clamp(min=0), target[:, None])
    areas = [(corners[:, 1] - corners[:, 0]).prod(1) for corners in (clipped, turned)]
    # The host needs the number of remaining boxes. Boxes with area 0 are dropped.
    kept = np.flatnonzero((areas[0] / areas[1] >= threshold).cpu().numpy())
    result = selected_rows(clipped / target[:, None] if bbox_normalized else clipped, kept)
    start, end = result.unbind(1)
    flat = torch.cat([start, end - start if is_extent else end], 1).float()
    lengths = np.bincount(sample[kept], minlength=len(boxes))
    return Rows(flat, starts_of(lengths.tolist())), kept
