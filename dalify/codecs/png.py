"""Parses the chunks of PNG files, and decodes images with 8 or 16 bits per sample.

Only the chunks that describe pixels are passed to libraries, after their lengths were checked against the file: a chunk
may declare up to 4 GB, and compressed metadata can be a decompression bomb. Images with palettes and images of less
than 8 bits are decoded by Pillow. The others are decoded here, because Pillow reduces 16 bits to 8, and takes twice as
long.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dalify.base import deflate
from dalify.base.errors import DecodeError
from dalify.codecs.exif import tiff_orientation, xmp_orientation
from dalify.codecs.image_format import Bytes
from dalify.codecs.png_filters import unfilter

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SIGNATURE_BYTES = len(_SIGNATURE)
_CHUNK = struct.Struct(">I4s")
_HEADER = struct.Struct(">IIBBBBB")
_PALETTE = 3
_CHANNELS = {0: 1, 2: 3, _PALETTE: 3, 4: 2, 6: 4}
_CRITICAL = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IEND"})
_NOTES = frozenset({b"tEXt", b"zTXt", b"iTXt"})
_MAX_NOTE_BYTES = 1 << 20
_STRIP_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16
# First row, first column, row step, column step.
_ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))

Span = tuple[int, int]


class PngFile(NamedTuple):
    """The chunks of a PNG file.

    Attributes:
        height: rows.
        width: columns.
        bits: bits per sample: 1, 2, 4, 8 or 16.
        channels: 1 gray, 2 gray and alpha, 3 color or palette, 4 color and alpha.
        is_palette: pixels are indices of colors.
        is_interlaced: Adam7.
        orientation: EXIF orientation, 1 to 8.
        spans: start and end of the chunks that describe pixels, in order.
        pixel_spans: start and end of the compressed data.
    """

    height: int
    width: int
    bits: int
    channels: int
    is_palette: bool
    is_interlaced: bool
    orientation: int
    spans: tuple[Span, ...]
    pixel_spans: tuple[Span, ...]

    def critical_bytes(self, data: Bytes) -> bytes:
        """Return the file without the chunks that do not describe pixels."""
        view = data.data
        return b"".join([view[:_SIGNATURE_BYTES], *(view[start:end] for start, end in self.spans)])


def black_png(height: int, width: int) -> bytes:
    """Return a PNG of black pixels, 8-bit RGB.

    Args:
        height: rows, at least 1.
        width: columns, at least 1.
    """
    # Without a library that uses locks: another thread may have held one when this process was forked.
    compressor = zlib.compressobj(1)
    row = bytes(1 + 3 * width)  # filter type and pixels
    pixels = b"".join([*(compressor.compress(row) for _ in range(height)), compressor.flush()])
    chunks = ((b"IHDR", _HEADER.pack(width, height, 8, 2, 0, 0, 0)), (b"IDAT", pixels), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        _CHUNK.pack(len(body), kind) + body + struct.pack(">I", zlib.crc32(body, zlib.crc32(kind)))
        for kind, body in chunks
    )


def read_png(data: Bytes) -> PngFile:
    """Parse the chunks of a PNG file.

    Args:
        data: a PNG, 1-D uint8.

    Raises:
        DecodeError: the header is damaged, or a chunk before the pixels is longer than the file.
    """
    view, size = data.data, data.size
    header: tuple[int, ...] = ()
    spans: list[Span] = []
    pixel_spans: list[Span] = []
    notes: list[tuple[bytes, Span]] = []
    position, is_behind_pixels = _SIGNATURE_BYTES, False
    while position + 8 <= size:
        length, kind = _CHUNK.unpack_from(view, position)
        start, end = position + 8, position + 8 + length
        if end > size:
            if kind != b"IDAT" and not pixel_spans:
                raise DecodeError(
                    f"damaged PNG: the chunk at byte {position} declares {length:,} bytes, but the file has {size:,}."
                )
            end = size
        following = min(end + 4, size)
        if kind == b"IDAT":
            if not is_behind_pixels:
                spans.append((position, following))
                pixel_spans.append((start, end))
        else:
            is_behind_pixels = bool(pixel_spans)
            if kind == b"IHDR" and not header and length >= _HEADER.size:
                header = _HEADER.unpack_from(view, start)
            if kind in _CRITICAL:
                spans.append((position, following))
            elif kind in _NOTES or kind == b"eXIf":
                notes.append((kind, (start, end)))
        position = end + 4
        if kind == b"IEND":
            break
    if not header:
        raise DecodeError(f"damaged PNG: the header of the {size} bytes cannot be read.")
    width, height, bits, color, *_, interlace = header
    if (
        not width
        or not height
        or color not in _CHANNELS
        or bits not in (1, 2, 4, 8, 16)
        or (color == _PALETTE and bits == 16)
    ):
        raise DecodeError(
            f"damaged PNG: the header declares {width}x{height} pixels, {bits} bits and color type {color}."
        )
    if not pixel_spans:
        raise DecodeError(f"truncated PNG: the {size} bytes contain no pixels.")
    orientation = _orientation(data, notes) if notes else 1
    form = _CHANNELS[color], color == _PALETTE, bool(interlace)
    return PngFile(height, width, bits, *form, orientation, tuple(spans), tuple(pixel_spans))


def _orientation(data: Bytes, notes: list[tuple[bytes, Span]]) -> int:
    """Return the orientation from an EXIF chunk, otherwise from a raw EXIF profile, otherwise from XMP; default 1."""
    blocks = [data[start:end].tobytes() for kind, (start, end) in notes if kind == b"eXIf"]
    found = tiff_orientation(blocks[-1].removeprefix(b"Exif\0\0")) if blocks else None
    xmp = b""
    for kind, (start, end) in notes:
        if kind == b"eXIf" or found is not None:
            continue
        keyword, _, rest = data[start:end].tobytes().partition(b"\0")
        if keyword == b"Raw profile type exif" and not blocks:
            lines = _text(kind, rest).split(b"\n")
            try:
                profile = bytes.fromhex(b"".join(lines[3:]).decode("latin-1"))
            except ValueError:
                continue  # damaged metadata is ignored
            found = tiff_orientation(profile.removeprefix(b"Exif\0\0"))
        elif keyword == b"XML:com.adobe.xmp":
            xmp = _text(kind, rest)
    return found if found is not None else xmp_orientation(xmp) or 1


def _text(kind: bytes, rest: bytes) -> bytes:
    """Return the text of a text chunk, without its keyword; at most 1 MiB."""
    is_compressed = kind == b"zTXt"
    if kind == b"iTXt":
        is_compressed = rest[:1] == b"\1"
        *_, rest = rest[2:].split(b"\0", 2)
    elif is_compressed:
        rest = rest[1:]
    if not is_compressed:
        return rest[:_MAX_NOTE_BYTES]
    try:
        return zlib.decompressobj().decompress(rest, _MAX_NOTE_BYTES)
    except zlib.error:
        return b""


class _Inflater:
    """Decompresses the pixels of a file incrementally."""

    def __init__(self, data: Bytes, spans: tuple[Span, ...]) -> None:
        self._pieces = _checked_pieces(data, spans)
        self._inflate = deflate.decompressobj()
        self._rest: Any = b""

    def read(self, size_bytes: int) -> Bytes:
        """Return ``size_bytes`` bytes.

        Raises:
            DecodeError: there are fewer bytes, or they are damaged.
        """
        parts: list[bytes] = []
        while size_bytes:
            part = self._part(size_bytes)
            if not part:
                raise DecodeError("truncated PNG: the data ends before all rows are complete.")
            parts.append(part)
            size_bytes -= len(part)
        return np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), np.uint8)

    def finish(self) -> None:
        """Verify the checksum at the end of the pixels, after all of them were read; more pixels are ignored.

        Raises:
            DecodeError: it is wrong.
        """
        self._part(1)

    def _part(self, most_bytes: int) -> bytes:
        """Return some of the next bytes, at most `most_bytes`; none at the end."""
        part = b""
        while not part and not self._inflate.eof:
            try:
                part = self._inflate.decompress(self._rest, most_bytes)
            except deflate.DeflateError as error:
                raise DecodeError(f"damaged PNG: the compressed pixels cannot be read ({error}).") from None
            self._rest = self._inflate.unconsumed_tail
            if not part and not self._rest:
                self._rest = next(self._pieces, b"")
                if not self._rest:
                    break
        return part


def _checked_pieces(data: Bytes, spans: tuple[Span, ...]) -> Iterator[memoryview]:
    """Yield the contents of chunks, and verify the checksums.

    A wrong checksum of a chunk is ignored if that of the pixels is right: Pillow reads such files, libpng does not.
    """
    view = data.data
    is_checked = True
    for start, end in spans:
        stored = view[end : end + 4]
        if is_checked and len(stored) == 4 and deflate.crc32(view[start - 4 : end]) != int.from_bytes(stored, "big"):
            if not _is_intact(data, spans):
                raise DecodeError(f"damaged PNG: the checksum of the chunk at byte {start - 8} is wrong.")
            is_checked = False
        yield from _pieces(view[start:end])


def _pieces(contents: memoryview) -> Iterator[memoryview]:
    """Yield contents in small pieces, because the library copies unused input."""
    for place in range(0, len(contents), _PIECE_BYTES):
        yield contents[place : place + _PIECE_BYTES]


def _is_intact(data: Bytes, spans: tuple[Span, ...]) -> bool:
    """Return whether the checksum of the pixels is right."""
    inflate = deflate.decompressobj()
    try:
        for start, end in spans:
            for piece in _pieces(data.data[start:end]):
                rest: Any = piece
                while rest and not inflate.eof:
                    inflate.decompress(rest, _STRIP_BYTES)
                    rest = inflate.unconsumed_tail
    except deflate.DeflateError:
        return False
    return inflate.eof


def decode_png(data: Bytes, png: PngFile) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Decode a PNG with 8 or 16 bits per sample and no palette.

    Args:
        data: the file, 1-D uint8.
        png: its chunks.

    Yields:
        index of the first row, and uint8 or uint16 ``[rows, width, channels]``: strips of rows, or a whole interlaced
        image.

    Raises:
        DecodeError: the data is truncated or damaged.
    """
    inflater = _Inflater(data, png.pixel_spans)
    if not png.is_interlaced:
        yield from _pass_rows(inflater, png.height, png.width, png.channels, png.bits)
        inflater.finish()
        return
    image = np.empty((png.height, png.width, png.channels), np.uint8 if png.bits == 8 else np.uint16)
    for first_row, first_column, row_step, column_step in _ADAM7:
        part = image[first_row::row_step, first_column::column_step]
        if part.size:
            for top, rows in _pass_rows(inflater, len(part), part.shape[1], png.channels, png.bits):
                part[top : top + len(rows)] = rows
    inflater.finish()
    yield 0, image


def _pass_rows(
    inflater: _Inflater, height: int, width: int, channels: int, bits: int
) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    pixel_bytes = channels * bits // 8
    row_bytes = width * pixel_bytes
    at_once = max(1, _STRIP_BYTES // row_bytes)
    before = np.zeros(row_bytes, np.uint8)
    for top in range(0, height, at_once):
        count = min(at_once, height - top)
        filtered = inflater.read(count * (row_bytes + 1)).reshape(count, row_bytes + 1)
        rows = np.empty((count, row_bytes), np.uint8)
        if not unfilter(filtered, before, pixel_bytes, rows):
            raise DecodeError("damaged PNG: a row has an unknown filter.")
        before = rows[-1].copy()
        values = rows if bits == 8 else rows.view(">u2").astype(np.uint16)
        yield top, values.reshape(count, width, channels)
