"""Decode a window of images, specified by anchor and shape or by start and end."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, LayoutError, ShapeError
from dalify.codecs.decode_batch import decoder_rule, window_shapes
from dalify.data import Batch
from dalify.kernels.arrays.axes import check_distinct, check_distinct_rows
from dalify.kernels.images.slice_geometry import slice_bounds
from dalify.parameter_groups.decoding import DecodeOptions, HardwareDecoder, attach_decoding, decode_windows
from dalify.parameter_groups.slicing import SliceCoordinates
from dalify.registry import PerSample, Spec, operator


@operator(mixed=True)
def image_slice(
    encoded: Spec,
    anchor: Spec | None = None,
    shape_input: Spec | None = None,
    /,
    *,
    coordinates: SliceCoordinates,
    axes: PerSample[list[int]] | None = None,
    axis_names: str | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    options: DecodeOptions,
    hardware: HardwareDecoder,
) -> Spec:
    """Decode a window of images of any common format.

    The window is specified either by two inputs, anchor and shape, or by arguments: one of ``start``, ``rel_start``,
    and one of ``end``, ``rel_end``, ``shape``, ``rel_shape``. Coordinates are in the order of ``axis_names``: by
    default x first. Start and end are rounded to whole pixels, half up. The rows of a JPEG below the window are not
    decoded.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.
        anchor: start of the window: in pixels if of an integer type, otherwise relative to the extents (see
            ``normalized_anchor``).
        shape_input: extents of the window, in pixels or relative (see ``normalized_shape``).
        start: start of the window in pixels; by default 0.
        rel_start: start of the window as fractions of the image extents.
        end: end of the window (exclusive) in pixels; by default the end of the image.
        rel_end: end of the window as fractions of the image extents.
        shape: extents of the window in pixels.
        rel_shape: extents of the window as fractions of the image extents.
        axes: axes of the coordinates, 0 (height) and 1 (width), instead of ``axis_names``.
        axis_names: letters of the axes; by default "WH".
        normalized_anchor: whether a floating-point ``anchor`` is relative to the extents; False: in pixels.
        normalized_shape: whether a floating-point ``shape_input`` is relative to the extents; False: in pixels.

    Returns:
        ``[height, width, channels]``, layout HWC; the same pixels as that window of the result of ``decoders.image``.

    Raises:
        DecodeError: not an image, damaged or truncated data, or an unsupported format; names the file.
        IndexingError: the window is not inside the image.
        ArgumentValueError: mutually exclusive arguments, or an end before the start.
        LayoutError: an axis other than H and W.

    Example:
        >>> images = fn.decoders.image_slice(encoded, rel_start=[0.25, 0.25], rel_shape=[0.5, 0.5])  # doctest: +SKIP
    """
    hint = "For example rel_start=[0.25, 0.25], rel_shape=[0.5, 0.5]."
    coordinates.check(anchor, shape_input, what="the window", hint=hint)
    if axes is not None and axis_names is not None:
        raise ArgumentValueError("axes and axis_names are mutually exclusive.")
    if axis_names is not None and not (axis_names and set(axis_names) <= set("HW")):
        raise LayoutError(f"axis_names must consist of H and W; got {axis_names!r}.")
    check_distinct(axis_names or "")
    return decoder_rule(encoded, options.dtype)


@image_slice.prepare
def _(
    encoded: Batch,
    anchor: Batch | None,
    shape_input: Batch | None,
    *,
    coordinates: SliceCoordinates,
    axes: np.ndarray | None,
    axis_names: str | None,
    normalized_anchor: bool,
    normalized_shape: bool,
    options: DecodeOptions,
    count: int,
) -> dict[str, Any]:
    shapes, headers = options.shapes(encoded)
    if axes is None:
        axes = _named_axes(axis_names or "WH", count)
    elif (axes < -2).any() or (axes > 1).any():
        raise LayoutError(f"axes must be 0 (height) and 1 (width); got {axes.tolist()[0]}.")
    else:
        axes = axes % 2
        check_distinct_rows(axes)
    given = coordinates.values(
        anchor, shape_input, normalized_anchor=normalized_anchor, normalized_shape=normalized_shape
    )
    for name, values in given.items():
        if values is None or values.shape == axes.shape:
            continue
        if anchor is None and values.shape[1] == 1:  # one number for all axes
            given[name] = values.repeat(axes.shape[1], 1)
        else:
            raise ShapeError(
                f"there must be one coordinate for each of the {axes.shape[1]} axes; got {values.shape[1:]}."
            )
    along = np.empty(axes.shape)
    _take_extents(along, shapes, axes)
    first, last = slice_bounds(along, **given, are_inputs=anchor is not None)
    windows = np.empty((count, 4), np.int64)
    _fill_windows(windows, shapes, axes, first, last)
    return {"windows": windows, "out_shapes": window_shapes(windows, shapes), "headers": headers}


# This function and the next keep the GIL: they take less time than releasing it.
@njit(cache=True)
def _take_extents(along, shapes, axes):
    """Set floats [N, k] to the extents of the images along the axes of the coordinates, [N, k]."""
    for n in range(axes.shape[0]):
        for k in range(axes.shape[1]):
            along[n, k] = shapes[n, axes[n, k]]


@njit(cache=True)
def _fill_windows(windows, shapes, axes, first, last):
    """Set windows, int64 [N, 4], to their start and extents; axes without coordinates are whole."""
    for n in range(axes.shape[0]):
        for axis in range(2):
            windows[n, axis], windows[n, 2 + axis] = 0, shapes[n, axis]
        for k in range(axes.shape[1]):
            axis = axes[n, k]
            windows[n, axis], windows[n, 2 + axis] = first[n, k], last[n, k] - first[n, k]


@lru_cache(64)
def _named_axes(axis_names: str, count: int) -> np.ndarray:
    """Return the axes of the coordinates of `count` samples, ``[N, k]``."""
    return np.tile(["HW".index(letter) for letter in axis_names], (count, 1))


attach_decoding(image_slice, decode_windows)
