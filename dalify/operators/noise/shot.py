"""Add shot noise: replace values by Poisson-distributed ones."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import DeviceSamples, Samples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import store_joined
from dalify.kernels.arrays.joined import blocks, joined, per_element
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.random.distributions import column, column_torch
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import store_torch
from dalify.kernels.random.rejection import poisson, poisson_torch
from dalify.registry import PerSample, Spec, operator


@operator(random=True)
def shot(x: Spec, /, *, factor: PerSample[float] = 20.0) -> Spec:
    """Draw every element from a Poisson distribution around its value: ``poisson(max(0, x / factor)) * factor``.

    The default of `factor` is the documented one, unlike in DALI, whose CPU operator uses 12.

    Args:
        x: any data; negative elements become 0.
        factor: value of one event; larger values give stronger noise. 0 leaves the data unchanged.

    Returns:
        same shape, type and layout; integers are rounded and saturated.

    Example:
        >>> grainy = fn.noise.shot(images, factor=10.0)  # doctest: +SKIP
    """
    return x


@shot.cpu_samples
def _(out: Samples, x: Samples, *, factor: np.ndarray, draws: SampleDraws) -> None:
    sizes = x.shapes.prod(1)
    for block in blocks(sizes):
        target, source = (out, x) if len(block) == len(x) else (out.take(block), x.take(block))
        data, scale = joined(source), per_element(factor[block], source)
        safe = np.where(scale == 0, np.float32(1), scale)
        means = data.astype(np.float32) / safe
        values = poisson(draws.take(block), means.reshape(-1), sizes[block]).reshape(data.shape) * scale
        store_joined(target, np.where(scale == 0, data, values) if (scale == 0).any() else values)


@shot.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, factor: np.ndarray, draws: SampleDraws) -> None:
    # The random number of an element depends on its index in the sample, not on the shape.
    _add_noise(out.flattened(), x.flattened(), factor=factor, draws=draws)


@on_padded
def _add_noise(
    out: torch.Tensor, x: torch.Tensor, *, factor: np.ndarray, draws: SampleDraws, extents: np.ndarray
) -> None:
    scale = column_torch(factor, x.device)
    is_zero = scale == 0
    counts = poisson_torch(draws, x.float() / is_zero.to(scale.dtype).add(scale), extents[:, 0])
    store_torch(out, counts * scale)
    if (column(factor) == 0).any():
        movable_torch(out).copy_(torch.where(is_zero, movable_torch(x), movable_torch(out)))
