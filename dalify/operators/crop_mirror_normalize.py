"""Crop, mirror, normalize and transpose images, usually as the last step of a pipeline."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import LayoutError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.kernels.images.crop_geometry import (
    FILLING,
    check_crop_arguments,
    check_fill_values,
    chunk_windows,
    crop_extents,
)
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.normalize_axes import normalize_axes
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS
from dalify.registry import PerSample, Shaping, Spec, operator


@operator
def crop_mirror_normalize(
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
    dtype: DALIDataType = DALIDataType.FLOAT,
    fill_values: list[float] = [0.0],  # noqa: B006 -- the signature is the schema; the list is never mutated
    mean: PerSample[list[float]] = [0.0],  # noqa: B006
    mirror: PerSample[int] = 0,
    out_of_bounds_policy: str = "error",
    output_layout: str = "CHW",
    pad_output: bool = False,
    rounding: str = "round",
    scale: float = 1.0,
    shift: float = 0.0,
    std: PerSample[list[float]] = [1.0],  # noqa: B006
) -> Spec:
    """Crop a window, mirror it, and normalize it: ``scale * (window - mean) / std + shift``, in float32.

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
        dtype: element type of the result; integers are rounded half away from zero and saturated.
        fill_values: values of the result outside the sample, one for all channels or one each; with ``pad``.
            Integers are truncated and saturated.
        mean: subtracted; one number for all channels or one each, in units of `x` (0..255 for uint8).
        mirror: non-zero reverses W after the crop.
        out_of_bounds_policy: ``error``: windows must be inside the sample; ``pad`` (``constant``, ``const``): the
            outside is filled with `fill_values`; ``trim_to_shape``: windows are clipped.
        output_layout: order of the axes of the result, a permutation of the input's.
        pad_output: add channels up to the next power of two: of zeros, or of a single fill value with ``pad``.
        rounding: how the start of the window is rounded: ``round`` (half away from zero) or ``truncate``.
        scale: multiplier of the normalized values.
        shift: added at the end.
        std: divisor; one number for all channels or one each.

    Returns:
        dtype `dtype`, layout `output_layout`, extents of the window.

    Raises:
        ArgumentValueError: contradictory arguments, or a position outside [0, 1].
        IndexingError: a window extends outside its sample and the policy is ``error``.
        LayoutError: the data is not images, volumes or sequences, or `output_layout` is not a permutation of the input
            layout.
        ShapeError: the number of means or standard deviations is neither 1 nor the number of channels.

    Example:
        >>> mean, std = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
        >>> images = fn.crop_mirror_normalize(images, crop=[224, 224], mean=mean, std=std)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, VISUAL_LAYOUTS))
    layout = x.layout or ""
    shaping = {"crop": crop, "crop_d": crop_d, "crop_h": crop_h, "crop_w": crop_w}
    check_crop_arguments(rounding=rounding, policy=out_of_bounds_policy, **shaping)
    target = output_layout or layout
    if sorted(target) != sorted(layout):
        spatial = "".join(letter for letter in layout if letter in "DHW")
        raise LayoutError(
            f"output_layout {target!r} must be a permutation of the input layout {layout!r}.",
            hint=f"For example output_layout={'F' * ('F' in layout) + 'C' + spatial!r}.",
        )
    result = Spec(dtype, x.ndim, target, None, x.device)
    if x.shape is None:
        return result
    channels = x.extent("C")
    if out_of_bounds_policy in FILLING or len(fill_values) != 1:
        check_fill_values(fill_values, channels)
    letters = layout.replace("C", "")
    window = crop_extents(letters, [x.extent(letter) for letter in letters], **shaping)
    extents = dict(zip(letters, window, strict=True)) | {"C": _padded(channels, pad_output)}
    return result.replace(shape=tuple(extents[letter] for letter in target))


def _padded(channels: int, pad_output: bool) -> int:
    """Return the number of channels of the result: with `pad_output`, the next power of two."""
    return 1 << (channels - 1).bit_length() if pad_output and channels else channels


@crop_mirror_normalize.geometry
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
    output_layout,
    pad_output,
    fill_values,
    mean,
    std,
):
    layout = visual_layout(spec, VISUAL_LAYOUTS)
    shapes = x.shape_array()
    channels = shapes[:, layout.index("C")]
    if out_of_bounds_policy in FILLING or len(fill_values) != 1:
        check_fill_values(fill_values, channels)
    for name, values in (("mean", mean), ("std", std)):
        counts = np.array([len(row) for row in values]) if isinstance(values, list) else values.shape[1]
        wrong = np.flatnonzero((counts != 1) & (counts != channels))
        if len(wrong):
            sample = int(wrong[0])
            raise ShapeError(
                f"{name} must be one number or one for each of the {channels[sample]} channels; got "
                f"{len(values[sample])}.",
                sample=sample,
            )
    shaping = {"crop": crop, "crop_d": crop_d, "crop_h": crop_h, "crop_w": crop_w}
    positions = {"crop_pos_x": crop_pos_x, "crop_pos_y": crop_pos_y, "crop_pos_z": crop_pos_z}
    anchors, windows = chunk_windows(shapes, layout, shaping, positions, rounding, out_of_bounds_policy)
    extents = dict(zip(layout.replace("C", ""), windows.T, strict=True))
    extents["C"] = np.array([_padded(count, pad_output) for count in channels.tolist()], np.int64)
    out_shapes = np.stack([extents[letter] for letter in output_layout or layout], 1)
    return {"anchors": anchors, "out_shapes": out_shapes}


@crop_mirror_normalize.cpu_samples
@crop_mirror_normalize.gpu_samples
@crop_mirror_normalize.triton
def _(
    out,
    x,
    *,
    spec,
    out_spec,
    anchors,
    out_of_bounds_policy,
    fill_values,
    mirror,
    mean,
    std,
    scale,
    shift,
):
    layout = visual_layout(spec, VISUAL_LAYOUTS)
    fills = fill_values if out_of_bounds_policy in FILLING else (0.0,)
    normalize_axes(
        out,
        x,
        layout,
        out_spec.layout,
        dict(zip(layout.replace("C", ""), anchors.T, strict=True)),
        mirror=mirror,
        mean=mean,
        std=std,
        scale=scale,
        shift=shift,
        fill_values=fills if out_spec.dtype.is_float else [float(np.trunc(value)) for value in fills],
    )
