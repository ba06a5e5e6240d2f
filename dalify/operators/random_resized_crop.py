"""Crop a random window and resize it: the standard augmentation for training classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data import Batch, DALIDataType
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.resize_geometry import spatial_axes
from dalify.parameter_groups.normalization import AFTER_RESIZE, can_follow_resize
from dalify.parameter_groups.random_crop import RandomCrop
from dalify.parameter_groups.resize import Filters, result_type
from dalify.registry import VARIES, AnySamples, Spec, argument_names, operator

_LAYOUTS = ("HWC", "CHW", "FHWC", "FCHW", "CFHW")
_MERGED = ("size", *argument_names(Filters, RandomCrop))


@operator(alphabetical=True, random=True)
def random_resized_crop(
    x: Spec,
    /,
    *,
    filters: Filters,
    dtype: DALIDataType | None = None,
    random_crop: RandomCrop,
    size: list[int],
) -> Spec:
    """Crop a window of random area, aspect ratio and position, and resize it.

    The window is the same for all frames of a sequence. The filter reads pixels around the window, as in DALI.

    Args:
        x: images HWC or CHW, or sequences of them; any numeric dtype.
        dtype: dtype of `x` (default) or FLOAT.
        size: height and width of the result in pixels, or one number for both.

    Returns:
        Same layout, extents `size`.

    Raises:
        ArgumentValueError: an invalid range or size.
        ShapeError: an empty image.
        LayoutError: the data is not images or sequences.

    Example:
        >>> images = fn.random_resized_crop(images, size=224)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    random_crop.check()
    if len(size) not in (1, 2) or min(size) < 1:
        raise ArgumentValueError(
            f"size must be one or two positive numbers, height and width; got {list(size)}.", argument="size"
        )
    result = x.replace(dtype=result_type(x, dtype))
    if x.shape is None:
        return result
    first, last = spatial_axes(x.layout or "")
    return result.replace(shape=(*x.shape[:first], size[0], size[-1], *x.shape[last:]))


@random_resized_crop.geometry
def _(x: Batch, *, spec: Spec, draws: Any, random_crop: RandomCrop, size: tuple[int, ...]) -> dict[str, Any]:
    first, last = spatial_axes(visual_layout(spec, _LAYOUTS))
    shapes = x.shape_array()
    windows = random_crop.windows(shapes[:, first:last], draws)
    start = windows[:, :2].astype(np.float32)
    out_shapes = shapes.copy()
    out_shapes[:, first], out_shapes[:, first + 1] = size[0], size[-1]
    return {"start": start, "end": start + windows[:, 2:].astype(np.float32), "out_shapes": out_shapes}


@random_resized_crop.cpu_samples
@random_resized_crop.gpu_samples
def _(out: AnySamples, x: AnySamples, *, out_spec: Spec, start: np.ndarray, end: np.ndarray, filters: Filters) -> None:
    filters.resample(out, x, out_spec.layout or "", start, end)


@random_resized_crop.before(
    "crop_mirror_normalize", "merges", into="_random_resized_crop_normalize", takes=AFTER_RESIZE, keeps=_MERGED
)
def _(crop: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    size = crop["size"]
    return set(crop) <= {*_MERGED, "dtype"} and can_follow_resize(
        crop, normalize, source, device, (size[0], size[-1]) if size is not VARIES else None
    )
