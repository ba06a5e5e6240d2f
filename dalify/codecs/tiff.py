"""Parses TIFF: the first image of a file, with only the tags that describe its pixels.

Libraries get a file whose directory was checked and rewritten, without values outside the file, further pages and
metadata, so that nothing in it can make them allocate memory, warn, or write to the terminal.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.limits import check_image, check_shape
from dalify.codecs.image_format import Bytes

__all__ = ["TiffFile", "read_tiff"]

_WIDTH, _HEIGHT, _BITS, _ORIENTATION, _SAMPLES = 256, 257, 258, 274, 277
_PHOTOMETRIC, _BLACK_IS_ZERO, _RGB = 262, 1, 2
_COMPRESSION, _PLANAR, _PREDICTOR, _EXTRA_SAMPLES, _SAMPLE_FORMAT = 259, 284, 317, 338, 339
# None, LZW, deflate (two numbers), PackBits: their output does not depend on the number of samples.
_OF_BYTES = frozenset({1, 5, 8, 32946, 32773})
_TILE_WIDTH, _TILE_HEIGHT = 322, 323
# Tags with one value. The others of ``_KEPT`` have one value per sample, strip or color.
_SINGLE = frozenset(
    {256, 257, 259, 262, 266, 277, 278, 284, 292, 293, 317, 322, 323, 332, 334, 512, 513, 514, 515, 531}
)
_KEPT = _SINGLE | frozenset({258, 273, 279, 320, 324, 325, 338, 339, 347, 519, 520, 521, 529, 530, 532, 37439, 50674})
_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_INTEGERS = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}
_MAX_SAMPLES_PER_PIXEL = 1024


class TiffFile(NamedTuple):
    """The first image of a TIFF file.

    Attributes:
        data: the file with its directory rewritten, without the orientation.
        height: rows as stored.
        width: columns as stored.
        bits: bits of the largest sample of a pixel.
        samples: samples per pixel.
        is_rgb: whether samples are red, green, blue and optionally alpha.
        orientation: EXIF orientation, 1 to 8.
        as_gray: creates a file in which rows of `width` pixels are declared as rows of `width * samples` gray pixels,
            for libraries that support few numbers of samples; None if the samples of a pixel are not contiguous.
        predicted_columns: number of columns of a tile or row with horizontal differencing; 0 without it.
    """

    data: bytes
    height: int
    width: int
    bits: int
    samples: int
    is_rgb: bool
    orientation: int
    as_gray: Callable[[], bytes] | None = None
    predicted_columns: int = 0

    def pixels_of_gray(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Convert decoded rows of ``as_gray`` to ``[rows, width, samples]``."""
        pixels = rows.reshape(len(rows), self.width, self.samples)
        if not self.predicted_columns:
            return pixels
        starts = range(0, self.width, self.predicted_columns)
        parts = [pixels[:, start : start + self.predicted_columns] for start in starts]
        return np.concatenate([np.cumsum(part, axis=1, dtype=pixels.dtype) for part in parts], axis=1)


def read_tiff(data: Bytes) -> TiffFile:
    """Read the first directory of a TIFF or BigTIFF file.

    Args:
        data: the file, 1-D uint8.

    Raises:
        DecodeError: the directory is damaged, or does not describe an image.
        LimitError: the image, or a tile of it, is too large.
    """
    view, size = data.data, data.size
    order = "<" if view[:2] == b"II" else ">"
    is_big = view[2:4] in (b"+\0", b"\0+")
    entry = struct.Struct(order + ("HHQ8s" if is_big else "HHI4s"))
    count_code, offset_code = ("Q", "Q") if is_big else ("H", "I")
    count_bytes, inline_bytes = (8, 8) if is_big else (2, 4)
    if size < 16:
        raise DecodeError(f"truncated TIFF: the data ends after {size} bytes, within the header.")
    start = struct.unpack_from(order + offset_code, view, 8 if is_big else 4)[0]
    if start + count_bytes > size:
        raise DecodeError(f"truncated TIFF: its directory is at byte {start}, but the data ends after {size}.")
    declared = struct.unpack_from(order + count_code, view, start)[0]
    first = start + count_bytes
    count = min(declared, (size - first) // entry.size)
    kept: dict[int, tuple[int, int, bytes]] = {}
    orientation, values, is_uniform = 1, {}, True
    for number in range(count):
        tag, kind, length, inline = entry.unpack_from(view, first + number * entry.size)
        if tag in kept or not (tag in _KEPT or tag == _ORIENTATION) or kind not in _TYPE_BYTES or not length:
            continue
        size_bytes = length * _TYPE_BYTES[kind]
        where = 0 if size_bytes <= inline_bytes else struct.unpack(order + offset_code, inline)[0]
        if where + size_bytes > size:
            continue
        contents = inline if size_bytes <= inline_bytes else view[where : where + size_bytes]
        code = _INTEGERS.get(kind)
        if tag == _ORIENTATION or tag in _SINGLE:
            if code is None:
                continue
            value = struct.unpack_from(order + code, contents)[0]
            if tag == _ORIENTATION:
                orientation = value if 1 <= value <= 8 else 1
                continue
            values[tag] = value
            length, inline = 1, bytes(contents[: _TYPE_BYTES[kind]]).ljust(inline_bytes, b"\0")
        elif tag in (_BITS, _SAMPLE_FORMAT) and code is not None:
            several = struct.unpack_from(f"{order}{min(length, _MAX_SAMPLES_PER_PIXEL)}{code}", contents)
            values[tag] = max(several)
            is_uniform = is_uniform and min(several) == max(several)
        kept[tag] = (kind, length, inline)
    height, width, bits = values.get(_HEIGHT, 0), values.get(_WIDTH, 0), values.get(_BITS, 1)
    if not height or not width:
        raise DecodeError(f"damaged TIFF ({size} bytes): its directory does not specify the size of the image.")
    check_image(height, width, "the TIFF")
    check_image(values.get(_TILE_HEIGHT, 1), values.get(_TILE_WIDTH, 1), "a tile of the TIFF")
    samples = values.get(_SAMPLES, 1)
    if samples > _MAX_SAMPLES_PER_PIXEL or bits > 64:
        raise DecodeError(f"TIFF with {samples} samples per pixel and {bits} bits per sample is not supported.")
    check_shape((height, width, samples), (bits + 7) // 8, "the TIFF")
    end = first + count * entry.size + struct.calcsize(offset_code)

    def rewritten(tags: dict[int, tuple[int, int, bytes]]) -> bytes:
        entries = [entry.pack(tag, *tags[tag]) for tag in sorted(tags)]
        head = struct.pack(order + count_code, len(entries))
        directory = head + b"".join(entries) + struct.pack(order + offset_code, 0)
        # The original directory may end with the file, without the offset of the next one.
        return b"".join([view[:start], directory.ljust(end - start, b"\0"), view[end:]])

    colors = values.get(_PHOTOMETRIC)
    found = TiffFile(rewritten(kept), height, width, bits, samples, colors == _RGB, orientation)
    is_plain = is_uniform and bits in (8, 16) and values.get(_SAMPLE_FORMAT, 1) == 1 and values.get(_PLANAR, 1) == 1
    predictor = values.get(_PREDICTOR, 1)
    if not (
        is_plain
        and samples > 1
        and colors in (_BLACK_IS_ZERO, _RGB)
        and values.get(_COMPRESSION, 1) in _OF_BYTES
        and predictor in (1, 2)
    ):
        return found
    tile_width = values.get(_TILE_WIDTH)
    declared_as = {_WIDTH: width * samples, _BITS: bits, _PHOTOMETRIC: _BLACK_IS_ZERO, _SAMPLES: 1}
    if tile_width is not None:
        declared_as[_TILE_WIDTH] = tile_width * samples
    gray = {tag: item for tag, item in kept.items() if tag not in (_PREDICTOR, _EXTRA_SAMPLES, _SAMPLE_FORMAT)}
    for tag, value in declared_as.items():
        gray[tag] = (4, 1, struct.pack(order + "I", value).ljust(inline_bytes, b"\0"))
    columns = (tile_width or width) if predictor == 2 else 0
    return found._replace(as_gray=partial(rewritten, gray), predicted_columns=columns)
