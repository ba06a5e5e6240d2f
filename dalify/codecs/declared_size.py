"""Reads the size that an image file declares, and checks it against the limits.

Some libraries allocate memory for the declared size before they report it, so it is read here first. Headers that
cannot be read here are left to the library, which rejects them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from dalify.base.errors import DecodeError
from dalify.base.limits import check_image
from dalify.codecs.image_format import Bytes

Size = tuple[int, int]

# Boxes of the ISO base media format that contain boxes, and the number of bytes before these.
_AVIF_BOXES = {
    b"meta": 4,
    b"iprp": 0,
    b"ipco": 0,
    b"moov": 0,
    b"trak": 0,
    b"mdia": 0,
    b"minf": 0,
    b"stbl": 0,
    b"stsd": 8,
}
_MAX_BOXES = 10_000
_MAX_JPEG_2000_COMPONENTS = 4


def check_declared_size(data: Bytes, kind: str) -> None:
    """Check every size that a file declares against the limits.

    Args:
        data: encoded image, 1-D uint8.
        kind: the format, a key of ``_SIZES``.

    Raises:
        LimitError: more pixels than ``max_image_pixels``.
        DecodeError: the header is damaged.
    """
    try:
        for height, width in _SIZES[kind](data):
            check_image(height, width, f"the {kind}")
    except struct.error:
        raise DecodeError(f"truncated {kind}: the data ends after {data.size} bytes, within the header.") from None


def _bmp(data: Bytes) -> Iterator[Size]:
    view = data.data
    if struct.unpack_from("<I", view, 14)[0] == 12:
        width, height = struct.unpack_from("<HH", view, 18)
    else:
        width, height = struct.unpack_from("<ii", view, 18)
    yield abs(height), abs(width)


def gif_screen(data: Bytes) -> tuple[int, int]:
    """Return height and width of the first image of a GIF: the size of the screen, or larger if the image exceeds it.

    Args:
        data: a GIF, 1-D uint8.

    Raises:
        struct.error: the data ends before the first image.
    """
    view = data.data
    width, height, flags = struct.unpack_from("<HHB", view, 6)
    position = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    while True:
        (kind,) = struct.unpack_from("B", view, position)
        if kind == 0x2C:
            x, y, columns, rows = struct.unpack_from("<4H", view, position + 1)
            return max(height, y + rows), max(width, x + columns)
        if kind == 0x3B:
            return height, width
        position += 1
        if kind != 0x21:
            continue
        position += 1
        while (length := struct.unpack_from("B", view, position)[0]) != 0:
            position += 1 + length
        position += 1


def _gif(data: Bytes) -> Iterator[Size]:
    yield gif_screen(data)


def webp_chunks(data: Bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield type, start and end of each chunk of a WebP file; the last one may be truncated."""
    position = 12
    while position + 8 <= data.size:
        kind, length = struct.unpack_from("<4sI", data.data, position)
        yield kind, position + 8, min(position + 8 + length, data.size)
        position += 8 + length + (length & 1)


def _webp(data: Bytes) -> Iterator[Size]:
    view = data.data
    for kind, start, _ in webp_chunks(data):
        if kind == b"VP8X":
            first, second, third = struct.unpack_from("<HHH", view, start + 4)
            yield 1 + (second >> 8 | third << 8), 1 + (first | (second & 0xFF) << 16)
        elif kind == b"VP8 ":
            width, height = struct.unpack_from("<HH", view, start + 6)
            yield height & 0x3FFF, width & 0x3FFF
        elif kind == b"VP8L":
            (bits,) = struct.unpack_from("<I", view, start + 1)
            yield 1 + (bits >> 14 & 0x3FFF), 1 + (bits & 0x3FFF)


def _jpeg_2000(data: Bytes) -> Iterator[Size]:
    view = data.data
    start = 0
    if view[:4] != b"\xff\x4f\xff\x51":
        start = data.size
        for kind, begin, end in _boxes(data, 0, data.size):
            if kind == b"jp2h":
                for inner, begins, _ in _boxes(data, begin, end):
                    if inner == b"ihdr":
                        yield struct.unpack_from(">II", view, begins)
            elif kind == b"jp2c":
                start = begin
                break
    (columns, rows, left, top, tile_columns, tile_rows, _, _, components) = struct.unpack_from(">8IH", view, start + 8)
    if components > _MAX_JPEG_2000_COMPONENTS:
        raise DecodeError(f"JPEG 2000 with {components} components is not supported.")
    # The library allocates memory for the reference grid, which contains the image.
    yield rows, columns
    yield max(0, rows - top), max(0, columns - left)
    yield min(tile_rows, rows), min(tile_columns, columns)


def _avif(data: Bytes) -> Iterator[Size]:
    view = data.data
    waiting = [(0, data.size)]
    count = 0
    while waiting:
        for kind, start, end in _boxes(data, *waiting.pop()):
            count += 1
            if count > _MAX_BOXES:
                raise DecodeError(f"damaged AVIF: more than {_MAX_BOXES:,} boxes.")
            if kind == b"ispe":
                width, height = struct.unpack_from(">II", view, start + 4)
                yield height, width
            elif kind == b"av01":
                width, height = struct.unpack_from(">HH", view, start + 24)
                yield height, width
            elif kind in _AVIF_BOXES:
                waiting.append((start + _AVIF_BOXES[kind], end))


def _boxes(data: Bytes, position: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield type, start and end of each box between two positions."""
    while position + 8 <= end:
        length, kind = struct.unpack_from(">I4s", data.data, position)
        start = position + 8
        if length == 1:
            (length,) = struct.unpack_from(">Q", data.data, start)
            start += 8
        following = end if length == 0 else position + length
        if following < start:
            return
        yield kind, start, min(following, end)
        position = following


_SIZES: dict[str, Callable[[Bytes], Iterator[Size]]] = {
    "AVIF": _avif,
    "BMP": _bmp,
    "GIF": _gif,
    "JPEG 2000": _jpeg_2000,
    "WebP": _webp,
}
