"""Resize data with any number of dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError, option_error_text
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.images.crop_geometry import first_of_group
from dalify.kernels.images.resample import resample
from dalify.kernels.images.resample_torch import resample_torch
from dalify.kernels.images.resize_geometry import MODES, ROUNDINGS, ResizeGeometry, for_each_axis, tensor_geometry
from dalify.parameter_groups.resize import Filters, result_type
from dalify.registry import VARIES, PerSample, Shaping, Spec, operator

_MAX_AXES = 3


@operator(alphabetical=True)
def tensor_resize(
    x: Spec,
    /,
    *,
    alignment: PerSample[list[float]] = [0.5],  # noqa: B006 -- the signature is the schema; the list is never mutated
    filters: Filters,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | None = None,
    max_size: list[float] | None = None,
    mode: str = "default",
    roi_end: Shaping[list[float]] | None = None,
    roi_relative: bool = False,
    roi_start: Shaping[list[float]] | None = None,
    scales: Shaping[list[float]] | None = None,
    size_rounding: str = "round",
    sizes: Shaping[list[float]] | None = None,
    subpixel_scale: bool = True,
) -> Spec:
    """Resize data with any number of dimensions along the specified axes.

    The same resampling as `fn.resize`, for data that is not images. Up to three adjacent axes can change.

    Args:
        x: numbers of any shape and layout.
        alignment: fixed point of the region when a computed size is rounded, from 0 (start) over 0.5 (center) to 1
            (end); one for all axes or one each.
        antialias: widen the filter when downscaling. Ignored by nearest-neighbor interpolation.
        axes: axes of the other arguments, in their order; negative axes count from the end. By default all.
        axis_names: the axes as letters of the layout.
        dtype: type of `x` (default) or FLOAT.
        max_size: maximum extents of the result; 0 or less: no limit.
        mode: ``default``: extents of 0 are scaled like the others; ``stretch``: they are not changed; ``not_larger``:
            keep the ratio, with no extent above its size; ``not_smaller``: keep it, with none below.
        roi_end: end of the source region in elements. Less than `roi_start`: mirrored.
        roi_relative: the region is in fractions of the extents, 0 to 1.
        roi_start: start of the source region.
        scales: extents of the result as multiples of those of the whole source; negative: mirrored.
        size_rounding: rounding of sizes: ``round`` (half up), ``truncate`` or ``ceil``. The minimum is one element.
        sizes: extents of the result; 0: computed from the others (a mirrored region then stays mirrored, unlike in
            DALI); negative: mirrored.
        subpixel_scale: if a computed size is not an integer, adjust the region to keep the exact scale.

    Returns:
        Same layout, new extents.

    Raises:
        ArgumentValueError: not exactly one of `sizes` and `scales`, or an unknown option.
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.
        ShapeError: more than three adjacent axes would change, including axes between changing ones.
        DTypeError: a `dtype` that is neither FLOAT nor that of `x`.

    Example:
        >>> volumes = fn.tensor_resize(volumes, sizes=[64, 64], axis_names="DH")  # doctest: +SKIP
    """
    result = x.replace(dtype=result_type(x, dtype))
    for name, value, options in (("mode", mode, MODES), ("size_rounding", size_rounding, ROUNDINGS)):
        if value not in options:
            raise ArgumentValueError(option_error_text(name, value, options))
    if (sizes is None) == (scales is None):
        raise ArgumentValueError(
            "specify either sizes or scales.", hint="For example tensor_resize(x, scales=[0.5, 0.5])."
        )
    if scales is not None and mode in ("not_larger", "not_smaller"):
        raise ArgumentValueError(f"mode {mode!r} requires sizes instead of scales.")
    if (roi_start is None) != (roi_end is None):
        raise ArgumentValueError("roi_start and roi_end must be specified together.")
    if x.ndim == 0:
        raise ShapeError("the data must have at least one axis; got scalars.")
    chosen = _resized_axes(x, axes, axis_names)
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


def _resized_axes(x: Spec, axes: Any, axis_names: str | None) -> list[int]:
    """Return the axes that are resized, in the order of the arguments."""
    assert x.ndim is not None, "dalify bug: a rule without the dimensions of its input"
    if axes is not None and axis_names is not None:
        raise ArgumentValueError("specify either axes or axis_names.")
    if axis_names is not None:
        missing = [letter for letter in axis_names if letter not in (x.layout or "")]
        if missing:
            raise LayoutError(f"axis_names {axis_names!r} must all be in the layout of the data, {x.layout!r}.")
        given = [x.axis(letter) for letter in axis_names]
    else:
        given = range(x.ndim) if axes is None else axes
        if any(not -x.ndim <= axis < x.ndim for axis in given):
            raise IndexingError(f"axes {list(given)} are out of range for data with {x.ndim} dimensions.")
    chosen = [axis % x.ndim for axis in given]
    if len(set(chosen)) != len(chosen):
        raise ArgumentValueError(f"axes must not be repeated; got {axis_names or list(given)!r}.")
    if not chosen:
        raise ArgumentValueError("axes must not be empty.")
    return chosen


@tensor_resize.cpu
@tensor_resize.gpu
def _(
    out: Any,
    x: Any,
    *,
    spec: Spec,
    axes: Any,
    axis_names: str | None,
    alignment: np.ndarray,
    mode: str,
    max_size: Any,
    roi_relative: bool,
    size_rounding: str,
    subpixel_scale: bool,
    sizes: Any,
    scales: Any,
    roi_start: Any,
    roi_end: Any,
    filters: Filters,
) -> None:
    assert spec.shape is not None, "dalify bug: a kernel without the shape of its group"
    chosen = _resized_axes(spec, axes, axis_names)
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
    smaller, larger = filters.kinds(len(x))
    _resample_any(out, x, begin, stop, smaller, larger, filters.antialias)


def _resample_any(
    out: Any, x: Any, begin: np.ndarray, stop: np.ndarray, smaller: np.ndarray, larger: np.ndarray, antialias: bool
) -> None:
    """Resample between the first and the last changing axis; axes before join the batch, axes after become channels."""
    before, after = np.array(x.shape[1:]), np.array(out.shape[1:])
    changes = (before != after) | (begin != 0).any(axis=0) | (stop != before).any(axis=0)
    if not changes.any():
        changes[-1] = True  # only a type conversion
    first, last = int(changes.argmax()), len(changes) - int(changes[::-1].argmax())
    if last - first > _MAX_AXES:
        raise ShapeError(
            f"{last - first} adjacent axes would change, from {tuple(before.tolist())} to {tuple(after.tolist())}; "
            f"the maximum is {_MAX_AXES}, including axes between changing ones.",
            hint="Resize some axes first and the others afterwards.",
        )
    copies = math.prod(x.shape[1 : 1 + first])
    channels = math.prod(x.shape[1 + last :])
    single = () if last - first > 1 else (1,)  # images have at least two axes

    def as_images(data: Any) -> Any:
        return data.reshape(len(data) * copies, *single, *data.shape[1 + first : 1 + last], channels)

    def window(corner: np.ndarray, fill: int) -> np.ndarray:
        rows = np.repeat(corner[:, first:last], copies, axis=0)
        return np.concatenate([np.full((len(rows), 1), fill, np.float32), rows], axis=1) if single else rows

    is_array = isinstance(x, np.ndarray)
    target, source = as_images(out), as_images(x)
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
