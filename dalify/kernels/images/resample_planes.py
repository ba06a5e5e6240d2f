"""Resamples RGB images, mirrors and normalizes them into planes, on the CPU.

The results are those of `resample` and `crop_mirror_normalize`, whose compiled functions are called here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dalify.base import scratch
from dalify.base.small_arrays import counting, zeros
from dalify.data.dtypes import DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.arrays.frozen import broadcast_to
from dalify.kernels.images.crop_mirror_normalize import PIXELS, normalize_rgb
from dalify.kernels.images.normalize_axes import multiplier_of, rows_of
from dalify.kernels.images.resample import has_others, separable

__all__ = ["PIXELS", "has_resampled_planes", "spare_memory"]

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
    fill: Callable[[], None] | None = None,
) -> bool:
    """Set ``out = scale * (resampled x - mean) / std + shift``; resampled pixels are rounded.

    Args:
        out: N samples [3, h, w] of one size, output, float32.
        x: N images [H, W, 3], uint8; may be windows with strides.
        start: float [N, 2], start of the windows in pixels, y and x.
        end: end of the windows.
        filters: arguments of `resample_axes` by name.
        normalization: arguments of `normalize_axes` by name.
        fill: called when `x` is needed.

    Returns:
        False, with nothing computed, for results of different sizes, other numbers of channels, other element types,
        narrow images and nearest-neighbor interpolation.
    """
    if out.dense is None or out.dtype != np.float32 or x.dtype != np.uint8 or not x.shapes.all():
        return False
    count, channels, height, width = out.dense.shape
    if channels != _CHANNELS or width < PIXELS or not height:
        return False
    both = filters["interp_type"]
    kinds: list[Any] = []
    for name in ("min_filter", "mag_filter"):
        kind = both if filters[name] is None else filters[name]
        if kind is not None and _NEAREST in kind.tolist():
            return False
        kinds.append(broadcast_to(_LINEAR if kind is None else kind, (count,), np.int32))
    means, deviations = (
        broadcast_to(rows_of(normalization[name]), (count, _CHANNELS), np.float32) for name in ("mean", "std")
    )
    images = np.empty((count, 3), np.int64)
    volumes, planes = np.empty((count, 4), np.int64), np.empty((count, 4), np.int64)
    images[:] = height, width, channels
    volumes[:] = 1, height, width, channels
    planes[:] = channels, 1, height, width
    # Resized images are stored at the end of the results, where each is read before it is overwritten. The last one has
    # its own memory.
    size_bytes = height * width * channels
    last = scratch.borrow("resized image", (size_bytes,))
    resized_at = (counting(count) - (count - 1)) * size_bytes
    resized_at += out.dense.__array_interface__["data"][0] + out.dense.nbytes
    resized_at[-1:] = last.__array_interface__["data"][0]
    resizing: Any = (
        resized_at,
        images,
        x.like,
        *x.compiled,
        x.shapes[:, 1] * x.shapes[:, 2] if x.strides is None else x.strides[:, 0].copy(),
        broadcast_to(start, (count, 2), np.float32),
        broadcast_to(end, (count, 2), np.float32),
        *kinds,
        filters["antialias"],
        None,
        has_others(*kinds),
    )
    normalizing: Any = (
        out.addresses,
        planes,
        resized_at,
        volumes,
        zeros((count, 3), np.int64),
        np.array(normalization["mirror"], np.bool_),
        means,
        multiplier_of(deviations, normalization["scale"]),
        np.float32(normalization["shift"]),
    )
    # With nothing between them: Python code is not in the cache after a compiled call. One compiled function for both
    # would take 1.4 s longer to compile, and is not faster.
    if fill is not None:
        fill()
    separable(*resizing)
    normalize_rgb(*normalizing)
    return True


def spare_memory(out: Samples) -> np.ndarray:
    """Return the part of the results of `has_resampled_planes` that is not used before all of `x` was read.

    Args:
        out: the results, N samples [3, h, w] of one size, float32.

    Returns:
        uint8, three quarters of their memory.
    """
    assert out.dense is not None, "dalify bug: results of different sizes"
    values = out.dense.reshape(-1)
    resized = (len(out.dense) - 1) * (values.size // len(out.dense))
    return values.view(np.uint8)[: values.nbytes - resized]
