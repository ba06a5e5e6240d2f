"""Crop a window from images, sequences and volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType
from dalify.kernels.arrays.gather import BORDERS
from dalify.kernels.images.crop_geometry import POLICIES
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS
from dalify.parameter_groups.crop import CropWindow, OutOfBounds
from dalify.parameter_groups.resize import Filters, ResizeSize
from dalify.registry import AnySamples, Spec, argument_names, operator

# Four dimensions without a layout are a volume, as in DALI.
_LAYOUTS = ("HWC", "DHWC", *VISUAL_LAYOUTS)
_OF_WINDOW = argument_names(CropWindow)
_OF_RESIZE = (*argument_names(Filters, ResizeSize), "dtype")


@operator(alphabetical=True)
def crop(x: Spec, /, *, window: CropWindow, dtype: DALIDataType | None = None, bounds: OutOfBounds) -> Spec:
    """Crop a window from each sample.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, or sequences of them, any dtype.
        dtype: element type of the result; floats are truncated and saturated for integers. That of `x` by default.

    Returns:
        Same layout, extents of the window.

    Raises:
        ArgumentValueError: contradictory arguments, or a position outside [0, 1].
        IndexingError: a window extends outside its sample and the policy is ``error``.
        LayoutError: the data is not images, volumes or sequences.

    Example:
        >>> images = fn.crop(images, crop=[224, 224])  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    window.check(bounds, (*POLICIES, *BORDERS))
    result = x.replace(dtype=x.dtype if dtype is None else dtype)
    if x.shape is None or x.layout is None:
        return result
    if bounds.is_filling:
        bounds.check_channels(x.extent("C"))
    letters = x.layout.replace("C", "")
    extents = window.extents(letters, [x.extent(letter) for letter in letters])
    return result.with_extents(dict(zip(letters, extents, strict=True)))


@crop.geometry
def _(x: Batch, *, spec: Spec, window: CropWindow, bounds: OutOfBounds) -> dict[str, Any]:
    layout = visual_layout(spec, _LAYOUTS)
    shapes = x.shape_array()
    if bounds.is_filling:
        bounds.check_channels(shapes[:, layout.index("C")])
    start, out_shapes = window.windows(shapes, layout, bounds.out_of_bounds_policy)
    return {"start": start, "out_shapes": out_shapes}


@crop.cpu_samples
@crop.gpu_samples
def _(out: AnySamples, x: AnySamples, *, out_spec: Spec, start: np.ndarray, bounds: OutOfBounds) -> None:
    bounds.copy(out, x, start, out_spec, out_spec.layout or "")


@crop.before("resize", "merges", into="_crop_resize", takes=_OF_RESIZE, keeps=_OF_WINDOW)
def _(crop: Mapping[str, Any], resize: Mapping[str, Any], source: Spec, device: str) -> bool:
    """Return whether `_crop_resize` supports all arguments. Only on the CPU, where the copy takes most of the time."""
    return device == "cpu" and set(crop) <= set(_OF_WINDOW) and set(resize) <= set(_OF_RESIZE)
