"""Resamples RGB images, mirrors and normalizes them into planes, on the CPU.

The results are those of `resample` and `crop_mirror_normalize`, whose compiled functions are called here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base import scratch
from dalify.data.batch import places_in_block
from dalify.data.dtypes import DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.arrays.frozen import broadcast_to
from dalify.kernels.images.crop_mirror_normalize import PIXELS, normalize_planes
from dalify.kernels.images.normalize_axes import multiplier_of, rows_of
from dalify.kernels.images.resample import separable

__all__ = ["has_resampled_planes"]

_NEAREST = int(DALIInterpType.INTERP_NN)
_LINEAR = int(DALIInterpType.INTERP_LINEAR)
_CHANNELS = 3


def has_resampled_planes(
    out: Samples,
    x: Samples,
    start: np.ndarray,
    end: np.ndarray,
    filters: Mapping[str, Any],
    normalization: Mapping[str, Any],
) -> bool:
    """Set ``out = scale * (resampled x - mean) / std + shift``; resampled pixels are rounded.

    Args:
        out: N samples [3, h, w], output, float32.
        x: N images [H, W, 3], uint8.
        start: float [N, 2], start of the windows in pixels, y and x.
        end: end of the windows.
        filters: arguments of `resample_axes` by name.
        normalization: arguments of `normalize_axes` by name.

    Returns:
        False, with nothing computed, for other numbers of channels, other element types, narrow images and
        nearest-neighbor interpolation.
    """
    count = len(x)
    both = _LINEAR if filters["interp_type"] is None else filters["interp_type"]
    smaller, larger = (
        broadcast_to(both if filters[name] is None else filters[name], (count,), np.int32)
        for name in ("min_filter", "mag_filter")
    )
    is_usual = (
        out.dtype == np.float32
        and x.dtype == np.uint8
        and (x.extents(2) == _CHANNELS).all()
        and x.shapes.all()
        and out.extents(1).all()
        and (out.extents(2) >= PIXELS).all()
        and not (smaller == _NEAREST).any()
        and not (larger == _NEAREST).any()
    )
    if not is_usual:
        return False
    means, deviations = (
        broadcast_to(rows_of(normalization[name]), (count, _CHANNELS), np.float32) for name in ("mean", "std")
    )
    shapes = np.empty((count, 4), np.int64)  # of the resized images as volumes of one slice
    shapes[:, 0], shapes[:, 1], shapes[:, 2], shapes[:, 3] = 1, out.extents(1), out.extents(2), _CHANNELS
    offsets, size_bytes = places_in_block(shapes, 1)
    resized_at = offsets + scratch.borrow("resized images", (size_bytes,)).__array_interface__["data"][0]
    planes = np.empty((count, 4), np.int64)
    planes[:, 0], planes[:, 1], planes[:, 2], planes[:, 3] = _CHANNELS, 1, out.extents(1), out.extents(2)
    resizing = (
        resized_at,
        np.ascontiguousarray(shapes[:, 1:]),
        x.like,
        *x.compiled,
        broadcast_to(start, (count, 2), np.float32),
        broadcast_to(end, (count, 2), np.float32),
        smaller,
        larger,
        filters["antialias"],
        None,
    )
    normalizing = (
        None,
        out.addresses,
        planes,
        out.like,
        resized_at,
        shapes,
        x.like,
        np.zeros((count, 3), np.int64),
        np.array(normalization["mirror"], np.bool_),
        means,
        multiplier_of(deviations, normalization["scale"]),
        np.float32(normalization["shift"]),
        np.zeros(_CHANNELS, np.float32),
    )
    # With nothing between them: Python code is not in the cache after a compiled call. One compiled function for both
    # would take 1.4 s longer to compile, and is not faster.
    separable(*resizing)
    normalize_planes(*normalizing)
    return True
