"""Crop a window from images, sequences and volumes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.arrays.gather import BORDERS, channel_fill, copy_bordered_window, copy_window_torch, copy_windows
from dalify.kernels.images.crop_geometry import (
    FILLING,
    POLICIES,
    check_crop_arguments,
    check_fill_values,
    chunk_windows,
    crop_extents,
)
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS
from dalify.registry import PerSample, Shaping, Spec, operator


@operator
def crop(
    x: Spec,
    /,
    *,
    crop: Shaping[list[float]] | None = None,
    crop_d: Shaping[float] = 0.0,
    crop_h: Shaping[float] = 0.0,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: Shaping[float] = 0.0,
    dtype: DALIDataType | None = None,
    fill_values: list[float] = [0.0],  # noqa: B006 -- the signature is the schema; the list is never mutated
    out_of_bounds_policy: str = "error",
    rounding: str = "round",
) -> Spec:
    """Crop a window from each sample.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, or sequences of them, any dtype.
        crop: extents of the window in pixels for the last axes of D (or F), H, W: [height, width] or
            [depth, height, width]; fractions are truncated. Without any extents the whole sample is taken.
        crop_d: depth of the window; 0: all of it.
        crop_h: height of the window, with `crop_w`.
        crop_pos_x: position of the window, 0 (left) to 1 (right): it starts at ``crop_pos_x * (W - width)``.
        crop_pos_y: vertical position, 0 (top) to 1 (bottom).
        crop_pos_z: position along D (or F), 0 to 1.
        crop_w: width of the window, with `crop_h`.
        dtype: element type of the result; floats are truncated and saturated for integers. That of `x` by default.
        fill_values: values outside the sample, one for all channels or one each; with ``pad``. Integers are
            truncated and saturated.
        out_of_bounds_policy: ``error``: windows must be inside the sample; ``pad`` (or ``constant``, ``const``): the
            outside is filled with `fill_values`; ``trim_to_shape``: windows are clipped; ``edge`` (``clamp``),
            ``reflect`` (``reflect_1001``), ``reflect_101``, ``wrap``: the sample is extended, as in ``fn.slice``.
        rounding: how the start of the window is rounded: ``round`` (half away from zero) or ``truncate``.

    Returns:
        Same layout, extents of the window.

    Raises:
        ArgumentValueError: contradictory arguments, or a position outside [0, 1].
        IndexingError: a window extends outside its sample and the policy is ``error``.
        LayoutError: the data is not images, volumes or sequences.

    Example:
        >>> images = fn.crop(images, crop=[224, 224])  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, VISUAL_LAYOUTS))
    shaping = {"crop": crop, "crop_d": crop_d, "crop_h": crop_h, "crop_w": crop_w}
    check_crop_arguments(rounding=rounding, policy=out_of_bounds_policy, policies=(*POLICIES, *BORDERS), **shaping)
    result = x.replace(dtype=x.dtype if dtype is None else dtype)
    if x.shape is None or x.layout is None:
        return result
    if out_of_bounds_policy in FILLING:
        check_fill_values(fill_values, x.extent("C"))
    letters = x.layout.replace("C", "")
    window = crop_extents(letters, [x.extent(letter) for letter in letters], **shaping)
    return result.with_extents(dict(zip(letters, window, strict=True)))


@crop.geometry
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
    out_of_bounds_policy,
    fill_values,
):
    layout = visual_layout(spec, VISUAL_LAYOUTS)
    shapes = x.shape_array()
    if out_of_bounds_policy in FILLING:
        check_fill_values(fill_values, shapes[:, layout.index("C")])
    shaping = {"crop": crop, "crop_d": crop_d, "crop_h": crop_h, "crop_w": crop_w}
    positions = {"crop_pos_x": crop_pos_x, "crop_pos_y": crop_pos_y, "crop_pos_z": crop_pos_z}
    anchors, windows = chunk_windows(shapes, layout, shaping, positions, rounding, out_of_bounds_policy)
    axes = [layout.index(letter) for letter in layout.replace("C", "")]
    begin, out_shapes = np.zeros_like(shapes), shapes.copy()
    begin[:, axes], out_shapes[:, axes] = anchors, windows
    return {"begin": begin, "out_shapes": out_shapes}


@crop.cpu_samples
@crop.gpu_samples
@crop.gpu
def _(out, x, *, out_spec, begin, out_of_bounds_policy, fill_values):
    if out_of_bounds_policy in BORDERS:
        copy_bordered_window(out, x, begin, out_of_bounds_policy)
        return
    copy: Any = copy_windows if isinstance(x, Samples) else copy_window_torch
    fills = fill_values if out_of_bounds_policy in FILLING else fill_values[:1]  # else without effect
    copy(out, x, begin, fill=channel_fill(fills, out_spec.layout, is_float=out_spec.dtype.is_float))
