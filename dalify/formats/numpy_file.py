"""NumPy's ``.npy`` files: a short text about the array, then its elements.

Alone because a decoder gets such files as data, and because NumPy's own reader goes through file objects and takes
pickled objects, which data from outside must never be.
"""

from __future__ import annotations

import ast
import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DecodeError

__all__ = ["NumpyHeader", "numpy_array", "numpy_header"]

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # by version of the format
_KINDS = "biuf"
_LARGEST_HEADER = 1 << 16


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
        size_of_file: in bytes, where ``data`` are only its beginning (64 KiB hold every header).

    Raises:
        DecodeError: no such file, a damaged or truncated one, or elements that are no numbers.
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
    present = data.size if size_of_file is None else size_of_file
    if header.file_size != present:
        raise DecodeError(
            f"the NumPy file has {present} bytes; an array of shape {header.shape} and type {header.dtype} takes "
            f"{header.file_size}."
        )
    return header


@lru_cache(maxsize=1024)  # the files of a data set mostly say the same
def _parsed(start: bytes, text_begins: int) -> NumpyHeader:
    try:
        text = start[text_begins:]
        entries = ast.literal_eval(text.decode("utf-8" if not text.isascii() else "ascii").strip())
        description, shape, is_fortran = entries["descr"], entries["shape"], entries["fortran_order"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise DecodeError("the header of the NumPy file is damaged.") from None
    if not isinstance(shape, tuple) or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise DecodeError(f"the header of the NumPy file has a shape that is none: {shape!r}.")
    try:
        dtype = np.dtype(description if isinstance(description, str) else None)
    except TypeError:
        dtype = np.dtype(object)
    if not isinstance(description, str) or dtype.kind not in _KINDS or dtype.itemsize > 8:
        raise DecodeError(
            f"the NumPy file holds elements of type {description!r}; arrays of numbers and booleans can be decoded."
        )
    offset = len(start)
    file_size = offset + math.prod(shape) * dtype.itemsize
    return NumpyHeader(dtype, dtype.newbyteorder("="), shape, bool(is_fortran), offset, file_size)


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
