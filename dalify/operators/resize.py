"""Resize images, sequences and volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS
from dalify.kernels.images.resize_geometry import spatial_axes
from dalify.parameter_groups.colors import Colors
from dalify.parameter_groups.normalization import AFTER_RESIZE, can_follow_resize
from dalify.parameter_groups.resize import Filters, ResizeSize, result_type
from dalify.registry import VARIES, AnySamples, Spec, argument_names, operator

_OF_CROP = ("crop", "crop_h", "crop_w", "crop_pos_x", "crop_pos_y", "rounding")
_EXACT_PARTS = 256
_VECTOR_PIXELS = 4  # narrower results are summed one by one, not in vectors, and rounded differently
_MERGED = argument_names(Filters, ResizeSize)


@operator(alphabetical=True, outputs=lambda arguments: 2 if arguments.get("save_attrs") else 1)
def resize(
    x: Spec,
    /,
    *,
    filters: Filters,
    dtype: DALIDataType | None = None,
    target: ResizeSize,
    save_attrs: bool = False,
) -> Spec | tuple[Spec, Spec]:
    """Resize images, each frame of a sequence, or volumes.

    Pixel values are at the centers of the pixels. Downscaling is antialiased: the filter grows with the scale
    (`antialias`). Border pixels are replicated outside the image. The size must be specified in exactly one way.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, sequences with F first (or CFHW); any numeric dtype.
        dtype: dtype of `x` (default) or FLOAT. Integers are rounded; on the CPU, halves are rounded to even or away
            from zero, depending on their position in the row, as in DALI. On a GPU, halves are rounded to even, and in
            results narrower than 16 pixels away from zero.
        save_attrs: also return the extents before the resize, int32 ``[spatial axes]``.

    Returns:
        Same layout, new extents.

    Raises:
        ArgumentValueError: no size, or several; an unknown mode.
        LayoutError: the data is not images, volumes or sequences.
        DTypeError: a `dtype` that is neither FLOAT nor the dtype of `x`.

    Example:
        >>> images = fn.resize(images, resize_shorter=256)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, VISUAL_LAYOUTS))
    result = x.replace(dtype=result_type(x, dtype))
    target.check()
    first, last = spatial_axes(x.layout or "")
    if x.shape is not None:
        geometry = target.geometry(x.shape[first:last])
        result = result.replace(shape=(*x.shape[:first], *geometry.size, *x.shape[last:]))
    if not save_attrs:
        return result
    known = None if x.shape is None else (last - first,)
    return result, Spec(DALIDataType.INT32, 1, "", known, x.device)


@resize.geometry
def _(x: Batch, *, spec: Spec, target: ResizeSize, save_attrs: bool) -> dict[str, Any]:
    first, last = spatial_axes(visual_layout(spec, VISUAL_LAYOUTS))
    shapes = x.shape_array()
    sizes, start, end = target.edges(shapes[:, first:last])
    windows = {"start": start, "end": end}
    if save_attrs:  # the outputs then have different shapes, which the rule computes
        return windows
    out_shapes = shapes.copy()
    out_shapes[:, first:last] = sizes
    return {**windows, "out_shapes": out_shapes}


@resize.cpu_samples
@resize.gpu_samples
def _(
    out: AnySamples,
    *attributes_and_input: AnySamples,
    out_spec: Spec,
    start: np.ndarray,
    end: np.ndarray,
    filters: Filters,
) -> None:
    *attributes, x = attributes_and_input
    layout = out_spec.layout or ""
    filters.resample(out, x, layout, start, end)
    first, last = spatial_axes(layout)
    for attribute in attributes:
        if isinstance(attribute, Samples):
            for extents, shape in zip(attribute.arrays(), x.shapes, strict=True):
                extents[:] = shape[first:last]
        else:
            attribute.block.copy_(uploaded(x.shapes[:, first:last].reshape(-1), attribute.device))


@resize.before(
    "crop_mirror_normalize", "merges", into="_resize_crop_mirror_normalize", takes=AFTER_RESIZE, keeps=_MERGED
)
def _(resize: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    return set(resize) <= {*_MERGED, "dtype"} and can_follow_resize(resize, normalize, source, device, None)


@resize.before(
    "_color_twist_normalize",
    "merges",
    into="_resize_twist_normalize",
    takes=(*argument_names(Colors), *AFTER_RESIZE),
    keeps=_MERGED,
)
def _(resize: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    """Return whether the operators can be fused.

    The color operator must specify `brightness`, because errors about channels name the call with this argument.
    """
    is_usual = device == "cpu" and source.layout == "HWC" and "brightness" in normalize
    return is_usual and set(resize) <= {*_MERGED, "dtype"}


@resize.before("crop_mirror_normalize", "moves", into="_resize_crop", takes=_OF_CROP)
def _(resize: Mapping[str, Any], crop: Mapping[str, Any], source: Spec, device: str) -> bool:
    """Return whether the crop window is always inside the resized image and no other option prevents fusion."""
    if source.layout != "HWC" or any(crop.get(name) is VARIES for name in (*_OF_CROP, "crop_d")) or crop.get("crop_d"):
        return False
    # The operators compute positions in different precisions; for numbers with few binary digits, such as 0.5, both are
    # exact.
    if any(crop.get(name, 0.5) * _EXACT_PARTS % 1 for name in ("crop_pos_x", "crop_pos_y")):
        return False
    window = crop.get("crop") or (crop.get("crop_h", 0), crop.get("crop_w", 0))
    minimum = _minimum_size(resize)
    if len(window) != 2 or minimum is None or not all(0 < a <= b for a, b in zip(window, minimum, strict=True)):
        return False
    return window[1] >= _VECTOR_PIXELS


def _minimum_size(arguments: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the minimum height and width of the result of a resize for any image; None if unknown."""
    if any(value is VARIES for value in arguments.values()):
        return None
    sizes = {name for name in arguments if name in ("size", "resize_shorter", "resize_longer", "resize_x", "resize_y")}
    if arguments.get("max_size") is not None or arguments.get("mode", "default") != "default" or len(sizes) != 1:
        return None
    if "resize_shorter" in arguments:
        return (arguments["resize_shorter"],) * 2
    size = arguments.get("size", ())
    return (size[0], size[1]) if len(size) == 2 and min(size) > 0 else None
