"""Black out squares of a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.torch_unsigned import movable_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.frames import (
    flat_frames,
    folded_frames,
    frame_count,
    per_frame,
    per_frame_of_samples,
    visual_layout,
)
from dalify.registry import PerSample, Spec, Vectors, operator

_LAYOUTS = ("HWC", "FHWC")


@operator
def grid_mask(
    x: Spec,
    /,
    *,
    angle: PerSample[float | list[float]] = 0.0,
    ratio: PerSample[float | list[float]] = 0.5,
    shift_x: PerSample[float | list[float]] = 0.0,
    shift_y: PerSample[float | list[float]] = 0.0,
    tile: PerSample[int | list[int]] = 100,
) -> Spec:
    """Black out squares of a regular grid (Chen et al., GridMask Data Augmentation, arXiv:2001.04086).

    Args:
        x: images HWC or sequences FHWC, any type.
        angle: rotation of the grid about the origin, in radians.
        ratio: side of a square as a fraction of the tile.
        shift_x: horizontal shift of the rotated grid, in pixels.
        shift_y: vertical shift of the rotated grid, in pixels.
        tile: distance between squares in pixels, > 0.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: `tile` is not positive.

    Example:
        >>> images = fn.grid_mask(images, tile=64, ratio=0.4, angle=0.3)  # doctest: +SKIP
    """
    visual_layout(x, _LAYOUTS)
    return x


@njit(nogil=True, cache=True)
def _black_out(out: np.ndarray, parameters: np.ndarray) -> None:
    """Set the pixels of the squares in [N, H, W, C] to zero; parameters [N, 5]: per-pixel steps, shifts, ratio."""
    for n in range(out.shape[0]):
        cosine, sine, shift_x, shift_y, ratio = parameters[n]
        for y in range(out.shape[1]):
            for i in range(out.shape[2]):
                u, v = i * cosine - y * sine - shift_x, i * sine + y * cosine - shift_y
                if u - math.floor(u) < ratio and v - math.floor(v) < ratio:
                    for c in range(out.shape[3]):
                        out[n, y, i, c] = 0


def _parameters(spec: Spec, layout: str, values: dict[str, Any]) -> np.ndarray:
    assert spec.shape is not None, "dalify bug: a kernel without the shape of its input"
    frames = frame_count(layout, spec.shape)
    return _scaled({name: per_frame(value, frames, name) for name, value in values.items()})


def _scaled(values: dict[str, np.ndarray]) -> np.ndarray:
    """Return cosine, sine, shifts and ratio of each frame, float32 [N, 5], in tiles."""
    rows = {name: value.astype(np.float32) for name, value in values.items()}
    tile, angle = rows["tile"], rows["angle"]
    if (tile <= 0).any():
        raise ArgumentValueError(f"tile must be a positive number of pixels; got {tile.min():g}.")
    scaled = (np.cos(angle), np.sin(angle), rows["shift_x"], rows["shift_y"])
    return np.stack([*(part / tile for part in scaled), rows["ratio"]], axis=1)


@grid_mask.cpu
def _(
    out: np.ndarray,
    x: np.ndarray,
    *,
    angle: np.ndarray,
    ratio: np.ndarray,
    shift_x: np.ndarray,
    shift_y: np.ndarray,
    tile: np.ndarray,
    spec: Spec,
) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    values = {"angle": angle, "ratio": ratio, "shift_x": shift_x, "shift_y": shift_y, "tile": tile}
    np.copyto(out, x)
    # As unsigned integers of the same size: 0 is 0 in every type, and Numba does not support float16.
    words = flat_frames(out, layout).view(f"u{out.itemsize}")
    _black_out(words, _parameters(spec, layout, values))


@grid_mask.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    angle: Vectors,
    ratio: Vectors,
    shift_x: Vectors,
    shift_y: Vectors,
    tile: Vectors,
    spec: Spec,
) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    values = {"angle": angle, "ratio": ratio, "shift_x": shift_x, "shift_y": shift_y, "tile": tile}
    rows = {name: per_frame_of_samples(value, x, layout, name) for name, value in values.items()}
    _black_out_torch(folded_frames(out, layout), folded_frames(x, layout), parameters=_scaled(rows))


@on_padded
def _black_out_torch(out: torch.Tensor, x: torch.Tensor, *, parameters: np.ndarray) -> None:
    cosine, sine, move_x, move_y, part = uploaded(parameters, x.device).T[:, :, None, None]
    y = torch.arange(x.shape[1], device=x.device)[None, :, None]
    i = torch.arange(x.shape[2], device=x.device)[None, None, :]
    u, v = i * cosine - y * sine - move_x, i * sine + y * cosine - move_y
    black = (u - u.floor() < part) & (v - v.floor() < part)
    movable_torch(out).copy_(movable_torch(x).masked_fill(black[..., None], 0))
