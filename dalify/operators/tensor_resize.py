"""Resize data with any number of dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError, check_option
from dalify.base.small_arrays import columns_at, equal_rows
from dalify.base.wording import counted
from dalify.data import Batch, DALIDataType, DeviceSamples
from dalify.kernels.arrays.axes import check_distinct
from dalify.kernels.arrays.windows_torch import fill_by_kind
from dalify.kernels.images.resample import resample
from dalify.kernels.images.resample_samples_torch import resample_samples_torch
from dalify.kernels.images.resample_torch import resample_torch
from dalify.kernels.images.resize_geometry import MODES, ROUNDINGS, chunk_tensor_geometry, tensor_geometry
from dalify.parameter_groups.resize import Filters, ResizeRegion, result_type
from dalify.registry import AnySamples, PerSample, Shaping, Spec, operator

_MAX_AXES = 3


@dataclass
class TensorSize(ResizeRegion):
    """Extents of the result along some axes, and the region of the source that it shows.

    Attributes:
        alignment: fixed point of the region when a computed size is rounded, from 0 (start) over 0.5 (center) to 1
            (end); one for all axes or one each.
        axes: axes of the other arguments, in their order; negative axes count from the end. By default all.
        axis_names: the axes as letters of the layout.
        max_size: maximum extents of the result; 0 or less: no limit.
        mode: ``default``: extents of 0 are scaled like the others; ``stretch``: they are not changed; ``not_larger``:
            keep the ratio, with no extent above its size; ``not_smaller``: keep it, with none below.
        roi_end: end of the source region in elements. Less than `roi_start`: mirrored.
        scales: extents of the result as multiples of the extents of the whole source; a negative scale mirrors.
        size_rounding: rounding of sizes: ``round`` (half up), ``truncate`` or ``ceil``. The minimum is one element.
        sizes: extents of the result; 0: computed from the others (a mirrored region then stays mirrored, unlike in
            DALI); negative: mirrored.
        subpixel_scale: if a computed size is not an integer, adjust the region to keep the exact scale.
    """

    alignment: PerSample[list[float]] = field(default_factory=lambda: [0.5])
    axes: list[int] | None = None
    axis_names: str | None = None
    scales: Shaping[list[float]] | None = None
    size_rounding: str = "round"
    sizes: Shaping[list[float]] | None = None

    @property
    def _shaping(self) -> dict[str, Any]:
        return self.named("sizes", "scales", "roi_start", "roi_end")

    @property
    def _options(self) -> dict[str, Any]:
        return {**self.options, "size_rounding": self.size_rounding}

    def check(self) -> None:
        """Raise ArgumentValueError for contradictory arguments or an unknown option."""
        options = (("mode", self.mode, MODES), ("size_rounding", self.size_rounding, ROUNDINGS))
        for name, value, allowed in options:
            check_option(name, value, allowed)
        if (self.sizes is None) == (self.scales is None):
            raise ArgumentValueError(
                "specify either sizes or scales.", hint="For example tensor_resize(x, scales=[0.5, 0.5])."
            )
        if self.scales is not None and self.mode in ("not_larger", "not_smaller"):
            raise ArgumentValueError(f"mode {self.mode!r} requires sizes instead of scales.")
        if (self.roi_start is None) != (self.roi_end is None):
            raise ArgumentValueError("roi_start and roi_end must be specified together.")

    def resized_axes(self, x: Spec) -> list[int]:
        """Return the axes that are resized, in the order of the arguments."""
        assert x.ndim is not None, "dalify bug: a rule without the dimensions of its input"
        if self.axes is not None and self.axis_names is not None:
            raise ArgumentValueError("specify either axes or axis_names.")
        if self.axis_names is not None:
            if not set(self.axis_names) <= set(x.layout or ""):
                raise LayoutError(
                    f"axis_names {self.axis_names!r} must all be in the layout of the data, {x.layout!r}."
                )
            given = [x.axis(letter) for letter in self.axis_names]
        else:
            given = list(range(x.ndim) if self.axes is None else self.axes)
            if any(not -x.ndim <= axis < x.ndim for axis in given):
                raise IndexingError(f"axes {given} are out of range for data with {counted(x.ndim, 'dimension')}.")
        chosen = [axis % x.ndim for axis in given]
        check_distinct(chosen)
        if not chosen:
            raise ArgumentValueError("axes must not be empty.")
        return chosen

    def result_shape(self, shape: tuple[int, ...], axes: list[int]) -> tuple[int, ...]:
        """Return the shape of the result for a sample of a shape."""
        extents = [shape[axis] for axis in axes]
        # The alignment, which may vary, moves the region but does not change the size.
        size = tensor_geometry(extents, **self._shaping, **self._options, alignment=[0.5]).size
        resized = dict(zip(axes, size, strict=True))
        return tuple(resized.get(axis, extent) for axis, extent in enumerate(shape))

    def chunk(self, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return sizes, starts and ends of the source windows of a chunk; see `chunk_tensor_geometry`."""
        return chunk_tensor_geometry(extents, **self._shaping, **self._options, alignment=self.alignment)


@operator(alphabetical=True)
def tensor_resize(x: Spec, /, *, filters: Filters, dtype: DALIDataType | None = None, target: TensorSize) -> Spec:
    """Resize data with any number of dimensions along the specified axes.

    The same resampling as `fn.resize`, for data that is not images. Up to three adjacent axes can change.

    Args:
        x: numbers of any shape and layout.
        antialias: widen the filter when downscaling. Ignored by nearest-neighbor interpolation.
        dtype: type of `x` (default) or FLOAT.

    Returns:
        Same layout, new extents.

    Raises:
        ArgumentValueError: not exactly one of `sizes` and `scales`, or an unknown option.
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.
        ShapeError: more than three adjacent axes would change, including axes between changing ones.
        DTypeError: a `dtype` that is neither FLOAT nor the dtype of `x`.

    Example:
        >>> volumes = fn.tensor_resize(volumes, sizes=[64, 64], axis_names="DH")  # doctest: +SKIP
    """
    result = x.replace(dtype=result_type(x, dtype))
    target.check()
    if x.ndim == 0:
        raise ShapeError("the data must have at least one axis; got scalars.")
    axes = target.resized_axes(x)
    return result if x.shape is None else result.replace(shape=target.result_shape(x.shape, axes))


@tensor_resize.geometry
def _(x: Batch, *, spec: Spec, target: TensorSize) -> dict[str, Any]:
    axes, shapes = target.resized_axes(spec), x.shape_array()
    start, end, out_shapes = np.zeros(shapes.shape, np.float32), shapes.astype(np.float32), shapes.copy()
    out_shapes[:, axes], start[:, axes], end[:, axes] = target.chunk(columns_at(shapes, axes))
    return {"out_shapes": out_shapes, "start": start, "end": end}


@tensor_resize.cpu_samples
@tensor_resize.gpu_samples
def _(out: AnySamples, x: AnySamples, *, start: np.ndarray, end: np.ndarray, filters: Filters) -> None:
    changes = (x.shapes != out.shapes) | (start != 0) | (end != x.shapes)
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
        window = start[numbers], end[numbers], smaller[numbers], larger[numbers]
        try:
            _resample_axes(target, source, int(firsts[numbers[0]]), int(lasts[numbers[0]]), *window, filters.antialias)
        except ShapeError as error:
            if error.sample is not None:
                error.sample = int(numbers[error.sample])
            raise

    # Axes between changing ones are filtered, too. So samples with different changing axes are resampled separately.
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
    start: np.ndarray,
    end: np.ndarray,
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
        kernel(target, source, window(start, 0), window(end, 1), **filters)
    except ShapeError as error:
        if error.sample is not None:
            error.sample = int(images[error.sample])
        raise
