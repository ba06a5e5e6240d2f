"""Convert data to the element type of other data."""

from __future__ import annotations

from dalify.data import DeviceSamples, Samples
from dalify.kernels.arrays.convert import saturate_cast_samples, saturate_cast_samples_torch
from dalify.registry import Spec, operator


@operator
def cast_like(x: Spec, like: Spec, /) -> Spec:
    """Convert elements to the type of other data, with the rules of ``fn.cast``.

    Args:
        x: any data.
        like: data of the output type; its values and shapes are ignored.

    Returns:
        same shape and layout as `x`.

    Example:
        >>> noise = fn.cast_like(noise, images)  # doctest: +SKIP
    """
    return x.replace(dtype=like.dtype)


@cast_like.cpu_samples
def _(out: Samples, x: Samples, _like: Samples) -> None:
    saturate_cast_samples(out, x)


@cast_like.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, _like: DeviceSamples) -> None:
    saturate_cast_samples_torch(out, x)
