"""Decodes images other than JPEG, in strips of rows, with Pillow and OpenCV.

The declared size is checked against the limits before a library opens the file. Pillow decodes images with 8 bits per
sample, except PNM and most PNG, BMP and TIFF files, which are decoded without a library of images. OpenCV decodes WebP,
for which Pillow needs four times the memory, and TIFF and JPEG 2000 with more than 8 bits, which Pillow reduces to 8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DalifyError, DecodeError, LimitError
from dalify.base.limits import check_image
from dalify.base.wording import counted
from dalify.codecs.bmp import bmp_damage, decode_bmp, read_bmp
from dalify.codecs.declared_size import check_declared_size, gif_screen, webp_chunks
from dalify.codecs.exif import tiff_orientation, xmp_orientation
from dalify.codecs.image_format import Bytes
from dalify.codecs.inks import mix_inks
from dalify.codecs.opencv import decode_by_opencv, reordered
from dalify.codecs.pillow import WITHOUT_REASON, open_by_pillow, rows_of_pillow, strips_of
from dalify.codecs.png import PngFile, decode_png, read_png
from dalify.codecs.pnm import PnmHeader, decode_pnm, read_pnm_header
from dalify.codecs.tiff import TiffFile, read_tiff
from dalify.codecs.tiff_strips import decode_strips

_CHANNELS_OF_MODE = {"1": 1, "L": 1, "LA": 2, "La": 2, "RGBA": 4, "RGBa": 4, "I": 1, "F": 1}
_MODES = {1: "L", 2: "LA", 4: "RGBA"}
_WEBP_ALPHA, _WEBP_EXIF, _WEBP_XMP, _WEBP_ANIMATION = 0x10, 0x08, 0x04, 0x02
_EXIF = b"Exif"

Strip = tuple[int, np.ndarray[Any, Any]]
Strips = Callable[[int, int], Iterator[Strip]]


class RasterHeader(NamedTuple):
    """The header of an image.

    Attributes:
        height: rows of the stored image.
        width: columns of the stored image.
        channels: stored channels: 1 gray, 2 gray and alpha, 3 color, palette or CMYK, 4 color and alpha; TIFF: any
            number.
        bits: bits per sample.
        orientation: EXIF orientation, 1 to 8.
        is_cmyk: whether the colors are mixed from inks.
    """

    height: int
    width: int
    channels: int
    bits: int
    orientation: int
    is_cmyk: bool = False


def read_raster_header(data: Bytes, kind: str) -> RasterHeader:
    """Read size, channels, depth and orientation, without decoding pixels.

    Args:
        data: encoded data, 1-D uint8.
        kind: the format, from ``image_format``.

    Raises:
        DecodeError: the header is damaged or not supported.
        LimitError: the image is too large.
    """
    return _open(data, kind)[0]


def decode_raster(data: Bytes, kind: str) -> tuple[RasterHeader, Strips]:
    """Decode the first frame or page of an image as stored, without applying the orientation.

    Args:
        data: encoded data, 1-D uint8.
        kind: the format, from ``image_format``.

    Returns:
        the header, and a function that decodes strips, to be called once with the first row that is needed and the row
        after the last one. A strip is the index of its first row and ``[rows, width, channels]`` of uint8, uint16 or
        float32 (0..1), in RGB order. The strips contain the needed rows in order, and perhaps rows above and below.

    Raises:
        DecodeError: the data is damaged or not supported; also raised by the iterator of strips.
        LimitError: the image is too large.
    """
    return _open(data, kind)


def _open(data: Bytes, kind: str) -> tuple[RasterHeader, Strips]:
    """Return the header, and the function that decodes the strips."""
    try:
        return _OPENERS.get(kind, _open_by_pillow)(data, kind)
    except (DalifyError, ImportError, MemoryError):
        raise
    except Exception as error:  # libraries raise any exception for damaged data
        reason = (bmp_damage(data) if kind == "BMP" else "") or f"cannot be read{_reason(error)}"
        raise DecodeError(f"damaged {kind}: the header of the {data.size} bytes {reason}.") from None


def _from_top(strips: Iterator[Strip]) -> Strips:
    """Return all strips, for decoders that decode from the top."""
    return lambda _first_row, _end_row: strips


def _open_png(data: Bytes, kind: str) -> tuple[RasterHeader, Strips]:
    png = read_png(data)
    check_image(png.height, png.width, "the PNG")
    header = RasterHeader(png.height, png.width, png.channels, max(8, png.bits), png.orientation)
    is_read_by_pillow = png.is_palette or png.bits < 8
    return header, _from_top(_strips_of_png(data, png, header) if is_read_by_pillow else decode_png(data, png))


def _strips_of_png(data: Bytes, png: PngFile, header: RasterHeader) -> Iterator[Strip]:
    try:
        image = open_by_pillow(png.critical_bytes(data), "PNG")
    except Exception as error:
        raise _damaged(data, "PNG", header, error) from None
    yield from _strips_of_pillow(image, data, "PNG", header)


def _open_pnm(data: Bytes, kind: str) -> tuple[RasterHeader, Strips]:
    header = read_pnm_header(data)
    bits = 16 if header.max_value > 255 else 8
    strips = _from_top(_strips_of_pnm(data, header))
    return RasterHeader(header.height, header.width, header.channels, bits, 1), strips


def _strips_of_pnm(data: Bytes, header: PnmHeader) -> Iterator[Strip]:
    yield from strips_of(decode_pnm(data, header))


def _open_webp(data: Bytes, kind: str) -> tuple[RasterHeader, Strips]:
    check_declared_size(data, kind)
    header = _webp_header(data)
    return header, _from_top(_strips_of_opencv(data, data, kind, header))


def _open_tiff(data: Bytes, kind: str) -> tuple[RasterHeader, Strips]:
    tiff = read_tiff(data)
    if tiff.strips is not None:
        header = RasterHeader(tiff.height, tiff.width, tiff.samples, tiff.bits, tiff.orientation)
        return header, partial(decode_strips, data, tiff.strips, tiff.height, tiff.width, tiff.samples)
    contents = tiff.rewritten()
    try:
        image = open_by_pillow(contents, kind)
    except (SyntaxError, TypeError):  # not representable in Pillow, for example float colors
        return _open_unusual_tiff(data, tiff, np.frombuffer(contents, np.uint8))
    if _channels_of(image) < tiff.samples and tiff.as_gray is not None:
        return _open_tiff_of_channels(data, tiff, tiff.as_gray())
    bits = 32 if image.mode == "F" else 16 if image.mode.startswith("I;16") else max(8, tiff.bits)
    header = RasterHeader(tiff.height, tiff.width, _channels_of(image), bits, tiff.orientation)
    if image.mode == "CMYK":
        header = header._replace(is_cmyk=True)
        return header, _from_top(_mixed(_strips_of_pillow(image, data, kind, header, "CMYK")))
    if bits > 8:
        return header, _from_top(_strips_of_opencv(np.frombuffer(contents, np.uint8), data, kind, header))
    return header, _from_top(_strips_of_pillow(image, data, kind, header))


def _mixed(strips: Iterator[Strip]) -> Iterator[Strip]:
    """Convert strips of CMYK to RGB."""
    for top, inks in strips:
        colors = np.empty((*inks.shape[:2], 3), np.uint8)
        mix_inks(inks, False, colors)
        yield top, colors


def _open_unusual_tiff(data: Bytes, tiff: TiffFile, contents: Bytes) -> tuple[RasterHeader, Strips]:
    if tiff.is_rgb and tiff.samples in (3, 4) and tiff.bits in (16, 32):
        header = RasterHeader(tiff.height, tiff.width, tiff.samples, tiff.bits, tiff.orientation)
        return header, _from_top(_strips_of_opencv(contents, data, "TIFF", header))
    if tiff.samples > 1 and tiff.as_gray is not None:
        return _open_tiff_of_channels(data, tiff, tiff.as_gray())
    pixels = decode_by_opencv(contents, "TIFF")  # only OpenCV can decode the other types
    channels = pixels.shape[2]
    header = RasterHeader(tiff.height, tiff.width, channels, 8 * pixels.dtype.itemsize, tiff.orientation)
    return header, _from_top((top, reordered(rows, channels)) for top, rows in strips_of(pixels))


def _open_tiff_of_channels(data: Bytes, tiff: TiffFile, gray: bytes) -> tuple[RasterHeader, Strips]:
    """Open a TIFF with more channels than the libraries support or return."""
    header = RasterHeader(tiff.height, tiff.width, tiff.samples, tiff.bits, tiff.orientation)
    stored = header._replace(width=tiff.width * tiff.samples, channels=1)
    if tiff.bits > 8:
        strips = _strips_of_opencv(np.frombuffer(gray, np.uint8), data, "TIFF", stored)
    else:
        strips = _strips_of_pillow(open_by_pillow(gray, "TIFF"), data, "TIFF", stored)
    return header, _from_top((top, tiff.pixels_of_gray(rows)) for top, rows in strips)


def _open_bmp(data: Bytes, kind: str) -> tuple[RasterHeader, Strips]:
    check_declared_size(data, kind)
    bmp = read_bmp(data)
    if bmp is None:
        return _open_by_pillow(data, kind)
    return RasterHeader(bmp.height, bmp.width, bmp.channels, 8, 1), partial(decode_bmp, data, bmp)


def _open_by_pillow(data: Bytes, kind: str) -> tuple[RasterHeader, Strips]:
    check_declared_size(data, kind)
    contents = data.tobytes()
    if kind == "GIF":
        # The screen is enlarged to contain the image. Pillow would do the same, but check its own limit.
        height, width = gif_screen(data)
        contents = contents[:6] + struct.pack("<HH", min(width, 65535), min(height, 65535)) + contents[10:]
    elif kind == "AVIF":
        contents = _without_exif(contents)
    image = open_by_pillow(contents, kind)
    width, height = image.size
    check_image(height, width, f"the {kind}")
    bits = _bits_of_jpeg_2000(data, image) if kind == "JPEG 2000" else 8
    channels = _channels_of(image)
    if kind == "BMP" and image.mode == "P" and _is_gray(image.getpalette() or [0, 1, 2]):
        channels = 1
    orientation = _orientation_of(image) if kind == "AVIF" else 1
    header = RasterHeader(height, width, channels, bits, orientation)
    if bits > 8:
        return header, _from_top(_strips_of_opencv(data, data, kind, header))
    return header, _from_top(_strips_of_pillow(image, data, kind, header))


_OPENERS = {"BMP": _open_bmp, "PNG": _open_png, "PNM": _open_pnm, "TIFF": _open_tiff, "WebP": _open_webp}


def _strips_of_pillow(image: Any, data: Bytes, kind: str, header: RasterHeader, mode: str = "") -> Iterator[Strip]:
    mode = mode or _MODES.get(header.channels, "RGB")
    try:
        yield from rows_of_pillow(image, mode, header.height, header.width)
    except (MemoryError, LimitError):
        raise
    except Exception as error:  # libraries raise any exception for damaged data
        raise _damaged(data, kind, header, error) from None


def _strips_of_opencv(contents: Bytes, data: Bytes, kind: str, header: RasterHeader) -> Iterator[Strip]:
    pixels = decode_by_opencv(contents, kind)
    if pixels.shape[:2] != (header.height, header.width) or pixels.shape[2] < min(header.channels, 3):
        raise DecodeError(
            f"damaged {kind} ({data.size} bytes): the header declares {header.width}x{header.height} pixels with "
            f"{counted(header.channels, 'channel')}, but the image has {pixels.shape[1]}x{pixels.shape[0]} with "
            f"{pixels.shape[2]}."
        )
    for top, strip in strips_of(pixels):
        yield top, reordered(strip, header.channels)


def _channels_of(image: Any) -> int:
    return _CHANNELS_OF_MODE.get(image.mode, 1 if image.mode.startswith("I;16") else 3)


def _webp_header(data: Bytes) -> RasterHeader:
    """Read the size of the canvas and whether there is alpha, as libwebp does."""
    size: tuple[int, int] | None = None
    flags, has_alpha, orientation = 0, False, 1
    exif = xmp = b""
    is_known = False
    for kind, start, end in webp_chunks(data):
        if kind == b"VP8X" and size is None and end - start >= 10:
            flags = int(data[start])
            first, second, third = struct.unpack_from("<HHH", data.data, start + 4)
            size = 1 + (second >> 8 | third << 8), 1 + (first | (second & 0xFF) << 16)
            has_alpha = bool(flags & _WEBP_ALPHA)
            is_known = bool(flags & _WEBP_ANIMATION)
        elif kind == b"ALPH" and not is_known:
            has_alpha = True
        elif kind in (b"VP8 ", b"VP8L") and not is_known:
            is_known = True
            if kind == b"VP8 ":
                width, height = struct.unpack_from("<HH", data.data, start + 6)
                size = size or (height & 0x3FFF, width & 0x3FFF)
            else:
                (bits,) = struct.unpack_from("<I", data.data, start + 1)
                has_alpha = bool(bits >> 28 & 1)
                size = size or (1 + (bits >> 14 & 0x3FFF), 1 + (bits & 0x3FFF))
        elif kind == b"EXIF" and flags & _WEBP_EXIF:
            exif = data[start:end].tobytes()
        elif kind == b"XMP " and flags & _WEBP_XMP:
            xmp = data[start:end].tobytes()
    if size is None or not all(size):
        raise DecodeError(f"damaged WebP: the header of the {data.size} bytes cannot be read.")
    if exif or xmp:
        orientation = _orientation(exif, xmp)
    return RasterHeader(*size, 4 if has_alpha else 3, 8, orientation)


def _orientation(exif: bytes, xmp: bytes) -> int:
    found = tiff_orientation(exif.removeprefix(b"Exif\0\0")) if exif else 1
    return found if found != 1 else xmp_orientation(xmp) or 1


def _orientation_of(image: Any) -> int:
    return _orientation(image.info.get("exif") or b"", image.info.get("xmp") or b"")


def _without_exif(contents: bytes) -> bytes:
    """Return an AVIF file with its EXIF items changed to an unknown type, because Pillow warns if one is damaged.

    The orientation of AVIF is a property of the image, not of its EXIF data.
    """
    changed = bytearray(contents)
    position = changed.find(b"infe")
    while position >= 0:  # box type, version and flags, item ID of 2 or 4 bytes, protection index, item type
        for start in (position + 12, position + 14):
            if changed[start : start + 4] == _EXIF:
                changed[start : start + 4] = b"free"
        position = changed.find(b"infe", position + 4)
    return bytes(changed)


def _bits_of_jpeg_2000(data: Bytes, image: Any) -> int:
    if image.mode.startswith("I;16"):
        return 16
    head = data[:4096].tobytes()
    start = head.find(b"\xff\x4f\xff\x51")
    # The size segment has marker, length, capabilities, eight 32-bit numbers, number of components and their depths.
    return max(8, (head[start + 42] & 0x7F) + 1) if 0 <= start < len(head) - 42 else 8


def _is_gray(palette: list[int]) -> bool:
    return palette[0::3] == palette[1::3] == palette[2::3]


def _damaged(data: Bytes, kind: str, header: RasterHeader, error: Exception) -> DecodeError:
    what = "truncated" if "truncated" in str(error).lower() or isinstance(error, EOFError) else "damaged"
    return DecodeError(
        f"{what} {kind}: cannot decode {header.width}x{header.height} pixels from {data.size} bytes{_reason(error)}."
    )


def _reason(error: Exception) -> str:
    """Return the reason of a library in parentheses; "" if it only says that the data are damaged."""
    text = str(error).strip().rstrip(".")
    return "" if not text or WITHOUT_REASON.match(text) else f" ({text})"
