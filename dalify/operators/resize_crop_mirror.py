"""Resize, crop and mirror in one step, computing only the pixels of the result."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import DTypeError
from dalify.data.dtypes import DALIDataType, DALIInterpType
from dalify.kernels.images.crop_geometry import check_crop_arguments, chunk_anchors, chunk_extents, crop_extents
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS, resample_axes
from dalify.kernels.images.resize_geometry import check_resize_arguments, chunk_geometry, resize_geometry, spatial_axes
from dalify.registry import PerSample, Shaping, Spec, operator

# Bits of `mirror`.
_MIRRORED_BY = {"W": 1, "H": 2, "D": 4}


@operator
def resize_crop_mirror(
    x: Spec,
    /,
    *,
    antialias: bool = True,
    crop: Shaping[list[float]] | None = None,
    crop_d: Shaping[float] = 0.0,
    crop_h: Shaping[float] = 0.0,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: Shaping[float] = 0.0,
    dtype: DALIDataType | None = None,
    interp_type: PerSample[DALIInterpType] | None = None,
    mag_filter: PerSample[DALIInterpType] | None = None,
    max_size: list[float] | None = None,
    min_filter: PerSample[DALIInterpType] | None = None,
    mirror: PerSample[int] = 0,
    mode: str = "default",
    resize_longer: Shaping[float] | None = None,
    resize_shorter: Shaping[float] | None = None,
    resize_x: Shaping[float] | None = None,
    resize_y: Shaping[float] | None = None,
    resize_z: Shaping[float] | None = None,
    roi_end: Shaping[list[float]] | None = None,
    roi_relative: bool = False,
    roi_start: Shaping[list[float]] | None = None,
    rounding: str = "round",
    size: Shaping[list[float]] | None = None,
    subpixel_scale: bool = True,
) -> Spec:
    """Resize, crop and mirror in one step, like fn.resize, fn.crop and fn.flip in a row.

    A crop window can extend outside the resized image, where the border of the source is replicated.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, sequences with F first (or CFHW); any numeric dtype.
        antialias: as in fn.resize, like all arguments not described here.
        crop: extents of the window in pixels of the resized image, for H and W or D, H and W; by default all of it.
        crop_d: depth of the window; 0: all of it.
        crop_h: height of the window, with `crop_w`.
        crop_pos_x: position of the window, 0 (left) to 1 (right).
        crop_pos_y: position of the window, 0 (top) to 1 (bottom).
        crop_pos_z: position of the window along D, 0 to 1.
        crop_w: width of the window, with `crop_h`.
        dtype: dtype of `x` (default) or FLOAT.
        interp_type: filter for downscaling and upscaling; by default INTERP_LINEAR.
        mag_filter: filter for upscaling.
        max_size: maximum extents of the resized image; 0 or less: no limit.
        min_filter: filter for downscaling.
        mirror: sum of 1 (reverse W), 2 (reverse H) and 4 (reverse D).
        mode: ``default``, ``stretch``, ``not_larger`` or ``not_smaller``.
        resize_longer: extent of the longest axis in pixels.
        resize_shorter: extent of the shortest axis in pixels.
        resize_x: extent of W in pixels.
        resize_y: extent of H in pixels.
        resize_z: extent of D in pixels.
        roi_end: end of the source region.
        roi_relative: the region is in fractions of the extents.
        roi_start: start of the source region.
        rounding: how the start of the window is rounded: ``round`` (half away from zero) or ``truncate``.
        size: extents of the resized image in pixels.
        subpixel_scale: if a computed extent is not an integer, adjust the region to keep the exact scale.

    Returns:
        Same layout, extents of the crop window.

    Raises:
        ArgumentValueError: no size, or several; contradictory crop arguments.
        LayoutError: the data is not images, volumes or sequences.
        DTypeError: a `dtype` that is neither FLOAT nor that of `x`.

    Example:
        >>> images = fn.resize_crop_mirror(images, resize_shorter=256, crop=[224, 224])  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, VISUAL_LAYOUTS))
    if dtype not in (None, x.dtype, DALIDataType.FLOAT):
        raise DTypeError(f"dtype must be the element type of the input or FLOAT; got {dtype!s}.")
    resizing = {
        "size": size,
        "resize_shorter": resize_shorter,
        "resize_longer": resize_longer,
        "resize_x": resize_x,
        "resize_y": resize_y,
        "resize_z": resize_z,
        "roi_start": roi_start,
        "roi_end": roi_end,
    }
    cropping = {"crop": crop, "crop_d": crop_d, "crop_h": crop_h, "crop_w": crop_w}
    check_resize_arguments(mode=mode, **resizing)
    check_crop_arguments(rounding=rounding, **cropping)
    result = x.replace(dtype=dtype or x.dtype)
    if x.shape is None:
        return result
    first, last = spatial_axes(x.layout or "")
    geometry = resize_geometry(
        x.shape[first:last],
        mode=mode,
        max_size=max_size,
        roi_relative=roi_relative,
        subpixel_scale=subpixel_scale,
        **resizing,
    )
    window = crop_extents((x.layout or "")[first:last], geometry.size, **cropping)
    return result.replace(shape=(*x.shape[:first], *window, *x.shape[last:]))


@resize_crop_mirror.geometry
def _(
    x,
    *,
    spec,
    crop,
    crop_d,
    crop_h,
    crop_w,
    crop_pos_x,
    crop_pos_y,
    crop_pos_z,
    rounding,
    mirror,
    mode,
    max_size,
    roi_relative,
    subpixel_scale,
    size,
    resize_shorter,
    resize_longer,
    resize_x,
    resize_y,
    resize_z,
    roi_start,
    roi_end,
):
    layout = visual_layout(spec, VISUAL_LAYOUTS)
    first, last = spatial_axes(layout)
    letters = layout[first:last]
    shapes = x.shape_array()
    sizes, origin, stop = chunk_geometry(
        shapes[:, first:last],
        mode=mode,
        max_size=max_size,
        roi_relative=roi_relative,
        subpixel_scale=subpixel_scale,
        size=size,
        resize_shorter=resize_shorter,
        resize_longer=resize_longer,
        resize_x=resize_x,
        resize_y=resize_y,
        resize_z=resize_z,
        roi_start=roi_start,
        roi_end=roi_end,
    )
    cropping = {"crop": crop, "crop_d": crop_d, "crop_h": crop_h, "crop_w": crop_w}
    positions = {"crop_pos_x": crop_pos_x, "crop_pos_y": crop_pos_y, "crop_pos_z": crop_pos_z}
    windows = chunk_extents(letters, sizes, cropping)
    # In float64, unlike fn.crop, to match DALI.
    anchors = chunk_anchors(letters, sizes, windows, positions, rounding, "pad", product=np.float64)
    # Map the crop window from pixels of the resized image to pixels of the source.
    scale = (stop - origin) / np.maximum(sizes, 1)
    start, end = origin + anchors * scale, origin + (anchors + windows) * scale
    is_mirrored = np.stack([(mirror & _MIRRORED_BY[letter]) != 0 for letter in letters], 1)
    out_shapes = shapes.copy()
    out_shapes[:, first:last] = windows
    return {
        "start": np.where(is_mirrored, end, start),
        "end": np.where(is_mirrored, start, end),
        "out_shapes": out_shapes,
    }


@resize_crop_mirror.cpu_samples
@resize_crop_mirror.gpu_samples
@resize_crop_mirror.triton
def _(out, x, *, out_spec, start, end, antialias, interp_type, min_filter, mag_filter):
    filters = {"interp_type": interp_type, "min_filter": min_filter, "mag_filter": mag_filter}
    resample_axes(out, x, out_spec.layout, start, end, antialias=antialias, **filters)
