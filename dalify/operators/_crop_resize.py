"""Resize a window of each sample, which is not copied.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.strided import contiguous
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS
from dalify.kernels.images.resize_geometry import spatial_axes
from dalify.parameter_groups.crop import CropWindow
from dalify.parameter_groups.resize import Filters, ResizeSize, result_type
from dalify.registry import Spec, operator

# Four dimensions without a layout are a volume, as in DALI.
_LAYOUTS = ("HWC", "DHWC", *VISUAL_LAYOUTS)
# Those whose windows need not be copied.
_STRIDED = ("HWC", "DHWC", "FHWC")


@operator
def _crop_resize(
    x: Spec,
    /,
    *,
    window: CropWindow,
    filters: Filters,
    target: ResizeSize,
    dtype: DALIDataType | None = None,
) -> Spec:
    """Crop a window from each sample and resize it.

    Args:
        x: see ``crop``.
        dtype: see ``resize``.

    Returns:
        see ``resize``.
    """
    layout = visual_layout(x, _LAYOUTS)
    x = x.replace(layout=layout, dtype=result_type(x, dtype))
    window.check()
    target.check()
    if x.shape is None:
        return x
    letters = layout.replace("C", "")
    extents = window.extents(letters, [x.extent(letter) for letter in letters])
    x = x.with_extents(dict(zip(letters, extents, strict=True)))
    first, last = spatial_axes(layout)
    shape = x.shape or ()
    return x.replace(shape=(*shape[:first], *target.geometry(shape[first:last]).size, *shape[last:]))


@_crop_resize.geometry
def _(x: Batch, *, spec: Spec, window: CropWindow, target: ResizeSize) -> dict[str, Any]:
    layout, shapes = visual_layout(spec, _LAYOUTS), x.shape_array()
    crop_start, extents = window.windows(shapes, layout, "error")
    first, last = spatial_axes(layout)
    out_shapes = extents.copy()
    out_shapes[:, first:last], start, end = target.edges(extents[:, first:last])
    return {"crop_start": crop_start, "extents": extents, "start": start, "end": end, "out_shapes": out_shapes}


@_crop_resize.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    out_spec: Spec,
    crop_start: np.ndarray,
    extents: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    filters: Filters,
) -> None:
    layout, windows = out_spec.layout or "", x.window(crop_start, extents)
    filters.resample(out, windows if layout in _STRIDED else contiguous(windows), layout, start, end)
