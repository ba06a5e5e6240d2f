"""The EXIF orientation of images, and the transposes and flips that it specifies.

JPEG, PNG, WebP and TIFF store the same tag in different places.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

_ORIENTATION_TAG = 0x0112
_UPRIGHT = 1
_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')
_ENTRY_BYTES = 12


def tiff_orientation(block: bytes) -> int:
    """Return the orientation, 1 to 8, from an EXIF block that starts with its TIFF header; 1 if there is none.

    Source: TIFF 6.0, image file directory, tag 274. Damaged blocks are ignored.
    """
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    if order is None or len(block) < 10:
        return _UPRIGHT
    start = struct.unpack_from(order + "I", block, 4)[0]
    if start + 2 > len(block):
        return _UPRIGHT
    count = struct.unpack_from(order + "H", block, start)[0]
    for entry in range(start + 2, min(start + 2 + count * _ENTRY_BYTES, len(block) - _ENTRY_BYTES + 1), _ENTRY_BYTES):
        tag, kind = struct.unpack_from(order + "HH", block, entry)
        if tag == _ORIENTATION_TAG:
            value = struct.unpack_from(order + ("I" if kind == 4 else "H"), block, entry + 8)[0]
            return value if 1 <= value <= 8 else _UPRIGHT
    return _UPRIGHT


def xmp_orientation(xmp: bytes) -> int | None:
    """Return the orientation, 1 to 8, from XMP metadata; None if it contains none."""
    found = _XMP_ORIENTATION.search(xmp)
    return int(found[1]) if found else None


def oriented_extents(height: int, width: int, orientation: int) -> tuple[int, int]:
    """Return (height, width) of the upright image: orientations 5 to 8 swap them."""
    return (width, height) if orientation >= 5 else (height, width)


def orient(image: np.ndarray[Any, Any], orientation: int) -> np.ndarray[Any, Any]:
    """Return the upright image as a view.

    Args:
        image: HWC, as stored.
        orientation: EXIF value, 1 to 8.
    """
    if orientation >= 5:
        image = image.swapaxes(0, 1)
    # For example, 6 is a transpose, then a flip of the columns.
    if orientation in (3, 4, 7, 8):
        image = image[::-1]
    if orientation in (2, 3, 6, 7):
        image = image[:, ::-1]
    return image


def unorient(image: np.ndarray[Any, Any], orientation: int) -> np.ndarray[Any, Any]:
    """Return the image as stored, as a view, from the upright one: the inverse of ``orient``."""
    return orient(image, {6: 8, 8: 6}.get(orientation, orientation))


def source_window(
    window: tuple[int, int, int, int], height: int, width: int, orientation: int
) -> tuple[int, int, int, int]:
    """Map a window of the upright image to the stored image.

    Args:
        window: y, x, height, width in the upright image, in pixels.
        height: height of the stored image.
        width: width of the stored image.
        orientation: EXIF value, 1 to 8.

    Returns:
        y, x, height, width in the stored image.
    """
    y, x, rows, columns = window
    upright_height, upright_width = oriented_extents(height, width, orientation)
    if orientation in (3, 4, 7, 8):
        y = upright_height - y - rows
    if orientation in (2, 3, 6, 7):
        x = upright_width - x - columns
    return (x, y, columns, rows) if orientation >= 5 else (y, x, rows, columns)
