"""Slice data by coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, check_option
from dalify.base.small_arrays import flat_indices
from dalify.base.wording import counted
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.axes import check_distinct, check_distinct_rows
from dalify.kernels.arrays.gather import BORDERS, channel_fill, copy_bordered_window, copy_windows
from dalify.kernels.arrays.windows_torch import window_samples_torch
from dalify.kernels.images.crop_geometry import FILLING, POLICIES, check_fill_values, trimmed
from dalify.kernels.images.frames import default_layout
from dalify.kernels.images.slice_geometry import slice_bounds, whole_windows
from dalify.parameter_groups.slicing import SliceCoordinates
from dalify.registry import AnySamples, PerSample, Spec, operator

_POLICIES = (*POLICIES, *BORDERS)
_BY_INPUTS = ("axes", "normalized_anchor", "normalized_shape")


@operator(alphabetical=True)
def slice(
    data: Spec,
    anchor: Spec | None = None,
    shape_input: Spec | None = None,
    /,
    *,
    axes: PerSample[list[int]] | None = None,
    axis_names: str | None = None,
    coordinates: SliceCoordinates,
    dtype: DALIDataType | None = None,
    fill_values: list[float] = [0.0],  # noqa: B006 -- the signature is the schema; the list is never mutated
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    out_of_bounds_policy: str = "error",
) -> Spec:
    """Extract a slice of each sample, from start to end or by start and shape.

    Coordinates are in the order of `axis_names` or `axes`, **by default x before y**. A slice extends from round(start)
    to round(end), rounding half away from zero. In simple cases, Python's ``x[2:4]`` does the same.

    Args:
        data: any data.
        anchor: 1-D input: start of the slice. Integers are in elements; floats are fractions of the extents, or in
            elements without `normalized_anchor`.
        shape_input: 1-D input: extents of the slice, with `anchor`.
        axes: axes of the coordinates; negative axes count from the end; an empty list is all axes. By default the axes
            of `axis_names`.
        axis_names: axes of the coordinates as letters, by default "WH"; "" is all axes. Data without a layout is taken
            as HW, HWC or DHWC.
        dtype: element type of the result, by default the type of `data`; floats are truncated and saturated for
            integers.
        fill_values: values outside the data, one for all channels or one each; with ``pad``. In integer types
            fractions are truncated, and values out of range keep their lowest bits: -1 is 255 in uint8.
        normalized_anchor: a floating-point `anchor` is relative to the extents.
        normalized_shape: a floating-point `shape_input` is relative to the extents.
        out_of_bounds_policy: ``error``: the slice must be inside; ``pad`` (or ``constant``): the outside is
            filled with `fill_values`; ``trim_to_shape``: the slice is clipped; ``edge`` (``clamp``): the border is
            replicated; ``reflect`` (``reflect_1001``): mirrored including the border; ``reflect_101``: mirrored
            without it; ``wrap``: periodic.

    Returns:
        Same layout, extents of the slice.

    Raises:
        ArgumentValueError: contradictory arguments, or an end before the start.
        IndexingError: the slice extends outside the data and the policy is ``error``, or an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> images = fn.slice(images, rel_start=[0.25, 0.25], rel_shape=[0.5, 0.5])  # doctest: +SKIP
    """
    check_option("out_of_bounds_policy", out_of_bounds_policy, _POLICIES)
    hint = "For example slice(x, start=[0, 0], shape=[10, 10], axis_names='HW')."
    coordinates.check(anchor, shape_input, what="the slice", hint=hint)
    if axes is not None and axis_names is not None:
        raise ArgumentValueError("axes and axis_names are mutually exclusive.")
    if axis_names and not set(axis_names) <= set(default_layout(data)):
        raise LayoutError(
            f"axis_names {axis_names!r} must all be in the layout of the data, {data.layout!r}.",
            hint="Use letters of the layout, or specify axes=[0] instead.",
        )
    check_distinct(axis_names or "")
    return data.replace(dtype=data.dtype if dtype is None else dtype)


def _axes(spec: Spec, axes: np.ndarray | None, axis_names: str | None, count: int) -> np.ndarray:
    """Return the axes of the coordinates, [N, k]."""
    assert spec.ndim is not None, "dalify bug: data without a number of dimensions"
    letters = default_layout(spec)
    if axis_names == "" or (axes is not None and not axes.size):
        return _repeated(tuple(range(spec.ndim)), count)
    if axes is None:
        if axis_names is None and not set("WH") <= set(letters):
            what = f"the layout {letters!r}" if letters else counted(spec.ndim, "dimension")
            raise LayoutError(
                f"by default the coordinates refer to the axes W and H, but the data has {what}.",
                hint="Specify the axes of the coordinates, for example axes=[0].",
            )
        named = spec.replace(layout=letters)
        return _repeated(tuple([named.axis(letter) for letter in axis_names or "WH"]), count)
    if (axes < -spec.ndim).any() or (axes >= spec.ndim).any():
        raise IndexingError(
            f"axes {axes[0].tolist()} are out of range for data with {counted(spec.ndim, 'dimension')}."
        )
    axes = axes % spec.ndim
    check_distinct_rows(axes)
    return axes


@lru_cache(64)
def _repeated(axes: tuple[int, ...], count: int) -> np.ndarray:
    return np.tile(axes, (count, 1))


@slice.geometry_unless("anchor", "shape_input")
def slice_windows(
    data: Batch,
    anchor: Batch | None,
    shape_input: Batch | None,
    *,
    spec: Spec,
    axes: np.ndarray | None,
    axis_names: str | None = None,
    coordinates: SliceCoordinates,
    normalized_anchor: bool,
    normalized_shape: bool,
    out_of_bounds_policy: str = "error",
    count: int,
) -> dict[str, Any]:
    """Return start and extents of the slices of a chunk; see `slice` for the arguments.

    Raises:
        ArgumentValueError: coordinates that are not numbers, do not match the axes, or end before they start.
        IndexingError: a slice extends outside the data, or an axis does not exist.
    """
    found = None if anchor is None or shape_input is None else _whole_windows(data, anchor, shape_input, axes)
    if found is not None:
        return {"starts": found[0], "out_shapes": found[1]}
    extents = data.shape_array()
    places = _axes(spec, axes, axis_names, count)
    if anchor is not None and shape_input is not None and anchor.dtype.is_float != shape_input.dtype.is_float:
        raise ArgumentValueError("the inputs anchor and shape must both be integers, or both floats.")
    given = coordinates.values(
        anchor, shape_input, normalized_anchor=normalized_anchor, normalized_shape=normalized_shape
    )
    for values in given.values():
        number = 1 if values is None else len(values[0])
        if number not in (1, places.shape[1]):
            raise ArgumentValueError(
                f"the number of coordinates must match the {places.shape[1]} axes; got {number}.",
                hint="Specify the axes: axis_names='HW' or axes=[0].",
            )
    at = flat_indices(places, extents.shape[1])
    along = extents.reshape(-1)[at].reshape(places.shape)
    first, last = slice_bounds(along, **given, are_inputs=anchor is not None)
    found = whole_windows(extents, places, first, last - first)
    if found is not None:
        return {"starts": found[0], "out_shapes": found[1]}
    starts, windows = np.zeros_like(extents), extents.copy()
    starts.reshape(-1)[at], windows.reshape(-1)[at] = first.reshape(-1), (last - first).reshape(-1)
    outside = (starts < 0) | (starts + windows > extents)
    if outside.any() and out_of_bounds_policy == "error":
        n, axis = np.argwhere(outside)[0].tolist()
        raise IndexingError(
            f"the slice [{starts[n, axis]}, {starts[n, axis] + windows[n, axis]}) of axis {axis} extends outside its "
            f"{counted(extents[n, axis], 'element')}.",
            hint="Pass out_of_bounds_policy='pad' or 'trim_to_shape' if that is intended.",
            sample=n,
        )
    if out_of_bounds_policy == "trim_to_shape":
        starts, windows = trimmed(starts, windows, extents)
    return {"starts": starts, "out_shapes": windows}


def _whole_windows(data: Batch, anchor: Batch, shape_input: Batch, axes: np.ndarray | None) -> Any:
    """Return start and extents of slices by integers along `axes`, if all are inside the data; None for other cases."""
    start, length = anchor.dense, shape_input.dense
    if data.device != "cpu" or axes is None or start is None or length is None:
        return None
    if not (start.dtype.kind in "iu" and length.dtype.kind in "iu" and start.size == length.size == axes.size):
        return None
    return whole_windows(data.shape_array(), axes, start.reshape(axes.shape), length.reshape(axes.shape))


@slice.cpu_samples
@slice.gpu_samples
def _(
    out: AnySamples,
    data: AnySamples,
    anchor: AnySamples | None = None,
    shape_input: AnySamples | None = None,
    *,
    spec: Spec,
    out_spec: Spec,
    starts: Any,
    fill_values: tuple[float, ...],
    out_of_bounds_policy: str,
) -> None:
    if out_of_bounds_policy in BORDERS:
        copy_bordered_window(out, data, starts, out_of_bounds_policy)
        return
    layout = spec.layout or "?" * ((spec.ndim or 1) - 1) + "C"  # without a letter C, the last axis has the channels
    if out_of_bounds_policy not in FILLING:
        fill_values = fill_values[:1]  # ignored
    elif len(fill_values) > 1:
        axis = spec.replace(layout=layout).axis("C")
        check_fill_values(fill_values, data.shapes[:, axis])
    copy: Any = copy_windows if isinstance(data, Samples) else window_samples_torch
    copy(out, data, starts, fill_values=channel_fill(fill_values, layout, out_spec.dtype))


@slice.before(
    "preemphasis_filter",
    "merges",
    into="_slice_preemphasis",
    takes=("border", "dtype", "preemph_coeff"),
    keeps=_BY_INPUTS,
)
def _(slice: Mapping[str, Any], preemphasis: Mapping[str, Any], source: Spec, device: str) -> bool:
    """Return whether inputs specify slices of data with one dimension and a known type, which the rule has checked."""
    return device == "cpu" and source.ndim == 1 and source.dtype is not None and set(slice) <= set(_BY_INPUTS)
