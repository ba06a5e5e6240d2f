"""Resamples data with any visual layout on either device: axes before the spatial axes are folded into samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ShapeError
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.frozen import broadcast_to
from dalify.kernels.images.resample import WHOLE_RESULTS, Windows, linear, resample_windows
from dalify.kernels.images.resample_samples_torch import resample_samples_torch
from dalify.kernels.images.resample_torch import resample_torch
from dalify.kernels.images.resize_geometry import spatial_axes

VISUAL_LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")


def resample_axes(
    out: Any,
    x: Any,
    layout: str,
    start: Any,
    end: Any,
    parts: np.ndarray | None = None,
    *,
    interp_type: np.ndarray | None,
    min_filter: np.ndarray | None,
    mag_filter: np.ndarray | None,
    antialias: bool,
) -> None:
    """Resample the spatial axes.

    Args:
        out: output: `Samples`, `DeviceSamples`, or a tensor [N, ...].
        x: same type.
        layout: layout of a sample, one of `VISUAL_LAYOUTS`.
        start: start of the windows on each spatial axis, [k] for all or [N, k].
        end: end of the windows.
        parts: see `Windows`, for images in `Samples` only; None: whole results.
        interp_type: filters, [N], or None for linear.
        min_filter: filters for axes that shrink, [N], or None for `interp_type`.
        mag_filter: filters for other axes, [N], or None for `interp_type`.
        antialias: whether to widen filters by the scale of a reduction.
    """
    first, last = spatial_axes(layout)
    samples = len(x)
    both = linear(samples) if interp_type is None else broadcast_to(interp_type, (samples,), np.int32)
    smaller = both if min_filter is None else broadcast_to(min_filter, (samples,), np.int32)
    larger = both if mag_filter is None else broadcast_to(mag_filter, (samples,), np.int32)
    edges = samples, last - first
    starts, ends = broadcast_to(start, edges, np.float32), broadcast_to(end, edges, np.float32)
    if isinstance(x, DeviceSamples) and x.dense is not None and out.dense is not None:
        out, x = out.dense, x.dense
    if isinstance(x, (Samples, DeviceSamples)):
        if last == len(layout):
            out, x = out.with_axis(last), x.with_axis(last)
        source, target, owner = x, out, None
        if first:
            (source, owner), (target, _) = x.folded(first), out.folded(first)
        windows = Windows(starts, ends, smaller, larger, WHOLE_RESULTS if parts is None else parts)
        if owner is not None:
            windows = windows.take(owner)
        try:
            if isinstance(source, DeviceSamples):
                filters = {"min_filter": windows.min_filter, "mag_filter": windows.mag_filter}
                resample_samples_torch(target, source, windows.start, windows.end, **filters, antialias=antialias)
            else:
                resample_windows(target, source, windows, antialias)
        except ShapeError as error:
            if owner is not None and error.sample is not None:
                error.sample = int(owner[error.sample])
            raise
        return
    copies = math.prod(x.shape[1 : 1 + first])

    def folded(data: Any) -> Any:
        channels = data.shape[1 + last] if last < len(layout) else 1
        return data.reshape(samples * copies, *data.shape[1 + first : 1 + last], channels)

    def repeated(values: np.ndarray) -> np.ndarray:
        return values if copies == 1 else np.repeat(values, copies, axis=0)

    filters = {"min_filter": repeated(smaller), "mag_filter": repeated(larger)}
    resample_torch(folded(out), folded(x), repeated(starts), repeated(ends), **filters, antialias=antialias)
