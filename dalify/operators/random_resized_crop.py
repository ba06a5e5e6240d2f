"""Crop a random window and resize it: the standard augmentation for training classifiers."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data.dtypes import DALIDataType, DALIInterpType
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.random_crop_window import check_random_crop, draws_per_sample, random_crop_windows
from dalify.kernels.images.resample_axes import resample_axes
from dalify.kernels.images.resize_geometry import spatial_axes
from dalify.registry import PerSample, Spec, operator

_LAYOUTS = ("HWC", "CHW", "FHWC", "FCHW", "CFHW")


@operator(random=True)
def random_resized_crop(
    x: Spec,
    /,
    *,
    antialias: bool = True,
    dtype: DALIDataType | None = None,
    interp_type: PerSample[DALIInterpType] | None = None,
    mag_filter: PerSample[DALIInterpType] | None = None,
    min_filter: PerSample[DALIInterpType] | None = None,
    num_attempts: int = 10,
    random_area: list[float] = [0.08, 1.0],  # noqa: B006 -- the signature is the schema; the list is never mutated
    random_aspect_ratio: list[float] = [3 / 4, 4 / 3],  # noqa: B006 -- DALI prints 1.333333 but uses 4:3
    size: list[int],
) -> Spec:
    """Crop a window of random area, aspect ratio and position, and resize it.

    The window is the same for all frames of a sequence. The filter reads pixels around the window, as in DALI.

    Args:
        x: images HWC or CHW, or sequences of them; any numeric dtype.
        antialias: widen the filter when downscaling.
        dtype: dtype of `x` (default) or FLOAT.
        interp_type: filter for downscaling and upscaling; by default INTERP_LINEAR.
        mag_filter: filter for upscaling; by default `interp_type`.
        min_filter: filter for downscaling; by default `interp_type`.
        num_attempts: maximum number of windows drawn before the largest allowed one is used.
        random_area: minimum and maximum fraction of the image area; uniform.
        random_aspect_ratio: minimum and maximum of width / height; log-uniform.
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
    check_random_crop(random_area, random_aspect_ratio, num_attempts)
    if len(size) not in (1, 2) or min(size) < 1:
        raise ArgumentValueError(f"size must be one or two positive numbers, height and width; got {list(size)}.")
    if dtype not in (None, x.dtype, DALIDataType.FLOAT):
        raise DTypeError(f"dtype must be the element type of the input or FLOAT; got {dtype!s}.")
    result = x.replace(dtype=dtype or x.dtype)
    if x.shape is None:
        return result
    first, last = spatial_axes(x.layout or "")
    return result.replace(shape=(*x.shape[:first], size[0], size[-1], *x.shape[last:]))


@random_resized_crop.geometry
def _(x, *, spec, draws, num_attempts, random_area, random_aspect_ratio, size):
    first, last = spatial_axes(visual_layout(spec, _LAYOUTS))
    shapes = x.shape_array()
    extents = shapes[:, first:last]
    uniforms = draws.uniform(draws_per_sample(num_attempts))
    windows = random_crop_windows(extents, uniforms, random_area, random_aspect_ratio)
    start = windows[:, :2].astype(np.float32)
    out_shapes = shapes.copy()
    out_shapes[:, first], out_shapes[:, first + 1] = size[0], size[-1]
    return {"start": start, "end": start + windows[:, 2:].astype(np.float32), "out_shapes": out_shapes}


@random_resized_crop.cpu_samples
@random_resized_crop.gpu_samples
@random_resized_crop.triton
def _(out, x, *, out_spec, start, end, antialias, interp_type, min_filter, mag_filter):
    filters = {"interp_type": interp_type, "min_filter": min_filter, "mag_filter": mag_filter}
    resample_axes(out, x, out_spec.layout, start, end, antialias=antialias, **filters)
