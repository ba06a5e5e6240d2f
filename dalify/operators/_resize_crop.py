"""Resize images and crop them, computing only the pixels of the crop.

The pass ``push_crop`` inserts it; users do not call it. On the CPU, its integers are those of a resize followed
by a crop. ``resize_crop_mirror`` rounds like a resize to the size of the crop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType
from dalify.parameter_groups.crop import CropWindow
from dalify.parameter_groups.normalization import AFTER_RESIZE, can_follow_resize
from dalify.parameter_groups.resize import Filters, ResizeSize, cropped_parts, result_type
from dalify.registry import AnySamples, Spec, argument_names, operator

_MERGED = argument_names(Filters, CropWindow, ResizeSize)


@operator
def _resize_crop(
    x: Spec,
    /,
    *,
    filters: Filters,
    window: CropWindow,
    dtype: DALIDataType | None = None,
    target: ResizeSize,
) -> Spec:
    """Resize images and crop them.

    Args:
        x: images HWC, any numeric dtype.
        dtype: see ``resize``.

    Returns:
        Same layout, extents of the crop window.
    """
    result = x.replace(dtype=result_type(x, dtype))
    if x.shape is None:
        return result
    height, width = window.extents("HW", target.geometry(x.shape[:2]).size)
    return result.replace(shape=(height, width, x.shape[2]))


@_resize_crop.geometry
def _(x: Batch, *, spec: Spec, window: CropWindow, target: ResizeSize) -> dict[str, Any]:
    out_shapes = x.shape_array().copy()
    start, end, windows, parts = cropped_parts(target, window, out_shapes[:, :2], spec.device)
    out_shapes[:, :2] = windows
    return {"start": start, "end": end, "parts": parts, "out_shapes": out_shapes}


@_resize_crop.cpu_samples
@_resize_crop.gpu_samples
def _(
    out: AnySamples, x: AnySamples, *, start: np.ndarray, end: np.ndarray, parts: np.ndarray, filters: Filters
) -> None:
    filters.resample(out, x, "HWC", start, end, parts)


@_resize_crop.before(
    "crop_mirror_normalize",
    "merges",
    into="_resize_crop_mirror_normalize",
    takes=AFTER_RESIZE,
    keeps=_MERGED,
    adds={"is_part": True},
)
def _(resize: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    return set(resize) <= {*_MERGED, "dtype"} and can_follow_resize(resize, normalize, source, device, None)
