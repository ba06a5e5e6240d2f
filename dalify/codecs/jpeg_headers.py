"""The headers of all JPEG files of a chunk, read in one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.limits import current
from dalify.codecs.jpeg import CONTEXT_ROWS, JpegHeader
from dalify.data.batch import Batch
from dalify.data.samples import Samples

__all__ = ["JpegHeaders", "read_jpeg_headers"]

_BYTE = np.empty(0, np.uint8)
# Columns of the table; those of a `JpegHeader`, in its order, come first.
_HEIGHT, _WIDTH, _COMPONENTS, _BITS, _FRAME, _ORIENTATION, _ADOBE, _POSITION, _UNIT, _SINGLE, _IS_KNOWN = range(11)
_SEQUENTIAL = (0xC0, 0xC1)
_ORIENTATION_TAG = 274
_ENTRY_BYTES = 12
_LONG = 4


class JpegHeaders:
    """What is known of the headers of a chunk of encoded images.

    Args:
        table: int64 ``[N, 11]``.

    Attributes:
        is_known: bool ``[N]``: a JPEG with an undamaged header. Others are looked at one by one.
    """

    __slots__ = ("_table", "is_known")

    def __init__(self, table: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        self._table = table
        self.is_known = table[:, _IS_KNOWN] != 0

    def __len__(self) -> int:
        """Return N."""
        return len(self._table)

    def __getitem__(self, index: int) -> JpegHeader | None:
        """Return one header; None where it is not known."""
        if not self.is_known[index]:
            return None
        row: list[Any] = self._table[index].tolist()
        row[_ADOBE], row[_SINGLE] = bool(row[_ADOBE]), bool(row[_SINGLE])
        return JpegHeader._make(row[:_IS_KNOWN])

    def shapes(self, adjust_orientation: bool) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return height, width and stored components of the known ones, int64 ``[N, 3]``.

        Args:
            adjust_orientation: height and width are those of the upright image.
        """
        shapes = self._table[:, : _COMPONENTS + 1].copy()
        if adjust_orientation:
            turned = self._table[:, _ORIENTATION] >= 5
            if turned.any():
                shapes[turned, 0], shapes[turned, 1] = self._table[turned, _WIDTH], self._table[turned, _HEIGHT]
        return shapes

    def are_within_limits(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which have no more pixels than allowed, bool ``[N]``."""
        return self._table[:, _HEIGHT] * self._table[:, _WIDTH] <= current().max_image_pixels

    def are_plain(self, adjust_orientation: bool) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which are sequential, of 8 bits, gray or color, and need not be turned, bool ``[N]``."""
        table = self._table
        plain = self.is_known & (table[:, _BITS] == 8) & (table[:, _COMPONENTS] != 4)
        plain &= (table[:, _FRAME] == _SEQUENTIAL[0]) | (table[:, _FRAME] == _SEQUENTIAL[1])
        return plain & (table[:, _ORIENTATION] == 1) if adjust_orientation else plain

    def heights_for(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the height that a header has to declare for the first rows to be decoded only, int64 ``[N]``.

        Args:
            rows: int64 ``[N]``, how many rows are wanted.

        Returns:
            heights; 0 where this gains nothing, or where the scan is not one pass from top to bottom.
        """
        heights = np.minimum(self._table[:, _HEIGHT], rows + CONTEXT_ROWS)
        unit = np.maximum(self._table[:, _UNIT], 1)
        is_less = -(-heights // unit) < -(-self._table[:, _HEIGHT] // unit)
        return np.where(is_less & (self._table[:, _SINGLE] != 0), heights, 0)

    def positions(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the offset of each frame's contents, int64 ``[N]``."""
        return self._table[:, _POSITION]


def read_jpeg_headers(encoded: Batch) -> JpegHeaders:
    """Read the headers of the samples that are JPEG files.

    Args:
        encoded: any samples.
    """
    table = np.zeros((len(encoded), _IS_KNOWN + 1), np.int64)
    if encoded.ndim == 1 and encoded.dtype.numpy.itemsize == 1:
        samples = Samples.of_batch(encoded)
        _read_headers(samples.addresses, samples.shapes, table, _BYTE)
    return JpegHeaders(table)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _number(data, at, size, is_big):
    """Return an unsigned integer of `size` bytes."""
    value = np.int64(0)
    for k in range(size):
        value = (value << 8) | np.int64(data[at + k] if is_big else data[at + size - 1 - k])
    return value


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _orientation(data, begin, end):
    """Return the orientation of an EXIF block; see `dalify.codecs.exif.tiff_orientation`."""
    size = end - begin
    if size < 10 or data[begin] != data[begin + 1] or (data[begin] != 0x49 and data[begin] != 0x4D):
        return 1
    is_big = data[begin] == 0x4D
    start = _number(data, begin + 4, 4, is_big)
    if start + 2 > size:
        return 1
    count = _number(data, begin + start, 2, is_big)
    entry = start + 2
    for _ in range(count):
        if entry + _ENTRY_BYTES > size:
            break
        if _number(data, begin + entry, 2, is_big) == _ORIENTATION_TAG:
            kind = _number(data, begin + entry + 2, 2, is_big)
            value = _number(data, begin + entry + 8, 4 if kind == _LONG else 2, is_big)
            return value if 1 <= value <= 8 else 1
        entry += _ENTRY_BYTES
    return 1


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _is_exif(data, at):
    return (
        data[at] == 0x45
        and data[at + 1] == 0x78
        and data[at + 2] == 0x69
        and data[at + 3] == 0x66
        and data[at + 4] == 0
        and data[at + 5] == 0
    )


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _is_adobe(data, at):
    return (
        data[at] == 0x41
        and data[at + 1] == 0x64
        and data[at + 2] == 0x6F
        and data[at + 3] == 0x62
        and data[at + 4] == 0x65
    )


@njit(nogil=True, cache=True)
def _read_headers(addresses, sizes, table, byte):
    """Walk the markers as `dalify.codecs.jpeg.read_jpeg_header` does; what is damaged or no JPEG stays unknown."""
    for n in range(len(addresses)):
        size = sizes[n, 0]
        if size < 4:
            continue
        data = array_at(addresses[n], (size,), byte)
        if data[0] != 0xFF or data[1] != 0xD8 or data[2] != 0xFF:
            continue
        position, orientation, has_adobe, has_frame = 2, 1, 0, False
        while position + 4 <= size and data[position] == 0xFF:
            marker = data[position + 1]
            if marker == 0xFF:
                position += 1
                continue
            if marker == 0x01 or 0xD0 <= marker <= 0xD7:
                position += 2
                continue
            length = _number(data, position + 2, 2, True)
            contents = position + 4
            position += 2 + length
            if length < 2 or (position > size and marker != 0xDA):
                break
            is_frame = 0xC0 <= marker <= 0xCF and marker != 0xC4 and marker != 0xC8 and marker != 0xCC
            if is_frame and length >= 8:
                table[n, _BITS] = data[contents]
                table[n, _HEIGHT] = _number(data, contents + 1, 2, True)
                table[n, _WIDTH] = _number(data, contents + 3, 2, True)
                table[n, _COMPONENTS] = data[contents + 5]
                table[n, _FRAME] = marker
                table[n, _POSITION] = contents
                unit = 1
                for at in range(contents + 7, position, 3):
                    unit = max(unit, data[at] & 15)
                table[n, _UNIT] = 8 * unit
                has_frame = True
            elif marker == 0xE1 and orientation == 1 and length >= 8 and _is_exif(data, contents):
                orientation = _orientation(data, contents + 6, position)
            elif marker == 0xEE and length >= 7 and _is_adobe(data, contents):
                has_adobe = 1
            elif marker == 0xDA and has_frame:
                table[n, _SINGLE] = contents < size and data[contents] == table[n, _COMPONENTS]
                table[n, _ORIENTATION] = orientation
                table[n, _ADOBE] = has_adobe
                table[n, _IS_KNOWN] = table[n, _HEIGHT] > 0 and table[n, _WIDTH] > 0
                break
            elif marker == 0xDA or marker == 0xD9:
                break
