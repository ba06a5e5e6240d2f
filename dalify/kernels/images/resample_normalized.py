"""Resamples images of uint8, mirrors and normalizes them, with one kernel if possible, otherwise with two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.small_arrays import zeros
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.dispatch import prefer_triton
from dalify.kernels.images.normalize_axes import normalize_axes
from dalify.kernels.images.resample_axes import resample_axes
from dalify.kernels.images.resample_planes import has_resampled_planes


@prefer_triton("resampling", "resample_normalized")
def resample_normalized(
    out: Samples | DeviceSamples,
    x: Samples | DeviceSamples,
    output_layout: str,
    start: np.ndarray,
    end: np.ndarray,
    filters: Mapping[str, Any],
    normalization: Mapping[str, Any],
    parts: np.ndarray | None = None,
) -> None:
    """Set ``out = scale * (resampled x - mean) / std + shift``, optionally mirrored; resampled pixels are rounded.

    Args:
        out: N samples, output, `Samples` or `DeviceSamples`.
        x: N images HWC of uint8, `Samples` or `DeviceSamples`.
        output_layout: HWC or CHW.
        start: float [N, 2], start of the windows in pixels, y and x.
        end: end of the windows.
        filters: arguments of `resample_axes` by name.
        normalization: arguments of `normalize_axes` by name.
        parts: see `Windows`, for `Samples` only; None: whole results.
    """
    if (
        output_layout == "CHW"
        and isinstance(out, Samples)
        and isinstance(x, Samples)
        and has_resampled_planes(out, x, start, end, filters, normalization, parts=parts)
    ):
        return
    shapes = np.stack([out.extents(output_layout.index(letter)) for letter in "HWC"], 1)
    is_on_device = isinstance(x, DeviceSamples)
    resized: Any = DeviceSamples.empty(shapes, x.dtype, x.device) if is_on_device else Samples.empty(shapes, x.dtype)
    resample_axes(resized, x, "HWC", start, end, parts, **filters)
    normalize_axes(
        out, resized, "HWC", output_layout, zeros(shapes.shape, np.int64), fill_values=[0.0], **normalization
    )


def in_order(values: Sequence[Any], layout: str) -> list[Any]:
    """Return three values, for H, W and C, in the order of a layout."""
    return [values["HWC".index(letter)] for letter in layout]
