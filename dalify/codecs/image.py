"""Decodes images of any supported format to upright HWC arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base import scratch
from dalify.base.errors import IndexingError, ShapeError
from dalify.base.limits import check_image
from dalify.base.wording import counted
from dalify.codecs.color import channels_of, check_dtype, convert_color, rescale
from dalify.codecs.exif import oriented_extents, source_window, unorient
from dalify.codecs.image_format import Bytes, as_bytes_array, image_format
from dalify.codecs.jpeg import JpegHeader, decode_jpeg, read_jpeg_header
from dalify.codecs.lossless_jpeg import decode_lossless_jpeg
from dalify.codecs.pillow import strips_of
from dalify.codecs.raster import decode_raster, read_raster_header
from dalify.data.dtypes import DALIDataType, DALIImageType

# Color spaces that libjpeg-turbo can produce directly, by output type; others are converted from RGB.
_JPEG_COLORS = {DALIImageType.RGB: "RGB", DALIImageType.BGR: "BGR", DALIImageType.GRAY: "GRAY"}

_LOSSLESS = 0xC3  # frame type of lossless JPEG with Huffman codes

Window = tuple[int, int, int, int]


def image_shape(
    data: Bytes | bytes,
    output_type: DALIImageType = DALIImageType.RGB,
    adjust_orientation: bool = True,
    jpeg_header: JpegHeader | None = None,
) -> tuple[int, int, int]:
    """Return the output shape of ``decode_image``, read from the header.

    Args:
        data: encoded image.
        output_type: color space; determines the number of channels.
        adjust_orientation: whether to return height and width of the upright image.
        jpeg_header: the header of a JPEG, if it was already read.

    Returns:
        height, width, channels.

    Raises:
        DecodeError: the data is not an image, or the header is damaged.
    """
    data = as_bytes_array(data)
    kind = "JPEG" if jpeg_header is not None else image_format(data)
    if kind == "JPEG":
        header = read_jpeg_header(data) if jpeg_header is None else jpeg_header
        stored = header.components
        check_image(header.height, header.width, "the JPEG")
    else:
        header = read_raster_header(data, kind)
        stored = header.channels
    height, width = header.height, header.width
    if adjust_orientation:
        height, width = oriented_extents(height, width, header.orientation)
    return height, width, channels_of(output_type, stored)


def decode_image(
    data: Bytes | bytes,
    output_type: DALIImageType = DALIImageType.RGB,
    dtype: DALIDataType = DALIDataType.UINT8,
    *,
    adjust_orientation: bool = True,
    use_fast_idct: bool = False,
    window: Window | None = None,
    out: np.ndarray[Any, Any] | None = None,
    first_rows: int | None = None,
    jpeg_header: JpegHeader | None = None,
) -> np.ndarray[Any, Any]:
    """Decode an image of any format in ``image_format``; the data determines the format.

    Args:
        data: encoded image, 1-D uint8 or bytes.
        output_type: RGB, BGR, GRAY, YCbCr (studio range) or ANY_DATA (as stored: 1 to 4 channels, of TIFF also more;
            CMYK with 0 for no ink).
        dtype: output dtype; values are scaled from full range to full range.
        adjust_orientation: whether to apply the EXIF orientation.
        use_fast_idct: whether to use the less accurate inverse DCT for JPEG: a few percent faster; values differ by up
            to 21 in photographs.
        window: y, x, height, width of the part of the upright image to decode, in pixels. JPEG rows below it, most BMP
            rows outside of it, and most TIFF strips outside of it are not decoded.
        out: output array; allocated if None.
        first_rows: with ``out`` and without ``window``: number of rows needed from the top; the others may be left
            undefined.
        jpeg_header: the header of a JPEG, if it was already read.

    Returns:
        ``[height, width, channels]``: ``out``, or a new array.

    Raises:
        DecodeError: the data is not an image, is damaged, or is not supported.
        DTypeError: images cannot have this dtype.
        IndexingError: the window is not inside the image.
        ShapeError: ``out`` has another shape.
    """
    check_dtype(dtype)
    data = as_bytes_array(data)
    kind = "JPEG" if jpeg_header is not None else image_format(data)
    if kind == "JPEG":
        header = read_jpeg_header(data) if jpeg_header is None else jpeg_header
        check_image(header.height, header.width, "the JPEG")
        channels, strips_from = header.components, None
    else:
        header, strips_from = decode_raster(data, kind)
        channels = header.channels
        kind = "CMYK" if header.is_cmyk else kind
    orientation = header.orientation if adjust_orientation else 1
    stored_window = _checked_window(window, header.height, header.width, orientation)
    y, x, rows, columns = stored_window or (0, 0, header.height, header.width)
    shape = (*oriented_extents(rows, columns, orientation), channels_of(output_type, channels))
    if out is None:
        out = np.empty(shape, dtype.numpy)
    elif out.shape != shape:
        raise ShapeError(f"the image has shape {shape}, but out has shape {out.shape}.")
    is_lossless = isinstance(header, JpegHeader) and header.frame == _LOSSLESS
    if strips_from is not None:
        strips = strips_from(y, y + rows)
    elif isinstance(header, JpegHeader) and is_lossless:
        strips = strips_of(decode_lossless_jpeg(data, header.height, header.width, header.components, header.bits))
    else:
        assert isinstance(header, JpegHeader)
        is_direct = (
            dtype == DALIDataType.UINT8
            and window is None
            and orientation == 1
            and out.flags.c_contiguous
            and output_type != DALIImageType.YCbCr
        )
        colors = jpeg_color_space(header.components, output_type)
        if is_direct:
            decode_jpeg(data, header, colors, use_fast_idct=use_fast_idct, out=out, rows=first_rows)
            return out
        shape = (header.height, header.width, {"GRAY": 1, "CMYK": 4}.get(colors, 3))
        memory = scratch.borrow("jpeg pixels", shape)
        pixels = decode_jpeg(data, header, colors, use_fast_idct=use_fast_idct, out=memory, rows=y + rows)
        strips = strips_of(pixels)
    stored = unorient(out, orientation)
    for top, strip in strips:
        first, last = max(top, y), min(top + len(strip), y + rows)
        if first < last:
            part = strip[first - top : last - top, x : x + columns]
            _convert(part, output_type, dtype, "" if is_lossless else kind, stored[first - y : last - y])
        if last == y + rows:
            break
    return out


def jpeg_color_space(components: int, output_type: DALIImageType) -> str:
    """Return the color space that a JPEG is decoded to: ``RGB``, ``BGR``, ``GRAY`` or ``CMYK``."""
    if output_type == DALIImageType.ANY_DATA:
        return {1: "GRAY", 4: "CMYK"}.get(components, "RGB")
    return _JPEG_COLORS.get(output_type, "RGB")


def _convert(
    pixels: np.ndarray[Any, Any],
    output_type: DALIImageType,
    dtype: DALIDataType,
    kind: str,
    out: np.ndarray[Any, Any],
) -> None:
    """Convert rows of an image.

    Args:
        pixels: pixels as stored.
        output_type: requested color space.
        dtype: requested dtype.
        kind: format of the image. The colors of a JPEG are already converted, except to YCbCr.
        out: output.
    """
    if output_type == DALIImageType.YCbCr:
        # dtypes other than uint8 keep the fractional part of the conversion.
        pixels = rescale(pixels, dtype if dtype == DALIDataType.UINT8 else DALIDataType.FLOAT)
    if kind != "JPEG" or output_type == DALIImageType.YCbCr:
        pixels = convert_color(pixels, output_type, kind=kind)
    rescale(pixels, dtype, out)


def _checked_window(window: Window | None, height: int, width: int, orientation: int) -> Window | None:
    if window is None:
        return None
    y, x, rows, columns = window
    upright_height, upright_width = oriented_extents(height, width, orientation)
    if min(y, x, rows, columns) < 0 or y + rows > upright_height or x + columns > upright_width:
        raise IndexingError(
            f"the window of {counted(rows, 'row')} from {y} and {counted(columns, 'column')} from {x} is not inside "
            f"the image of {counted(upright_height, 'row')} and {counted(upright_width, 'column')}."
        )
    return source_window(window, height, width, orientation)
