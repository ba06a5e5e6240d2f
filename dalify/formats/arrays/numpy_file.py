"""Parses NumPy's ``.npy`` files: a text header that describes the array, followed by its elements.

Unlike NumPy's reader, this one parses data in memory, and does not evaluate the header as a Python literal, because it
is not trusted.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.limits import check_dimensions, check_shape

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # by version of the format
_MAX_HEADER_BYTES = 10_000  # as in NumPy
# One entry of the header dictionary, with the forms of strings, booleans and shapes.
_ENTRY = re.compile(
    r"""\s*(['"])(descr|fortran_order|shape)\1\s*:\s*"""
    r"""(?:(['"])(?P<text>[^'"\\]*)\3|(?P<truth>True|False)|\((?P<shape>[\d\s,L]*)\)|(?P<other>[^\s,}][^}]*))"""
    r"""\s*(?:,\s*|(?=\}))"""
)
_TYPE = re.compile(r"[<>=|]?(?:[?bBhHiIlLqQefd]|[biuf][1248])|bool|u?int(?:8|16|32|64)|float(?:16|32|64)")
_EXTENT = re.compile(r"\s*(\d+)L?\s*")
_MAX_EXTENT_DIGITS = 19  # 2**63 has as many


class NumpyHeader(NamedTuple):
    """The header of a file.

    Attributes:
        dtype: stored dtype, perhaps in another byte order.
        native: the same dtype in native byte order.
        shape: shape of the array.
        is_fortran: whether the array is in Fortran order.
        offset: offset of the first element in the file, in bytes.
        file_size: expected size of the file in bytes.
    """

    dtype: np.dtype[Any]
    native: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    offset: int
    file_size: int


def numpy_header(
    data: np.ndarray[Any, Any], size_of_file: int | None = None, *, allows_more: bool = False
) -> NumpyHeader:
    """Parse the header of a file, and check that the file contains all elements.

    Args:
        data: the file, uint8 or int8 ``[bytes]``, contiguous.
        size_of_file: size of the file in bytes, if ``data`` is only its start (16 KiB contain every header).
        allows_more: whether bytes after the elements are ignored.

    Raises:
        DecodeError: the file is not a NumPy file, is damaged or truncated, or its elements are not numbers.
        LimitError: more dimensions or bytes than the limits allow.
    """
    start = data[:12].tobytes()
    if not start:
        raise DecodeError("the NumPy file is empty.")
    if start[:6] != _MAGIC:
        hint = "Save the arrays of an .npz archive separately, with numpy.save." if start[:2] == b"PK" else ""
        raise DecodeError(f"this is not a NumPy file: it starts with {start[:6]!r} instead of {_MAGIC!r}.", hint=hint)
    size = _LENGTH_BYTES.get(start[6]) if len(start) > 6 else None
    if size is None:
        raise DecodeError(f"unsupported NumPy file version {start[6:7].hex() or 'unknown'}; supported are 1 to 3.")
    length = int.from_bytes(start[8 : 8 + size], "little")
    offset = 8 + size + length
    if offset > data.size or len(start) < 8 + size:
        raise DecodeError(f"the NumPy file ends within its header: it has {data.size} of {offset} bytes.")
    if length > _MAX_HEADER_BYTES:
        raise DecodeError(f"the NumPy file has a header of {length} bytes, which is too long for an array of numbers.")
    header = _parsed(data[:offset].tobytes(), 8 + size)
    check_dimensions(len(header.shape), "the NumPy file")
    check_shape(header.shape, header.dtype.itemsize, "the array of the NumPy file")
    present = data.size if size_of_file is None else size_of_file
    if present < header.file_size or (present > header.file_size and not allows_more):
        raise DecodeError(
            f"the NumPy file has {present} bytes; an array of shape {header.shape} and dtype {header.dtype} needs "
            f"{header.file_size}."
        )
    return header


@lru_cache(maxsize=1024)  # the files of a dataset usually have equal headers
def _parsed(start: bytes, text_begins: int) -> NumpyHeader:
    entries = _entries(start[text_begins:].decode("latin1"))
    description, shape_text, order = (entries.get(name) for name in ("descr", "shape", "fortran_order"))
    if description is None:
        raise DecodeError("the header of the NumPy file is damaged.")
    dtype = _dtype_of(description)
    if shape_text is None or order is None or order["truth"] is None:
        raise DecodeError("the header of the NumPy file is damaged.")
    shape = _shape_of(shape_text["shape"])
    if shape is None:
        raise DecodeError(f"the header of the NumPy file has an invalid shape: {_shown(shape_text)}.")
    offset = len(start)
    file_size = offset + math.prod(shape) * dtype.itemsize
    return NumpyHeader(dtype, dtype.newbyteorder("="), shape, order["truth"] == "True", offset, file_size)


def _entries(text: str) -> dict[str, re.Match[str]]:
    """Return the entries of a header by name; empty if the header is invalid."""
    text = text.strip()
    found: dict[str, re.Match[str]] = {}
    if not text.startswith("{") or not text.endswith("}"):
        return found
    place = 1
    while place < len(text) - 1:
        entry = _ENTRY.match(text, place)
        if entry is None:
            return {}
        found[entry[2]] = entry
        place = entry.end()
    return found


def _dtype_of(entry: re.Match[str]) -> np.dtype[Any]:
    text: str = entry["text"] or ""
    try:
        if _TYPE.fullmatch(text):
            return np.dtype(text)
    except TypeError:  # for example 'f1'
        pass
    raise DecodeError(f"the NumPy file has dtype {_shown(entry)}; only numbers and booleans are supported.")


def _shape_of(text: str | None) -> tuple[int, ...] | None:
    """Return the extents, or None if the string is not a shape. A trailing comma is ignored."""
    if text is None:
        return None
    parts = text.split(",")
    if not parts[-1].strip():
        parts.pop()
    elif len(parts) == 1:
        return None  # a number in parentheses
    matches = [_EXTENT.fullmatch(part) for part in parts]
    if any(match is None or len(match[1]) > _MAX_EXTENT_DIGITS for match in matches):
        return None
    return tuple(int(match[1]) for match in matches if match is not None)


def _shown(entry: re.Match[str]) -> str:
    """Return the value of an entry for an error message."""
    text = entry[0].partition(":")[2].strip().rstrip(",").strip()
    return text if len(text) <= 60 else f"{text[:57]}..."


def numpy_array(data: np.ndarray[Any, Any], header: NumpyHeader) -> np.ndarray[Any, Any]:
    """Return the array of a file, C-contiguous and in native byte order; a view if possible.

    Args:
        data: the file, as for ``numpy_header``.
        header: its header.
    """
    order = "F" if header.is_fortran else "C"
    if header.file_size == header.offset:
        return np.empty(header.shape, header.native)
    stored = np.ndarray(header.shape, header.dtype, data.data, header.offset, order=order)
    if header.dtype.isnative and stored.flags.c_contiguous and stored.flags.aligned:
        return stored
    return np.array(stored, header.native, order="C")
