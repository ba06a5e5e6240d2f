"""Resamples RGB images, mirrors and normalizes them into planes, on the CPU.

Each image is normalized while its resized pixels are in the cache. The results are those of `resample` and
`crop_mirror_normalize`, whose compiled functions are called here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.compiling import njit
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
    _resample_planes(
        *out.compiled,
        *x.compiled,
        broadcast_to(start, (count, 2), np.float32),
        broadcast_to(end, (count, 2), np.float32),
        smaller,
        larger,
        filters["antialias"],
        np.array(normalization["mirror"], np.bool_),
        means,
        multiplier_of(deviations, normalization["scale"]),
        np.float32(normalization["shift"]),
    )
    return True


@njit(nogil=True, cache=True)
def _resample_planes(
    out_at,
    out_shapes,
    out_like,
    x_at,
    x_shapes,
    x_like,
    start,
    end,
    min_filter,
    mag_filter,
    antialias,
    mirror,
    mean,
    multiplier,
    shift,
):
    resized = np.empty(0, np.uint8)
    resized_at = np.empty(1, np.int64)
    image, volume, planes = np.empty((1, 3), np.int64), np.empty((1, 4), np.int64), np.empty((1, 4), np.int64)
    anchor, fill = np.zeros((1, 3), np.int64), np.zeros(_CHANNELS, np.float32)
    for n in range(len(out_at)):
        height, width = out_shapes[n, 1], out_shapes[n, 2]
        if resized.size < height * width * _CHANNELS:
            resized = np.empty(height * width * _CHANNELS, np.uint8)
            resized_at[0] = resized.ctypes.data
        image[0, 0] = volume[0, 1] = planes[0, 2] = height
        image[0, 1] = volume[0, 2] = planes[0, 3] = width
        image[0, 2] = volume[0, 3] = planes[0, 0] = _CHANNELS
        volume[0, 0] = planes[0, 1] = 1
        one = slice(n, n + 1)
        separable(
            resized_at,
            image,
            x_like,
            x_at[one],
            x_shapes[one],
            x_like,
            start[one],
            end[one],
            min_filter[one],
            mag_filter[one],
            antialias,
            None,
        )
        normalize_planes(
            None,
            out_at[one],
            planes,
            out_like,
            resized_at,
            volume,
            x_like,
            anchor,
            mirror[one],
            mean[one],
            multiplier[one],
            shift,
            fill,
        )
