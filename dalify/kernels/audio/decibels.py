"""Converts magnitudes to decibels.

The logarithm is implemented here with SIMD, because the math library computes one number at a time.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from dalify.base.array_at import array_at, new_array
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.data.samples import Samples

_BLOCK, _LANES = 512, 64
_SINGLE, _INT32 = np.empty(0, np.float32), np.empty(0, np.int32)
_MIN_NORMAL = np.float32(2.0**-126)  # smaller numbers are subnormal
_ROOT_HALF_BITS = np.int32(0x3F3504F3)  # of sqrt(1/2): the mantissa is between it and sqrt(2)
# (ln(1 + u) - u) / u**2 in that range, at Chebyshev nodes: maximum error of the logarithm 4e-8.
_SERIES = tuple(
    np.float32(value)
    for value in (
        -0.49999994, 0.33333659, -0.25001609, 0.19973105, -0.16575047, 0.14806460, -0.14257795, 0.09004202,
    )
)  # fmt: skip
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7 = _SERIES


def check_decibels(multiplier: float, cutoff_db: float, reference: float) -> None:
    """Check the arguments of ``to_decibels``.

    Raises:
        ArgumentValueError: `reference` is negative, or an argument is not finite.
    """
    if not 0 <= reference < math.inf:
        raise ArgumentValueError(
            f"reference must be positive, or 0 for the maximum; got {reference:g}.", argument="reference"
        )
    for name, value in (("cutoff_db", cutoff_db), ("multiplier", multiplier)):
        if not math.isfinite(value):
            raise ArgumentValueError(f"{name} must be finite; got {value:g}.", argument=name)


@njit(nogil=True, inline="always")
def _largest(x_at, size, lanes):
    """Return the maximum of numbers at an address, ignoring NaN, at least 0; `lanes` is a buffer."""
    for lane in range(_LANES):
        lanes[lane] = 0
    whole = size - size % _LANES
    for start in range(0, whole, _LANES):
        part = array_at(x_at + 4 * start, (_LANES,), _SINGLE)
        for lane in range(_LANES):
            value = part[lane]
            lanes[lane] = value if value > lanes[lane] else lanes[lane]
    rest = array_at(x_at, (size,), _SINGLE)
    for i in range(whole, size):
        lanes[0] = rest[i] if rest[i] > lanes[0] else lanes[0]
    for lane in range(1, _LANES):  # with numba's `max`, loading this function would import all of scipy.linalg
        lanes[0] = lanes[lane] if lanes[lane] > lanes[0] else lanes[0]
    return lanes[0]


@njit(nogil=True, cache=True, fastmath={"contract"})
def _of_samples(out_at, x_at, x_shapes, reference, minimum, factor):
    """Fill samples with ``factor * ln(max(minimum, x / reference))``; a reference of 0 is the maximum of each."""
    memory = new_array((2 * _BLOCK,), _SINGLE)
    for n in range(len(x_at)):
        total = np.int64(1)
        for axis in range(x_shapes.shape[1]):
            total *= x_shapes[n, axis]
        first = np.int64(memory.ctypes.data)
        ratios, exponents = array_at(first, (_BLOCK,), _SINGLE), array_at(first + 4 * _BLOCK, (_BLOCK,), _SINGLE)
        bits = array_at(first, (_BLOCK,), _INT32)
        found = reference if reference > 0 else np.float64(_largest(x_at[n], total, ratios))
        inverse = np.float32(1 / found) if found > 0 else np.float32(1)
        for start in range(0, total, _BLOCK):
            size = total - start if total - start < _BLOCK else _BLOCK
            part, target = (
                array_at(x_at[n] + 4 * start, (size,), _SINGLE),
                array_at(out_at[n] + 4 * start, (size,), _SINGLE),
            )
            for i in range(size):
                ratio = part[i] * inverse
                ratio = ratio if ratio > minimum else minimum  # also for NaN
                ratios[i] = ratio * np.float32(2.0**24) if ratio < _MIN_NORMAL else ratio
                exponents[i] = np.float32(-24) if ratio < _MIN_NORMAL else np.float32(0)
            for i in range(size):
                exponent = np.int32((bits[i] - _ROOT_HALF_BITS) >> 23)
                exponents[i] = np.float32(np.inf) if bits[i] == 0x7F800000 else exponents[i] + np.float32(exponent)
                bits[i] = np.int32(bits[i] - (exponent << 23))
            for i in range(size):
                u = ratios[i] - np.float32(1)
                series = _C6 + u * _C7
                series = _C4 + u * (_C5 + u * series)
                series = _C2 + u * (_C3 + u * series)
                series = _C0 + u * (_C1 + u * series)
                target[i] = factor * (exponents[i] * np.float32(math.log(2)) + (u + u * u * series))


def to_decibels(out: Samples, x: Samples, multiplier: float, cutoff_db: float, reference: float | None) -> None:
    """Fill `out` with ``multiplier * log10(max(10 ** (cutoff_db / multiplier), x / reference))``.

    Args:
        out: N samples of float32, output; may be `x`.
        x: N samples of float32.
        multiplier: 10 for powers, 20 for magnitudes.
        cutoff_db: minimum result.
        reference: value of 0 dB; None for the maximum of each sample.
    """
    minimum, factor = _minimum_and_factor(multiplier, cutoff_db)
    _of_samples(out.addresses, x.addresses, x.shapes, float(reference or 0), minimum, factor)


@functools.lru_cache(maxsize=64)
def _minimum_and_factor(multiplier: float, cutoff_db: float) -> tuple[np.float32, np.float32]:
    minimum = np.float32(np.power(10.0, np.divide(cutoff_db, multiplier)))
    # Not 0, because its logarithm is infinite.
    return max(minimum, np.float32(1.4e-45)), np.float32(multiplier / math.log(10))


def to_decibels_torch(
    out: torch.Tensor, x: torch.Tensor, multiplier: float, cutoff_db: float, reference: float | None
) -> None:
    """`to_decibels` for torch tensors on any device."""
    minimum, _ = _minimum_and_factor(multiplier, cutoff_db)
    flat = x.reshape(len(x), -1)
    if reference is None:
        largest = flat.nan_to_num(nan=0.0, posinf=math.inf, neginf=0.0).amax(1, keepdim=True)
        inverse = torch.where(largest > 0, 1 / largest, 1.0)
        ratios = flat * inverse
    else:
        ratios = flat * float(np.float32(1 / reference))
    ratios = torch.where(ratios > float(minimum), ratios, float(minimum))
    out.copy_((ratios.log10() * multiplier).reshape(out.shape))
