"""Resize images, crop, mirror and normalize them.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType
from dalify.kernels.images.resample import WHOLE_RESULTS
from dalify.kernels.images.resample_normalized import in_order, resample_normalized
from dalify.parameter_groups.crop import CropWindow
from dalify.parameter_groups.normalization import Normalization, check_channel_values
from dalify.parameter_groups.resize import Filters, ResizeSize, cropped_parts, cropped_sources
from dalify.registry import AnySamples, Spec, Vectors, operator


@operator
def _resize_crop_mirror_normalize(
    x: Spec,
    /,
    *,
    filters: Filters,
    window: CropWindow,
    target: ResizeSize,
    is_part: bool = False,
    dtype: DALIDataType = DALIDataType.FLOAT,
    normalization: Normalization,
) -> Spec:
    """Resize images, crop, mirror and normalize them.

    Args:
        x: images HWC, uint8.
        is_part: compute the pixels of ``_resize_crop``, not of ``resize_crop_mirror``.
        dtype: see ``crop_mirror_normalize``.

    Returns:
        dtype `dtype`, layout `output_layout`, extents of the crop window.
    """
    layout = normalization.output_layout
    if x.shape is None:
        return Spec(dtype, 3, layout, None, x.device)
    height, width = window.extents("HW", target.geometry(x.shape[:2]).size)
    return Spec(dtype, 3, layout, tuple(in_order((height, width, x.shape[2]), layout)), x.device)


@_resize_crop_mirror_normalize.geometry
def _(
    x: Batch,
    *,
    spec: Spec,
    window: CropWindow,
    target: ResizeSize,
    is_part: bool,
    output_layout: str,
    mean: Vectors,
    std: Vectors,
) -> dict[str, Any]:
    shapes = x.shape_array()
    parts = WHOLE_RESULTS
    if is_part:
        start, end, windows, parts = cropped_parts(target, window, shapes[:, :2], spec.device)
    else:
        start, end, windows = cropped_sources(target, window, "HW", shapes[:, :2])
    check_channel_values(mean, std, shapes[:, 2])
    out_shapes = np.stack(in_order((windows[:, 0], windows[:, 1], shapes[:, 2]), output_layout), 1)
    return {"start": start, "end": end, "parts": parts, "out_shapes": out_shapes}


@_resize_crop_mirror_normalize.cpu_samples
@_resize_crop_mirror_normalize.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    start: np.ndarray,
    end: np.ndarray,
    parts: np.ndarray,
    filters: Filters,
    normalization: Normalization,
) -> None:
    layout = normalization.output_layout
    resample_normalized(out, x, layout, start, end, filters.values, normalization.values, parts)
