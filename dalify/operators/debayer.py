"""Convert Bayer mosaics to color images."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, option_error_text
from dalify.base.optional import torch
from dalify.base.small_arrays import columns_at, counting
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import bordered_samples_torch
from dalify.kernels.images.demosaic import MIN_WIDTH, demosaic_images
from dalify.kernels.images.frames import folded_frames, per_axis_of_samples, visual_layout
from dalify.kernels.images.vng_torch import demosaic_vng_torch
from dalify.registry import AnySamples, AnyShape, PerSampleOrFrame, Spec, Vectors, operator

if TYPE_CHECKING:
    from torch import Tensor

_LAYOUTS = ("HW", "HWC", "FHW", "FHWC")
_TYPES = (DALIDataType.UINT8, DALIDataType.UINT16)
_ALGORITHMS = ("bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv", "default_npp")
_TILES = (("BG", "GB"), ("GR", "RG"))  # by the row and column of the blue pixel
_ENDINGS = {"bilinear_ocv": "2RGB", "edgeaware_ocv": "2RGB_EA", "vng_ocv": "2RGB_VNG", "gray_ocv": "2GRAY"}
# Below this extent OpenCV returns a black image: no pixel has neighbors on all sides.
_MIN_EXTENT = 4
# Below this extent OpenCV computes `vng_ocv` like `bilinear_ocv`.
_MIN_VNG_EXTENT = 8
_MARGIN = 2  # even, so that the mosaic continues in the mirrored border
_RED, _GREEN, _BLUE = 4899, 9617, 1868  # weights of gray times 2**14, ITU-R BT.601


@operator
def debayer(
    x: Spec, /, *, algorithm: str | None = None, blue_position: PerSampleOrFrame[AnyShape[int | list[int]]]
) -> Spec:
    """Convert Bayer mosaics of image sensors to color images by interpolating the two missing colors of each pixel.

    Red and blue are the means of the nearest pixels that have them. The algorithms differ in how they compute green and
    in the output:

    - ``bilinear_ocv``: green is the mean of the nearest pixels;
    - ``edgeaware_ocv``: green is the mean of the horizontal or the vertical pair of neighbors, whichever differ less;
    - ``vng_ocv``: means along directions of small gradients (Chang, Cheung, Pang, 1999), uint8 only;
    - ``gray_ocv``: the bilinear result converted to gray, one channel;
    - ``default_npp``: green is interpolated along the direction with the smaller second derivative (Laroche, Prescott,
      US patent 5373322). DALI has an algorithm of this name on the GPU; its exact formula is not published.

    Args:
        x: uint8 or uint16 mosaics HW, HWC with one channel, or sequences of them. Extents must be even.
        algorithm: one of the above; by default bilinear_ocv on both devices (in DALI default_npp on the GPU).
        blue_position: row and column, 0 or 1, of the blue pixel in the 2 x 2 tile **that starts at the second row and
            column** of the image, as in OpenCV: [0, 0] is BGGR, [0, 1] GBRG, [1, 0] GRBG, [1, 1] RGGB. A single number
            applies to both. Can be per frame.

    Returns:
        HWC or FHWC of the same type, in the order R, G, B.

    Raises:
        LayoutError: the layout is not supported.
        ShapeError: more than one channel, or odd extents.
        DTypeError: neither uint8 nor uint16; uint16 with vng_ocv.
        ArgumentValueError: an unknown algorithm, or a position outside the tile.

    Example:
        >>> images = fn.debayer(mosaics, blue_position=[1, 1])  # doctest: +SKIP
    """
    layout = visual_layout(x, _LAYOUTS)
    if algorithm is not None and algorithm not in _ALGORITHMS:
        raise ArgumentValueError(option_error_text("algorithm", algorithm, _ALGORITHMS))
    if x.dtype not in _TYPES or (x.dtype != DALIDataType.UINT8 and algorithm == "vng_ocv"):
        only = "uint8" if algorithm == "vng_ocv" else "uint8 or uint16"
        raise DTypeError(f"the input must have elements of type {only}; got {x.dtype_text}.")
    channels = 1 if algorithm == "gray_ocv" else 3
    result = x.replace(layout="FHWC" if layout.startswith("F") else "HWC", ndim=4 if layout.startswith("F") else 3)
    if x.shape is None:
        return result
    plain = x.shape
    if layout.endswith("C"):
        if plain[-1] != 1:
            raise ShapeError(
                f"the input must have one channel; got {plain[-1]}.",
                hint="Sequences without channels have the layout 'FHW'.",
            )
        plain = plain[:-1]
    if plain[-1] % 2 or plain[-2] % 2:
        raise ShapeError(
            f"the input must have even extents; got {plain[-2]} x {plain[-1]}.",
            hint="Crop it first, e.g. with fn.crop.",
        )
    return result.replace(shape=(*plain, channels))


def _check_positions(rows: np.ndarray, owners: np.ndarray) -> None:
    """Raise an error for a wrong position; `owners` is the sample of each row."""
    wrong = np.flatnonzero(((rows < 0) | (rows > 1)).any(axis=1))
    if len(wrong):
        raise ArgumentValueError(
            f"blue_position must be a row and a column, each 0 or 1; got {rows[wrong[0]].tolist()}.",
            sample=int(owners[wrong[0]]),
        )


def _mosaics_and_results(
    out: AnySamples, x: AnySamples, layout: str, blue_position: Any
) -> tuple[Any, Any, np.ndarray]:
    """Return the mosaics of all frames [H, W], the results [H, W, C], and the position of the blue pixel in each."""
    rows = per_axis_of_samples(blue_position, x, layout, "blue_position", 2)
    source, owners = x.folded(int(layout.startswith("F")))
    _check_positions(rows, counting(len(x)) if owners is None else owners)
    target = folded_frames(out, "FHWC" if layout.startswith("F") else "HWC")
    return source.reshaped(columns_at(source.shapes, (0, 1))), target, rows


@debayer.cpu_samples
def _(out: Samples, x: Samples, *, algorithm: str | None, blue_position: Vectors, spec: Spec) -> None:
    source, target, positions = _mosaics_and_results(out, x, visual_layout(spec, _LAYOUTS), blue_position)
    if algorithm == "default_npp":
        _interpolate(target.addresses, source.addresses, source.shapes, source.like, (1 + positions) % 2)
        return
    if algorithm in (None, "bilinear_ocv") and source.dtype == np.uint8:
        is_wide = (source.shapes >= (_MIN_EXTENT, MIN_WIDTH)).all(1)
        wide, others = np.flatnonzero(is_wide), np.flatnonzero(~is_wide)
        found = source.take(wide)
        demosaic_images(target.addresses[wide], x.like, found.addresses, found.shapes, (1 + positions[wide]) % 2)
        source, target, positions = source.take(others), target.take(others), positions[others]
    codes = _codes(_ENDINGS[algorithm or "bilinear_ocv"])
    for mosaic, image, (row, column) in zip(source.arrays(), target.arrays(), positions.tolist(), strict=True):
        if min(mosaic.shape) < _MIN_EXTENT:
            larger = cv2.copyMakeBorder(mosaic, _MARGIN, _MARGIN, _MARGIN, _MARGIN, cv2.BORDER_REFLECT_101)
            result = cv2.demosaicing(larger, codes[row][column])
            image[...] = result[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN].reshape(image.shape)
        else:
            cv2.demosaicing(mosaic, codes[row][column], dst=image)


@cache
def _codes(ending: str) -> list[list[int]]:
    """Return OpenCV's numbers of an algorithm by the row and column of the blue pixel."""
    return [[getattr(cv2, f"COLOR_Bayer{tile}{ending}") for tile in tiles] for tiles in _TILES]


@njit(nogil=True, inline="always")
def _mirrored(at, size):
    """Return the index of a pixel at most two before or after an axis; edges are mirrored, the edge pixel is not."""
    if size == 2:
        return abs(at) % 2
    return size - 1 - abs(size - 1 - abs(at))


@njit(nogil=True, cache=True)
def _interpolate(out_at, x_at, shapes, like, blue):
    """Fill images by ``default_npp``: red and blue as means, green along the smaller second derivative."""
    for n in range(len(x_at)):
        height, width = shapes[n]
        mosaic = array_at(x_at[n], (height, width), like)
        padded = np.empty((height + 4, width + 4), like.dtype)
        for y in range(height + 4):
            row = _mirrored(y - 2, height)
            for x in range(width):
                padded[y, x + 2] = mosaic[row, x]
            for side in (-2, -1, width, width + 1):
                padded[y, side + 2] = mosaic[row, _mirrored(side, width)]
        _interpolate_image(array_at(out_at[n], (height, width, 3), like), padded, blue[n, 0], blue[n, 1])


@njit(nogil=True, inline="always")
def _interpolate_image(out, padded, blue_row, blue_column):
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            i, j = y + 2, x + 2
            here = np.int32(padded[i, j])
            left, right = np.int32(padded[i, j - 1]), np.int32(padded[i, j + 1])
            above, below = np.int32(padded[i - 1, j]), np.int32(padded[i + 1, j])
            beside, upright = (left + right + 1) >> 1, (above + below + 1) >> 1
            in_blue_row = y % 2 == blue_row
            if in_blue_row != (x % 2 == blue_column):
                red = upright if in_blue_row else beside
                blue = beside if in_blue_row else upright
                green = here
            else:
                across = 2 * here - np.int32(padded[i, j - 2]) - np.int32(padded[i, j + 2])
                along = 2 * here - np.int32(padded[i - 2, j]) - np.int32(padded[i + 2, j])
                if abs(across) < abs(along):
                    green = beside
                elif abs(along) < abs(across):
                    green = upright
                else:
                    green = (left + right + above + below + 2) >> 2
                diagonal = np.int32(padded[i - 1, j - 1]) + np.int32(padded[i - 1, j + 1])
                other = (diagonal + np.int32(padded[i + 1, j - 1]) + np.int32(padded[i + 1, j + 1]) + 2) >> 2
                red = other if in_blue_row else here
                blue = here if in_blue_row else other
            out[y, x, 0] = red
            out[y, x, 1] = green
            out[y, x, 2] = blue


@debayer.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, algorithm: str | None, blue_position: Vectors, spec: Spec) -> None:
    source, target, rows = _mosaics_and_results(out, x, visual_layout(spec, _LAYOUTS), blue_position)
    padded = DeviceSamples.empty(source.shapes + 2 * _MARGIN, source.dtype, source.device)
    bordered_samples_torch(padded, source, np.full_like(source.shapes, -_MARGIN), "reflect_101")
    _demosaic_padded(target, padded, algorithm=algorithm or "bilinear_ocv", blue=(1 + rows) % 2)


@on_padded
def _demosaic_padded(out: Tensor, x: Tensor, *, algorithm: str, blue: np.ndarray, extents: np.ndarray) -> None:
    """Demosaic like the CPU kernel.

    Args:
        out: [N, H, W, channels].
        x: mosaics with borders of `_MARGIN` pixels.
        algorithm: name.
        blue: parity of the blue rows and columns, [N, 2].
        extents: of the mosaics with borders, [N, 2].
    """
    height, width = out.shape[1:3]
    padded = x.int()

    def shifted(dy: int, dx: int) -> Tensor:
        return padded[:, _MARGIN + dy : _MARGIN + dy + height, _MARGIN + dx : _MARGIN + dx + width]

    here = shifted(0, 0)
    left, right, above, below = shifted(0, -1), shifted(0, 1), shifted(-1, 0), shifted(1, 0)
    corners = shifted(-1, -1) + shifted(-1, 1) + shifted(1, -1) + shifted(1, 1)
    parity = uploaded(blue, x.device)
    rows = torch.arange(height, device=x.device)[None, :, None] % 2 == parity[:, 0, None, None]
    columns = torch.arange(width, device=x.device)[None, None, :] % 2 == parity[:, 1, None, None]
    is_blue, is_red = rows & columns, ~rows & ~columns
    sizes = extents - 2 * _MARGIN
    is_large = sizes.min(axis=1) >= _MIN_VNG_EXTENT
    if algorithm == "vng_ocv" and is_large.all():
        out.copy_(demosaic_vng_torch(padded, rows, columns))
        return
    if algorithm == "gray_ocv":
        # All sums are in quarters, so that nothing is rounded before the colors are weighted.
        beside, upright, cross = 2 * (left + right), 2 * (above + below), left + right + above + below
        green = torch.where(is_blue | is_red, cross, 4 * here)
        red, blues = (
            torch.where(own, 4 * here, torch.where(other, corners, torch.where(rows == is_row, beside, upright)))
            for own, other, is_row in ((is_red, is_blue, False), (is_blue, is_red, True))
        )
        gray = (red.long() * _RED + green.long() * _GREEN + blues.long() * _BLUE + (1 << 15)) >> 16
        result = gray[..., None]
    else:
        beside, upright, diagonal = (left + right + 1) >> 1, (above + below + 1) >> 1, (corners + 2) >> 2
        mean = (left + right + above + below + 2) >> 2
        if algorithm == "edgeaware_ocv":
            mean = torch.where((left - right).abs() > (above - below).abs(), upright, beside)
        elif algorithm == "default_npp":
            across = (2 * here - shifted(0, -2) - shifted(0, 2)).abs()
            along = (2 * here - shifted(-2, 0) - shifted(2, 0)).abs()
            mean = torch.where(across < along, beside, torch.where(along < across, upright, mean))
        green = torch.where(is_blue | is_red, mean, here)
        red, blues = (
            torch.where(own, here, torch.where(other, diagonal, torch.where(rows == is_row, beside, upright)))
            for own, other, is_row in ((is_red, is_blue, False), (is_blue, is_red, True))
        )
        result = torch.stack([red, green, blues], dim=-1)
    if algorithm != "default_npp":
        # OpenCV copies the colors of the border pixels from their inner neighbors.
        inset = (sizes.min(axis=1) >= _MIN_EXTENT).astype(np.int64)[:, None]
        row, column = (
            uploaded(np.clip(np.arange(length), inset, sizes[:, axis, None] - 1 - inset), x.device)
            for axis, length in enumerate((height, width))
        )
        result = result[torch.arange(len(x), device=x.device)[:, None, None], row[:, :, None], column[:, None, :]]
    if algorithm == "vng_ocv" and is_large.any():
        large = uploaded(is_large, x.device)[:, None, None, None]
        result = torch.where(large, demosaic_vng_torch(padded, rows, columns), result)
    out.copy_(result)
