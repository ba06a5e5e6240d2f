"""Black out squares of a grid."""

from __future__ import annotations

import math

import numpy as np

from dalify.base.array_at import array_at, copy_bytes
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.data import Samples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.frames import folded_frames, per_frame_of_samples, visual_layout
from dalify.registry import AnySamples, PerSampleOrFrame, Spec, Vectors, operator

_LAYOUTS = ("HWC", "FHWC")


@operator
def grid_mask(
    x: Spec,
    /,
    *,
    angle: PerSampleOrFrame[float] = 0.0,
    ratio: PerSampleOrFrame[float] = 0.5,
    shift_x: PerSampleOrFrame[float] = 0.0,
    shift_y: PerSampleOrFrame[float] = 0.0,
    tile: PerSampleOrFrame[int] = 100,
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
def _black_out(out_at, x_at, shapes, like, parameters):
    """Copy samples [H, W, C] and set the pixels of the squares to zero.

    The parameters [N, 5] are the steps per pixel, shifts and ratio. The elements are unsigned integers of their size.
    """
    for n in range(len(out_at)):
        cosine, sine, shift_x, shift_y, ratio = parameters[n]
        height, width, channels = shapes[n]
        copy_bytes(out_at[n], x_at[n], height * width * channels * like.itemsize)
        out = array_at(out_at[n], (height, width, channels), like)
        for y in range(height):
            for i in range(width):
                u, v = i * cosine - y * sine - shift_x, i * sine + y * cosine - shift_y
                if u - math.floor(u) < ratio and v - math.floor(v) < ratio:
                    for c in range(channels):
                        out[y, i, c] = 0


def _scaled(values: dict[str, np.ndarray]) -> np.ndarray:
    """Return cosine, sine and shifts divided by the tile, and the ratio, of each frame, float32 [N, 5]."""
    rows = {name: value.astype(np.float32) for name, value in values.items()}
    tile, angle = rows["tile"], rows["angle"]
    if (tile <= 0).any():
        raise ArgumentValueError(f"tile must be a positive number of pixels; got {tile.min():g}.")
    scaled = (np.cos(angle), np.sin(angle), rows["shift_x"], rows["shift_y"])
    return np.stack([*(part / tile for part in scaled), rows["ratio"]], axis=1)


@grid_mask.cpu_samples
@grid_mask.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
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
    target, source, parameters = folded_frames(out, layout), folded_frames(x, layout), _scaled(rows)
    if isinstance(x, Samples):
        # As unsigned integers of the same size: 0 is 0 in every type, and Numba does not support float16.
        like = np.empty(0, f"u{x.dtype.itemsize}")
        _black_out(target.addresses, source.addresses, source.shapes, like, parameters)
    else:
        _black_out_torch(target, source, parameters=parameters)


@on_padded
def _black_out_torch(out: torch.Tensor, x: torch.Tensor, *, parameters: np.ndarray) -> None:
    cosine, sine, move_x, move_y, part = uploaded(parameters, x.device).T[:, :, None, None]
    y = torch.arange(x.shape[1], device=x.device)[None, :, None]
    i = torch.arange(x.shape[2], device=x.device)[None, None, :]
    u, v = i * cosine - y * sine - move_x, i * sine + y * cosine - move_y
    black = (u - u.floor() < part) & (v - v.floor() < part)
    movable_torch(out).copy_(movable_torch(x).masked_fill(black[..., None], 0))
