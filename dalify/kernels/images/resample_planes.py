"""Resamples RGB images, mirrors and normalizes them into planes on the CPU.

The results are those of `resample` and `crop_mirror_normalize`; their compiled functions are called here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dalify.base.small_arrays import all_of
from dalify.data.dtypes import DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.arrays.frozen import broadcast_to
from dalify.kernels.images.color_matrix import apply_matrix
from dalify.kernels.images.crop_mirror_normalize import normalize_rgb
from dalify.kernels.images.planes import planes_of
from dalify.kernels.images.resample import WHOLE_RESULTS, has_others, linear, separable

_NEAREST = int(DALIInterpType.INTERP_NN)


def has_resampled_planes(
    out: Samples,
    x: Samples,
    start: np.ndarray,
    end: np.ndarray,
    filters: Mapping[str, Any],
    normalization: Mapping[str, Any],
    fill: Callable[[], None] | None = None,
    colors: tuple[np.ndarray, np.ndarray] | None = None,
    parts: np.ndarray | None = None,
) -> bool:
    """Set ``out = scale * (resampled x - mean) / std + shift``; resampled pixels are rounded.

    Args:
        out: N samples [3, h, w] of one size, output, float32.
        x: N images [H, W, 3], uint8; may be windows with strides.
        start: float [N, 2], start of the windows in pixels, y and x.
        end: end of the windows.
        filters: arguments of `resample_axes` by name.
        normalization: arguments of `normalize_axes` by name.
        fill: called before `x` is read.
        colors: matrices and constants of `apply_matrix` for the resampled images; None to leave their colors.
        parts: see `Windows`; None: whole results.

    Returns:
        False, with nothing computed, for results of different sizes, other numbers of channels, other element types,
        narrow images and nearest-neighbor interpolation.
    """
    if x.dtype != np.uint8 or not all_of(x.shapes, None):
        return False
    found = planes_of(out, normalization)
    if found is None:
        return False
    count, both, others = len(x), filters["interp_type"], None
    kinds = [linear(count)] * 2
    for place, name in enumerate(("min_filter", "mag_filter")):
        kind = both if filters[name] is None else filters[name]
        if kind is not None:
            if _NEAREST in kind.tolist():
                return False
            kinds[place] = broadcast_to(kind, (count,), np.int32)
            others = others or has_others(kinds[place])
    images, normalizing = found
    resizing: Any = (
        *images.compiled,
        *x.compiled,
        x.shapes[:, 1] * x.shapes[:, 2] if x.strides is None else x.strides[:, 0].copy(),
        broadcast_to(start, (count, 2), np.float32),
        broadcast_to(end, (count, 2), np.float32),
        *kinds,
        WHOLE_RESULTS if parts is None else parts,
        filters["antialias"],
        None,
        others,
    )
    # All arguments are computed before, because Python code is not in the CPU cache after a compiled call. One compiled
    # function for both would take 1.4 s longer to compile, and is not faster.
    if fill is not None:
        fill()
    separable(*resizing)
    if colors is not None:
        apply_matrix(images, images, *colors)
    normalize_rgb(*normalizing)
    return True


def spare_memory(out: Samples) -> np.ndarray:
    """Return the part of the results of `has_resampled_planes` that is not used before all of `x` was read.

    Args:
        out: the results, N samples [3, h, w] of one size, float32.

    Returns:
        uint8, at least three quarters of the memory of the results.
    """
    assert out.dense is not None, "dalify bug: results of different sizes"
    values = out.dense.reshape(-1)
    resized = (len(out.dense) - 1) * (values.size // len(out.dense))
    return values.view(np.uint8)[: values.nbytes - resized]
