"""Decodes JPEG, bit-exact with libjpeg-turbo's accurate path (slow integer IDCT, fancy upsampling).

simplejpeg decodes. This module reads headers, and adds handling of damaged files, CMYK, and decoding of only the first
rows.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Any, NamedTuple

import numpy as np
import simplejpeg

from dalify.base import scratch
from dalify.base.errors import DecodeError
from dalify.base.limits import current
from dalify.codecs.exif import tiff_orientation
from dalify.codecs.image_format import Bytes
from dalify.codecs.inks import mix_inks
from dalify.codecs.pillow import WITHOUT_REASON, open_by_pillow, rows_of_pillow

_MARKER = struct.Struct(">BBH")
_FRAME = struct.Struct(">BHHB")
_START_OF_SCAN = 0xDA
_START_OF_SCAN_MARKER = b"\xff\xda"
_MAX_SCANS_OF_LARGEST = 64  # of an image as large as the limit; smaller images may have more scans
_END_OF_IMAGE = b"\xff\xd9"
_FRAMES = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_LOSSLESS = frozenset({0xC3, 0xC7, 0xCB, 0xCF})
_SEQUENTIAL = frozenset({0xC0, 0xC1})
_NOTES = frozenset({*range(0xE1, 0xEE), 0xEF, 0xFE})  # comments and application data, except JFIF's and Adobe's
_KNOWN_REVISION = b"\x01"
_JFIF_REVISION = re.compile(rb"(\xff\xe0..JFIF\x00)[^\x01]", re.DOTALL)
_BARE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length
# Chroma upsampling reads up to two output rows of context; four are two rows of 4:2:0 chroma.
CONTEXT_ROWS = 4


class JpegHeader(NamedTuple):
    """Information from the markers before the first scan.

    Attributes:
        height: rows of the stored image.
        width: columns of the stored image.
        components: 1 (gray), 3 (color) or 4 (CMYK).
        bits: bits per sample.
        frame: second byte of the frame marker: 0xC0 baseline, 0xC2 progressive, 0xC3 lossless ….
        orientation: EXIF orientation, 1 to 8.
        has_adobe: whether there is an Adobe segment; four components are then stored inverted.
        frame_position: offset of the contents of the frame segment.
        rows_per_unit: number of rows of an MCU (usually 8 or 16).
        is_single_scan: whether the first scan contains all components.
    """

    height: int
    width: int
    components: int
    bits: int
    frame: int
    orientation: int
    has_adobe: bool
    frame_position: int
    rows_per_unit: int
    is_single_scan: bool


def read_jpeg_header(data: Bytes) -> JpegHeader:
    """Parse the markers up to the first scan.

    Args:
        data: a JPEG, 1-D uint8.

    Raises:
        DecodeError: the headers are damaged or end early.
    """
    size = data.size
    view = data.data  # indexing a memoryview is faster
    position = 2
    orientation, has_adobe = 1, False
    frame: tuple[int, int, int, int, int, int, int] | None = None
    while position + 4 <= size:
        prefix, marker, length = _MARKER.unpack_from(view, position)
        if prefix != 0xFF:
            raise DecodeError(f"damaged JPEG: no marker at byte {position} of {size}, the end of the previous segment.")
        if marker == 0xFF:
            position += 1  # a fill byte
            continue
        if marker in _BARE:
            position += 2
            continue
        contents = position + 4
        position += 2 + length
        if length < 2 or (position > size and marker != _START_OF_SCAN):
            break
        if marker in _FRAMES and length >= 8:
            bits, height, width, components = _FRAME.unpack_from(view, contents)
            rows_per_unit = 8 * max([1] + [sampling & 15 for sampling in view[contents + 7 : position : 3]])
            frame = (marker, contents, bits, height, width, components, rows_per_unit)
        elif marker == 0xE1 and orientation == 1 and view[contents : contents + 6] == b"Exif\0\0":
            orientation = tiff_orientation(view[contents + 6 : position].tobytes())
        elif marker == 0xEE and view[contents : contents + 5] == b"Adobe":
            has_adobe = True
        elif marker == _START_OF_SCAN and frame is not None:
            kind, start, bits, height, width, components, rows_per_unit = frame
            is_single_scan = view[contents] == components if contents < size else False
            if height == 0 or width == 0:
                raise DecodeError(f"damaged JPEG: its header declares {width}x{height} pixels.")
            return JpegHeader(
                height, width, components, bits, kind, orientation, has_adobe, start, rows_per_unit, is_single_scan
            )
        elif marker in (_START_OF_SCAN, 0xD9):
            raise DecodeError("damaged JPEG: no frame header before the first scan.")
    raise DecodeError(f"truncated JPEG: the data ends after {size} bytes, within the headers.")


def decode_jpeg(
    data: Bytes,
    header: JpegHeader,
    colors: str,
    *,
    use_fast_idct: bool = False,
    out: np.ndarray[Any, np.dtype[np.uint8]] | None = None,
    rows: int | None = None,
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Decode the image as stored, without applying the orientation.

    Args:
        data: a JPEG, 1-D uint8.
        header: header of the same data.
        colors: ``RGB``, ``BGR``, ``GRAY`` (the stored luma) or, for four components, ``CMYK`` (0 is no ink).
        use_fast_idct: see `decode_image`.
        out: contiguous output of at least ``height * width * channels`` bytes; allocated if None.
        rows: number of rows needed from the top; in most files, others are not decoded. None for all.

    Returns:
        uint8 ``[rows, width, channels]``.

    Raises:
        DecodeError: the data is truncated, unusable, or not supported.
    """
    if header.frame in _LOSSLESS or header.bits != 8:
        kind = "lossless" if header.frame in _LOSSLESS else "lossy"
        raise DecodeError(
            f"{kind} JPEG with {header.bits} bits per sample is not supported; supported is lossy JPEG with 8 bits.",
            hint="Convert such images to 16-bit PNG or TIFF.",
        )
    if header.frame not in _SEQUENTIAL:
        _check_scans(data, header)
    rows = header.height if rows is None else min(rows, header.height)
    if header.components == 4 and colors != "CMYK":
        memory = scratch.borrow("jpeg inks", (header.height, header.width, 4))
        inks = decode_jpeg(data, header, "CMYK", use_fast_idct=use_fast_idct, out=memory, rows=rows)
        shape = (*inks.shape[:2], 1 if colors == "GRAY" else 3)
        mixed = np.empty(shape, np.uint8) if out is None else out.reshape(-1)[: math.prod(shape)].reshape(shape)
        mix_inks(inks, colors == "BGR", mixed)
        return mixed
    if rows < header.height:
        found = decode_first_rows(data, header, colors, use_fast_idct, out, rows)
        if found is not None:
            return found
    pixels = _decode_whole(data, header, colors, use_fast_idct, out)[:rows]
    if colors == "CMYK" and header.has_adobe:
        np.subtract(255, pixels, out=pixels)
    return pixels


def _check_scans(data: Bytes, header: JpegHeader) -> None:
    """Reject a progressive image with many scans, which would take minutes: even a tiny scan covers the whole image."""
    scans = data.tobytes().count(_START_OF_SCAN_MARKER)
    if scans * header.height * header.width > _MAX_SCANS_OF_LARGEST * current().max_image_pixels:
        raise DecodeError(f"damaged JPEG: {scans:,} scans of {header.width}x{header.height} pixels are too many.")


def _decode_whole(
    data: Bytes, header: JpegHeader, colors: str, use_fast_idct: bool, out: np.ndarray[Any, Any] | None
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    try:
        return simplejpeg.decode_jpeg(data, colors, fastdct=use_fast_idct, buffer=out)
    except ValueError as error:
        reason = str(error)
    if "subsampling" in reason:
        return _decode_by_pillow(data, header, colors, out)
    # TurboJPEG reports this warning of libjpeg as an error even if it is not strict.
    known = _with_known_revision(data, header) if "JFIF revision" in reason else None
    if known is not None:
        return _decode_whole(known, header, colors, use_fast_idct, out)
    # The library reports only the first warning, so the end is also checked here.
    if "Premature end of JPEG file" in reason or data.tobytes().rfind(_END_OF_IMAGE) < header.frame_position:
        raise DecodeError(
            f"truncated JPEG: the data ends after {data.size} bytes without an end-of-image marker, before all rows of "
            f"the {header.width}x{header.height} image are complete."
        )
    try:
        # Images with warnings, such as for stray bytes between segments, are common, and all viewers show them.
        return simplejpeg.decode_jpeg(data, colors, fastdct=use_fast_idct, buffer=out, strict=False)
    except ValueError as error:
        raise DecodeError(f"damaged JPEG ({header.width}x{header.height}): {error}.") from None


def _with_known_revision(data: Bytes, header: JpegHeader) -> Bytes | None:
    """Return a JPEG with revision 1, the only known one, in its JFIF segment; None if it already has this revision."""
    contents = data.tobytes()
    segments, count = _JFIF_REVISION.subn(rb"\1" + _KNOWN_REVISION, contents[: header.frame_position])
    return np.frombuffer(segments + contents[header.frame_position :], np.uint8) if count else None


def _decode_by_pillow(
    data: Bytes, header: JpegHeader, colors: str, out: np.ndarray[Any, Any] | None
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Decode uncommon chroma subsampling, which TurboJPEG's interface rejects but libjpeg supports."""
    mode = {"GRAY": "L", "CMYK": "CMYK"}.get(colors, "RGB")
    shape = (header.height, header.width, {"L": 1, "CMYK": 4}.get(mode, 3))
    target = np.empty(shape, np.uint8) if out is None else out.reshape(-1)[: math.prod(shape)].reshape(shape)
    try:
        image = open_by_pillow(_without_notes(data), "JPEG")
        image.draft(mode, image.size)
        for top, rows in rows_of_pillow(image, mode, header.height, header.width):
            part = target[top : top + len(rows)]
            if colors == "CMYK" and header.has_adobe:
                np.subtract(255, rows, out=part)  # Pillow has undone the inversion, and the caller will undo it again
            else:
                part[...] = rows[..., ::-1] if colors == "BGR" else rows
    except MemoryError:
        raise
    except Exception as error:  # libraries raise any exception for damaged data
        reason = "the compressed pixels cannot be read" if WITHOUT_REASON.match(str(error)) else error
        raise DecodeError(f"damaged JPEG ({header.width}x{header.height}): {reason}.") from None
    return target


def _without_notes(data: Bytes) -> bytes:
    """Return a JPEG without metadata segments, because Pillow warns if one is damaged."""
    view, size = data.data, data.size
    parts, position = [view[:2]], 2
    while position + 4 <= size:
        _, marker, length = _MARKER.unpack_from(view, position)
        end = position + 1 if marker == 0xFF else position + 2 + (0 if marker in _BARE else length)
        if marker == _START_OF_SCAN:
            break
        if marker not in _NOTES:
            parts.append(view[position:end])
        position = end
    return b"".join([*parts, view[position:]])


def decode_first_rows(
    data: Bytes, header: JpegHeader, colors: str, use_fast_idct: bool, out: np.ndarray[Any, Any] | None, rows: int
) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """Decode a copy with fewer rows in its header: the decoder then stops early, and skips to the end marker.

    The result is exact, because rows depend on only one chroma row below them, which is decoded.

    Args:
        data: see `decode_jpeg`.
        header: see `decode_jpeg`.
        colors: see `decode_jpeg`.
        use_fast_idct: see `decode_jpeg`.
        out: see `decode_jpeg`.
        rows: number of rows needed from the top.

    Returns:
        uint8 ``[rows, width, channels]``; None if nothing is gained, the scan is not a single pass from top to bottom,
        or the data are damaged.
    """
    height = min(header.height, rows + CONTEXT_ROWS)
    unit = header.rows_per_unit
    if -(-height // unit) == -(-header.height // unit):
        return None
    if header.frame not in _SEQUENTIAL or not header.is_single_scan or colors == "CMYK":
        return None
    size = height * header.width * (1 if colors == "GRAY" else 3)
    target = np.empty(size, np.uint8) if out is None else out.reshape(-1)[:size]
    if not decode_shortened_jpeg(data, header.frame_position, height, colors, use_fast_idct, target):
        return None
    return target.reshape(height, header.width, -1)[:rows]


def decode_shortened_jpeg(
    data: Bytes, frame_position: int, height: int, colors: str, use_fast_idct: bool, out: np.ndarray[Any, Any]
) -> bool:
    """Decode a copy with fewer rows in its header.

    Args:
        data: a JPEG, 1-D uint8, of one sequential scan.
        frame_position: offset of the contents of the frame segment.
        height: height to declare in the header.
        colors: see `decode_jpeg`.
        use_fast_idct: see `decode_jpeg`.
        out: uint8 ``[height * width * channels]``, output.

    Returns:
        False if the library reports a problem that needs the whole image.
    """
    shortened = scratch.borrow("jpeg rows", (data.size,))
    shortened[:] = data
    shortened[frame_position + 1] = height >> 8
    shortened[frame_position + 2] = height & 255
    try:
        simplejpeg.decode_jpeg(shortened, colors, fastdct=use_fast_idct, buffer=out)
    except ValueError as error:
        # The library reports the data of the remaining rows after all declared rows are decoded.
        return "extraneous bytes before marker 0xd9" in str(error)
    return True
