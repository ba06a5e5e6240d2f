"""Crop a random window of images, resize it, mirror and normalize it.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType
from dalify.kernels.images.resample_normalized import in_order, resample_normalized
from dalify.parameter_groups.normalization import Normalization, check_channel_values
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.parameter_groups.resize import Filters
from dalify.registry import AnySamples, Spec, Vectors, operator


@operator(random=True)
def _random_resized_crop_normalize(
    x: Spec,
    /,
    *,
    filters: Filters,
    random_crop: RandomCrop,
    size: list[int],
    dtype: DALIDataType = DALIDataType.FLOAT,
    normalization: Normalization,
) -> Spec:
    """Crop a random window, resize it, mirror and normalize it.

    Args:
        x: images HWC, uint8.
        size: see ``random_resized_crop``.
        dtype: see ``crop_mirror_normalize``.

    Returns:
        dtype `dtype`, layout `output_layout`, extents `size`.
    """
    layout = normalization.output_layout
    shape = None if x.shape is None else tuple(in_order((size[0], size[-1], x.shape[2]), layout))
    return Spec(dtype, 3, layout, shape, x.device)


@_random_resized_crop_normalize.geometry
def _(
    x: Batch,
    *,
    draws: Any,
    random_crop: RandomCrop,
    size: tuple[int, ...],
    output_layout: str,
    mean: Vectors,
    std: Vectors,
) -> dict[str, Any]:
    shapes = x.shape_array()
    windows = random_crop.windows(shapes[:, :2], draws)
    check_channel_values(mean, std, shapes[:, 2])
    start = windows[:, :2].astype(np.float32)
    count = len(shapes)
    extents = (np.full(count, size[0]), np.full(count, size[-1]), shapes[:, 2])
    out_shapes = np.stack(in_order(extents, output_layout), 1)
    return {"start": start, "end": start + windows[:, 2:].astype(np.float32), "out_shapes": out_shapes}


@_random_resized_crop_normalize.cpu_samples
@_random_resized_crop_normalize.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    start: np.ndarray,
    end: np.ndarray,
    filters: Filters,
    normalization: Normalization,
) -> None:
    resample_normalized(out, x, normalization.output_layout, start, end, filters.values, normalization.values)
