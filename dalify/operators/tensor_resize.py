"""Resize data with any number of dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError, option_error_text
from dalify.base.small_arrays import columns_at, equal_rows
from dalify.data.batch import Batch
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.kernels.arrays.windows_torch import fill_by_kind
from dalify.kernels.images.resample import resample
from dalify.kernels.images.resample_samples_torch import resample_samples_torch
from dalify.kernels.images.resample_torch import resample_torch
from dalify.kernels.images.resize_geometry import MODES, ROUNDINGS, chunk_tensor_geometry, tensor_geometry
from dalify.parameter_groups.resize import Filters, result_type
from dalify.registry import VARIES, AnySamples, PerSample, Shaping, Spec, Vectors, operator

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


@tensor_resize.geometry
def _(
    x: Batch,
    *,
    spec: Spec,
    axes: Any,
    axis_names: str | None,
    alignment: Vectors,
    mode: str,
    max_size: Any,
    roi_relative: bool,
    size_rounding: str,
    subpixel_scale: bool,
    sizes: Vectors | None,
    scales: Vectors | None,
    roi_start: Vectors | None,
    roi_end: Vectors | None,
) -> dict[str, Any]:
    chosen, shapes = _resized_axes(spec, axes, axis_names), x.shape_array()
    begin, stop, out_shapes = np.zeros(shapes.shape, np.float32), shapes.astype(np.float32), shapes.copy()
    out_shapes[:, chosen], begin[:, chosen], stop[:, chosen] = chunk_tensor_geometry(
        columns_at(shapes, chosen),
        sizes=sizes,
        scales=scales,
        mode=mode,
        max_size=max_size,
        roi_start=roi_start,
        roi_end=roi_end,
        roi_relative=roi_relative,
        subpixel_scale=subpixel_scale,
        size_rounding=size_rounding,
        alignment=alignment,
    )
    return {"out_shapes": out_shapes, "begin": begin, "stop": stop}


@tensor_resize.cpu_samples
@tensor_resize.gpu_samples
def _(out: AnySamples, x: AnySamples, *, begin: np.ndarray, stop: np.ndarray, filters: Filters) -> None:
    changes = (x.shapes != out.shapes) | (begin != 0) | (stop != x.shapes)
    changes[~changes.any(1), -1] = True  # only a type conversion
    firsts = changes.argmax(1)
    lasts = x.ndim - changes[:, ::-1].argmax(1)
    wide = np.flatnonzero(lasts - firsts > _MAX_AXES)
    if len(wide):
        sample = int(wide[0])
        before, after = (tuple(samples.shapes[sample].tolist()) for samples in (x, out))
        raise ShapeError(
            f"{lasts[sample] - firsts[sample]} adjacent axes would change, from {before} to {after}; "
            f"the maximum is {_MAX_AXES}, including axes between changing ones.",
            hint="Resize some axes first and the others afterwards.",
            sample=sample,
        )
    smaller, larger = filters.kinds(len(x))

    def fill(target: AnySamples, numbers: np.ndarray) -> None:
        source = x if len(numbers) == len(x) else x.take(numbers)
        window = begin[numbers], stop[numbers], smaller[numbers], larger[numbers]
        try:
            _resample_axes(target, source, int(firsts[numbers[0]]), int(lasts[numbers[0]]), *window, filters.antialias)
        except ShapeError as error:
            if error.sample is not None:
                error.sample = int(numbers[error.sample])
            raise

    # An axis between changing ones takes part in the filter, so samples whose changing axes differ are separate calls.
    if isinstance(out, DeviceSamples):
        fill_by_kind(out, list(zip(firsts.tolist(), lasts.tolist(), strict=True)), fill)
        return
    for numbers in equal_rows(np.stack([firsts, lasts], 1)):
        fill(out if len(numbers) == len(out) else out.take(numbers), numbers)


def _resample_axes(
    out: AnySamples,
    x: AnySamples,
    first: int,
    last: int,
    begin: np.ndarray,
    stop: np.ndarray,
    smaller: np.ndarray,
    larger: np.ndarray,
    antialias: bool,
) -> None:
    """Resample some axes; each index along the axes before is an image, and axes after become channels."""
    single = last - first == 1  # images have at least two axes

    def as_images(samples: AnySamples) -> tuple[Any, np.ndarray | None]:
        shapes = samples.shapes
        channels = shapes[:, last:].prod(1)[:, None]
        rows = np.ones((len(shapes), int(single)), np.int64)
        return samples.reshaped(np.hstack([shapes[:, :first], rows, shapes[:, first:last], channels])).folded(first)

    def window(corner: np.ndarray, edge: int) -> np.ndarray:
        rows = np.full((len(corner), int(single)), edge, np.float32)
        return np.ascontiguousarray(np.hstack([rows, corner[:, first:last]])[images])

    target, _ = as_images(out)
    source, owner = as_images(x)
    images = np.arange(len(x)) if owner is None else owner
    kernel: Any = resample
    if isinstance(x, DeviceSamples):
        kernel = resample_samples_torch
        if target.dense is not None and source.dense is not None:
            target, source, kernel = target.dense, source.dense, resample_torch
    filters = {"min_filter": smaller[images], "mag_filter": larger[images], "antialias": antialias}
    try:
        kernel(target, source, window(begin, 0), window(stop, 1), **filters)
    except ShapeError as error:
        if error.sample is not None:
            error.sample = int(images[error.sample])
        raise
