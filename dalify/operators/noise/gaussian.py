"""Add normally distributed noise."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import DeviceSamples, Samples
from dalify.kernels.arrays.convert import store_joined
from dalify.kernels.arrays.joined import blocks, joined, per_element
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.wide_torch import wide_dtype
from dalify.kernels.random.distributions import column_torch, standard_normal, standard_normal_torch
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import store_torch, values_per_sample
from dalify.registry import PerSample, Spec, operator


@operator(random=True)
def gaussian(x: Spec, /, *, mean: PerSample[float] = 0.0, stddev: PerSample[float] = 1.0) -> Spec:
    """Add normally distributed noise to every element, independently of the others.

    Args:
        x: any data.
        mean: mean of the noise, in units of the data.
        stddev: standard deviation of the noise, in units of the data.

    Returns:
        same shape, type and layout; integers are rounded and saturated.

    Example:
        >>> noisy = fn.noise.gaussian(images, stddev=fn.random.uniform(range=(0, 20)))  # doctest: +SKIP
    """
    return x


@gaussian.cpu_samples
def _(out: Samples, x: Samples, *, mean: np.ndarray, stddev: np.ndarray, draws: SampleDraws) -> None:
    sizes = x.shapes.prod(1)
    for block in blocks(sizes):
        target, source = (out, x) if len(block) == len(x) else (out.take(block), x.take(block))
        data = joined(source)
        noise = standard_normal(draws.take(block), sizes[block]).reshape(data.shape)
        noise *= per_element(stddev[block], source)
        noise += per_element(mean[block], source)
        is_wide = x.dtype.itemsize > 2
        store_joined(target, noise + data if is_wide else np.add(noise, data, out=noise, dtype=np.float32))


@gaussian.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, mean: np.ndarray, stddev: np.ndarray, draws: SampleDraws) -> None:
    # The random number of an element depends on its index in the sample, not on the shape.
    _add_noise(out.flattened(), x.flattened(), mean=mean, stddev=stddev, draws=draws)


@on_padded
def _add_noise(out: torch.Tensor, x: torch.Tensor, *, mean: np.ndarray, stddev: np.ndarray, draws: SampleDraws) -> None:
    noise = standard_normal_torch(draws, values_per_sample(x), x.device)
    noise = noise * column_torch(stddev, x.device) + column_torch(mean, x.device)
    is_wide = x.element_size() > 2 and x.dtype != torch.float32
    store_torch(out, noise + x.reshape(noise.shape).to(wide_dtype(x.device) if is_wide else torch.float32))
