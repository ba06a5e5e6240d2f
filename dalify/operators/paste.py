"""Paste images onto a larger canvas."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.wording import counted
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.gather import channel_fill, copy_windows
from dalify.kernels.arrays.windows_torch import window_samples_torch
from dalify.kernels.images.frames import visual_layout
from dalify.registry import AnySamples, PerSample, Shaping, Spec, operator


@operator
def paste(
    x: Spec,
    /,
    *,
    fill_value: list[int],
    min_canvas_size: Shaping[float] = 0.0,
    n_channels: int = 3,
    paste_x: PerSample[float] = 0.5,
    paste_y: PerSample[float] = 0.5,
    ratio: Shaping[float],
) -> Spec:
    """Paste each image onto a canvas of ``int(ratio * extent)`` pixels.

    Args:
        x: images HWC, uint8.
        fill_value: color of the canvas, modulo 256, one number for all channels or one each.
        min_canvas_size: minimum height and width of the canvas in pixels.
        n_channels: number of channels of the images.
        paste_x: horizontal position of the image, 0 (left) to 1 (right).
        paste_y: vertical position of the image, 0 (top) to 1 (bottom).
        ratio: ratio of the extents of the canvas to the extents of the image, at least 1.

    Returns:
        HWC uint8, extents of the canvas.

    Raises:
        ArgumentValueError: `ratio` below 1, a position outside [0, 1], or a wrong number of fill values.
        DTypeError: the images are not uint8.
        ShapeError: the number of channels is not `n_channels`.

    Example:
        >>> images = fn.paste(images, ratio=1.5, fill_value=[104, 117, 123])  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, ("HWC",)))
    x.check_dtype(DALIDataType.UINT8)
    if len(fill_value) not in (1, n_channels):
        raise ArgumentValueError(
            f"fill_value must be one number or one for each of the {n_channels} channels; got {len(fill_value)}."
        )
    if x.shape is None:
        return x
    canvas = _canvases(np.array([x.shape]), np.array([ratio]), np.array([min_canvas_size]), n_channels)
    return x.replace(shape=tuple(canvas[0].tolist()))


def _canvases(shapes: np.ndarray, ratio: np.ndarray, min_canvas_size: np.ndarray, n_channels: int) -> np.ndarray:
    """Return the shapes of the results, int64 [N, 3].

    Raises:
        ArgumentValueError: a ratio below 1; with the sample.
        ShapeError: wrong number of channels; with the sample.
    """
    wrong = shapes[:, 2] != n_channels
    if wrong.any():
        sample = int(wrong.argmax())
        found = int(shapes[sample, 2])
        raise ShapeError(
            f"the image has {counted(found, 'channel')}; n_channels is {n_channels}.",
            hint=f"Pass n_channels={found}.",
            sample=sample,
        )
    wrong = ~(ratio >= 1)
    if wrong.any():
        sample = int(wrong.argmax())
        raise ArgumentValueError(f"ratio must be at least 1; got {float(ratio[sample]):g}.", sample=sample)
    canvases = shapes.copy()
    scaled = ratio.astype(np.float32)[:, None] * shapes[:, :2].astype(np.float32)
    canvases[:, :2] = np.maximum(scaled.astype(np.int64), min_canvas_size.astype(np.int64)[:, None])
    return canvases


@paste.geometry
def _(x: Batch, *, ratio: np.ndarray, min_canvas_size: np.ndarray, n_channels: int) -> dict[str, Any]:
    return {"out_shapes": _canvases(x.shape_array(), ratio, min_canvas_size, n_channels)}


@paste.cpu_samples
@paste.gpu_samples
def _(out: AnySamples, x: AnySamples, *, paste_x: np.ndarray, paste_y: np.ndarray, fill_value: list[int]) -> None:
    start = np.zeros((len(x), 3), np.int64)
    for axis, (name, positions) in enumerate((("paste_y", paste_y), ("paste_x", paste_x))):
        wrong = ~((positions >= 0) & (positions <= 1))
        if wrong.any():
            raise ArgumentValueError(
                f"{name} must be between 0 and 1; got {positions[wrong][0]:g}.", sample=int(wrong.argmax())
            )
        # Negative: the canvas is a window that starts before the image.
        margin = (out.extents(axis) - x.extents(axis)).astype(np.float32)
        start[:, axis] = -np.trunc(positions * margin).astype(np.int64)
    copy: Any = copy_windows if isinstance(x, Samples) else window_samples_torch
    copy(out, x, start, fill_values=channel_fill(fill_value, "HWC", DALIDataType.UINT8))
