"""Reads the headers of all JPEG files of a chunk in one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import byte_at, pair_at
from dalify.base.compiling import njit
from dalify.base.limits import current
from dalify.base.small_arrays import all_of, any_of, zeros
from dalify.codecs.exif import tiff_orientation
from dalify.codecs.image_format import Bytes, as_bytes_array
from dalify.codecs.jpeg import CONTEXT_ROWS, JpegHeader, read_jpeg_header
from dalify.data.batch import Batch
from dalify.data.samples import Samples

# Columns of the table; the first are the fields of `JpegHeader`.
_HEIGHT, _WIDTH, _COMPONENTS, _BITS, _FRAME, _ORIENTATION, _ADOBE, _POSITION, _UNIT, _SINGLE = range(10)
# Whether the header was read; offset of the first segment that may be EXIF, and the number of such segments; whether
# the image is sequential, 8-bit, and gray or color.
_IS_KNOWN, _NOTE, _NOTES, _IS_SEQUENTIAL = range(10, 14)
_COLUMNS = 14
_PROGRESSIVE = 0xC2
_EXIF = b"Exif\0\0"


class JpegHeaders:
    """The headers of a chunk of encoded images.

    Args:
        table: int64 ``[N, 14]``.
        max_pixels: the maximum number of pixels of an image if all headers are known; otherwise None.
        has_turned: whether an image may have to be rotated by 90 degrees.
    """

    __slots__ = ("_has_turned", "_max_pixels", "_table")

    def __init__(
        self,
        table: np.ndarray[Any, np.dtype[np.int64]],
        max_pixels: int | None = None,
        has_turned: bool = True,
    ) -> None:
        self._table = table
        self._max_pixels = max_pixels
        self._has_turned = has_turned

    def __len__(self) -> int:
        """Return N."""
        return len(self._table)

    def __getitem__(self, index: int) -> JpegHeader | None:
        """Return one header; None if it is unknown."""
        row: list[Any] = self._table[index].tolist()
        if not row[_IS_KNOWN]:
            return None
        row[_ADOBE], row[_SINGLE] = bool(row[_ADOBE]), bool(row[_SINGLE])
        return JpegHeader._make(row[:_IS_KNOWN])

    @property
    def is_known(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which images are gray or color JPEG files with a valid header, bool ``[N]``."""
        return self._table[:, _IS_KNOWN] != 0

    def others(self) -> list[int]:
        """Return the images to parse one by one: those with unknown headers, or more pixels than allowed."""
        limit = current().max_image_pixels
        if self._max_pixels is not None and self._max_pixels <= limit:
            return []
        table = self._table
        return ((table[:, _IS_KNOWN] == 0) | (table[:, _HEIGHT] * table[:, _WIDTH] > limit)).nonzero()[0].tolist()

    @property
    def components(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Stored components of known headers, int64 ``[N]``."""
        return self._table[:, _COMPONENTS]

    def take(self, indices: np.ndarray[Any, Any]) -> JpegHeaders:
        """Return the headers of some of the images."""
        return JpegHeaders(self._table[indices])

    def shapes(self, adjust_orientation: bool) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return height, width and stored components of known headers, int64 ``[N, 3]``.

        Args:
            adjust_orientation: whether to return height and width of the upright image.
        """
        shapes = self._table[:, : _COMPONENTS + 1].copy()
        if adjust_orientation and self._has_turned:
            turned = self._table[:, _ORIENTATION] >= 5
            if any_of(turned, None):
                shapes[turned, 0], shapes[turned, 1] = self._table[turned, _WIDTH], self._table[turned, _HEIGHT]
        return shapes

    def contain(self, windows: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which images, as stored, contain their windows, bool ``[N]``.

        Args:
            windows: int64 ``[N, 4]``: y, x, height, width.
        """
        extents = self._table[:, _HEIGHT : _WIDTH + 1]
        return all_of(windows >= 0, 1) & all_of(windows[:, :2] + windows[:, 2:] <= extents, 1)

    def are_plain(self, adjust_orientation: bool) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which images are sequential, 8-bit, gray or color, and upright, bool ``[N]``."""
        plain = self._table[:, _IS_SEQUENTIAL] != 0
        return plain & (self._table[:, _ORIENTATION] == 1) if adjust_orientation else plain

    def are_ordinary(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which images are sequential or progressive, 8-bit, gray or color, bool ``[N]``."""
        table = self._table
        is_color = (table[:, _COMPONENTS] == 1) | (table[:, _COMPONENTS] == 3)
        is_progressive = self.is_known & (table[:, _BITS] == 8) & (table[:, _FRAME] == _PROGRESSIVE)
        return is_color & (self.are_plain(adjust_orientation=False) | is_progressive)

    def are_upright(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which images need no rotation, bool ``[N]``."""
        return self._table[:, _ORIENTATION] == 1

    def heights_for(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the height to declare in each header so that only the first rows are decoded, int64 ``[N]``.

        Args:
            rows: int64 ``[N]``, number of rows needed.

        Returns:
            heights; 0 if nothing is gained or the scan is not a single pass from top to bottom.
        """
        heights = np.minimum(self._table[:, _HEIGHT], rows + CONTEXT_ROWS)
        unit = np.maximum(self._table[:, _UNIT], 1)
        is_less = -(-heights // unit) < -(-self._table[:, _HEIGHT] // unit)
        return np.where(is_less & (self._table[:, _SINGLE] != 0), heights, 0)

    def positions(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the offsets of the contents of the frame segments, int64 ``[N]``."""
        return self._table[:, _POSITION]


def read_jpeg_headers(encoded: Batch) -> JpegHeaders:
    """Read the headers of the samples that are JPEG files."""
    table = zeros((len(encoded), _COLUMNS), np.int64)
    if encoded.ndim == 1 and encoded.dtype.numpy.itemsize == 1:
        samples = Samples.of_batch(encoded)
        found: Any = _read_headers(samples.addresses, samples.shapes, table)
        known, max_pixels, has_notes = found
        if has_notes:
            for index in (table[:, _IS_KNOWN] & (table[:, _NOTES] > 0)).nonzero()[0].tolist():
                note, notes = table[index, _NOTE], table[index, _NOTES]
                data = as_bytes_array(encoded.samples[index])
                table[index, _ORIENTATION] = _orientation(data, int(note), int(notes))
        return JpegHeaders(table, max_pixels if known == len(table) else None, has_notes)
    return JpegHeaders(table)


def _orientation(data: Bytes, begin: int, count: int) -> int:
    """Return the orientation from the EXIF segments; the first of `count` segments starts at `begin`."""
    end = begin - 2 + (int(data[begin - 2]) << 8) + int(data[begin - 1])
    block = data[begin:end].tobytes()
    found = tiff_orientation(block[len(_EXIF) :]) if block.startswith(_EXIF) else 1
    return found if found != 1 or count == 1 else read_jpeg_header(data).orientation


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _read_headers(addresses, sizes, table):
    """Parse markers like `dalify.codecs.jpeg.read_jpeg_header`; damaged data and other formats stay unknown.

    The table must contain zeros.

    Returns:
        number of known headers, maximum number of pixels of these, and whether one has segments that may be EXIF.
    """
    known, max_pixels, has_notes = 0, np.int64(0), False
    for n in range(addresses.size):
        start, size, row = addresses[n], sizes[n, 0], table[n]
        if size < 4 or pair_at(start) != 0xFFD8 or byte_at(start + 2) != 0xFF:
            continue
        position, has_frame = 2, False
        while position + 4 <= size and byte_at(start + position) == 0xFF:
            marker, length = byte_at(start + position + 1), pair_at(start + position + 2)
            contents = position + 4
            if marker == 0xFF:
                position += 1
                continue
            if marker == 0x01 or marker & 0xF8 == 0xD0:
                position += 2
                continue
            position += 2 + length
            if length < 2 or (position > size and marker != 0xDA):
                break
            at = start + contents
            # 0xC4, 0xC8 and 0xCC are not frames.
            if length >= 8 and marker & 0xF0 == 0xC0 and (marker == 0xC0 or marker & 3 != 0):
                row[_BITS] = byte_at(at)
                row[_HEIGHT] = pair_at(at + 1)
                row[_WIDTH] = pair_at(at + 3)
                row[_COMPONENTS] = byte_at(at + 5)
                row[_FRAME] = marker
                row[_POSITION] = contents
                largest = 1
                for place in range(start + contents + 7, start + position, 3):
                    factor = byte_at(place) & 15
                    if factor > largest:
                        largest = factor
                row[_UNIT] = 8 * largest
                has_frame = True
            elif marker == 0xE1:
                if row[_NOTES] == 0:
                    row[_NOTE] = contents
                row[_NOTES] += 1
            elif marker == 0xDA and has_frame:
                row[_SINGLE] = contents < size and byte_at(at) == row[_COMPONENTS]
                row[_ORIENTATION] = 1
                # CMYK needs the Adobe segment, so such images are parsed one by one.
                pixels = row[_HEIGHT] * row[_WIDTH]
                if pixels > 0 and row[_COMPONENTS] != 4:
                    row[_IS_KNOWN] = 1
                    is_sequential = row[_FRAME] == 0xC0 or row[_FRAME] == 0xC1
                    row[_IS_SEQUENTIAL] = row[_BITS] == 8 and is_sequential
                    known += 1
                    max_pixels = pixels if pixels > max_pixels else max_pixels
                    has_notes |= row[_NOTES] > 0
                break
            elif marker == 0xDA or marker == 0xD9:
                break
    return known, max_pixels, has_notes
