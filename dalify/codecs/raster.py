"""Pictures other than JPEG to pixels as stored.

Pillow decodes them, and OpenCV those of more than 8 bits per sample, which Pillow cuts down where they are in colour.
"""

from __future__ import annotations

import io
import struct
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError

from dalify.base.errors import DecodeError
from dalify.base.limits import check_image
from dalify.base.optional import LazyModule
from dalify.codecs.exif import unorient
from dalify.codecs.signature import Bytes

__all__ = ["RasterHeader", "decode_raster", "read_raster_header"]

# Loaded for the first 16-bit image only: most programs never meet one, and it takes a tenth of a second.
cv2: Any = LazyModule("cv2", "decoding an image of more than 8 bits per sample", "opencv-python-headless")

# What Pillow's plugins raise for damaged data.
_PILLOW_ERRORS = (OSError, SyntaxError, ValueError, RuntimeError, struct.error, EOFError, IndexError, KeyError)
_ORIENTATION_TAG = 0x0112
_BITS_PER_SAMPLE_TAG = 258
_CHANNELS_OF_MODE = {"1": 1, "L": 1, "LA": 2, "La": 2, "RGBA": 4, "RGBa": 4, "I": 1, "F": 1}


class RasterHeader(NamedTuple):
    """What the header says.

    Attributes:
        height: rows of the stored image.
        width: columns of the stored image.
        channels: as stored: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha. Palettes and CMYK count as colour.
        bits: bits per sample.
        orientation: EXIF orientation, 1 to 8.
    """

    height: int
    width: int
    channels: int
    bits: int
    orientation: int


def read_raster_header(data: Bytes, kind: str) -> RasterHeader:
    """Read extents, channels, depth and orientation; pixels are not decoded.

    Args:
        data: encoded data, 1-D uint8.
        kind: the format, of ``picture_format``.

    Raises:
        DecodeError: the header is damaged or of a kind that is not supported.
    """
    image = _opened(data, kind)
    if image is None:
        return _header_of_pixels(_decode_deep(data, kind))
    with image:
        return _header_of(image, data, kind)


def decode_raster(data: Bytes, kind: str) -> tuple[np.ndarray[Any, Any], RasterHeader]:
    """Decode as stored, without orientation. Of several frames or pages the first is taken.

    Args:
        data: encoded data, 1-D uint8.
        kind: the format, of ``picture_format``.

    Returns:
        HWC pixels, uint8, uint16 or float32 (as 0..1), RGB order; and the header.

    Raises:
        DecodeError: the data are damaged or of a kind that is not supported.
    """
    image = _opened(data, kind)
    if image is None:
        pixels = _decode_deep(data, kind)
        return pixels, _header_of_pixels(pixels)
    with image:
        header = _header_of(image, data, kind)
        if header.bits > 8:
            return _as_stored(_decode_deep(data, kind, header), data, kind, header), header
        try:
            mode = {1: "L", 2: "LA", 4: "RGBA"}.get(header.channels, "RGB")
            pixels = np.asarray(image if image.mode == mode else image.convert(mode))
        except _PILLOW_ERRORS as error:
            raise DecodeError(_damage_text(kind, data, header, error)) from None
    return _as_stored(pixels[..., None] if pixels.ndim == 2 else pixels, data, kind, header), header


def _as_stored(pixels: np.ndarray[Any, Any], data: Bytes, kind: str, header: RasterHeader) -> np.ndarray[Any, Any]:
    if kind == "TIFF":  # of which both libraries give the upright image whether asked or not
        pixels = unorient(pixels, header.orientation)
    if pixels.shape != (header.height, header.width, header.channels):
        raise DecodeError(
            f"damaged {kind} ({data.size} bytes): the header says {header.width}x{header.height} pixels with "
            f"{header.channels} channels, the contents are {pixels.shape[1]}x{pixels.shape[0]} with {pixels.shape[2]}."
        )
    return pixels


def _opened(data: Bytes, kind: str) -> Image.Image | None:
    """Return the image with its header read; None for a TIFF that Pillow cannot represent, e.g. colours of floats."""
    try:
        return Image.open(io.BytesIO(data.data))
    except Image.DecompressionBombError as error:
        raise DecodeError(
            f"{kind} image too large: {error}", hint="Raise PIL.Image.MAX_IMAGE_PIXELS if the file can be trusted."
        ) from None
    except UnidentifiedImageError:
        if kind == "TIFF":
            return None
        raise DecodeError(
            f"damaged {kind}: the data ({data.size} bytes) begin like {kind}, but the header cannot be read."
        ) from None
    except _PILLOW_ERRORS as error:
        raise DecodeError(f"damaged {kind}: the header of the {data.size} bytes cannot be read: {error}.") from None


def _header_of(image: Image.Image, data: Bytes, kind: str) -> RasterHeader:
    bits = _bits_per_sample(image, data, kind)
    channels = _CHANNELS_OF_MODE.get(image.mode, 1 if image.mode.startswith("I;16") else 3)
    if kind == "BMP" and image.mode == "P" and _is_gray(image.getpalette() or [0, 1, 2]):
        channels = 1
    if kind == "PNG" and bits == 16:
        channels = {0: 1, 4: 2, 6: 4}.get(int(data[25]), 3)
    try:
        tags = getattr(image, "tag_v2", None) or image.getexif()
        orientation = int(tags.get(_ORIENTATION_TAG, 1))
    except (OSError, SyntaxError, ValueError, TypeError, struct.error):
        orientation = 1  # a damaged note must not cost an image
    width, height = image.size
    check_image(height, width, f"the {kind}")
    if kind == "TIFF" and orientation >= 5:
        width, height = height, width
    return RasterHeader(height, width, channels, bits, orientation if 1 <= orientation <= 8 else 1)


def _bits_per_sample(image: Image.Image, data: Bytes, kind: str) -> int:
    if image.mode == "F":
        return 32
    if image.mode.startswith("I;16"):
        return 16
    if kind == "PNG":
        return max(8, int(data[24])) if data.size > 25 else 8
    if kind == "TIFF":
        tags = getattr(image, "tag_v2", {})
        return max(8, *tags.get(_BITS_PER_SAMPLE_TAG, (8,)))
    if kind == "PNM":
        # Pillow gives 16-bit grey maps as 32-bit integers and cuts 16-bit colour maps to 8 bits.
        words = data[:512].tobytes().split()
        is_deep = data[1] in b"2356" and image.mode in ("I", "RGB", "L") and _largest_value(words) > 255
        return 16 if is_deep else 8
    if kind == "JPEG 2000":
        head = data[:4096].tobytes()
        start = head.find(b"\xff\x4f\xff\x51")
        # Size segment: after marker, length, capabilities and eight 32-bit numbers come the number of components and
        # their depths.
        return max(8, (head[start + 42] & 0x7F) + 1) if 0 <= start < len(head) - 42 else 8
    return 8


def _is_gray(palette: list[int]) -> bool:
    return palette[0::3] == palette[1::3] == palette[2::3]


def _largest_value(words: list[bytes]) -> int:
    """Return the fourth word of a PNM header, without comments, or 255."""
    plain = [word for word in words if not word.startswith(b"#")]
    return int(plain[3]) if len(plain) > 3 and plain[3].isdigit() else 255


def _header_of_pixels(pixels: np.ndarray[Any, Any]) -> RasterHeader:
    height, width, channels = pixels.shape
    return RasterHeader(height, width, channels, 8 * pixels.dtype.itemsize, 1)


def _decode_deep(data: Bytes, kind: str, header: RasterHeader | None = None) -> np.ndarray[Any, Any]:
    try:
        pixels = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise DecodeError(f"damaged {kind} ({data.size} bytes): {error}") from None
    if pixels is None:
        depth = "" if header is None else f" with {header.bits} bits per sample"
        raise DecodeError(f"damaged {kind}, or a kind of {kind}{depth} that is not supported ({data.size} bytes).")
    if pixels.dtype not in (np.uint8, np.uint16, np.float32):
        raise DecodeError(f"{kind} images of {pixels.dtype} samples have no defined range and are not supported.")
    if pixels.ndim == 2:
        return pixels[..., None]
    stored = pixels.shape[2]
    channels = stored if header is None else header.channels
    if stored == 4 and channels == 2:
        return pixels[..., [0, 3]]
    return pixels[..., [2, 1, 0, 3] if stored == 4 and channels != 3 else [2, 1, 0]]


def _damage_text(kind: str, data: Bytes, header: RasterHeader, error: Exception) -> str:
    text = str(error).strip().rstrip(".") or type(error).__name__
    what = "truncated" if "truncated" in text.lower() or isinstance(error, EOFError) else "damaged"
    return f"{what} {kind}: {header.width}x{header.height} pixels do not come out of {data.size} bytes ({text})."
