"""Contrast-limited adaptive histogram equalization (CLAHE)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.optional import torch
from dalify.base.small_arrays import columns_at
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.joined import blocks, joined, separate, split
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.windows_torch import fill_by_kind
from dalify.kernels.images.clahe import equalize_planes, equalize_planes_torch
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.lab_torch import lab_to_rgb, rgb_to_lab
from dalify.registry import Spec, operator

_LEVELS = 256
_MAX_TILES = 4096


@operator
def clahe(
    x: Spec,
    /,
    *,
    bins: int = 256,
    clip_limit: float,
    luma_only: bool = True,
    tiles_x: int,
    tiles_y: int,
) -> Spec:
    """Equalize histograms locally, with limited contrast (CLAHE: Zuiderveld, Graphics Gems IV, 1994).

    The image is divided into tiles; each has its own lookup table, and each pixel interpolates between the
    tables of the four nearest tiles.

    Args:
        x: uint8 images HWC with 1 or 3 channels, R, G, B in this order.
        bins: number of histogram bins, a power of two; the bin of a pixel is ``value * bins / 256``. Values above 256
            act as 256. DALI's CPU operator ignores it.
        clip_limit: maximum count of a bin in a tile, as a multiple of the mean count; the excess is distributed evenly.
        luma_only: equalize only the lightness L (CIE Lab) of color images; False: each channel separately.
        tiles_x: tiles along the width.
        tiles_y: tiles along the height.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        DTypeError: elements are not uint8.
        ShapeError: neither 1 nor 3 channels.
        ArgumentValueError: tiles or `clip_limit` are not positive, or `bins` is not a power of two.

    Example:
        >>> images = fn.clahe(images, tiles_x=8, tiles_y=8, clip_limit=2.0)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, ("HWC",)))
    x.check_dtype(DALIDataType.UINT8)
    if x.shape is not None and x.shape[-1] not in (1, 3):
        raise ShapeError(f"the input must have 1 or 3 channels; got {x.shape[-1]}.")
    if tiles_x < 1 or tiles_y < 1 or not clip_limit > 0:
        raise ArgumentValueError(
            f"tiles_x, tiles_y and clip_limit must be positive; got {tiles_x}, {tiles_y} and {clip_limit:g}."
        )
    if max(tiles_x, tiles_y) > _MAX_TILES:
        raise ArgumentValueError(f"there can be at most {_MAX_TILES} tiles per side; got {tiles_x} x {tiles_y}.")
    if bins < 2 or bins & (bins - 1):
        raise ArgumentValueError(f"bins must be a power of two, at least 2, e.g. 256; got {bins}.")
    return x


@clahe.cpu_samples
def _(out: Samples, x: Samples, *, bins: int, clip_limit: float, luma_only: bool, tiles_x: int, tiles_y: int) -> None:
    options = {"tiles_x": tiles_x, "tiles_y": tiles_y, "clip_limit": clip_limit, "bins": min(bins, _LEVELS)}
    is_gray = x.extents(2) == 1
    gray, colored = np.flatnonzero(is_gray), np.flatnonzero(~is_gray)
    equalize_planes(_planes(out.take(gray)), _planes(x.take(gray)), **options)
    equalize = _equalize_lightness if luma_only else _equalize_channels
    if not len(colored):
        return
    for numbers in blocks(x.shapes[colored].prod(1)):
        equalize(out.take(colored[numbers]), x.take(colored[numbers]), options)


def _planes(x: Samples) -> Samples:
    """Return images as planes [H, W]."""
    return x.reshaped(columns_at(x.shapes, (0, 1)))


def _equalize_lightness(out: Samples, x: Samples, options: dict[str, Any]) -> None:
    """Equalize the lightness of color images."""
    image = cv2.cvtColor(_pixels(x), cv2.COLOR_RGB2LAB)
    lightness = cv2.extractChannel(image, 0)
    planes = split(lightness.reshape(-1), columns_at(x.shapes, (0, 1)))
    equalize_planes(planes, planes, **options)
    cv2.insertChannel(lightness, image, 0)
    _store(out, lambda target: cv2.cvtColor(image, cv2.COLOR_LAB2RGB, dst=target))


def _equalize_channels(out: Samples, x: Samples, options: dict[str, Any]) -> None:
    """Equalize each channel of color images."""
    channels = cv2.split(_pixels(x))
    for channel in channels:
        planes = split(channel.reshape(-1), columns_at(x.shapes, (0, 1)))
        equalize_planes(planes, planes, **options)
    _store(out, lambda target: cv2.merge(channels, dst=target))


def _pixels(x: Samples) -> np.ndarray:
    """Return the pixels of color images of any shapes as one row, uint8 [1, pixels, 3]: OpenCV takes one image."""
    return joined(x).reshape(1, -1, 3)


def _store(out: Samples, fill: Callable[[np.ndarray], Any]) -> None:
    """Call a function that fills one row with the pixels of all images."""
    if len(out) == 1:
        fill(_pixels(out))
        return
    row = np.empty((1, int(out.shapes.prod(1).sum()) // 3, 3), out.dtype)
    fill(row)
    separate(out, row.reshape(-1))


@clahe.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    bins: int,
    clip_limit: float,
    luma_only: bool,
    tiles_x: int,
    tiles_y: int,
) -> None:
    options = {"tiles_x": tiles_x, "tiles_y": tiles_y, "clip_limit": clip_limit, "bins": min(bins, _LEVELS)}

    def fill(target: DeviceSamples, numbers: np.ndarray) -> None:
        _equalize_padded(target, x if len(numbers) == len(x) else x.take(numbers), luma_only=luma_only, options=options)

    # Gray images cannot be padded to the channels of the others.
    fill_by_kind(out, x.extents(2).tolist(), fill)


@on_padded
def _equalize_padded(
    out: torch.Tensor, x: torch.Tensor, *, luma_only: bool, options: dict[str, Any], extents: np.ndarray
) -> None:
    if x.shape[3] == 3 and luma_only:
        lab = rgb_to_lab(x)
        lab[..., 0] = equalize_planes_torch(lab[..., 0], extents[:, :2], **options)
        out.copy_(lab_to_rgb(lab))
        return
    planes = x.movedim(3, 1)
    channels = np.repeat(extents[:, :2], x.shape[3], axis=0)
    out.copy_(equalize_planes_torch(planes.flatten(0, 1), channels, **options).reshape(planes.shape).movedim(1, 3))
