"""Read arrays from NumPy files, or windows of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, overload

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, IndexingError, option_error_text
from dalify.formats.file_list import FileEntry, FileList
from dalify.formats.identity import file_identity
from dalify.formats.numpy_file import NumpyHeader
from dalify.formats.numpy_window import AlikeWindows, read_array, read_header, read_window
from dalify.formats.open_files import OpenFiles
from dalify.formats.plain_files import plain_files
from dalify.formats.uneven_arrays import read_uneven
from dalify.kernels.convert import saturate_cast
from dalify.kernels.slice_geometry import slice_bounds
from dalify.registry import PerSample, Spec, operator

_POLICIES = ("error", "pad", "trim_to_shape")
_COORDINATES = ("start", "rel_start", "end", "rel_end", "shape", "rel_shape")
_Coordinates = tuple[tuple[str, tuple[float, ...] | None], ...]
_WHOLE: _Coordinates = tuple((name, None) for name in _COORDINATES)
_FEWEST = 2  # that are read together: one alone is read sooner by itself


class _ArrayFile(NamedTuple):
    """One file, and where headers are kept; None where they are not."""

    entry: FileEntry
    headers: dict[str, NumpyHeader] | None


class _ArrayFiles(Sequence[_ArrayFile]):
    """The files of the reader."""

    def __init__(self, files: FileList, *, keeps_headers: bool) -> None:
        self._files = files
        self._headers: dict[str, NumpyHeader] | None = {} if keeps_headers else None
        self._alike: tuple[tuple[Any, ...], AlikeWindows] | None = None
        self._are_uneven = False  # whole arrays have differed

    def __len__(self) -> int:
        return len(self._files)

    @property
    def is_remote(self) -> bool:
        """Whether files lie on another machine."""
        return self._files.is_remote

    @overload
    def __getitem__(self, index: int) -> _ArrayFile: ...
    @overload
    def __getitem__(self, index: slice) -> list[_ArrayFile]: ...
    def __getitem__(self, index: int | slice) -> _ArrayFile | list[_ArrayFile]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return _ArrayFile(self._files[index], self._headers)

    def read_many(
        self, numbers: np.ndarray[Any, Any], *window: Any
    ) -> np.ndarray[Any, Any] | list[np.ndarray[Any, Any]] | None:
        """Return the same window of files, ``[N, ...]`` or N arrays; None where each is to be read by itself.

        Args:
            numbers: of the files.
            window: arguments of ``_window`` behind the shape.
        """
        if len(numbers) < _FEWEST:
            return None
        is_whole = window[1] == _WHOLE
        if is_whole and self._are_uneven:
            return read_uneven(self._files.paths(numbers))
        alike = self._alike
        if alike is None or alike[0] != window:
            try:
                path = self._files[int(numbers[0])].path
                alike = window, AlikeWindows(path, lambda shape: _window(shape, *window))
            except DalifyError:
                return None
        paths = self._files.paths(numbers)
        found = alike[1].read(paths)
        # Where they are not alike, the next ones may be like the first of them.
        self._alike = alike if found is not None or not alike[1].can_be else None
        if found is None and is_whole:
            uneven = read_uneven(paths)
            self._are_uneven = uneven is not None
            return uneven
        return found


@operator(outputs=1, reader=True)
def numpy(
    *,
    allow_outside_root: bool = False,
    cache_header_information: bool = False,
    file_filter: str = "*.npy",
    file_list: str | None = None,
    file_root: str | None = None,
    files: list[str] | None = None,
    fill_value: float = 0.0,
    out_of_bounds_policy: str = "error",
    register_buffers: bool = True,
    rel_roi_end: PerSample[list[float]] | None = None,
    rel_roi_shape: PerSample[list[float]] | None = None,
    rel_roi_start: PerSample[list[float]] | None = None,
    roi_axes: list[int] = [],  # noqa: B006 -- signatures are schemas, nobody changes this list
    roi_end: PerSample[list[int]] | None = None,
    roi_shape: PerSample[list[int]] | None = None,
    roi_start: PerSample[list[int]] | None = None,
) -> Spec:
    """Read arrays from ``.npy`` files, whole or a window of each.

    Of a window, only the part of the file between its first and last element is read. Arrays in Fortran order and of
    foreign byte order become plain ones (DALI refuses the latter). Pickled objects are never loaded. The arrays of a
    batch must have one type and one number of dimensions.

    Args:
        allow_outside_root: paths in the list may lead out of the folder to which they are relative, and be URLs. Only
            for lists that can be trusted.
        cache_header_information: keep what the files say of their arrays; saves a small read per window.
        file_filter: pattern (``*``, ``?``, ``[abc]``) for the names of files in folders.
        file_list: a text with a path on each line, relative to `file_root`, or to the folder of the list.
        file_root: folder; its files come first, then those of its sub-folders (not deeper), each in byte order.
            Together with `file_list` or `files`: folder to which their paths are relative.
        files: paths.
        fill_value: what lies outside of an array, with ``pad``; rounded and saturated to its type.
        out_of_bounds_policy: of a window that reaches out of its array: ``error``; ``pad``: filled; ``trim_to_shape``:
            cut.
        register_buffers: taken for compatibility; without effect, as in DALI.
        rel_roi_end: where the window ends, in parts of the extent.
        rel_roi_shape: extents of the window, in parts of the extent.
        rel_roi_start: where the window begins, in parts of the extent.
        roi_axes: axes that these are for; all where empty. Negative: from the end.
        roi_end: where the window ends, in elements.
        roi_shape: extents of the window, in elements.
        roi_start: where the window begins, in elements.

    Returns:
        the array, of its own type, without layout; on the CPU.

    Raises:
        ReaderError: a file that is missing or cannot be read.
        MixedBatchError: an array of another type or number of dimensions than the first one of the batch.
        DecodeError: no NumPy file, a damaged one, or elements that are no numbers.
        ArgumentValueError: arguments that exclude each other, or another number of coordinates than of axes.
        IndexingError: an axis that is not there, or a window that reaches out of the array, with ``error``.

    Example:
        >>> patch = fn.readers.numpy(file_root="volumes", roi_start=[0, 64], roi_shape=[32, 32])  # doctest: +SKIP
    """
    if out_of_bounds_policy not in _POLICIES:
        raise ArgumentValueError(option_error_text("out_of_bounds_policy", out_of_bounds_policy, _POLICIES))
    begins = {"roi_start": roi_start, "rel_roi_start": rel_roi_start}
    endings = {"roi_end": roi_end, "rel_roi_end": rel_roi_end, "roi_shape": roi_shape, "rel_roi_shape": rel_roi_shape}
    for alternatives in (begins, endings):
        given = [name for name, value in alternatives.items() if value is not None]
        if len(given) > 1:
            raise ArgumentValueError(f"{' and '.join(given)} exclude each other.")
    return Spec(None, None, "")


@numpy.index
def _(
    allow_outside_root: bool,
    cache_header_information: bool,
    file_filter: str,
    file_list: str | None,
    file_root: str | None,
    files: Sequence[str] | None,
    **of_the_window: Any,
) -> _ArrayFiles:
    found = plain_files(file_root, file_list, files, file_filter, allow_outside_root=allow_outside_root)
    return _ArrayFiles(found, keeps_headers=cache_header_information)


@numpy.read
def _(
    file: _ArrayFile,
    *,
    fill_value: float,
    out_of_bounds_policy: str,
    roi_axes: Sequence[int],
    roi_start: np.ndarray[Any, Any] | None,
    rel_roi_start: np.ndarray[Any, Any] | None,
    roi_end: np.ndarray[Any, Any] | None,
    rel_roi_end: np.ndarray[Any, Any] | None,
    roi_shape: np.ndarray[Any, Any] | None,
    rel_roi_shape: np.ndarray[Any, Any] | None,
) -> tuple[np.ndarray[Any, Any], ...]:
    given = _coordinates(roi_start, rel_roi_start, roi_end, rel_roi_end, roi_shape, rel_roi_shape)
    if given == _WHOLE:
        return (read_array(file.entry.path),)
    files = OpenFiles([file.entry.path])
    header = None if file.headers is None else file.headers.get(file.entry.path)
    if header is None:
        header = read_header(files)
        if file.headers is not None:
            file.headers[file.entry.path] = header
    start, stop = _window(header.shape, tuple(roi_axes), given)
    inside_start = [min(max(first, 0), extent) for first, extent in zip(start, header.shape, strict=True)]
    inside_stop = [
        max(min(last, extent), first) for first, last, extent in zip(inside_start, stop, header.shape, strict=True)
    ]
    is_inside = inside_start == start and inside_stop == stop
    if not is_inside and out_of_bounds_policy == "error":
        raise IndexingError(
            f"the window from {start} to {stop} reaches out of the array of shape {list(header.shape)}.",
            hint="Write out_of_bounds_policy='pad' or 'trim_to_shape' if that is meant.",
        )
    part = read_window(files, header, inside_start, inside_stop)
    if is_inside or out_of_bounds_policy == "trim_to_shape":
        return (part,)
    fill = np.empty(1, part.dtype)
    saturate_cast(fill, np.array([fill_value], np.float32))
    padded = np.full([last - first for first, last in zip(start, stop, strict=True)], fill, part.dtype)
    if part.size:
        target = tuple(
            slice(inside - first, inside - first + count)
            for first, inside, count in zip(start, inside_start, part.shape, strict=True)
        )
        padded[target] = part
    return (padded,)


@numpy.read_many
def _(
    files: _ArrayFiles,
    numbers: np.ndarray[Any, Any],
    *,
    roi_axes: Sequence[int],
    roi_start: np.ndarray[Any, Any] | None,
    rel_roi_start: np.ndarray[Any, Any] | None,
    roi_end: np.ndarray[Any, Any] | None,
    rel_roi_end: np.ndarray[Any, Any] | None,
    roi_shape: np.ndarray[Any, Any] | None,
    rel_roi_shape: np.ndarray[Any, Any] | None,
) -> tuple[Any, ...] | None:
    given = _coordinates(roi_start, rel_roi_start, roi_end, rel_roi_end, roi_shape, rel_roi_shape)
    found = files.read_many(numbers, () if given == _WHOLE else tuple(roi_axes), given)
    return None if found is None else (found,)


def _coordinates(*values: np.ndarray[Any, Any] | None) -> _Coordinates:
    """Return coordinates of a window with their names, as ``_window`` takes them."""
    return tuple(
        [
            (name, None if value is None or not value.size else tuple(value.ravel().tolist()))
            for name, value in zip(_COORDINATES, values, strict=True)
        ]
    )


@lru_cache(maxsize=64)  # the files of a data set mostly have one shape, and one window is wanted of all
def _window(
    shape: tuple[int, ...], roi_axes: tuple[int, ...], coordinates: _Coordinates
) -> tuple[list[int], list[int]]:
    """Return where the window begins and ends along every axis of an array."""
    axes = list(roi_axes) or list(range(len(shape)))
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        raise IndexingError(f"roi_axes={axes} are not all axes of an array of {len(shape)} dimensions.")
    axes = [axis % len(shape) for axis in axes]
    if len(set(axes)) < len(axes):
        raise ArgumentValueError(f"roi_axes={list(roi_axes)} names an axis twice.")
    for name, value in coordinates:
        if value is not None and len(value) not in (1, len(axes)):
            raise ArgumentValueError(
                f"{len(value)} coordinates were given as {name} of the window; the array has {len(axes)} axes to cut.",
                hint="Name the axes: roi_axes=[0].",
            )
    start, stop = [0] * len(shape), list(shape)
    if axes:
        extents = np.array([[shape[axis] for axis in axes]], np.int64)
        given = {name: None if value is None else np.array([value]) for name, value in coordinates}
        try:
            begins, ends = slice_bounds(extents, **given, are_inputs=False)
        except DalifyError as error:
            error.sample = None  # it counts in this one sample
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
