"""Resample data of any visual layout on either device: fold what stands before the spatial axes into the group.

Alone in a file because all resizing operators share it, and neither device's kernel has to know layouts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.data.dtypes import DALIInterpType
from dalify.kernels.frozen import spread
from dalify.kernels.resample import resample
from dalify.kernels.resample_torch import resample_torch
from dalify.kernels.resize_geometry import spatial_axes

__all__ = ["VISUAL_LAYOUTS", "resample_axes"]

VISUAL_LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")


def resample_axes(
    out: Any,
    x: Any,
    layout: str,
    start: Any,
    end: Any,
    *,
    interp_type: np.ndarray | None,
    min_filter: np.ndarray | None,
    mag_filter: np.ndarray | None,
    antialias: bool,
) -> None:
    """Resample the spatial axes of a group.

    Args:
        out: [N, ...], to fill; array or tensor.
        x: [N, ...], of the same kind.
        layout: of one sample, one of `VISUAL_LAYOUTS`.
        start: where the windows begin on each spatial axis, [k] for the whole group or [N, k].
        end: where they end.
        interp_type: [N] filters of both directions, or None: linear.
        min_filter: [N] filters for axes that shrink, or None: `interp_type`.
        mag_filter: [N] filters for other axes, or None: `interp_type`.
        antialias: widen filters with the scale of a reduction.
    """
    first, last = spatial_axes(layout)
    samples = x.shape[0]
    copies = math.prod(x.shape[1 : 1 + first])

    def folded(data: Any) -> Any:
        channels = data.shape[1 + last] if last < len(layout) else 1
        return data.reshape(samples * copies, *data.shape[1 + first : 1 + last], channels)

    def repeated(values: np.ndarray) -> np.ndarray:
        return values if copies == 1 else np.repeat(values, copies, axis=0)

    def window(corner: Any) -> np.ndarray:
        return repeated(spread(corner, (samples, last - first), np.float32))

    both = spread(int(DALIInterpType.INTERP_LINEAR), (samples,), np.int32) if interp_type is None else interp_type
    kernel = resample if isinstance(x, np.ndarray) else resample_torch
    kernel(
        folded(out),
        folded(x),
        window(start),
        window(end),
        min_filter=repeated(both if min_filter is None else min_filter),
        mag_filter=repeated(both if mag_filter is None else mag_filter),
        antialias=antialias,
    )
