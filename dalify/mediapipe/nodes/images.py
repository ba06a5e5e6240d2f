"""Operators on images and some volumes: crops, flips, resizing, normalization.

Each composes one operator of dalify, for both image layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dalify import fn as dali
from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.data import DALIInterpType
from dalify.graph import DataNode
from dalify.mediapipe.media_types import dtype as types
from dalify.mediapipe.media_types import to_dalify_type
from dalify.mediapipe.node import Value, operator
from dalify.mediapipe.nodes.arithmetic import cast, named


def _applied(x: Value, function: Callable[[DataNode], DataNode]) -> Value:
    """Apply a function that supports images and volumes."""
    return x.with_node(function(x.node)) if "D" in x.layout else x.mapped(function)


def _window(x: Value, width: int, height: int, depth: int, places: tuple[float, float, float]) -> dict[str, Any]:
    sizes = {"crop_w": width, "crop_h": height, **({"crop_d": depth} if "D" in x.layout else {})}
    if depth and "crop_d" not in sizes:
        raise ArgumentValueError(f"crop_d={depth} is only for volumes; the layout is {x.layout!r}.")
    if not any(sizes.values()):
        return {}
    if min(sizes.values()) < 1:
        given = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise ArgumentValueError(f"{', '.join(sizes)} must be positive, or all of them 0; got {given}.")
    positions = zip(("crop_pos_x", "crop_pos_y", "crop_pos_z"), places[: len(sizes)], strict=False)
    return {name: float(number) for name, number in (*sizes.items(), *positions)}


@operator()
def Crop(
    images: Value,
    /,
    *,
    crop_w: int = 100,
    crop_h: int = 100,
    crop_d: int = 0,
    crop_pos_x: float = 0.0,
    crop_pos_y: float = 0.0,
    crop_pos_z: float = 0.0,
    dtype: str | None = None,
) -> Value:
    """Crop a window that starts at ``crop_pos_x * (width - crop_w)`` and so on.

    Args:
        images: images or volumes.
        crop_w: width of the window.
        crop_h: height.
        crop_d: depth, for volumes.
        crop_pos_x: position, 0 (left) to 1 (right). Unlike DALI, the default is the top left corner.
        crop_pos_y: position, 0 (top) to 1.
        crop_pos_z: position, 0 (front) to 1.
        dtype: dtype of the result; by default the dtype of the images.
    """
    options = _window(images, crop_w, crop_h, crop_d, (crop_pos_x, crop_pos_y, crop_pos_z))
    return cast(_applied(images, lambda image: dali.crop(image, **options)), dtype)


@operator()
def CropMirrorNorm(
    images: Value,
    mean: Value,
    inv_std: Value,
    /,
    *,
    mirror: int = 0,
    crop_w: int = 0,
    crop_h: int = 0,
    crop_d: int = 0,
    crop_pos_x: float = 0.0,
    crop_pos_y: float = 0.0,
    crop_pos_z: float = 0.0,
    dtype: str | None = None,
) -> Value:
    """Crop a window, flip it, and return ``(window - mean) * inv_std``.

    Unlike this operator, DALI's divides by a standard deviation and crops the center by default instead of the top
    left.

    Args:
        images: images or volumes.
        mean: one number, or one per channel, in the units of the images.
        inv_std: factor, one number or one per channel.
        mirror: 1 flips horizontally.
        crop_w: width of the window; 0, like the others, for the whole image.
        crop_h: height.
        crop_d: depth, for volumes.
        crop_pos_x: position, 0 (left) to 1 (right).
        crop_pos_y: position, 0 (top) to 1.
        crop_pos_z: position, 0 (front) to 1.
        dtype: dtype of the result; FLOAT32 by default.

    Returns:
        images with the same layout.
    """
    _check_flags(mirror=mirror)
    dtype = dtype or types.FLOAT32
    window = _window(images, crop_w, crop_h, crop_d, (crop_pos_x, crop_pos_y, crop_pos_z))
    means, factors = _per_channel(mean), _per_channel(inv_std)
    if means is None or factors is None or any(factor == 0 for factor in factors):
        part = _applied(images, lambda image: dali.crop(image, **window)) if window else images
        part = _applied(part, dali.flip) if mirror else part
        result = part.with_node((part.node - mean.node) * inv_std.node)
        return cast(result.with_node(dali.reinterpret(result.node, layout=images.layout)), dtype)
    # The operator supports both layouts; for an image with both, the one that exists in memory is used.
    source = images.node if images.interleaved is None else images.interleaved
    node = dali.crop_mirror_normalize(
        source,
        mean=means,
        std=[1.0 / factor for factor in factors],
        mirror=mirror,
        dtype=to_dalify_type(dtype),
        output_layout=images.layout,
        **window,
    )
    return replace(images.with_node(node), is_bfloat16=dtype == types.BFLOAT16)


def _per_channel(value: Value) -> list[float] | None:
    """Return the numbers of a constant, one or one per channel; None if it is not such a constant."""
    numbers = value.constant
    if numbers is None or sum(extent > 1 for extent in numbers.shape) > 1:
        return None
    return [float(number) for number in np.ravel(numbers)]


def _mirrored(x: Value, flags: dict[str, Any]) -> Value:
    return _applied(x, lambda image: dali.flip(image, **{"horizontal": 0, **flags}))


@operator()
def RandomFlip(
    images: Value,
    predicate: Value,
    /,
    *,
    horizontal: int = 0,
    vertical: int = 0,
    depthwise: int = 0,
    dtype: str | None = None,
) -> Value:
    """Flip images whose predicate is not 0.

    Args:
        images: images or volumes.
        predicate: one number per image.
        horizontal: 1 flips left to right.
        vertical: 1 flips top to bottom.
        depthwise: 1 flips front to back, for volumes.
        dtype: dtype of the result; by default the dtype of the images.
    """
    chosen = dali.cast(predicate.node, dtype=to_dalify_type(types.INT32))
    flags = _flags(horizontal, vertical, depthwise)
    return cast(_mirrored(images, dict.fromkeys(flags, chosen)), dtype)


@operator()
def Flip(
    images: Value,
    /,
    *,
    horizontal: int = 0,
    vertical: int = 0,
    depthwise: int = 0,
    dtype: str | None = None,
) -> Value:
    """Flip all images; see ``RandomFlip``."""
    return cast(_mirrored(images, dict.fromkeys(_flags(horizontal, vertical, depthwise), 1)), dtype)


def _check_flags(**given: int) -> None:
    for name, value in given.items():
        if value not in (0, 1):
            raise ArgumentValueError(f"{name} must be 0 or 1; got {value!r}.")


def _flags(horizontal: int, vertical: int, depthwise: int) -> list[str]:
    given = {"horizontal": horizontal, "vertical": vertical, "depthwise": depthwise}
    _check_flags(**given)
    if not any(given.values()):
        raise ArgumentValueError("one of horizontal, vertical and depthwise must be 1.")
    return [name for name, value in given.items() if value]


_RESIZE_MODES = {
    0: DALIInterpType.INTERP_NN,
    1: DALIInterpType.INTERP_LINEAR,
    2: DALIInterpType.INTERP_CUBIC,
}


@operator()
def Resize(
    images: Value,
    /,
    *,
    mode: int = 0,
    scaleDim1: float = 1.0,
    scaleDim2: float = 1.0,
    scaleDim3: float = 1.0,
    cubicCoeffA: float = -0.75,
    dtype: str | None = None,
) -> Value:
    """Resize images by factors, without antialiasing.

    Args:
        images: images.
        mode: 0 nearest, 1 linear, 2 cubic.
        scaleDim1: factor of the width.
        scaleDim2: factor of the height.
        scaleDim3: factor of the depth; must be 1.
        cubicCoeffA: accepted but ignored; DALI's value, -0.5, is used.
        dtype: dtype of the result; by default the dtype of the images.

    Returns:
        images of ``round(extent * factor)`` pixels.
    """
    del cubicCoeffA
    if mode not in _RESIZE_MODES:
        raise ArgumentValueError(option_error_text("mode", mode, ["0 (nearest)", "1 (linear)", "2 (cubic)"]))
    if scaleDim3 != 1.0:
        raise ArgumentValueError("scaleDim3 is not supported; use fn.Zoom to resize volumes.")
    if min(scaleDim1, scaleDim2) <= 0:
        raise ArgumentValueError(f"scaleDim1 and scaleDim2 must be positive; got {scaleDim1} and {scaleDim2}.")

    def resized(image: DataNode) -> DataNode:
        shape = image.shape()
        return dali.resize(
            image,
            resize_x=dali.cast(shape[1] * scaleDim1, dtype=to_dalify_type(types.FLOAT32)),
            resize_y=dali.cast(shape[0] * scaleDim2, dtype=to_dalify_type(types.FLOAT32)),
            interp_type=_RESIZE_MODES[mode],
            antialias=False,
        )

    return cast(images.mapped(resized), dtype)


@operator()
def Normalize(
    x: Value,
    /,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    axis: int = 1,
    batch: bool = False,
    dtype: str | None = None,
) -> Value:
    """Return ``scale * (x - mean) / sqrt(variance + 1e-5) + shift`` with the mean and variance of each sample.

    Args:
        x: data with a layout.
        scale: factor.
        shift: added at the end.
        axis: bit mask of the dimensions to reduce; bit 0 is the fastest dimension.
        batch: normalize over the whole batch; not supported.
        dtype: dtype of the result; FLOAT32 by default.
    """
    if batch:
        raise ArgumentValueError("batch=True is not supported: each sample is normalized separately.")
    count = len(named(x, "Normalize"))
    axes = [count - 1 - bit for bit in range(count) if axis >> bit & 1]
    if not axes or axis >> count:
        raise ArgumentValueError(f"axis must be a non-empty bit mask of the {count} dimensions; got {axis:#b}.")
    node = dali.normalize(x.node, axes=sorted(axes), epsilon=1e-5, scale=scale, shift=shift)
    return cast(x.with_node(node), dtype)


@operator()
def GaussianBlur(
    x: Value,
    sigmas: Value,
    /,
    *,
    maxSigma: float = 1.5,
    minSigma: float = 0.5,
    shape: Sequence[int] | None = None,
    dtype: str | None = None,
) -> Value:
    """Blur images or volumes with a Gaussian of one standard deviation per sample.

    Args:
        x: images or volumes.
        sigmas: standard deviations in pixels, positive.
        maxSigma: determines the window size of all samples: ``2 * ceil(3 * maxSigma) + 1``.
        minSigma: accepted but ignored.
        shape: accepted but ignored.
        dtype: dtype of the result.
    """
    del minSigma, shape
    window = 2 * int(np.ceil(3 * maxSigma)) + 1
    return cast(x.with_node(dali.gaussian_blur(x.node, sigma=sigmas.node, window_size=window)), dtype)


_PAD_POLICIES = {0: "pad", 1: "reflect_101", 2: "edge", 3: "reflect"}


@operator()
def Pad(
    x: Value,
    /,
    *,
    pads: Sequence[int],
    mode: int = 0,
    value: float = 0.0,
    dtype: str | None = None,
) -> Value:
    """Pad data on all sides.

    Args:
        x: data with a layout.
        pads: number of elements before the data along each dimension, fastest first; then those after it.
        mode: 0 `value`, 1 reflect without the border, 2 repeat the border, 3 reflect with the border.
        value: padding value of mode 0.
        dtype: dtype of the result.
    """
    count = len(named(x, "Pad"))
    half = len(pads) // 2
    before, after = list(pads[:half]), list(pads[half:])
    if len(pads) % 2 or half < count or any(before[count:]) or any(after[count:]) or min(pads) < 0:
        raise ArgumentValueError(
            f"pads must be {2 * count} numbers that are not negative: {count} before and then {count} after the data, "
            f"one per dimension; got {list(pads)}."
        )
    if mode not in _PAD_POLICIES:
        options = ["0 (value)", "1 (reflect)", "2 (edge)", "3 (symmetric)"]
        raise ArgumentValueError(option_error_text("mode", mode, options))
    front, back = before[:count][::-1], after[:count][::-1]
    node = dali.slice(
        x.node,
        start=[-number for number in front],
        end=x.node.shape() + np.array(back, np.int64),
        axes=list(range(count)),
        out_of_bounds_policy=_PAD_POLICIES[mode],
        fill_values=value,
    )
    return cast(x.with_node(node), dtype)
