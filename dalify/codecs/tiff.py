"""Parses TIFF: the first image of a file, with only the tags that describe its pixels.

The directory is checked, and rewritten for libraries without values outside the file, further pages and metadata, which
could make them allocate memory, warn, or write to the terminal.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.limits import check_image, check_shape
from dalify.base.wording import counted
from dalify.codecs.image_format import Bytes
from dalify.codecs.lzw import MAX_BYTES, is_lzw
from dalify.codecs.tiff_strips import DEFLATE, LZW, NONE, PACK_BITS, TiffStrips

_WIDTH, _HEIGHT, _BITS, _ORIENTATION, _SAMPLES = 256, 257, 258, 274, 277
_PHOTOMETRIC, _BLACK_IS_ZERO, _RGB = 262, 1, 2
_COMPRESSION, _PLANAR, _PREDICTOR, _EXTRA_SAMPLES, _SAMPLE_FORMAT = 259, 284, 317, 338, 339
# Their output does not depend on the number of samples.
_OF_BYTES = frozenset({NONE, LZW, *DEFLATE, PACK_BITS})
_PREDICTED = frozenset({LZW, *DEFLATE})
_FILL_ORDER, _STRIP_OFFSETS, _STRIP_ROWS, _STRIP_SIZES = 266, 273, 278, 279
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
        rewritten: creates the file with its directory rewritten, without the orientation.
        height: rows as stored.
        width: columns as stored.
        bits: bits of the largest sample of a pixel.
        samples: samples per pixel.
        is_rgb: whether samples are red, green, blue and optionally alpha.
        orientation: EXIF orientation, 1 to 8.
        as_gray: creates a file in which rows of `width` pixels are declared as rows of `width * samples` gray pixels,
            for libraries that support few numbers of samples; None if the samples of a pixel are not contiguous.
        predicted_columns: number of columns of a tile or row with horizontal differencing; 0 without it.
        strips: the place of the pixels, if they are stored as `decode_strips` reads them.
    """

    rewritten: Callable[[], bytes]
    height: int
    width: int
    bits: int
    samples: int
    is_rgb: bool
    orientation: int
    as_gray: Callable[[], bytes] | None = None
    predicted_columns: int = 0
    strips: TiffStrips | None = None

    def pixels_of_gray(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Convert decoded rows of ``as_gray`` to ``[rows, width, samples]``."""
        pixels = rows.reshape(len(rows), self.width, self.samples)
        if not self.predicted_columns:
            return pixels
        starts = range(0, self.width, self.predicted_columns)
        parts = [pixels[:, start : start + self.predicted_columns] for start in starts]
        return np.concatenate([np.cumsum(part, axis=1, dtype=pixels.dtype) for part in parts], axis=1)


@dataclass(frozen=True)
class _Layout:
    """How numbers and entries of a directory are stored: byte order, and TIFF or BigTIFF."""

    order: str
    entry: struct.Struct
    count: struct.Struct
    offset: struct.Struct
    inline_bytes: int

    @classmethod
    def of(cls, view: memoryview) -> _Layout:
        """Return the layout that the header of a file declares."""
        order = "<" if view[:2] == b"II" else ">"
        is_big = view[2:4] in (b"+\0", b"\0+")
        codes = ("HHQ8s", "Q", "Q") if is_big else ("HHI4s", "H", "I")
        return cls(order, *(struct.Struct(order + code) for code in codes), inline_bytes=8 if is_big else 4)


class _Directory:
    """The first directory of a file: the tags that describe pixels, and their values.

    Attributes:
        entries: type, length, and value or offset of the tags of ``_KEPT``.
        values: integers by tag; the largest for tags with one value per sample.
        orientation: EXIF orientation, 1 to 8.
        is_uniform: whether all samples of a pixel have the same number of bits and the same format.

    Raises:
        DecodeError: the directory is not inside the file.
    """

    def __init__(self, data: Bytes) -> None:
        self._view = view = data.data
        self._layout = layout = _Layout.of(view)
        if data.size < 16:
            raise DecodeError(f"truncated TIFF: the data ends after {data.size} bytes, within the header.")
        self._start = layout.offset.unpack_from(view, layout.inline_bytes)[0]
        first = self._start + layout.count.size
        if first > data.size:
            raise DecodeError(
                f"truncated TIFF: its directory is at byte {self._start}, but the data ends after {data.size}."
            )
        self.entries: dict[int, tuple[int, int, bytes]] = {}
        self.values: dict[int, int] = {}
        self.orientation = 1
        self.is_uniform = True
        declared = layout.count.unpack_from(view, self._start)[0]
        count = min(declared, (data.size - first) // layout.entry.size)
        self._end = first + count * layout.entry.size + layout.offset.size
        for number in range(count):
            self._add(*layout.entry.unpack_from(view, first + number * layout.entry.size))

    def _add(self, tag: int, kind: int, length: int, inline: bytes) -> None:
        """Add an entry, unless it is unknown, repeated or not inside the file."""
        if tag in self.entries or not (tag in _KEPT or tag == _ORIENTATION) or kind not in _TYPE_BYTES or not length:
            return
        layout, size_bytes = self._layout, length * _TYPE_BYTES[kind]
        contents: bytes | memoryview = inline
        if size_bytes > layout.inline_bytes:
            place = layout.offset.unpack(inline)[0]
            if place + size_bytes > len(self._view):
                return
            contents = self._view[place : place + size_bytes]
        code = _INTEGERS.get(kind)
        if tag == _ORIENTATION or tag in _SINGLE:
            if code is None:
                return
            value = struct.unpack_from(layout.order + code, contents)[0]
            if tag == _ORIENTATION:
                self.orientation = value if 1 <= value <= 8 else 1
                return
            self.values[tag] = value
            length, inline = 1, bytes(contents[: _TYPE_BYTES[kind]]).ljust(layout.inline_bytes, b"\0")
        elif tag in (_BITS, _SAMPLE_FORMAT) and code is not None:
            several = struct.unpack_from(f"{layout.order}{min(length, _MAX_SAMPLES_PER_PIXEL)}{code}", contents)
            self.values[tag] = max(several)
            self.is_uniform = self.is_uniform and min(several) == max(several)
        self.entries[tag] = (kind, length, inline)

    def number(self, value: int) -> tuple[int, int, bytes]:
        """Return an entry of one 32-bit integer."""
        return 4, 1, struct.pack(self._layout.order + "I", value).ljust(self._layout.inline_bytes, b"\0")

    def rewritten(self, entries: dict[int, tuple[int, int, bytes]]) -> bytes:
        """Return the file with other entries in this directory, and without further directories."""
        layout, view = self._layout, self._view
        packed = b"".join(layout.entry.pack(tag, *entries[tag]) for tag in sorted(entries))
        directory = layout.count.pack(len(entries)) + packed + layout.offset.pack(0)
        # The original directory may end with the file, without the offset of the next one.
        return b"".join([view[: self._start], directory.ljust(self._end - self._start, b"\0"), view[self._end :]])

    def numbers(self, tag: int) -> tuple[int, ...]:
        """Return all values of a tag with integers; none if it is absent."""
        kind, length, inline = self.entries.get(tag, (0, 0, b""))
        layout = self._layout
        if kind not in _INTEGERS:
            return ()
        size_bytes = length * _TYPE_BYTES[kind]
        place = layout.offset.unpack(inline)[0]
        contents = inline if size_bytes <= layout.inline_bytes else self._view[place : place + size_bytes]
        return struct.unpack_from(f"{layout.order}{length}{_INTEGERS[kind]}", contents)

    def strips(self) -> TiffStrips | None:
        """Return the place of the pixels of gray and RGB images in strips; None for other images."""
        values = self.values
        height, width = values[_HEIGHT], values[_WIDTH]
        bits, samples = values.get(_BITS, 1), values.get(_SAMPLES, 1)
        compression, predictor = values.get(_COMPRESSION, NONE), values.get(_PREDICTOR, 1)
        is_usual = (
            self.is_uniform
            and bits in (8, 16)
            and (values.get(_PHOTOMETRIC), samples) in ((_BLACK_IS_ZERO, 1), (_RGB, 3))
            and values.get(_SAMPLE_FORMAT, 1) == values.get(_PLANAR, 1) == values.get(_FILL_ORDER, 1) == 1
            and compression in _OF_BYTES
            and (predictor == 1 or (predictor == 2 and compression in _PREDICTED))
            and _TILE_WIDTH not in values
            and values.get(_STRIP_ROWS) != 0
        )
        if not is_usual:
            return None
        rows = min(values.get(_STRIP_ROWS, height), height)
        offsets, sizes = self.numbers(_STRIP_OFFSETS), self.numbers(_STRIP_SIZES)
        if not len(offsets) == len(sizes) == -(-height // rows):
            return None
        if compression == LZW and rows * width * samples * bits // 8 > MAX_BYTES:
            return None
        for number, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
            needed = min(rows, height - number * rows) * width * samples * bits // 8 if compression == NONE else 0
            if size < needed or offset + size > len(self._view):
                return None
            if compression == LZW and not is_lzw(self._view[offset : offset + size]):
                return None
        dtype = np.dtype(f"{self._layout.order}u{bits // 8}")
        return TiffStrips(offsets, sizes, rows, compression, predictor == 2, dtype)

    @property
    def can_be_gray(self) -> bool:
        """Whether the samples of a pixel are contiguous, and stored like several gray pixels."""
        values = self.values
        return (
            self.is_uniform
            and values.get(_SAMPLES, 1) > 1
            and values.get(_BITS, 1) in (8, 16)
            and values.get(_SAMPLE_FORMAT, 1) == 1
            and values.get(_PLANAR, 1) == 1
            and values.get(_PHOTOMETRIC) in (_BLACK_IS_ZERO, _RGB)
            and values.get(_COMPRESSION, 1) in _OF_BYTES
            and values.get(_PREDICTOR, 1) in (1, 2)
        )

    def as_gray(self) -> dict[int, tuple[int, int, bytes]]:
        """Return entries that declare the samples of a row as gray pixels."""
        values = self.values
        samples = values[_SAMPLES]
        declared = {
            _WIDTH: values[_WIDTH] * samples,
            _BITS: values[_BITS],
            _PHOTOMETRIC: _BLACK_IS_ZERO,
            _SAMPLES: 1,
        }
        if _TILE_WIDTH in values:
            declared[_TILE_WIDTH] = values[_TILE_WIDTH] * samples
        dropped = (_PREDICTOR, _EXTRA_SAMPLES, _SAMPLE_FORMAT)
        kept = {tag: item for tag, item in self.entries.items() if tag not in dropped}
        return kept | {tag: self.number(value) for tag, value in declared.items()}


def read_tiff(data: Bytes) -> TiffFile:
    """Read the first directory of a TIFF or BigTIFF file.

    Args:
        data: the file, 1-D uint8.

    Raises:
        DecodeError: the directory is damaged, or does not describe an image.
        LimitError: the image or one of its tiles is too large.
    """
    directory = _Directory(data)
    values = directory.values
    height, width, bits = values.get(_HEIGHT, 0), values.get(_WIDTH, 0), values.get(_BITS, 1)
    if not height or not width:
        raise DecodeError(f"damaged TIFF ({data.size} bytes): its directory does not specify the size of the image.")
    check_image(height, width, "the TIFF")
    check_image(values.get(_TILE_HEIGHT, 1), values.get(_TILE_WIDTH, 1), "a tile of the TIFF")
    samples = values.get(_SAMPLES, 1)
    if samples > _MAX_SAMPLES_PER_PIXEL or bits > 64:
        raise DecodeError(
            f"TIFF with {counted(samples, 'sample')} per pixel and {bits} bits per sample is not supported."
        )
    check_shape((height, width, samples), (bits + 7) // 8, "the TIFF")
    rewritten, is_rgb = partial(directory.rewritten, directory.entries), values.get(_PHOTOMETRIC) == _RGB
    strips = directory.strips()
    found = TiffFile(rewritten, height, width, bits, samples, is_rgb, directory.orientation, strips=strips)
    if not directory.can_be_gray:
        return found
    columns = values.get(_TILE_WIDTH, width) if values.get(_PREDICTOR, 1) == 2 else 0
    return found._replace(as_gray=partial(directory.rewritten, directory.as_gray()), predicted_columns=columns)
