"""Resize, crop and mirror in one step, computing only the pixels of the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS
from dalify.kernels.images.resize_geometry import spatial_axes
from dalify.parameter_groups.crop import CropWindow
from dalify.parameter_groups.normalization import AFTER_RESIZE, can_follow_resize
from dalify.parameter_groups.resize import Filters, ResizeSize, cropped_sources, result_type
from dalify.registry import AnySamples, PerSample, Spec, argument_names, operator

_MERGED = argument_names(Filters, CropWindow, ResizeSize)
# Bits of `mirror`.
_MIRRORED_BY = {"W": 1, "H": 2, "D": 4}


@operator(alphabetical=True)
def resize_crop_mirror(
    x: Spec,
    /,
    *,
    filters: Filters,
    window: CropWindow,
    dtype: DALIDataType | None = None,
    target: ResizeSize,
    mirror: PerSample[int] = 0,
) -> Spec:
    """Resize, crop and mirror in one step, like fn.resize, fn.crop and fn.flip in a row.

    A crop window can extend outside the resized image, where the border of the source is replicated.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, sequences with F first (or CFHW); any numeric dtype.
        dtype: dtype of `x` (default) or FLOAT.
        mirror: sum of 1 (reverse W), 2 (reverse H) and 4 (reverse D).

    Returns:
        Same layout, extents of the crop window.

    Raises:
        ArgumentValueError: no size, or several; contradictory crop arguments.
        LayoutError: the data is not images, volumes or sequences.
        DTypeError: a `dtype` that is neither FLOAT nor the dtype of `x`.

    Example:
        >>> images = fn.resize_crop_mirror(images, resize_shorter=256, crop=[224, 224])  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, VISUAL_LAYOUTS))
    result = x.replace(dtype=result_type(x, dtype))
    target.check()
    window.check()
    if x.shape is None:
        return result
    first, last = spatial_axes(x.layout or "")
    geometry = target.geometry(x.shape[first:last])
    extents = window.extents((x.layout or "")[first:last], geometry.size)
    return result.replace(shape=(*x.shape[:first], *extents, *x.shape[last:]))


@resize_crop_mirror.geometry
def _(x: Batch, *, spec: Spec, window: CropWindow, target: ResizeSize, mirror: np.ndarray) -> dict[str, Any]:
    layout = visual_layout(spec, VISUAL_LAYOUTS)
    first, last = spatial_axes(layout)
    letters = layout[first:last]
    shapes = x.shape_array()
    start, end, windows = cropped_sources(target, window, letters, shapes[:, first:last])
    is_mirrored = np.stack([(mirror & _MIRRORED_BY[letter]) != 0 for letter in letters], 1)
    out_shapes = shapes.copy()
    out_shapes[:, first:last] = windows
    return {
        "start": np.where(is_mirrored, end, start),
        "end": np.where(is_mirrored, start, end),
        "out_shapes": out_shapes,
    }


@resize_crop_mirror.cpu_samples
@resize_crop_mirror.gpu_samples
def _(out: AnySamples, x: AnySamples, *, out_spec: Spec, start: np.ndarray, end: np.ndarray, filters: Filters) -> None:
    filters.resample(out, x, out_spec.layout or "", start, end)


@resize_crop_mirror.before(
    "crop_mirror_normalize", "merges", into="_resize_crop_mirror_normalize", takes=AFTER_RESIZE, keeps=_MERGED
)
def _(resize: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    return set(resize) <= {*_MERGED, "dtype"} and can_follow_resize(resize, normalize, source, device, None)
