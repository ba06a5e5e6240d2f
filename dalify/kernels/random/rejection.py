"""Poisson and beta distributions by rejection sampling, with the same numbers at any position.

The number of attempts varies. Attempt ``a`` of value ``i`` has its own words, so no value depends on the attempts of
others.
"""

from __future__ import annotations

import math

import numpy as np

from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.kernels.arrays.wide_torch import widened
from dalify.kernels.random.distributions import normal_of, normal_table
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.philox_words import philox4x32

_SMALL = 10.0  # smaller means use inversion by sequential search, at most 64 steps
_STEPS = 64
_ATTEMPTS = 40  # an attempt fails with probability below 0.3: all 40 fail once in 1e20 values
_LOW_32 = np.uint64(0xFFFFFFFF)
_INVERSE_2_32 = 2.0**-32


@njit(inline="always", nogil=True)
def _poisson_attempt(mean: float, u: float, v: float) -> float:
    """Return an accepted value, or -1: transformed rejection (Hormann, 1993, algorithm PTRS). u, v in (0, 1)."""
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    us = 0.5 - abs(u - 0.5)
    k = math.floor((2.0 * a / us + b) * (u - 0.5) + mean + 0.43)
    if us >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2.0):
        return k
    if k < 0.0 or (us < 0.013 and v > us):
        return -1.0
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    left = math.log(v * inverse_alpha / (a / (us * us) + b))
    return k if left <= k * math.log(mean) - mean - math.lgamma(k + 1.0) else -1.0


@njit(nogil=True, cache=True)
def _fill_poisson(
    values: np.ndarray,
    means: np.ndarray,
    sizes: np.ndarray,
    samples: np.ndarray,
    first_block: np.uint64,
    k0: np.uint64,
    k1: np.uint64,
    step: np.uint64,
) -> None:
    step_low, step_high = step & _LOW_32, step >> np.uint64(32)
    start = 0
    for n in range(len(samples)):
        count = sizes[n]
        sample = np.uint64(samples[n]) & _LOW_32
        words = philox4x32(first_block, sample, step_low, step_high, k0, k1)
        out, expected = values[start : start + count], means[start : start + count]
        start += count
        for i in range(count):
            if i % 4 == 0:
                words = philox4x32(first_block + np.uint64(i // 4), sample, step_low, step_high, k0, k1)
            mean = np.float64(expected[i])
            if not mean > 0.0:
                out[i] = 0.0
            elif mean < _SMALL:
                u = (np.float64(words[i % 4]) + 0.5) * _INVERSE_2_32
                probability = math.exp(-mean)
                total = probability
                k = 0
                while u > total and k < _STEPS:
                    k += 1
                    probability *= mean / k
                    total += probability
                out[i] = k
            else:
                value = -1.0
                block = first_block + np.uint64((count + 3) // 4 + i)
                for _ in range(_ATTEMPTS):
                    w = philox4x32(block & _LOW_32, sample, step_low, step_high, k0, k1)
                    value = _poisson_attempt(
                        mean, (np.float64(w[0]) + 0.5) * _INVERSE_2_32, (np.float64(w[1]) + 0.5) * _INVERSE_2_32
                    )
                    if value >= 0.0:
                        break
                    block += np.uint64(count)
                out[i] = max(value, 0.0)


def poisson(draws: SampleDraws, means: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
    """Return Poisson-distributed counts.

    Args:
        draws: random numbers of the group.
        means: expected counts, float32 [N, count], or with `sizes` those of all samples, [total]; values <= 0 and NaN
            give 0.
        sizes: number of values of each sample, int64 [N].

    Returns:
        integers as float32, in the shape of `means`.
    """
    out = np.empty(means.shape, np.float32)
    each = np.full(len(draws), means.shape[-1], np.int64) if sizes is None else sizes
    flat = np.ascontiguousarray(means, np.float32).reshape(-1)
    _fill_poisson(out.reshape(-1), flat, each, *draws.draws.numba_arguments(draws.samples))
    return out


def poisson_torch(draws: SampleDraws, means: torch.Tensor, lengths: np.ndarray | None = None) -> torch.Tensor:
    """Return the counts of `poisson` on the device of `means`.

    About one value in 1e9 may differ, because logarithms differ in the last bit between devices. The host waits for the
    device to determine whether another attempt is needed.

    Args:
        draws: random numbers of the group.
        means: expected counts, float32 [N, count].
        lengths: number of values of each sample, int64 [N]; later counts are arbitrary. None: `count`.
    """
    count, device = means.shape[1], means.device
    lengths = np.full(len(means), count) if lengths is None else lengths
    mean = widened(means)
    u = (widened(draws.bits_torch(count, device)) + 0.5) * _INVERSE_2_32
    is_small = mean < _SMALL
    probability = torch.exp(-torch.where(is_small, mean, 0.0))
    total, counts = probability.clone(), torch.zeros_like(mean)
    for k in range(1, _STEPS + 1):
        counts += u > total
        probability = probability * (mean / k)
        total = torch.where(u > total, total + probability, total)
    large = torch.full_like(mean, -1.0)
    base = torch.where(is_small, _SMALL, mean)
    b = 0.931 + 2.53 * torch.sqrt(base)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    for attempt in range(_ATTEMPTS):
        if not bool(((large < 0) & (mean >= _SMALL)).any()):
            break
        words = draws.bits_torch(4 * count, device, first_block=(lengths + 3) // 4 + attempt * lengths)
        w = (widened(words.view(-1, count, 4)[:, :, :2]) + 0.5) * _INVERSE_2_32
        u, v = w[:, :, 0], w[:, :, 1]
        us = 0.5 - (u - 0.5).abs()
        k = torch.floor((2.0 * a / us + b) * (u - 0.5) + base + 0.43)
        is_quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
        is_outside = (k < 0) | ((us < 0.013) & (v > us))
        left = torch.log(v * inverse_alpha / (a / (us * us) + b))
        is_below = left <= k * torch.log(base) - base - torch.lgamma(k.clamp(min=0) + 1.0)
        large = torch.where((large < 0) & (is_quick | (~is_outside & is_below)), k, large)
    counts = torch.where(is_small, counts, large.clamp(min=0))
    return torch.where(mean > 0, counts, 0.0).float()


@njit(inline="always", nogil=True)
def _gamma_center(shape: float) -> float:
    return (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0


@njit(inline="always", nogil=True)
def _gamma_variate(
    center: float,
    table: np.ndarray,
    block: np.uint64,
    stride: np.uint64,
    sample: np.uint64,
    step: np.uint64,
    k0: np.uint64,
    k1: np.uint64,
) -> tuple[float, float]:
    """Return v and u of a gamma-distributed number (Marsaglia and Tsang, 2000) with scale 1.

    The number is ``center * v`` with ``center = _gamma_center(shape)``. For shapes below 1 it has the shape + 1, and
    must be multiplied by ``u ** (1 / shape)``.
    """
    c = 1.0 / math.sqrt(9.0 * center)
    v, boost = 1.0, np.uint64(0)
    for _ in range(_ATTEMPTS):
        w = philox4x32(block & _LOW_32, sample, step & _LOW_32, step >> np.uint64(32), k0, k1)
        x = np.float64(normal_of(table, w[0]))
        boost = w[3]
        root = 1.0 + c * x
        if root > 0.0:
            v = root * root * root
            test = (np.float64(w[2]) + 0.5) * _INVERSE_2_32
            square = x * x
            # The first condition implies the second, and saves two logarithms in nine of ten cases.
            if test < 1.0 - 0.0331 * square * square:
                break
            if math.log(test) < 0.5 * square + center * (1.0 - v + math.log(v)):
                break
        block += stride
    return v, (np.float64(boost) + 0.5) * _INVERSE_2_32


@njit(nogil=True, cache=True)
def _fill_beta(
    out: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    alphas: np.ndarray,
    betas: np.ndarray,
    samples: np.ndarray,
    first_block: np.uint64,
    k0: np.uint64,
    k1: np.uint64,
    step: np.uint64,
) -> None:
    start = 0
    for n in range(len(samples)):
        count = counts[n]
        row, stride = out[start : start + count], np.uint64(2 * count)
        start += count
        sample = np.uint64(samples[n]) & _LOW_32
        alpha, beta = alphas[n], betas[n]
        x_center, y_center = _gamma_center(alpha), _gamma_center(beta)
        scale = y_center / x_center
        for i in range(count):
            block = first_block + np.uint64(2 * i)
            x, x_boost = _gamma_variate(x_center, table, block, stride, sample, step, k0, k1)
            y, y_boost = _gamma_variate(y_center, table, block + np.uint64(1), stride, sample, step, k0, k1)
            ratio = scale * y / x
            if alpha >= 1.0 and beta >= 1.0:
                row[i] = 1.0 / (1.0 + ratio)
                continue
            # In logarithms, because for tiny parameters both gamma-distributed numbers would underflow to 0.
            difference = math.log(ratio)
            if alpha == beta:
                difference += math.log(y_boost / x_boost) / alpha
            else:
                if beta < 1.0:
                    difference += math.log(y_boost) / beta
                if alpha < 1.0:
                    difference -= math.log(x_boost) / alpha
            if difference > 700.0:
                row[i] = math.exp(-difference)
            else:
                row[i] = 1.0 / (1.0 + math.exp(difference))


def beta(draws: SampleDraws, count: int | np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return beta-distributed numbers in [0, 1], float64 [N, count]: x / (x + y) of two gamma-distributed numbers.

    Args:
        draws: random numbers of the group.
        count: numbers per sample; int64 [N]: the numbers of all samples are concatenated.
        alpha: positive, [N].
        beta: positive, [N].
    """
    size = len(draws)
    counts = np.full(size, count, np.int64) if isinstance(count, int) else count
    out = np.empty(int(counts.sum()), np.float64)
    first = np.ascontiguousarray(np.broadcast_to(np.asarray(alpha, np.float64), (size,)))
    second = np.ascontiguousarray(np.broadcast_to(np.asarray(beta, np.float64), (size,)))
    _fill_beta(out, counts, normal_table(), first, second, *draws.draws.numba_arguments(draws.samples))
    return out.reshape(size, count) if isinstance(count, int) else out
