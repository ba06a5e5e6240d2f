"""Arrays of NumPy files, or windows of them, without reading more than the rows that are asked for.

Alone because a window is cut from the file itself: a patch of a large volume costs what the patch is large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DecodeError
from dalify.formats.numpy_file import NumpyHeader, numpy_array, numpy_header
from dalify.formats.open_files import OpenFiles
from dalify.formats.positions import HAS_POSITIONS, OPEN_FLAGS
from dalify.formats.runs import Runs, read_alike
from dalify.formats.whole_file import read_file

__all__ = ["AlikeWindows", "read_array", "read_header", "read_window"]

_FIRST_BYTES, _MOST_BYTES = 1 << 12, 1 << 17
_MOST_TOGETHER_BYTES = 1 << 26  # above, nothing is gained


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

    Args:
        files: as opened for the header.
        header: of the file.
        start: first index along each axis, inside the array.
        stop: one past the last index along each axis, not before ``start``.

    Raises:
        ReaderError: the file cannot be read, or has become shorter.
    """
    shape = [last - first for first, last in zip(start, stop, strict=True)]
    if 0 in shape:
        return np.empty(shape, header.native)
    data = files.read_runs(0, _runs(header, start, stop)).view(header.dtype)
    window = data.reshape(shape[::-1]).T if header.is_fortran else data.reshape(shape)
    return np.asarray(window, header.native, order="C")


def _runs(header: NumpyHeader, start: Sequence[int], stop: Sequence[int]) -> Runs:
    """Return where a window that is not empty lies in the file, in the order of the file."""
    size = stride = header.dtype.itemsize
    first = header.offset
    outer: list[tuple[int, int]] = []
    axes = range(len(header.shape))
    for axis in axes if header.is_fortran else reversed(axes):  # the one that varies fastest is the first
        count, extent = stop[axis] - start[axis], header.shape[axis]
        first += start[axis] * stride
        if size == stride:  # all that varies faster is wanted whole
            size *= count
        else:
            outer.append((count, stride))
        stride *= extent
    counts, strides = np.array(outer[::-1], np.int64).reshape(-1, 2).T.copy()
    return Runs(first, size, counts, strides)


class AlikeWindows:
    """One window of files that are alike, as those of a data set mostly are: type, shape, and what else they say.

    Args:
        path: of one of them.
        window: from the shape of an array to where the window begins and ends along each axis.

    Raises:
        DalifyError: the file cannot be read, or has no such window.
    """

    def __init__(self, path: str, window: Callable[[tuple[int, ...]], tuple[Sequence[int], Sequence[int]]]) -> None:
        files = OpenFiles([path])
        header = read_header(files)
        start, stop = window(header.shape)
        self._header = header
        self._start = files.read(0, 0, header.offset)
        self._shape = [last - first for first, last in zip(start, stop, strict=True)]
        is_within = all(
            0 <= first < last <= extent for first, last, extent in zip(start, stop, header.shape, strict=True)
        )
        is_plain = header.dtype.isnative and (not header.is_fortran or len(header.shape) < 2)
        self._runs = _runs(header, start, stop) if is_within and is_plain and HAS_POSITIONS else None

    @property
    def can_be(self) -> bool:
        """Whether the window lies in the file as in memory, so that files that are alike can be read together."""
        return self._runs is not None

    def read(self, paths: list[bytes]) -> NDArray[Any] | None:
        """Return the window of each file, ``[N, ...]``; None where each is to be read by itself."""
        runs, header = self._runs, self._header
        if runs is None or runs.total_bytes * len(paths) > _MOST_TOGETHER_BYTES:
            return None
        found = read_alike(paths, OPEN_FLAGS, self._start, header.file_size, runs)
        return None if found is None else found.view(header.native).reshape(len(paths), *self._shape)
