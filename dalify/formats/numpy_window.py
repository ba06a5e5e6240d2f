"""Arrays of NumPy files, or windows of them, without reading more than the rows that are asked for.

Alone because a window is cut from the file itself: a patch of a large volume costs what the patch is large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DecodeError
from dalify.formats.memory import file_memory
from dalify.formats.numpy_file import NumpyHeader, numpy_array, numpy_header
from dalify.formats.open_files import OpenFiles
from dalify.formats.whole_file import read_file

__all__ = ["read_array", "read_header", "read_window"]

_FIRST_BYTES, _MOST_BYTES = 1 << 12, 1 << 17


def read_array(path: str) -> NDArray[Any]:
    """Return the array of a file, C-contiguous and in the byte order of the machine.

    Raises:
        ReaderError: the file cannot be read.
        DecodeError: it is no NumPy file of numbers, or damaged.
    """
    data = read_file(path)
    return numpy_array(data, numpy_header(data))


def read_header(files: OpenFiles) -> NumpyHeader:
    """Read what the first of some files says of its array.

    Raises:
        ReaderError: the file cannot be read.
        DecodeError: it is no NumPy file of numbers, or its elements are not all there.
    """
    size = files.size(0)
    try:
        return numpy_header(files.read(0, 0, min(size, _FIRST_BYTES)), size)
    except DecodeError:
        if size <= _FIRST_BYTES:
            raise
    return numpy_header(files.read(0, 0, min(size, _MOST_BYTES)), size)


def read_window(files: OpenFiles, header: NumpyHeader, start: Sequence[int], stop: Sequence[int]) -> NDArray[Any]:
    """Return a window of the array of the first of some files, C-contiguous and in the byte order of the machine.

    What lies between the first and the last element of the window is read.

    Args:
        files: as opened for the header.
        header: of the file.
        start: first index along each axis, inside the array.
        stop: one past the last index along each axis, not before ``start``.

    Raises:
        ReaderError: the file cannot be read, or has become shorter.
    """
    shape = [last - first for first, last in zip(start, stop, strict=True)]
    dtype = header.native
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = _strides(header)
    first = sum(index * stride for index, stride in zip(start, strides, strict=True))
    last = sum((index - 1) * stride for index, stride in zip(stop, strides, strict=True)) + header.dtype.itemsize
    data = files.read(0, header.offset + first, last - first)
    # Not memory of its own for each: its page faults would cost more than the reading.
    window = file_memory(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
    window[...] = np.ndarray(shape, header.dtype, data.data, strides=strides)
    return window


def _strides(header: NumpyHeader) -> list[int]:
    strides = [header.dtype.itemsize] * len(header.shape)
    axes = range(len(header.shape)) if header.is_fortran else range(len(header.shape) - 1, -1, -1)
    size = header.dtype.itemsize
    for axis in axes:
        strides[axis] = size
        size *= header.shape[axis]
    return strides
