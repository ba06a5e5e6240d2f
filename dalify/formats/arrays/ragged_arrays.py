"""Reads NumPy files of different shapes in a few compiled calls.

All headers are read first, and then all elements into one block of memory. The headers of a dataset usually differ only
in the shape, so the first one is parsed in Python, and the others by compiled code.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.errors import DalifyError
from dalify.base.limits import current
from dalify.base.regular_files import OPEN_FLAGS
from dalify.data.batch import ALIGNMENT_BYTES, Batch, block_offsets
from dalify.data.dtypes import from_numpy
from dalify.formats.arrays.numpy_file import NumpyHeader, numpy_header
from dalify.formats.files.compiled_files import close_file, file_size, open_file, read_part
from dalify.formats.files.memory import LARGE_BYTES, file_memory
from dalify.formats.files.paths import Paths
from dalify.formats.files.positions import HAS_PREAD

_HEAD_BYTES = 128  # size of the header that numpy.save writes for arrays of a few dimensions
_BEFORE_SHAPE, _AFTER_SHAPE = b"'shape': (", np.frombuffer(b", }", np.uint8)
_COMMA, _BLANK, _CLOSING, _LINE_END, _ZERO, _NINE = b", )\n09"
_MAX_DIGITS = 18
_FILES_AT_ONCE = 64  # maximum number of open files
_MAX_BYTES = 1 << 28  # of the arrays of a chunk; reading more in one call is not faster


@njit(nogil=True, cache=True)
def _open_all(text: Any, paths: Any, flags: int, descriptors: Any, sizes: Any, heads: Any) -> Any:
    """Open files and read their first bytes.

    Returns:
        largest size and sum of the sizes; -1 and -1 if one cannot be read.
    """
    largest, total = np.int64(0), np.int64(0)
    for file in range(descriptors.size):
        descriptor = open_file(np.uintp(text.ctypes.data + paths[file]), flags)
        if descriptor < 0:
            return np.int64(-1), np.int64(-1)
        descriptors[file] = descriptor
        size = file_size(descriptor)
        count = min(size, heads.shape[1])
        if count <= 0 or not read_part(descriptor, 0, count, heads[file].ctypes.data):
            return np.int64(-1), np.int64(-1)
        for place in range(count, heads.shape[1]):
            heads[file, place] = 0
        sizes[file], largest, total = size, max(size, largest), total + size
    return largest, total


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _parse(
    heads: Any, sizes: Any, begin: int, offset: int, item_bytes: int, shapes: Any, starts: Any, places: Any
) -> Any:
    """Parse the shapes of arrays with headers of ``numpy.save`` that are equal to the first one before the shape.

    Args:
        heads: the first bytes of each file, uint8 ``[N, n]``, n >= `offset`.
        sizes: sizes of the files in bytes, ``[N]``.
        begin: offset of the shape in the header, after the parenthesis.
        offset: offset of the first element of the array.
        item_bytes: size of an element.
        shapes: output, ``[N, ndim]``.
        starts: output, `offset` for each file, ``[N]``.
        places: output, the offset of each array in a block of memory, ``[N]``.

    Returns:
        the size of the block in bytes; -1 if a header is different or does not match the size of its file, or an array
        is empty.
    """
    ndim, end = shapes.shape[1], np.int64(0)
    for file in range(sizes.size):
        head = heads[file]
        for place in range(begin):
            if head[place] != heads[0, place]:
                return -1
        place, total = begin, np.int64(item_bytes)
        for axis in range(ndim):
            extent, first = np.int64(0), place
            while place < offset and _ZERO <= head[place] <= _NINE:
                extent = extent * 10 + np.int64(head[place] - _ZERO)
                place += 1
                if place - first > _MAX_DIGITS:
                    return -1
            if extent == 0 or total > sizes[file] // extent or place + 2 > offset:
                return -1
            shapes[file, axis] = extent
            total *= extent
            if axis < ndim - 1 or ndim == 1:
                if head[place] != _COMMA:
                    return -1
                place += 1
            if axis < ndim - 1:
                if head[place] != _BLANK:
                    return -1
                place += 1
        if offset + total != sizes[file] or place + 2 + _AFTER_SHAPE.size > offset or head[place] != _CLOSING:
            return -1
        place += 1
        for index in range(_AFTER_SHAPE.size):
            if head[place + index] != _AFTER_SHAPE[index]:
                return -1
        for rest in range(place + _AFTER_SHAPE.size, offset - 1):
            if head[rest] != _BLANK:
                return -1
        if head[offset - 1] != _LINE_END:
            return -1
        starts[file], places[file] = offset, end
        end += total + -total % ALIGNMENT_BYTES
    return end


@njit(nogil=True, cache=True)
def _read_all(descriptors: Any, starts: Any, sizes: Any, address: int, places: Any) -> bool:
    """Read files from `starts` on to ``address + places``, and close them; return False if one cannot be read."""
    for file in range(descriptors.size):
        if not read_part(descriptors[file], starts[file], sizes[file] - starts[file], address + places[file]):
            return False
        close_file(descriptors[file])
        descriptors[file] = -1
    return True


@njit(nogil=True, cache=True)
def close_all(descriptors: Any) -> None:
    """Close files; `descriptors` are ``[N]``, -1 for no file."""
    for file in range(descriptors.size):
        if descriptors[file] >= 0:
            close_file(descriptors[file])


def read_ragged(paths: Paths) -> Batch | list[NDArray[Any]] | None:
    """Return the arrays of files. The GIL is released during the read.

    Args:
        paths: paths of N > 0 files.

    Returns:
        N samples with the same dtype and number of dimensions: a ragged batch, or C-contiguous arrays if there are many
        files or elements. None if each file must be read separately, because one cannot be read, is damaged, large or
        empty, or has another byte order or order of axes.
    """
    if not HAS_PREAD:
        return None
    if len(paths) <= _FILES_AT_ONCE:
        return _read_part(paths)
    arrays: list[NDArray[Any]] = []
    for first in range(0, len(paths), _FILES_AT_ONCE):
        part = _read_part(paths[first : first + _FILES_AT_ONCE])
        if part is None:
            return None
        samples: list[Any] = part.samples if isinstance(part, Batch) else part
        if samples[0].dtype != (arrays or samples)[0].dtype or samples[0].ndim != (arrays or samples)[0].ndim:
            return None
        arrays += samples
    return arrays


def _read_part(paths: Paths) -> Batch | list[NDArray[Any]] | None:
    """Return the arrays of a few files; see ``read_ragged``."""
    count, is_read = len(paths), False
    descriptors, sizes = np.empty(count, np.int32), np.empty(count, np.int64)
    descriptors.fill(-1)
    heads = np.empty((count, _HEAD_BYTES), np.uint8)
    try:
        largest, total = _open_all(paths.text, paths.starts, OPEN_FLAGS, descriptors, sizes, heads)
        if not 0 < largest <= current().max_sample_bytes or total > _MAX_BYTES:
            return None
        found = _described(heads, sizes)
        if found is None:
            return None
        dtype, shapes, starts, offsets, total = found
        if total <= LARGE_BYTES:
            block = file_memory(total)
            arrays = Batch(None, None, dtype=from_numpy(dtype), ragged=(block, offsets, shapes))
            address, places = block.__array_interface__["data"][0], offsets
        else:
            arrays = [
                file_memory(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape) for shape in shapes.tolist()
            ]
            address, places = 0, np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
        is_read = _read_all(descriptors, starts, sizes, address, places)
        return arrays if is_read else None
    finally:
        if not is_read:
            close_all(descriptors)


def _described(
    heads: NDArray[np.uint8], sizes: NDArray[np.int64]
) -> tuple[np.dtype[Any], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int] | None:
    """Return a description of plain arrays.

    Args:
        heads: the first `_HEAD_BYTES` of each file.
        sizes: sizes of the files in bytes.

    Returns:
        dtype; shapes ``[N, ndim]``; the offset of the elements in each file, ``[N]``; the offset of each array in a
        block of memory, ``[N]``, and the size of the block. None if the dtype or number of dimensions of a file
        differs, or an array is not plain.
    """
    first, begin = _plain_header(heads[0].tobytes(), int(sizes[0]))
    if first is None or len(first.shape) > current().max_dimensions:
        return None
    count = len(sizes)
    starts, places = np.empty(count, np.int64), np.empty(count, np.int64)
    shapes = np.empty((count, len(first.shape)), np.int64)
    total = _parse(heads, sizes, begin, first.offset, first.dtype.itemsize, shapes, starts, places)
    if total >= 0:
        return first.native, shapes, starts, places, total
    for number, size in enumerate(sizes.tolist()):
        header, _ = _plain_header(heads[number].tobytes(), size)
        if header is None or header.native != first.native or len(header.shape) != len(first.shape):
            return None
        starts[number], shapes[number] = header.offset, header.shape
    return first.native, shapes, starts, *block_offsets(shapes, first.dtype.itemsize)


@lru_cache(maxsize=1024)
def _plain_header(head: bytes, size: int) -> tuple[NumpyHeader | None, int]:
    """Return the header of an array in native byte order and C order, and the offset of the shape in it.

    The header is None if the file has another order or is damaged.
    """
    try:
        header = numpy_header(np.frombuffer(head, np.uint8)[:size], size)
    except DalifyError:
        return None, 0
    is_plain = header.dtype.isnative and not (header.is_fortran and len(header.shape) > 1) and 0 not in header.shape
    return header if is_plain else None, head.find(_BEFORE_SHAPE) + len(_BEFORE_SHAPE)
