"""Resize data of any dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, LayoutError, ShapeError, option_error_text
from dalify.data.dtypes import DALIDataType, DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.crop_geometry import first_of_group
from dalify.kernels.resample import resample
from dalify.kernels.resample_torch import resample_torch
from dalify.kernels.resize_geometry import MODES, ROUNDINGS, ResizeGeometry, for_each_axis, tensor_geometry
from dalify.registry import VARIES, PerSample, Shaping, Spec, operator

_MOST_AXES = 3


@operator
def tensor_resize(
    x: Spec,
    /,
    *,
    alignment: PerSample[list[float]] = [0.5],  # noqa: B006 -- signatures are schemas, nobody changes this list
    antialias: bool = True,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | None = None,
    interp_type: PerSample[DALIInterpType] | None = None,
    mag_filter: PerSample[DALIInterpType] | None = None,
    max_size: list[float] | None = None,
    min_filter: PerSample[DALIInterpType] | None = None,
    mode: str = "default",
    roi_end: Shaping[list[float]] | None = None,
    roi_relative: bool = False,
    roi_start: Shaping[list[float]] | None = None,
    scales: Shaping[list[float]] | None = None,
    size_rounding: str = "round",
    sizes: Shaping[list[float]] | None = None,
    subpixel_scale: bool = True,
) -> Spec:
    """Resize data of any dimensions along chosen axes.

    The same resampling as `fn.resize`, for data that are no images. Up to three neighbouring axes can change.

    Args:
        x: numbers of any shape and layout.
        alignment: which point of the region stays where it is when a computed size is rounded, 0 (begin), 0.5 (middle)
            to 1 (end); one for all axes or one each.
        antialias: widen the filter of reductions. Without effect on nearest neighbours.
        axes: axes that the other arguments are for, in their order; negative: from the end. All by default.
        axis_names: the same as letters of the layout.
        dtype: type of `x` (default) or FLOAT.
        interp_type: filter for both directions; INTERP_LINEAR where not given.
        mag_filter: filter for axes that do not shrink; `interp_type` where not given.
        max_size: largest extents of the result; 0 or less: no limit.
        min_filter: filter for axes that shrink; `interp_type` where not given.
        mode: ``default``: extents that are 0 follow the others' scale; ``stretch``: they stay; ``not_larger``: keep
            the ratio and let no extent exceed its size; ``not_smaller``: keep it and let none fall below.
        roi_end: where the source region ends, in elements. Before `roi_start`: mirrored.
        roi_relative: the region is in parts of the extents, 0..1.
        roi_start: where the source region begins.
        scales: extents of the result as parts of those of the whole source; negative: mirrored.
        size_rounding: how sizes become whole: ``round`` (halves up), ``truncate`` or ``ceil``. One element remains.
        sizes: extents of the result; 0: by the others (a mirrored region stays mirrored then, other than in DALI);
            negative: mirrored.
        subpixel_scale: where a size was not whole, the region is adjusted to keep the scale.

    Returns:
        Same layout, new extents.

    Raises:
        ArgumentValueError: not exactly one of `sizes` and `scales`, or an unknown option.
        IndexingError: an axis that is not there.
        LayoutError: a letter that is not in the layout.
        ShapeError: more than three neighbouring axes, those between changing ones included, would change.
        DTypeError: a `dtype` that is neither FLOAT nor that of `x`.

    Example:
        >>> volumes = fn.tensor_resize(volumes, sizes=[64, 64], axis_names="DH")  # doctest: +SKIP
    """
    if dtype not in (None, x.dtype, DALIDataType.FLOAT):
        raise DTypeError(f"tensor_resize returns the input's element type or FLOAT; dtype is {dtype!s}.")
    for name, value, options in (("mode", mode, MODES), ("size_rounding", size_rounding, ROUNDINGS)):
        if value not in options:
            raise ArgumentValueError(option_error_text(name, value, options))
    if (sizes is None) == (scales is None):
        raise ArgumentValueError(
            "give either sizes or scales.", hint="For example tensor_resize(x, scales=[0.5, 0.5])."
        )
    if scales is not None and mode in ("not_larger", "not_smaller"):
        raise ArgumentValueError(f"mode {mode!r} needs sizes; it means nothing for scales.")
    if (roi_start is None) != (roi_end is None):
        raise ArgumentValueError("roi_start and roi_end must be given together.")
    if x.ndim == 0:
        raise ShapeError("a single number has no axis that could be resized.")
    chosen = _chosen(x, axes, axis_names)
    result = x.replace(dtype=dtype or x.dtype)
    if x.shape is None or VARIES in (sizes, scales, roi_start, roi_end):
        return result
    shape = list(x.shape)
    geometry = tensor_geometry(
        [shape[axis] for axis in chosen],
        sizes=sizes,
        scales=scales,
        mode=mode,
        max_size=max_size,
        roi_start=roi_start,
        roi_end=roi_end,
        roi_relative=roi_relative,
        subpixel_scale=subpixel_scale,
        size_rounding=size_rounding,
        alignment=[0.5],
    )
    for axis, extent in zip(chosen, geometry.size, strict=True):
        shape[axis] = extent
    return result.replace(shape=tuple(shape))


def _chosen(x: Spec, axes: Any, axis_names: str | None) -> list[int]:
    """Return the axes that are resized, in the order of the arguments."""
    assert x.ndim is not None, "dalify bug: a rule without the dimensions of its input"
    if axes is not None and axis_names is not None:
        raise ArgumentValueError("give either axes or axis_names.")
    if axis_names is not None:
        missing = [letter for letter in axis_names if letter not in (x.layout or "")]
        if missing:
            raise LayoutError(f"axis_names {axis_names!r} are not all in the layout of the data, {x.layout!r}.")
        given = [x.axis(letter) for letter in axis_names]
    else:
        given = range(x.ndim) if axes is None else axes
        if any(not -x.ndim <= axis < x.ndim for axis in given):
            raise IndexingError(f"axes {list(given)} are not all axes of data of {x.ndim} dimensions.")
    chosen = [axis % x.ndim for axis in given]
    if len(set(chosen)) != len(chosen):
        raise ArgumentValueError(f"an axis is given twice in {axis_names or list(given)!r}.")
    if not chosen:
        raise ArgumentValueError("axes are empty: nothing would be resized.")
    return chosen


@tensor_resize.cpu
@tensor_resize.gpu
def _(
    out,
    x,
    *,
    spec,
    axes,
    axis_names,
    alignment,
    mode,
    max_size,
    roi_relative,
    size_rounding,
    subpixel_scale,
    sizes,
    scales,
    roi_start,
    roi_end,
    antialias,
    interp_type,
    min_filter,
    mag_filter,
):
    chosen = _chosen(spec, axes, axis_names)
    shaping = first_of_group({"sizes": sizes, "scales": scales, "roi_start": roi_start, "roi_end": roi_end})
    options: dict[str, Any] = {"mode": mode, "max_size": max_size, "roi_relative": roi_relative}
    options |= {"size_rounding": size_rounding, "subpixel_scale": subpixel_scale}
    extents = [spec.shape[axis] for axis in chosen]
    begin = np.zeros((len(x), len(spec.shape)), np.float32)
    stop = np.tile(np.array(spec.shape, np.float32), (len(x), 1))
    found: dict[Any, ResizeGeometry] = {}
    for n in range(len(x)):
        point = for_each_axis("alignment", alignment[n].tolist(), len(chosen))
        if point not in found:
            found[point] = tensor_geometry(extents, alignment=point, **options, **shaping)
        begin[n, chosen], stop[n, chosen] = found[point].start, found[point].end
    filters = [interp_type, min_filter, mag_filter]
    both, smaller, larger = (None if kind is None else np.asarray(kind, np.int32) for kind in filters)
    if both is None:
        both = np.full(len(x), int(DALIInterpType.INTERP_LINEAR), np.int32)
    _resample_any(
        out, x, begin, stop, both if smaller is None else smaller, both if larger is None else larger, antialias
    )


def _resample_any(
    out: Any, x: Any, begin: np.ndarray, stop: np.ndarray, smaller: np.ndarray, larger: np.ndarray, antialias: bool
) -> None:
    """Resample between the first and the last axis that change: those in front join the group, others are channels."""
    before, after = np.array(x.shape[1:]), np.array(out.shape[1:])
    changes = (before != after) | (begin != 0).any(axis=0) | (stop != before).any(axis=0)
    if not changes.any():
        changes[-1] = True  # nothing to do but a conversion of the type
    first, last = int(changes.argmax()), len(changes) - int(changes[::-1].argmax())
    if last - first > _MOST_AXES:
        raise ShapeError(
            f"{last - first} neighbouring axes would change, from {tuple(before.tolist())} to {tuple(after.tolist())}; "
            f"at most {_MOST_AXES} can, those between changing ones included.",
            hint="Resize some axes first and the others afterwards.",
        )
    copies = math.prod(x.shape[1 : 1 + first])
    channels = math.prod(x.shape[1 + last :])
    single = () if last - first > 1 else (1,)  # images have two axes at least

    def folded(data: Any) -> Any:
        return data.reshape(len(data) * copies, *single, *data.shape[1 + first : 1 + last], channels)

    def window(corner: np.ndarray, fill: int) -> np.ndarray:
        rows = np.repeat(corner[:, first:last], copies, axis=0)
        return np.concatenate([np.full((len(rows), 1), fill, np.float32), rows], axis=1) if single else rows

    is_array = isinstance(x, np.ndarray)
    target, source = folded(out), folded(x)
    kernel: Any = resample if is_array else resample_torch
    kernel(
        Samples.of_dense(target) if is_array else target,
        Samples.of_dense(source) if is_array else source,
        np.ascontiguousarray(window(begin, 0)),
        np.ascontiguousarray(window(stop, 1)),
        min_filter=np.repeat(smaller, copies),
        mag_filter=np.repeat(larger, copies),
        antialias=antialias,
    )
