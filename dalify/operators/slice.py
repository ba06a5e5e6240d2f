"""Cut out a part of any data, given by coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, option_error_text
from dalify.data import Batch, stack_samples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.crop_geometry import FILLING, POLICIES, check_fill_values, trimmed
from dalify.kernels.gather import BORDERS, channel_fill, copy_bordered_window, copy_window_torch, copy_windows
from dalify.kernels.slice_geometry import slice_bounds
from dalify.registry import PerSample, Spec, operator

_POLICIES = (*POLICIES, *BORDERS)


@operator
def slice(
    data: Spec,
    anchor: Spec | None = None,
    shape_input: Spec | None = None,
    /,
    *,
    axes: PerSample[list[int]] | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | None = None,
    end: PerSample[list[int]] | None = None,
    fill_values: list[float] = [0.0],  # noqa: B006 -- signatures are schemas, nobody changes this list
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    out_of_bounds_policy: str = "error",
    rel_end: PerSample[list[float]] | None = None,
    rel_shape: PerSample[list[float]] | None = None,
    rel_start: PerSample[list[float]] | None = None,
    shape: PerSample[list[int]] | None = None,
    start: PerSample[list[int]] | None = None,
) -> Spec:
    """Cut out a part of each sample: from a begin to an end, or of a shape.

    Coordinates are given for the axes in `axis_names` or `axes` and in their order, **x before y by default**. A part
    begins at round(begin) and ends at round(end), halves rounded away from zero. Python's ``x[2:4]`` is simpler where
    it does.

    Args:
        data: anything.
        anchor: 1-D input: where the part begins. Integers are elements; floats are parts of the extent (0..1), or
            elements without `normalized_anchor`.
        shape_input: 1-D input: extents of the part, with `anchor`.
        axes: axes that the coordinates are for; negative: from the end. where the data have no layout, those of an
            image HW, HWC or a volume DHWC.
        axis_names: letters of these axes; "WH" by default.
        dtype: element type of the result; floats are cut off and saturated in integers. That of `data` by default.
        end: where the part ends, in elements.
        fill_values: values outside the data, one for all channels or one each; with ``pad``. Integers are truncated
            and saturated.
        normalized_anchor: a float `anchor` is in parts of the extent.
        normalized_shape: a float `shape_input` is in parts of the extent.
        out_of_bounds_policy: ``error``: the part has to be inside; ``pad`` (or ``constant``): filled with
            `fill_values`; ``trim_to_shape``: cut; ``edge`` (``clamp``): the border repeats; ``reflect``
            (``reflect_1001``): mirrored with the border; ``reflect_101``: mirrored without it; ``wrap``: from the
            other end.
        rel_end: where the part ends, in parts of the extent.
        rel_shape: extents of the part, in parts of the extent.
        rel_start: where the part begins, in parts of the extent.
        shape: extents of the part, in elements.
        start: where the part begins, in elements.

    Returns:
        Same layout, extents of the part.

    Raises:
        ArgumentValueError: contradicting arguments, or an end before the begin.
        IndexingError: the part reaches out of the data, and the policy is ``error``; or an axis that is not there.
        LayoutError: a letter that is not in the layout.

    Example:
        >>> images = fn.slice(images, rel_start=[0.25, 0.25], rel_shape=[0.5, 0.5])  # doctest: +SKIP
    """
    if out_of_bounds_policy not in _POLICIES:
        raise ArgumentValueError(option_error_text("out_of_bounds_policy", out_of_bounds_policy, _POLICIES))
    _check_coordinates(anchor, shape_input, start, rel_start, end, rel_end, shape, rel_shape)
    if axis_names and not set(axis_names) <= set(_letters(data)):
        raise LayoutError(
            f"axis_names {axis_names!r} are not all in the layout of the data, {data.layout!r}.",
            hint="Name axes that are there, or give axes=[0] instead.",
        )
    return data.replace(dtype=data.dtype if dtype is None else dtype)


def _letters(spec: Spec) -> str:
    """Return the layout; of data without one, that of an image or a volume of as many dimensions."""
    return spec.layout or {2: "HW", 3: "HWC", 4: "DHWC"}.get(spec.ndim or 0, "")


def _check_coordinates(anchor, shape_input, start, rel_start, end, rel_end, shape, rel_shape) -> None:
    if (anchor is None) != (shape_input is None):
        raise ArgumentValueError("the inputs anchor and shape belong together; one of them is missing.")
    begins = [name for name, value in (("start", start), ("rel_start", rel_start)) if value is not None]
    ends = {"end": end, "rel_end": rel_end, "shape": shape, "rel_shape": rel_shape}
    endings = [name for name, value in ends.items() if value is not None]
    if anchor is not None and begins + endings:
        raise ArgumentValueError(f"{', '.join(begins + endings)} cannot be used with the inputs anchor and shape.")
    if anchor is None and not begins + endings:
        raise ArgumentValueError(
            "where to cut is not told.", hint="For example slice(x, start=[0, 0], shape=[10, 10], axis_names='HW')."
        )
    for names in (begins, endings):
        if len(names) > 1:
            raise ArgumentValueError(f"{' and '.join(names)} exclude each other.")


def _by_kind(batch: Batch, is_normalized: bool) -> tuple[Any, Any]:
    """Return coordinates of an input as (elements, None) or (None, parts of the extent)."""
    values = batch.dense if batch.dense is not None else stack_samples(batch.samples)
    values = np.asarray(values if isinstance(values, np.ndarray) else values.cpu())
    values = values.reshape(len(values), -1)  # a single number serves for a single axis
    return (None, values) if batch.dtype.is_float and is_normalized else (values, None)


def _axes(spec: Spec, axes: np.ndarray | None, axis_names: str | None, count: int) -> np.ndarray:
    """Return the axes of the coordinates, [N, k]."""
    letters = _letters(spec)
    if axis_names == "":
        return np.empty((count, 0), np.int64)
    if axis_names or (axes is None and letters):
        named = spec.replace(layout=letters)
        return np.tile([named.axis(letter) for letter in axis_names or "WH"], (count, 1))
    if axes is None:
        axes = np.tile([1, 0], (count, 1))
    assert spec.ndim is not None, "dalify bug: data without a number of dimensions"
    if (axes < -spec.ndim).any() or (axes >= spec.ndim).any():
        raise IndexingError(f"axes {axes[0].tolist()} are not all axes of data of {spec.ndim} dimensions.")
    return axes % spec.ndim


@slice.prepare
def _(
    data,
    anchor,
    shape_input,
    *,
    spec,
    axes,
    axis_names,
    start,
    rel_start,
    end,
    rel_end,
    shape,
    rel_shape,
    normalized_anchor,
    normalized_shape,
    out_of_bounds_policy,
    count,
):
    _check_coordinates(anchor, shape_input, start, rel_start, end, rel_end, shape, rel_shape)
    extents = data.shape_array()
    places = _axes(spec, axes, axis_names, count)
    if anchor is not None:
        if anchor.dtype.is_float != shape_input.dtype.is_float:
            raise ArgumentValueError("the inputs anchor and shape must both be integers, or both floats.")
        start, rel_start = _by_kind(anchor, normalized_anchor)
        shape, rel_shape = _by_kind(shape_input, normalized_shape)
    for values in (start, rel_start, end, rel_end, shape, rel_shape):
        given = 1 if values is None else len(values[0])
        if given not in (1, places.shape[1]):
            raise ArgumentValueError(
                f"{given} coordinates were given for {places.shape[1]} axes.",
                hint="Name the axes: axis_names='HW' or axes=[0].",
            )
    begins, ends = slice_bounds(
        np.take_along_axis(extents, places, axis=1),
        start=start,
        rel_start=rel_start,
        end=end,
        rel_end=rel_end,
        shape=shape,
        rel_shape=rel_shape,
        are_inputs=anchor is not None,
    )
    anchors, windows = np.zeros_like(extents), extents.copy()
    np.put_along_axis(anchors, places, begins, axis=1)
    np.put_along_axis(windows, places, ends - begins, axis=1)
    outside = (anchors < 0) | (anchors + windows > extents)
    if outside.any() and out_of_bounds_policy == "error":
        n, axis = np.argwhere(outside)[0].tolist()
        raise IndexingError(
            f"the part [{anchors[n, axis]}, {anchors[n, axis] + windows[n, axis]}) of axis {axis} reaches out of its "
            f"{extents[n, axis]} elements.",
            hint="Write out_of_bounds_policy='pad' or 'trim_to_shape' if that is meant.",
            sample=n,
        )
    if out_of_bounds_policy == "trim_to_shape":
        anchors, windows = trimmed(anchors, windows, extents)
    return {"anchors": anchors, "out_shapes": windows}


@slice.cpu_samples
@slice.gpu
def _(
    out,
    data,
    anchor=None,
    shape_input=None,
    *,
    spec,
    out_spec,
    anchors,
    fill_values,
    out_of_bounds_policy,
):
    if out_of_bounds_policy in BORDERS:
        copy_bordered_window(out, data, anchors, out_of_bounds_policy)
        return
    layout = spec.layout or "?" * (spec.ndim - 1) + "C"  # the last axis has the channels where none is named so
    is_chunk = isinstance(data, Samples)
    if out_of_bounds_policy not in FILLING:
        fill_values = fill_values[:1]  # without effect
    elif len(fill_values) > 1:
        axis = spec.replace(layout=layout).axis("C")
        check_fill_values(fill_values, data.shapes[:, axis] if is_chunk else data.shape[1 + axis])
    copy: Any = copy_windows if is_chunk else copy_window_torch
    copy(out, data, anchors, fill=channel_fill(fill_values, layout, is_float=out_spec.dtype.is_float))
