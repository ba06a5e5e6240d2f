"""Reads NumPy files of different shapes in a few compiled calls.

`runs` reads files of equal shape without parsing their headers. Here all headers are read first, equal headers are
parsed once, and then all elements are read into the memory of the results.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.errors import DalifyError
from dalify.base.small_arrays import zeros
from dalify.data.batch import block_offsets
from dalify.formats.arrays.numpy_file import NumpyHeader, numpy_header
from dalify.formats.files.compiled_files import close_file, file_size, open_file, read_part
from dalify.formats.files.memory import file_memory
from dalify.formats.files.paths import Paths
from dalify.formats.files.positions import HAS_PREAD, OPEN_FLAGS

__all__ = ["read_ragged"]

_HEAD_BYTES = 128  # size of the header that numpy.save writes for arrays of a few dimensions
_FILES_AT_ONCE = 64  # maximum number of open files
# Arrays share memory blocks up to this size; keeping one array alive keeps its whole block.
_BLOCK_BYTES = 1 << 22
_MAX_BYTES = 1 << 28  # of the arrays of a chunk; reading more in one call is not faster


@njit(nogil=True, cache=True)
def _open_all(text: Any, paths: Any, flags: int, descriptors: Any, sizes: Any, heads: Any) -> bool:
    """Open files and read their first bytes; return False at the first one that cannot be read."""
    for file in range(descriptors.size):
        descriptor = open_file(np.uintp(text.ctypes.data + paths[file]), flags)
        if descriptor < 0:
            return False
        descriptors[file] = descriptor
        sizes[file] = file_size(descriptor)
        count = min(sizes[file], heads.shape[1])
        if count <= 0 or not read_part(descriptor, 0, count, heads[file].ctypes.data):
            return False
    return True


@njit(nogil=True, cache=True)
def _read_all(descriptors: Any, offsets: Any, sizes: Any, addresses: Any) -> bool:
    """Read a part of each file and close it; return False at the first one that cannot be read."""
    for file in range(descriptors.size):
        if not read_part(descriptors[file], offsets[file], sizes[file], addresses[file]):
            return False
        close_file(descriptors[file])
        descriptors[file] = -1
    return True


@njit(nogil=True, cache=True)
def _close_all(descriptors: Any) -> None:
    for file in range(descriptors.size):
        if descriptors[file] >= 0:
            close_file(descriptors[file])


def read_ragged(paths: Paths) -> list[NDArray[Any]] | None:
    """Return the arrays of files. The GIL is released during the read.

    Args:
        paths: paths of N > 0 files.

    Returns:
        N C-contiguous arrays with the same dtype and number of dimensions; None if a file cannot be read, is damaged,
        large or empty, or its byte order or axes have to be converted: then each file must be read separately.
    """
    if not HAS_PREAD:
        return None
    arrays: list[NDArray[Any]] = []
    for first in range(0, len(paths), _FILES_AT_ONCE):
        part = _read_part(paths[first : first + _FILES_AT_ONCE])
        if part is None or part[0].dtype != (arrays or part)[0].dtype or part[0].ndim != (arrays or part)[0].ndim:
            return None
        arrays += part
    return arrays


def _read_part(paths: Paths) -> list[NDArray[Any]] | None:
    """Return the arrays of a few files; see ``read_ragged``."""
    count = len(paths)
    descriptors, sizes = np.full(count, -1, np.int32), np.zeros(count, np.int64)
    heads = zeros((count, _HEAD_BYTES), np.uint8)
    try:
        if not _open_all(paths.text, paths.starts, OPEN_FLAGS, descriptors, sizes, heads):
            return None
        headers = _headers(heads, sizes.tolist())
        if headers is None:
            return None
        offsets = np.array([header.offset for header in headers], np.int64)
        arrays = _allocate(headers)
        addresses = np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
        return arrays if _read_all(descriptors, offsets, sizes - offsets, addresses) else None
    finally:
        if max(descriptors.tolist()) >= 0:
            _close_all(descriptors)


def _headers(heads: NDArray[np.uint8], sizes: list[int]) -> list[NumpyHeader] | None:
    """Return the headers of plain arrays of one dtype and number of dimensions; None if a file is different."""
    known: dict[tuple[bytes, int], NumpyHeader] = {}
    headers: list[NumpyHeader] = []
    for index, size in enumerate(sizes):
        key = heads[index].tobytes(), size
        header = known.get(key)
        if header is None:
            try:
                header = known[key] = numpy_header(heads[index, : min(size, _HEAD_BYTES)], size)
            except DalifyError:
                return None
        headers.append(header)
    first = headers[0]
    for header in headers:
        is_plain = header.dtype.isnative and not (header.is_fortran and len(header.shape) > 1) and 0 not in header.shape
        if not is_plain or header.dtype != first.dtype or len(header.shape) != len(first.shape):
            return None
    return headers if sum(sizes) <= _MAX_BYTES else None


def _allocate(headers: list[NumpyHeader]) -> list[NDArray[Any]]:
    """Return uninitialized arrays; small arrays share a block of memory."""
    dtype = headers[0].native
    shapes = np.array([header.shape for header in headers], np.int64).reshape(len(headers), -1)
    offsets, total = block_offsets(shapes, dtype.itemsize)
    if total > _BLOCK_BYTES:
        return [
            file_memory(math.prod(header.shape) * dtype.itemsize).view(dtype).reshape(header.shape)
            for header in headers
        ]
    block = file_memory(total)
    return [
        block[offset : offset + math.prod(header.shape) * dtype.itemsize].view(dtype).reshape(header.shape)
        for offset, header in zip(offsets.tolist(), headers, strict=True)
    ]
