"""Crop, mirror, normalize and transpose images, usually as the last step of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import LayoutError
from dalify.base.small_arrays import columns_at
from dalify.data import Batch, DALIDataType
from dalify.kernels.arrays.convert import constants_in_range
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.normalize_axes import normalize_axes
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS
from dalify.parameter_groups.crop import CropWindow, OutOfBounds
from dalify.parameter_groups.normalization import Normalization, check_channel_values
from dalify.registry import AnySamples, Spec, Vectors, operator


@operator(alphabetical=True, stores_any_float=True)
def crop_mirror_normalize(
    x: Spec,
    /,
    *,
    window: CropWindow,
    dtype: DALIDataType = DALIDataType.FLOAT,
    bounds: OutOfBounds,
    normalization: Normalization,
    pad_output: bool = False,
) -> Spec:
    """Crop a window, mirror it, and normalize it: ``scale * (window - mean) / std + shift``, in float32.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, or sequences of them, any dtype.
        dtype: element type of the result; integers are rounded half away from zero and saturated.
        fill_values: values of the result outside the sample, one for all channels or one per channel; used with
            ``pad``. In integer types, fractions are truncated, and values out of range keep their lowest bits: -1 is
            255 in uint8.
        out_of_bounds_policy: ``error``: windows must be inside the sample; ``pad`` (``constant``, ``const``): pixels
            outside the sample are filled with `fill_values`; ``trim_to_shape``: windows are clipped to the sample.
        pad_output: add channels up to the next power of two. They contain zeros, or with ``pad`` the single fill
            value, or the fill values that are specified for these channels.

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
    window.check(bounds)
    target = normalization.output_layout or layout
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
    _check_fill_values(bounds, channels, pad_output)
    letters = layout.replace("C", "")
    cropped = window.extents(letters, [x.extent(letter) for letter in letters])
    extents = dict(zip(letters, cropped, strict=True)) | {"C": _padded(channels, pad_output)}
    return result.replace(shape=tuple(extents[letter] for letter in target))


def _check_fill_values(bounds: OutOfBounds, channels: int | np.ndarray, pad_output: bool) -> None:
    """Check the number of fill values, if they are used; channels that `pad_output` adds may also have one."""
    if bounds.is_filling:
        count = len(bounds.fill_values)
        is_padded = pad_output and all(_padded(given, True) == count for given in np.atleast_1d(channels).tolist())
        if not is_padded:
            bounds.check_channels(channels)


def _padded(channels: int, pad_output: bool) -> int:
    """Return the number of channels of the result: with `pad_output`, the next power of two."""
    return 1 << (channels - 1).bit_length() if pad_output and channels else channels


@crop_mirror_normalize.geometry
def _(
    x: Batch,
    *,
    spec: Spec,
    window: CropWindow,
    bounds: OutOfBounds,
    output_layout: str,
    pad_output: bool,
    mean: Vectors,
    std: Vectors,
) -> dict[str, Any]:
    layout = visual_layout(spec, VISUAL_LAYOUTS)
    shapes, axis = x.shape_array(), layout.index("C")
    channels = shapes[:, axis]
    _check_fill_values(bounds, channels, pad_output)
    check_channel_values(mean, std, channels)
    start, windows = window.windows(shapes, layout, bounds.out_of_bounds_policy)
    if pad_output:
        windows[:, axis] = [_padded(count, pad_output) for count in channels.tolist()]
    order = [layout.index(letter) for letter in output_layout or layout]
    return {"start": start, "out_shapes": columns_at(windows, order)}


@crop_mirror_normalize.cpu_samples
@crop_mirror_normalize.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    spec: Spec,
    out_spec: Spec,
    start: np.ndarray,
    bounds: OutOfBounds,
    normalization: Normalization,
) -> None:
    layout = visual_layout(spec, VISUAL_LAYOUTS)
    fill_values = bounds.fill_values if bounds.is_filling else (0.0,)
    assert out_spec.dtype is not None, "dalify bug: a kernel without the type of its result"
    normalize_axes(
        out,
        x,
        layout,
        out_spec.layout or "",
        start,
        **normalization.values,
        fill_values=constants_in_range(fill_values, out_spec.dtype.numpy),
    )
