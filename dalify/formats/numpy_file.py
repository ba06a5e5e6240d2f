"""NumPy's ``.npy`` files: a short text about the array, then its elements.

NumPy's own reader goes through file objects, and evaluates the text as Python. Here files are data in memory, and the
text is matched with patterns: it may come from anywhere.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.limits import check_dimensions, check_shape

__all__ = ["NumpyHeader", "numpy_array", "numpy_header"]

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # by version of the format
_LARGEST_HEADER = 10_000  # NumPy refuses longer ones, too
# One entry of the dictionary that a header is, and the forms in which numbers, booleans and shapes are written.
_ENTRY = re.compile(
    r"""\s*(['"])(descr|fortran_order|shape)\1\s*:\s*"""
    r"""(?:(['"])(?P<text>[^'"\\]*)\3|(?P<truth>True|False)|\((?P<shape>[\d\s,L]*)\)|(?P<other>[^\s,}][^}]*))"""
    r"""\s*(?:,\s*|(?=\}))"""
)
_TYPE = re.compile(r"[<>=|]?(?:[?bBhHiIlLqQefd]|[biuf][1248])|bool|u?int(?:8|16|32|64)|float(?:16|32|64)")
_EXTENT = re.compile(r"\s*(\d+)L?\s*")
_LONGEST_EXTENT = 19  # digits; 2**63 has as many


class NumpyHeader(NamedTuple):
    """What stands in front of the elements.

    Attributes:
        dtype: as stored, so the byte order may be foreign.
        native: the same in the byte order of the machine.
        shape: of the array.
        is_fortran: the first extent varies fastest.
        offset: of the first element in the file, bytes.
        file_size: in bytes.
    """

    dtype: np.dtype[Any]
    native: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    offset: int
    file_size: int


def numpy_header(data: np.ndarray[Any, Any], size_of_file: int | None = None) -> NumpyHeader:
    """Read what a file says of its array, and check that the elements are there.

    Args:
        data: the file, uint8 or int8 ``[bytes]``, contiguous.
        size_of_file: in bytes, where ``data`` are only its beginning (16 KiB hold every header).

    Raises:
        DecodeError: no such file, a damaged or truncated one, or elements that are no numbers.
        LimitError: more dimensions or bytes than the limits allow.
    """
    start = data[:12].tobytes()
    if start[:6] != _MAGIC:
        raise DecodeError(f"this is no NumPy file: it begins with {start[:6]!r} instead of {_MAGIC!r}.")
    size = _LENGTH_BYTES.get(start[6]) if len(start) > 6 else None
    if size is None:
        raise DecodeError(f"NumPy files of version {start[6:7].hex() or 'unknown'} are not known; 1 to 3 are.")
    length = int.from_bytes(start[8 : 8 + size], "little")
    offset = 8 + size + length
    if offset > data.size or len(start) < 8 + size:
        raise DecodeError(f"the NumPy file ends within its header: {data.size} bytes of {offset}.")
    if length > _LARGEST_HEADER:
        raise DecodeError(f"the NumPy file has a header of {length} bytes, which describes no array of numbers.")
    header = _parsed(data[:offset].tobytes(), 8 + size)
    check_dimensions(len(header.shape), "the NumPy file")
    check_shape(header.shape, header.dtype.itemsize, "the array of the NumPy file")
    present = data.size if size_of_file is None else size_of_file
    if header.file_size != present:
        raise DecodeError(
            f"the NumPy file has {present} bytes; an array of shape {header.shape} and type {header.dtype} takes "
            f"{header.file_size}."
        )
    return header


@lru_cache(maxsize=1024)  # the files of a data set mostly say the same
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
    """Return the entries of a header by name; none of a text that is no such dictionary."""
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
    except TypeError:  # 'f1', for instance
        pass
    raise DecodeError(
        f"the NumPy file holds elements of type {_shown(entry)}; arrays of numbers and booleans can be decoded."
    )


def _shape_of(text: str | None) -> tuple[int, ...] | None:
    """Return the extents, or None where the text is no shape. A comma behind the last one is left out."""
    if text is None:
        return None
    parts = text.split(",")
    if not parts[-1].strip():
        parts.pop()
    elif len(parts) == 1:
        return None  # a number in parentheses
    matches = [_EXTENT.fullmatch(part) for part in parts]
    if any(match is None or len(match[1]) > _LONGEST_EXTENT for match in matches):
        return None
    return tuple(int(match[1]) for match in matches if match is not None)


def _shown(entry: re.Match[str]) -> str:
    """Return the value of an entry for a message."""
    text = entry[0].partition(":")[2].strip().rstrip(",").strip()
    return text if len(text) <= 60 else f"{text[:57]}..."


def numpy_array(data: np.ndarray[Any, Any], header: NumpyHeader) -> np.ndarray[Any, Any]:
    """Return the array of a file, C-contiguous and in the byte order of the machine; a view where it can be one.

    Args:
        data: the file, as given to ``numpy_header``.
        header: what that returned.
    """
    order = "F" if header.is_fortran else "C"
    if header.file_size == header.offset:
        return np.empty(header.shape, header.native)
    stored = np.ndarray(header.shape, header.dtype, data.data, header.offset, order=order)
    if header.dtype.isnative and stored.flags.c_contiguous and stored.flags.aligned:
        return stored
    return np.array(stored, header.native, order="C")
