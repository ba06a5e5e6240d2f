"""Replace some pixels by black or white."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import array_at, copy_bytes
from dalify.base.compiling import njit
from dalify.base.errors import LayoutError
from dalify.base.optional import torch
from dalify.data import Samples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import saturate_cast
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.random.distributions import column_torch
from dalify.kernels.random.philox import SampleDraws, fill_uniform_float32
from dalify.kernels.random.random_shapes import check_probability
from dalify.registry import AnySamples, PerSample, Spec, operator


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


def _pixels_and_channels(spec: Spec, shapes: np.ndarray, *, per_channel: bool) -> np.ndarray:
    """Return the shape of each sample with all pixels along one axis, in the order of its elements, int64 [N, 2]."""
    axis = shapes.shape[1]
    if not per_channel and axis:
        axis = 1 if _is_channels_first(spec) else axis - 1
    return np.stack([shapes[:, :axis].prod(1), shapes[:, axis:].prod(1)], axis=1)


def _is_channels_first(spec: Spec) -> bool:
    return bool(spec.layout) and spec.layout[0] == "C" and spec.layout[-1] != "C"


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


@njit(nogil=True, cache=True)
def _replace(out_at, x_at, forms, is_first, pepper, salt, limits, samples, first_block, k0, k1, step):
    """Copy samples and replace pixels; `forms` is [N, 2], the elements are unsigned integers of their size."""
    for n in range(len(out_at)):
        rows, columns = forms[n]
        size = rows * columns
        copy_bytes(out_at[n], x_at[n], size * pepper.itemsize)
        out = array_at(out_at[n], (size,), pepper)
        pixels = columns if is_first else rows
        numbers = np.empty((1, pixels), np.float32)
        fill_uniform_float32(numbers, samples[n : n + 1], first_block, k0, k1, step)
        for pixel in range(pixels):
            if numbers[0, pixel] < limits[n, 0]:
                value = salt[n] if numbers[0, pixel] < limits[n, 1] else pepper[n]
                if is_first:
                    for at in range(pixel, size, columns):
                        out[at] = value
                else:
                    for at in range(pixel * columns, (pixel + 1) * columns):
                        out[at] = value


@salt_and_pepper.cpu_samples
@salt_and_pepper.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
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
    assert spec.dtype is not None, "dalify bug: a kernel without the type of its input"
    dtype = spec.dtype.numpy
    low, high = _extremes(dtype)
    pepper, salt = (_values(given, default, dtype, len(x)) for given, default in ((pepper_val, low), (salt_val, high)))
    forms = _pixels_and_channels(spec, x.shapes, per_channel=per_channel)
    is_first = not per_channel and _is_channels_first(spec)
    limits = np.stack([prob, prob * salt_vs_pepper], axis=1)
    if isinstance(x, Samples):
        unit = f"u{dtype.itemsize}"
        stream = draws.draws.numba_arguments(draws.samples)
        _replace(out.addresses, x.addresses, forms, is_first, pepper.view(unit), salt.view(unit), limits, *stream)
        return
    # All pixels are along one axis, because the random number of a pixel depends on its index in the sample.
    _replace_torch(
        out.reshaped(forms), x.reshaped(forms), is_first=is_first, pepper=pepper, salt=salt, limits=limits, draws=draws
    )


@on_padded
def _replace_torch(
    out: torch.Tensor,
    x: torch.Tensor,
    *,
    is_first: bool,
    pepper: np.ndarray,
    salt: np.ndarray,
    limits: np.ndarray,
    draws: SampleDraws,
) -> None:
    pixels = (1, x.shape[2]) if is_first else (x.shape[1], 1)
    numbers = draws.uniform_torch(max(pixels), x.device, torch.float32)
    is_hit, is_salt = (
        (numbers < column_torch(limit, x.device)).reshape(len(x), *pixels) for limit in (limits[:, 0], limits[:, 1])
    )
    low, high = (movable_torch(uploaded(values, x.device)).reshape(-1, 1, 1) for values in (pepper, salt))
    movable_torch(out).copy_(torch.where(is_hit, torch.where(is_salt, high, low), movable_torch(x)))
