"""Replace some pixels by black or white."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import LayoutError
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.convert import saturate_cast
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.random.distributions import column, column_torch
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import check_probability
from dalify.registry import PerSample, Spec, operator


@operator(random=True)
def salt_and_pepper(
    x: Spec,
    /,
    *,
    pepper_val: PerSample[float] | None = None,
    per_channel: bool = False,
    prob: PerSample[float] = 0.05,
    salt_val: PerSample[float] | None = None,
    salt_vs_pepper: PerSample[float] = 0.5,
) -> Spec:
    """Replace some pixels by a low value ("pepper") or a high one ("salt").

    Args:
        x: data with channels (C) first or last; without a layout, last.
        pepper_val: low value; by default the minimum of the type, -1 for floats. Saturated to the type.
        per_channel: choose per channel instead of per pixel.
        prob: probability that a pixel is replaced, 0 to 1.
        salt_val: high value; by default the maximum of the type, 1 for floats.
        salt_vs_pepper: probability that a replaced pixel is salt, 0 to 1.

    Returns:
        same shape, type and layout.

    Raises:
        LayoutError: the channels are neither the first nor the last axis.
        ArgumentValueError: a probability outside [0, 1].

    Example:
        >>> spotted = fn.noise.salt_and_pepper(images, prob=0.01)  # doctest: +SKIP
    """
    if not per_channel and x.layout and x.layout.find("C") not in (0, len(x.layout) - 1):
        raise LayoutError(
            f"channels must be the first or the last axis; the layout is {x.layout!r}.",
            hint="Transpose the data, or use per_channel=True.",
        )
    return x


def _pixels(spec: Spec, shape: tuple[int, ...], *, per_channel: bool) -> tuple[int, ...]:
    """Return the shape of the random choices for one sample; it broadcasts against the sample."""
    if per_channel or not shape:
        return shape
    if spec.layout and spec.layout[0] == "C" and spec.layout[-1] != "C":
        return (1, *shape[1:])
    return (*shape[:-1], 1)


def _pixels_and_channels(spec: Spec, shape: list[int], *, per_channel: bool) -> tuple[int, int]:
    """Return the shape of a sample with all pixels along one axis, in the order of its elements."""
    if per_channel or not shape:
        return math.prod(shape), 1
    if spec.layout and spec.layout[0] == "C" and spec.layout[-1] != "C":
        return shape[0], math.prod(shape[1:])
    return math.prod(shape[:-1]), shape[-1]


def _values(given: Any, default: float, dtype: np.dtype[Any], count: int) -> np.ndarray:
    """Return one value of the data's type per sample."""
    values = np.empty(count, dtype)
    saturate_cast(values, np.full(count, default) if given is None else np.asarray(given, np.float32))
    return values


def _extremes(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        return -1.0, 1.0
    if dtype.kind == "b":
        return 0.0, 1.0
    limits = np.iinfo(dtype)
    return float(limits.min), float(limits.max)


@salt_and_pepper.cpu
def _(
    out: np.ndarray,
    x: np.ndarray,
    *,
    pepper_val: np.ndarray | None,
    per_channel: bool,
    prob: np.ndarray,
    salt_val: np.ndarray | None,
    salt_vs_pepper: np.ndarray,
    spec: Spec,
    draws: SampleDraws,
) -> None:
    check_probability("prob", prob)
    check_probability("salt_vs_pepper", salt_vs_pepper)
    pixels = _pixels(spec, x.shape[1:], per_channel=per_channel)
    u = draws.uniform(int(np.prod(pixels)), np.float32)
    low, high = _extremes(x.dtype)
    samples = (len(x), *[1] * len(pixels))
    decisions = (len(x), *pixels)
    is_hit = (u < column(prob)).reshape(decisions)
    is_salt = (u < column(prob) * column(salt_vs_pepper)).reshape(decisions)
    pepper = _values(pepper_val, low, x.dtype, len(x)).reshape(samples)
    salt = _values(salt_val, high, x.dtype, len(x)).reshape(samples)
    np.copyto(out, x)
    np.copyto(out, np.where(is_salt, salt, pepper), where=is_hit)


@salt_and_pepper.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    pepper_val: np.ndarray | None,
    per_channel: bool,
    prob: np.ndarray,
    salt_val: np.ndarray | None,
    salt_vs_pepper: np.ndarray,
    spec: Spec,
    draws: SampleDraws,
) -> None:
    check_probability("prob", prob)
    check_probability("salt_vs_pepper", salt_vs_pepper)
    # Pixels along one axis: a number belongs to the number of the pixel.
    forms = np.array([_pixels_and_channels(spec, shape, per_channel=per_channel) for shape in x.shapes.tolist()])
    _replace_pixels(
        out.reshaped(forms), x.reshaped(forms), pepper_val=pepper_val, per_channel=per_channel, prob=prob,
        salt_val=salt_val, salt_vs_pepper=salt_vs_pepper, spec=spec, draws=draws,
    )  # fmt: skip


@on_padded
def _replace_pixels(
    out: torch.Tensor,
    x: torch.Tensor,
    *,
    pepper_val: np.ndarray | None,
    per_channel: bool,
    prob: np.ndarray,
    salt_val: np.ndarray | None,
    salt_vs_pepper: np.ndarray,
    spec: Spec,
    draws: SampleDraws,
) -> None:
    pixels = _pixels(spec, tuple(x.shape[1:]), per_channel=per_channel)
    u = draws.uniform_torch(int(np.prod(pixels)), x.device, torch.float32)
    assert spec.dtype is not None, "dalify bug: a kernel without the type of its input"
    dtype = spec.dtype.numpy
    low, high = _extremes(dtype)
    samples = (len(x), *[1] * len(pixels))
    decisions = (len(x), *pixels)
    hit_probability, salt_fraction = column_torch(prob, x.device), column_torch(salt_vs_pepper, x.device)
    is_hit = (u < hit_probability).reshape(decisions)
    is_salt = (u < hit_probability * salt_fraction).reshape(decisions)
    pepper = uploaded(_values(pepper_val, low, dtype, len(x)), x.device).reshape(samples)
    salt = uploaded(_values(salt_val, high, dtype, len(x)), x.device).reshape(samples)
    out.copy_(torch.where(is_hit, torch.where(is_salt, salt, pepper), x))
