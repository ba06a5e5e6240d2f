"""Converts decoded pixels to the requested color space and dtype.

Gray is BT.601 luma, YCbCr is BT.601 in studio range (luma 16-235, chroma 16-240), and a change of dtype maps the full
range of one type to the full range of the other, as in DALI's decoders.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DTypeError
from dalify.data.dtypes import DALIDataType, DALIImageType

SUPPORTED_DTYPES = (
    DALIDataType.UINT8,
    DALIDataType.UINT16,
    DALIDataType.UINT32,
    DALIDataType.INT8,
    DALIDataType.INT16,
    DALIDataType.INT32,
    DALIDataType.FLOAT16,
    DALIDataType.FLOAT,
    DALIDataType.FLOAT64,
)

# Rec. ITU-R BT.601; `_YCBCR` is for studio range, and inputs and outputs with the same full scale.
_LUMA = (0.299, 0.587, 0.114)
# In units of 1/65536. The libraries that DALI decodes with have fewer bits. libpng truncates uint8 and rounds uint16.
_LUMA_OF_BYTES = (19595, 38470, 7471)
_LUMA_BY_FORMAT = {
    "PNG": (19594, 38468, 7474),
    **dict.fromkeys(("BMP", "CMYK", "PNM"), (19596, 38468, 7472)),
    **dict.fromkeys(("WebP", "JPEG 2000"), (19596, 38470, 7470)),
}
_WORDS_AS_INTEGERS = ("JPEG 2000", "PNG")
_YCBCR = np.array(
    [
        [0.25678824, 0.50412941, 0.09790588],
        [-0.14822290, -0.29099279, 0.43921569],
        [0.43921569, -0.36778831, -0.07142737],
    ],
    np.float32,
)
_YCBCR_OFFSETS_OF_BYTES = np.array([16, 128, 128], np.float32)
_YCBCR_OFFSETS_OF_FRACTIONS = np.array([1 / 16, 1 / 2, 1 / 2], np.float32)  # as in DALI, instead of 16/255 and 128/255


def channels_of(output_type: DALIImageType, stored: int) -> int:
    """Return the number of channels of an output type, for an image with ``stored`` channels."""
    if output_type == DALIImageType.ANY_DATA:
        return stored
    return 1 if output_type == DALIImageType.GRAY else 3


def check_dtype(dtype: DALIDataType) -> None:
    """Check that images can be decoded to a dtype.

    Raises:
        DTypeError: booleans and 64-bit integers.
    """
    if dtype not in SUPPORTED_DTYPES:
        names = ", ".join(f"types.{kind.name}" for kind in SUPPORTED_DTYPES)
        raise DTypeError(f"images cannot be decoded to {dtype.text}; dtype must be one of {names}.")


def convert_color(pixels: np.ndarray[Any, Any], output_type: DALIImageType, *, kind: str = "") -> np.ndarray[Any, Any]:
    """Convert stored pixels.

    Args:
        pixels: HWC, uint8, uint16 or float32 (0..1), 1, 2 (gray, alpha), 3 or 4 (RGB, alpha) channels. Alpha is
            dropped, not blended.
        output_type: requested color space; YCbCr only for uint8 or float32.
        kind: format of the image, which determines how DALI rounds gray; "CMYK" for a TIFF with inks.

    Returns:
        HWC of the same dtype; a view if no arithmetic is needed.
    """
    stored = pixels.shape[2]
    if output_type == DALIImageType.ANY_DATA:
        return pixels
    if stored < 3:
        gray = pixels[..., :1]
        if output_type == DALIImageType.GRAY:
            return gray
        if output_type != DALIImageType.YCbCr:
            return np.broadcast_to(gray, (*gray.shape[:2], 3))
        pixels = np.broadcast_to(gray, (*gray.shape[:2], 3))
    if output_type == DALIImageType.RGB:
        return pixels[..., :3]
    if output_type == DALIImageType.BGR:
        return pixels[..., 2::-1]
    is_gray = output_type == DALIImageType.GRAY
    is_byte = pixels.dtype == np.uint8
    if is_gray and (is_byte or kind in _WORDS_AS_INTEGERS):
        result = np.empty((*pixels.shape[:2], 1), pixels.dtype)
        rounding = 0 if is_byte and kind == "PNG" else 1 << 15
        _gray_of_integers(pixels, _LUMA_BY_FORMAT.get(kind, _LUMA_OF_BYTES), rounding, result)
        return result
    if is_byte:
        result = np.empty((*pixels.shape[:2], 3), np.uint8)
        _ycbcr_of_bytes(pixels, result)
        return result
    colors = pixels[..., :3].astype(np.float32)
    if not is_gray:
        return colors @ _YCBCR.T + _YCBCR_OFFSETS_OF_FRACTIONS
    luma = (colors @ np.array(_LUMA, np.float32))[..., None]
    return luma if pixels.dtype.kind == "f" else np.floor(luma + np.float32(0.5)).astype(pixels.dtype)


def rescale(
    pixels: np.ndarray[Any, Any], dtype: DALIDataType, out: np.ndarray[Any, Any] | None = None
) -> np.ndarray[Any, Any]:
    """Map the full range of one type to the full range of another: uint8 255 to float 1.0, uint16 65535 or int8 127.

    Args:
        pixels: uint8, uint16, or float32 with full range 0..1.
        dtype: requested dtype, one of SUPPORTED_DTYPES.
        out: output array of that dtype and the shape of the pixels; allocated if None.

    Returns:
        ``out``; without it, a new array, or ``pixels`` itself if the dtype is the same.
    """
    target = dtype.numpy
    if target == pixels.dtype:
        if out is None:
            return pixels
        _copy(out, pixels)
        return out
    if out is None:
        out = np.empty(pixels.shape, target)
    if target == np.uint16 and pixels.dtype == np.uint8:
        np.multiply(pixels, np.uint16(257), out=out, dtype=np.uint16)
        return out
    scale = _full_scale(target) / _full_scale(pixels.dtype)
    if target.kind == "f":
        np.multiply(pixels, np.float32(scale), out=out, dtype=np.float32, casting="same_kind")
        return out
    # In float32, the full scale of 32-bit integers would overflow.
    work = np.float64 if target.itemsize == 4 else np.float32
    values = np.multiply(pixels, work(scale), dtype=work)
    np.floor(np.add(values, work(0.5), out=values), out=values)
    if pixels.dtype.kind == "f":
        np.clip(np.nan_to_num(values, copy=False), 0, _full_scale(target), out=values)
    np.copyto(out, values, casting="unsafe")
    return out


def _copy(out: np.ndarray[Any, Any], pixels: np.ndarray[Any, Any]) -> None:
    """Copy pixels. NumPy takes four times as long for all channels at once if pixels are not contiguous."""
    size, channels = pixels.itemsize, pixels.shape[-1]
    if all(array.strides[-2:] == (size * channels, size) for array in (out, pixels)):
        np.copyto(out, pixels)
        return
    for channel in range(channels):
        out[..., channel] = pixels[..., channel]


def _full_scale(dtype: np.dtype[Any]) -> float:
    return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)


@njit(nogil=True, cache=True)
def _gray_of_integers(pixels: Any, weights: Any, rounding: int, result: Any) -> None:
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            red, green, blue = np.int64(pixels[y, x, 0]), np.int64(pixels[y, x, 1]), np.int64(pixels[y, x, 2])
            luma = weights[0] * red + weights[1] * green + weights[2] * blue
            result[y, x, 0] = (luma + rounding) >> 16


@njit(nogil=True, cache=True)
def _ycbcr_of_bytes(pixels: Any, result: Any) -> None:
    half = np.float32(0.5)
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            red, green, blue = np.float32(pixels[y, x, 0]), np.float32(pixels[y, x, 1]), np.float32(pixels[y, x, 2])
            for k in range(3):
                value = _YCBCR[k, 0] * red + _YCBCR[k, 1] * green + _YCBCR[k, 2] * blue + _YCBCR_OFFSETS_OF_BYTES[k]
                # Always in 16..240.
                result[y, x, k] = np.int32(value + half)
