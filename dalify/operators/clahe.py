"""Equalise histograms locally, with limited contrast."""

from __future__ import annotations

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.kernels.frames import visual_layout
from dalify.kernels.lab_torch import lab_to_rgb, rgb_to_lab
from dalify.kernels.tile_equalisation import equalise_plane, equalise_planes_torch
from dalify.registry import Spec, operator

_LEVELS = 256
_MOST_TILES = 4096


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
    """Equalise histograms locally, with limited contrast (CLAHE: Zuiderveld, Graphics Gems IV, 1994).

    The image is divided into tiles; each has its own table, and pixels blend the tables of the four nearest tiles.

    Args:
        x: uint8 images HWC with 1 or 3 channels, R, G, B in this order.
        bins: grey levels that are told apart, a power of two; a pixel's level is ``value * bins / 256``. More than 256
            there are not. DALI's CPU operator takes no notice of it.
        clip_limit: largest count of a level in a tile, as a multiple of the mean count; what is above is spread evenly.
        luma_only: of colour images, equalise the lightness L of CIE Lab alone; False: each channel by itself.
        tiles_x: tiles along the width.
        tiles_y: tiles along the height.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: another layout.
        DTypeError: elements are not uint8.
        ShapeError: neither 1 nor 3 channels.
        ArgumentValueError: tiles or `clip_limit` are not positive, or `bins` is no power of two.

    Example:
        >>> images = fn.clahe(images, tiles_x=8, tiles_y=8, clip_limit=2.0)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, ("HWC",)))
    if x.dtype != DALIDataType.UINT8:
        raise DTypeError(f"histograms are equalised in uint8; the input has elements of type {x.dtype!s}.")
    if x.shape is not None and x.shape[-1] not in (1, 3):
        raise ShapeError(f"images need 1 or 3 channels; the input has {x.shape[-1]}.")
    if tiles_x < 1 or tiles_y < 1 or not clip_limit > 0:
        raise ArgumentValueError(
            f"tiles_x, tiles_y and clip_limit must be positive; got {tiles_x}, {tiles_y} and {clip_limit:g}."
        )
    if max(tiles_x, tiles_y) > _MOST_TILES:
        raise ArgumentValueError(f"there can be {_MOST_TILES} tiles a side at most; got {tiles_x} x {tiles_y}.")
    if bins < 2 or bins & (bins - 1):
        raise ArgumentValueError(f"bins must be a power of two, 256 for all levels of uint8 images; got {bins}.")
    return x


@clahe.cpu
def _(out, x, *, bins, clip_limit, luma_only, tiles_x, tiles_y):
    options = {"tiles_x": tiles_x, "tiles_y": tiles_y, "clip_limit": clip_limit, "bins": min(bins, _LEVELS)}
    plane, equalised = np.empty(x.shape[1:3], np.uint8), np.empty(x.shape[1:3], np.uint8)
    for source, target in zip(x, out, strict=True):
        if source.shape[2] == 1:
            equalise_plane(target[..., 0], source[..., 0], **options)
        elif luma_only:
            lab = cv2.cvtColor(source, cv2.COLOR_RGB2LAB)
            equalise_plane(equalised, cv2.extractChannel(lab, 0, plane), **options)
            cv2.insertChannel(equalised, lab, 0)
            cv2.cvtColor(lab, cv2.COLOR_LAB2RGB, dst=target)
        else:
            for channel in range(source.shape[2]):
                equalise_plane(equalised, cv2.extractChannel(source, channel, plane), **options)
                cv2.insertChannel(equalised, target, channel)


@clahe.gpu
def _(out, x, *, bins, clip_limit, luma_only, tiles_x, tiles_y):
    options = {"tiles_x": tiles_x, "tiles_y": tiles_y, "clip_limit": clip_limit, "bins": min(bins, _LEVELS)}
    if x.shape[3] == 3 and luma_only:
        lab = rgb_to_lab(x)
        lab[..., 0] = equalise_planes_torch(lab[..., 0], **options)
        out.copy_(lab_to_rgb(lab))
    else:
        for channel in range(x.shape[3]):
            out[..., channel] = equalise_planes_torch(x[..., channel], **options)
