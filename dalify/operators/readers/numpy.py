"""Read arrays from NumPy files, or windows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, IndexingError, check_option
from dalify.base.wording import counted
from dalify.data import Batch, Entries
from dalify.formats.arrays.numpy_file import NumpyHeader
from dalify.formats.arrays.numpy_window import UniformWindows, read_array, read_numpy_header, read_window
from dalify.formats.arrays.ragged_arrays import read_ragged
from dalify.formats.files.file_list import FileEntry, FileList
from dalify.formats.files.identity import file_identity
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.plain_files import plain_files
from dalify.kernels.arrays.convert import saturate_cast
from dalify.kernels.images.crop_geometry import POLICIES
from dalify.kernels.images.slice_geometry import slice_bounds
from dalify.registry import Parameters, PerSample, Spec, reader

_COORDINATES = ("start", "rel_start", "end", "rel_end", "shape", "rel_shape")
_Coordinates = tuple[tuple[str, tuple[float, ...] | None], ...]
_WHOLE: _Coordinates = tuple((name, None) for name in _COORDINATES)
_MIN_BATCH = 2  # fewer files are read one by one, which is faster


class _ArrayFile(NamedTuple):
    """One file, and the header cache of the reader; None without a cache."""

    entry: FileEntry
    headers: dict[str, NumpyHeader] | None


class _ArrayFiles(Entries[_ArrayFile]):
    """The files of the reader."""

    def __init__(self, files: FileList, *, keeps_headers: bool) -> None:
        self._files = files
        self._headers: dict[str, NumpyHeader] | None = {} if keeps_headers else None
        self._uniform: tuple[tuple[Any, ...], UniformWindows] | None = None
        self._are_ragged = False  # whether the shapes of whole arrays have differed

    def __len__(self) -> int:
        return len(self._files)

    @property
    def is_remote(self) -> bool:
        """Whether the files are on another machine."""
        return self._files.is_remote

    def _entry(self, number: int) -> _ArrayFile:
        return _ArrayFile(self._files[number], self._headers)

    def read_many(
        self, numbers: np.ndarray[Any, Any], *window: Any
    ) -> np.ndarray[Any, Any] | Batch | list[np.ndarray[Any, Any]] | None:
        """Return the same window of files, ``[N, ...]`` or N samples; None if each must be read individually.

        Args:
            numbers: indices of the files.
            window: arguments of ``_window`` after the shape.
        """
        paths = self._files.paths(numbers) if len(numbers) >= _MIN_BATCH else None
        if paths is None:
            return None
        is_whole = window[1] == _WHOLE
        if is_whole and self._are_ragged:
            return read_ragged(paths)
        uniform = self._uniform
        if uniform is None or uniform[0] != window:
            try:
                path = self._files[int(numbers[0])].path
                uniform = window, UniformWindows(path, lambda shape: _window(shape, *window))
            except DalifyError:
                return None
        found = uniform[1].read(paths)
        # If these files differ, the next ones may still match the first of them.
        self._uniform = uniform if found is not None or not uniform[1].is_supported else None
        if found is None and is_whole:
            ragged = read_ragged(paths)
            self._are_ragged = ragged is not None
            return ragged
        return found


@dataclass(slots=True)
class _Roi(Parameters):
    """The window that is read of each array.

    Attributes:
        fill_value: value outside an array, with ``pad``; rounded and saturated to its type.
        out_of_bounds_policy: for a window that extends outside its array: ``error``; ``pad``: filled;
            ``trim_to_shape``: clipped.
        rel_roi_end: end of the window, as fractions of the extents.
        rel_roi_shape: extents of the window, as fractions of the extents.
        rel_roi_start: start of the window, as fractions of the extents.
        roi_axes: axes of the window arguments; empty: all. Negative axes count from the end.
        roi_end: end of the window, in elements.
        roi_shape: extents of the window, in elements.
        roi_start: start of the window, in elements.
    """

    fill_value: float = 0.0
    out_of_bounds_policy: str = "error"
    rel_roi_end: PerSample[list[float]] | None = None
    rel_roi_shape: PerSample[list[float]] | None = None
    rel_roi_start: PerSample[list[float]] | None = None
    roi_axes: list[int] = field(default_factory=list[int])
    roi_end: PerSample[list[int]] | None = None
    roi_shape: PerSample[list[int]] | None = None
    roi_start: PerSample[list[int]] | None = None

    def check(self) -> None:
        """Raise ArgumentValueError for an unknown policy or arguments that are mutually exclusive."""
        check_option("out_of_bounds_policy", self.out_of_bounds_policy, POLICIES)
        for alternatives in (("roi_start", "rel_roi_start"), ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")):
            given = [name for name in alternatives if getattr(self, name) is not None]
            if len(given) > 1:
                raise ArgumentValueError(f"{' and '.join(given)} are mutually exclusive.")

    @property
    def coordinates(self) -> _Coordinates:
        """The coordinates of the window of one sample with their names, for ``_window``."""
        values: list[Any] = [self.roi_start, self.rel_roi_start, self.roi_end, self.rel_roi_end]
        values += [self.roi_shape, self.rel_roi_shape]
        if not [value for value in values if value is not None]:
            return _WHOLE
        return tuple(
            [
                (name, None if value is None or not value.size else tuple(value.ravel().tolist()))
                for name, value in zip(_COORDINATES, values, strict=True)
            ]
        )


@reader(outputs=1, alphabetical=True)
def numpy(
    *,
    allow_outside_root: bool = False,
    cache_header_information: bool = False,
    file_filter: str = "*.npy",
    file_list: str | None = None,
    file_root: str | None = None,
    files: list[str] | None = None,
    register_buffers: bool = True,
    window: _Roi,
) -> Spec:
    """Read arrays, or windows of arrays, from ``.npy`` files.

    For a window, only the part of the file between its first and last element is read. Arrays in Fortran order or
    non-native byte order are converted to C order and native byte order (DALI rejects the latter). Pickled objects are
    never loaded. The arrays of a batch must have the same type and number of dimensions.

    Args:
        allow_outside_root: allow paths in the list that leave the folder to which they are relative, and URLs.
            Only for trusted lists.
        cache_header_information: cache the headers of the files; saves a small read per window.
        file_filter: pattern (``*``, ``?``, ``[abc]``) for the names of files in folders.
        file_list: a text file with a path per line, relative to `file_root` or to the folder of the list.
        file_root: folder; its files come first, then the files of its subfolders (not deeper), both in byte order.
            With `file_list` or `files`: base folder of relative paths.
        files: list of paths.
        register_buffers: accepted but ignored, as in DALI.

    Returns:
        the array, of the type of the file, without a layout; on the CPU.

    Raises:
        ReaderError: a file does not exist or cannot be read.
        MixedBatchError: the type or number of dimensions of an array differs from the first one of the batch.
        DecodeError: not a NumPy file, damaged data, or elements that are not numbers.
        ArgumentValueError: mutually exclusive arguments, or different numbers of coordinates and axes.
        IndexingError: an axis does not exist, or a window extends outside the array, with ``error``.

    Example:
        >>> patch = fn.readers.numpy(file_root="volumes", roi_start=[0, 64], roi_shape=[32, 32])  # doctest: +SKIP
    """
    window.check()
    return Spec(None, None, "")


@numpy.index
def _(
    allow_outside_root: bool,
    cache_header_information: bool,
    file_filter: str,
    file_list: str | None,
    file_root: str | None,
    files: Sequence[str] | None,
    **_others: object,
) -> _ArrayFiles:
    found = plain_files(file_root, file_list, files, file_filter, allow_outside_root=allow_outside_root)
    return _ArrayFiles(found, keeps_headers=cache_header_information)


@numpy.read
def _(file: _ArrayFile, *, window: _Roi) -> tuple[np.ndarray[Any, Any], ...]:
    given = window.coordinates
    if given == _WHOLE:
        return (read_array(file.entry.path),)
    files = OpenFiles([file.entry.path])
    header = None if file.headers is None else file.headers.get(file.entry.path)
    if header is None:
        header = read_numpy_header(files)
        if file.headers is not None:
            file.headers[file.entry.path] = header
    start, stop = _window(header.shape, tuple(window.roi_axes), given)
    inside_start = [min(max(first, 0), extent) for first, extent in zip(start, header.shape, strict=True)]
    inside_stop = [
        max(min(last, extent), first) for first, last, extent in zip(inside_start, stop, header.shape, strict=True)
    ]
    is_inside = inside_start == start and inside_stop == stop
    if not is_inside and window.out_of_bounds_policy == "error":
        raise IndexingError(
            f"the window from {start} to {stop} extends outside the array of shape {list(header.shape)}.",
            hint="Pass out_of_bounds_policy='pad' or 'trim_to_shape' if that is intended.",
        )
    part = read_window(files, header, inside_start, inside_stop)
    if is_inside or window.out_of_bounds_policy == "trim_to_shape":
        return (part,)
    fill = np.empty(1, part.dtype)
    saturate_cast(fill, np.array([window.fill_value], np.float32))
    padded = np.full([last - first for first, last in zip(start, stop, strict=True)], fill, part.dtype)
    if part.size:
        target = tuple(
            slice(inside - first, inside - first + count)
            for first, inside, count in zip(start, inside_start, part.shape, strict=True)
        )
        padded[target] = part
    return (padded,)


@numpy.read_many
def _(files: _ArrayFiles, numbers: np.ndarray[Any, Any], *, window: _Roi) -> tuple[Any, ...] | None:
    given = window.coordinates
    found = files.read_many(numbers, () if given == _WHOLE else tuple(window.roi_axes), given)
    return None if found is None else (found,)


@lru_cache(maxsize=64)  # files of a dataset usually have one shape and use one window
def _window(
    shape: tuple[int, ...], roi_axes: tuple[int, ...], coordinates: _Coordinates
) -> tuple[list[int], list[int]]:
    """Return start and end of the window along every axis of an array."""
    axes = list(roi_axes) or list(range(len(shape)))
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        raise IndexingError(f"roi_axes={axes} is out of range for an array with {counted(len(shape), 'dimension')}.")
    axes = [axis % len(shape) for axis in axes]
    if len(set(axes)) < len(axes):
        raise ArgumentValueError(f"roi_axes must not contain an axis twice; got {list(roi_axes)}.")
    for name, value in coordinates:
        if value is not None and len(value) not in (1, len(axes)):
            raise ArgumentValueError(
                f"{name} of the window must have one value per axis, {len(axes)}; got {len(value)}.",
                hint="Specify the axes: roi_axes=[0].",
            )
    start, stop = [0] * len(shape), list(shape)
    if axes:
        extents = np.array([[shape[axis] for axis in axes]], np.int64)
        given = {name: None if value is None else np.array([value]) for name, value in coordinates}
        try:
            begins, ends = slice_bounds(extents, **given, are_inputs=False)
        except DalifyError as error:
            error.sample = None  # relative to this one sample; the caller sets it
            raise
        for axis, begin, end in zip(axes, begins[0].tolist(), ends[0].tolist(), strict=True):
            start[axis], stop[axis] = begin, end
    return start, stop


@numpy.identity()
def _(file: _ArrayFile) -> tuple[str, str]:
    return file_identity(file.entry.path)


@numpy.origin
def _(file: _ArrayFile) -> str:
    return file.entry.origin
