"""Reads arrays of NumPy files, or windows of the arrays, without reading other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DecodeError
from dalify.base.regular_files import OPEN_FLAGS
from dalify.formats.arrays.numpy_file import NumpyHeader, numpy_array, numpy_header
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.paths import Paths
from dalify.formats.files.positions import HAS_PREAD
from dalify.formats.files.runs import Runs, read_runs_of_files
from dalify.formats.files.whole_file import read_file

_FIRST_BYTES, _MAX_HEADER_BYTES = 1 << 12, 1 << 17
_MAX_BATCH_BYTES = 1 << 26  # reading more in one call is not faster


def read_array(path: str) -> NDArray[Any]:
    """Return the array of a file, C-contiguous and in native byte order.

    Raises:
        ReaderError: the file cannot be read.
        DecodeError: the file is not a NumPy file of numbers, or is damaged.
    """
    data = read_file(path)
    return numpy_array(data, numpy_header(data, allows_more=True))


def read_numpy_header(files: OpenFiles) -> NumpyHeader:
    """Read the header of the first of some files.

    Raises:
        ReaderError: the file cannot be read.
        DecodeError: the file is not a NumPy file of numbers, or is truncated.
    """
    size = files.size(0)
    try:
        return numpy_header(files.read(0, 0, min(size, _FIRST_BYTES)), size, allows_more=True)
    except DecodeError:
        if size <= _FIRST_BYTES:
            raise
    return numpy_header(files.read(0, 0, min(size, _MAX_HEADER_BYTES)), size, allows_more=True)


def read_window(files: OpenFiles, header: NumpyHeader, start: Sequence[int], stop: Sequence[int]) -> NDArray[Any]:
    """Return a window of the array of the first of some files, C-contiguous and in native byte order.

    Args:
        files: the same files as for the header.
        header: header of the file.
        start: first index along each axis, inside the array.
        stop: one past the last index along each axis, not before ``start``.

    Raises:
        ReaderError: the file cannot be read, or was truncated.
    """
    shape = [last - first for first, last in zip(start, stop, strict=True)]
    if 0 in shape:
        return np.empty(shape, header.native)
    data = files.read_runs(0, _runs(header, start, stop)).view(header.dtype)
    window = data.reshape(shape[::-1]).T if header.is_fortran else data.reshape(shape)
    return np.asarray(window, header.native, order="C")


def _runs(header: NumpyHeader, start: Sequence[int], stop: Sequence[int]) -> Runs:
    """Return the byte ranges of a non-empty window, in file order."""
    size = stride = header.dtype.itemsize
    first = header.offset
    outer: list[tuple[int, int]] = []
    axes = range(len(header.shape))
    for axis in axes if header.is_fortran else reversed(axes):  # the fastest-varying axis first
        count, extent = stop[axis] - start[axis], header.shape[axis]
        first += start[axis] * stride
        if size == stride:  # all faster axes are complete
            size *= count
        else:
            outer.append((count, stride))
        stride *= extent
    counts, strides = np.array(outer[::-1], np.int64).reshape(-1, 2).T.copy()
    return Runs(first, size, counts, strides)


class UniformWindows:
    """The same window of files with equal headers.

    Args:
        path: path of one of the files.
        window: function of the shape of an array, which returns start and stop of the window along each axis.

    Raises:
        DalifyError: the file cannot be read, or the window is invalid.
    """

    def __init__(self, path: str, window: Callable[[tuple[int, ...]], tuple[Sequence[int], Sequence[int]]]) -> None:
        files = OpenFiles([path])
        header = read_numpy_header(files)
        start, stop = window(header.shape)
        self._header = header
        self._start = files.read(0, 0, header.offset)
        self._shape = [last - first for first, last in zip(start, stop, strict=True)]
        is_within = all(
            0 <= first < last <= extent for first, last, extent in zip(start, stop, header.shape, strict=True)
        )
        is_plain = header.dtype.isnative and (not header.is_fortran or len(header.shape) < 2)
        self._runs = _runs(header, start, stop) if is_within and is_plain and HAS_PREAD else None

    @property
    def is_supported(self) -> bool:
        """Whether the window has its in-memory layout in the file, so that files can be read in one call."""
        return self._runs is not None

    def read(self, paths: Paths) -> NDArray[Any] | None:
        """Return the window of each file, ``[N, ...]``; None if each must be read separately."""
        runs, header = self._runs, self._header
        if runs is None or runs.total_bytes * len(paths) > _MAX_BATCH_BYTES:
            return None
        found = read_runs_of_files(paths, OPEN_FLAGS, self._start, header.file_size, runs)
        return None if found is None else found.view(header.native).reshape(len(paths), *self._shape)
