"""Resize images, change their colors, mirror and normalize them, on the CPU.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.images.color_twist import check_channels, twist_matrices
from dalify.kernels.images.planes import normalize_mixed
from dalify.kernels.images.resample_normalized import in_order
from dalify.kernels.images.resample_planes import has_resampled_planes
from dalify.parameter_groups.colors import Colors
from dalify.parameter_groups.normalization import Normalization, check_channel_values
from dalify.parameter_groups.resize import Filters, ResizeSize
from dalify.registry import Spec, Vectors, operator


@operator
def _resize_twist_normalize(
    x: Spec,
    /,
    *,
    filters: Filters,
    target: ResizeSize,
    colors: Colors,
    dtype: DALIDataType = DALIDataType.FLOAT,
    normalization: Normalization,
) -> Spec:
    """Resize images, change hue, saturation, contrast and brightness, mirror and normalize them.

    Args:
        x: images HWC, uint8.
        dtype: FLOAT.

    Returns:
        dtype `dtype`, layout CHW, extents of the resized images.
    """
    if x.shape is None:
        return Spec(dtype, 3, "CHW", None, x.device)
    height, width = target.geometry(x.shape[:2]).size
    return Spec(dtype, 3, "CHW", tuple(in_order((height, width, x.shape[2]), "CHW")), x.device)


@_resize_twist_normalize.geometry
def _(x: Batch, *, target: ResizeSize, mean: Vectors, std: Vectors) -> dict[str, Any]:
    shapes = x.shape_array()
    sizes, start, end = target.edges(shapes[:, :2])
    check_channels(shapes[:, 2], "brightness")
    check_channel_values(mean, std, shapes[:, 2])
    out_shapes = np.empty_like(shapes)
    out_shapes[:, 0], out_shapes[:, 1:] = shapes[:, 2], sizes
    return {"start": start, "end": end, "out_shapes": out_shapes}


@_resize_twist_normalize.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    start: np.ndarray,
    end: np.ndarray,
    filters: Filters,
    colors: Colors,
    normalization: Normalization,
    spec: Spec,
) -> None:
    mixing = twist_matrices(x, spec, **colors.values)
    if has_resampled_planes(out, x, start, end, filters.values, normalization.values, colors=mixing):
        return
    resized = Samples.empty(out.shapes[:, [1, 2, 0]], x.dtype)
    filters.resample(resized, x, "HWC", start, end)
    normalize_mixed(out, resized, *mixing, normalization.values)
