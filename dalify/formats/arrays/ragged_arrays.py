"""Reads NumPy files of different shapes in a few compiled calls.

`runs` reads files of equal shape without parsing their headers. Here all headers are read first, equal headers are
parsed once, and then all elements are read into one block of memory.
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
from dalify.base.small_arrays import zeros
from dalify.data.batch import Batch, block_offsets
from dalify.data.dtypes import from_numpy
from dalify.formats.arrays.numpy_file import NumpyHeader, numpy_header
from dalify.formats.files.compiled_files import close_file, file_size, open_file, read_part
from dalify.formats.files.memory import LARGE_BYTES, file_memory
from dalify.formats.files.paths import Paths
from dalify.formats.files.positions import HAS_PREAD, OPEN_FLAGS

__all__ = ["read_ragged"]

_HEAD_BYTES = 128  # size of the header that numpy.save writes for arrays of a few dimensions
_FILES_AT_ONCE = 64  # maximum number of open files
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


def read_ragged(paths: Paths) -> Batch | list[NDArray[Any]] | None:
    """Return the arrays of files. The GIL is released during the read.

    Args:
        paths: paths of N > 0 files.

    Returns:
        N samples with the same dtype and number of dimensions: a ragged batch, or C-contiguous arrays if there are many
        files or elements; None if a file cannot be read, is damaged, large or empty, or its byte order or axes have to
        be converted: then each file must be read separately.
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
    count = len(paths)
    descriptors, sizes = np.full(count, -1, np.int32), np.zeros(count, np.int64)
    heads = zeros((count, _HEAD_BYTES), np.uint8)
    try:
        if not _open_all(paths.text, paths.starts, OPEN_FLAGS, descriptors, sizes, heads):
            return None
        headers = _headers(heads.tobytes(), sizes.tolist())
        if headers is None:
            return None
        dtype = headers[0].native
        shapes = np.array([header.shape for header in headers], np.int64).reshape(count, -1)
        starts = np.array([header.offset for header in headers], np.int64)
        offsets, total = block_offsets(shapes, dtype.itemsize)
        if total <= LARGE_BYTES:
            block = file_memory(total)
            arrays = Batch(None, None, dtype=from_numpy(dtype), ragged=(block, offsets, shapes))
            addresses = offsets + block.__array_interface__["data"][0]
        else:
            arrays = [
                file_memory(math.prod(header.shape) * dtype.itemsize).view(dtype).reshape(header.shape)
                for header in headers
            ]
            addresses = np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
        return arrays if _read_all(descriptors, starts, sizes - starts, addresses) else None
    finally:
        if max(descriptors.tolist()) >= 0:
            _close_all(descriptors)


def _headers(heads: bytes, sizes: list[int]) -> list[NumpyHeader] | None:
    """Return the headers of plain arrays of one dtype and number of dimensions; None if a file is different.

    Args:
        heads: the first `_HEAD_BYTES` of each file.
        sizes: sizes of the files in bytes.
    """
    limits = current()
    if max(sizes) > limits.max_sample_bytes or sum(sizes) > _MAX_BYTES:
        return None
    headers: list[NumpyHeader] = []
    for index, size in enumerate(sizes):
        header = _plain_header(heads[index * _HEAD_BYTES : (index + 1) * _HEAD_BYTES], size)
        if header is None:
            return None
        headers.append(header)
    kinds = {(header.native, len(header.shape)) for header in headers}
    return headers if len(kinds) == 1 and len(headers[0].shape) <= limits.max_dimensions else None


@lru_cache(maxsize=1024)  # the files of a data set usually have equal headers
def _plain_header(head: bytes, size: int) -> NumpyHeader | None:
    """Return the header of an array in native byte order and C order; None if the file is different or damaged."""
    try:
        header = numpy_header(np.frombuffer(head, np.uint8)[:size], size)
    except DalifyError:
        return None
    is_plain = header.dtype.isnative and not (header.is_fortran and len(header.shape) > 1) and 0 not in header.shape
    return header if is_plain else None
