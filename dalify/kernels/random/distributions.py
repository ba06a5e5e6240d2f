"""Random distributions computed from the words of Philox, with the same numbers on both devices.

Functions return ``[N, count]`` for an integer `count`, the number of values per sample, and ``[total]``, the
concatenated values of all samples, if `count` is int64 [N]. The ``_torch`` versions return the same numbers on a
device, bit for bit, because only integer operations and separate float32 products and sums are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.optional import LazyModule, torch
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import wide_dtype
from dalify.kernels.random.philox import FEW, WORD_BYTES, SampleDraws, uniform_of
from dalify.kernels.random.philox_words import philox4x32, store_words

if TYPE_CHECKING:
    import statistics
else:  # it imports five other modules
    statistics = LazyModule("statistics", "drawing normally distributed numbers")

# The inverse of the normal distribution is tabulated piecewise: bits 0..30 of a word are the magnitude of u in
# (0, 1/2), and each octave of u has 32 pieces with a cubic polynomial. The error is below one unit in the last place of
# float32. Functions such as those of Box-Muller, for which devices may return different last bits, are not needed.
_EXACT = 64  # each of the smallest magnitudes has its own entry


@cache
def _coefficients() -> np.ndarray:
    """Return cubic coefficients float32 [4, pieces], for t in [-0.5, 0.5) across the piece, highest power first."""
    inverse = statistics.NormalDist().inv_cdf
    pieces = np.zeros((4, _EXACT + (31 - 6) * 32), np.float64)
    for magnitude in range(_EXACT):
        pieces[3, magnitude] = inverse((magnitude + 0.5) / 2.0**32)
    nodes = np.cos(np.pi * (np.arange(4) + 0.5) / 4) / 2  # Chebyshev nodes minimize the maximum error
    powers = np.linalg.inv(np.vander(nodes, 4))
    for piece in range(_EXACT, pieces.shape[1]):
        octave, part = divmod(piece - _EXACT, 32)
        width = 2.0 ** (octave + 1)
        center = (32 + part + 0.5) * width
        pieces[:, piece] = powers @ [inverse((center + node * width) / 2.0**32) for node in nodes]
    return pieces.astype(np.float32)


@cache
def normal_table() -> np.ndarray:
    """Return the table of `normal_of`, float32 [pieces, 4]."""
    return np.ascontiguousarray(_coefficients().T)  # one piece in 16 bytes: one cache line on the CPU


@njit(nogil=True, inline="always")
def normal_of(table, random_word):
    """Map a random word to a normally distributed float32; `table` is `normal_table()`."""
    word = np.int64(random_word)
    magnitude = word & 0x7FFFFFFF
    if magnitude < _EXACT:
        value = table[magnitude, 3]
    else:
        # Of the float64, the exponent is the octave, the next five bits the piece, the other bits the position in it.
        bits = np.float64(magnitude).view(np.int64)
        piece = _EXACT + (bits >> 47) - ((1023 + 6) << 5)
        scale = np.float32(np.int64((2051 - (bits >> 52)) << 52).view(np.float64))
        t = np.float32(np.float64(bits & ((1 << 47) - 1)) * (1.0 / (1 << 47)))
        t = t + (np.float32(0.5) * scale - np.float32(0.5))
        value = table[piece, 0] * t + table[piece, 1]
        value = value * t + table[piece, 2]
        value = value * t + table[piece, 3]
    return -value if word >> 31 else value


@njit(nogil=True, cache=True)
def _fill_normal(
    out: np.ndarray,
    sizes: np.ndarray,
    table: np.ndarray,
    samples: np.ndarray,
    first_block: np.uint64,
    k0: np.uint64,
    k1: np.uint64,
    step: np.uint64,
) -> None:
    low_32 = np.uint64(0xFFFFFFFF)
    step_low, step_high = step & low_32, step >> np.uint64(32)
    start = 0
    for n in range(len(samples)):
        sample = np.uint64(samples[n]) & low_32
        block = first_block
        count = sizes[n]
        row = out[start : start + count]
        for i in range(0, count, 4):
            words = philox4x32(block, sample, step_low, step_high, k0, k1)
            block = (block + np.uint64(1)) & low_32
            for j in range(min(4, count - i)):
                row[i + j] = normal_of(table, words[j])
        start += count


def column(parameter: Any, dtype: Any = np.float32, count: int | np.ndarray = 1) -> np.ndarray:
    """Return per-sample values [N] (or one value) as a column [N, 1] that broadcasts against [N, count] or [total]."""
    values = np.asarray(parameter, dtype)
    if not values.ndim:
        return values
    return values[:, None] if isinstance(count, int) else np.repeat(values, count)


def column_torch(parameter: Any, device: torch.device | str, dtype: Any = np.float32) -> torch.Tensor:
    """Return `column` as a tensor on `device`."""
    return uploaded(column(parameter, dtype), device)


def standard_normal(draws: SampleDraws, count: int | np.ndarray) -> np.ndarray:
    """Return normally distributed numbers, float32 [N, count], mean 0, standard deviation 1, within +-6.4.

    Each is computed from one 32-bit word. If `count` is int64 [N], the numbers of all samples are concatenated.
    """
    sizes = np.full(len(draws), count, np.int64) if isinstance(count, int) else count
    out = np.empty(int(sizes.sum()), np.float32)
    _fill_normal(out, sizes, normal_table(), *draws.draws.numba_arguments(draws.samples))
    return out.reshape(len(draws), count) if isinstance(count, int) else out


def standard_normal_torch(draws: SampleDraws, count: int, device: torch.device | str) -> torch.Tensor:
    """Return the numbers of `standard_normal` on `device`."""
    words = draws.bits_torch(count, device)
    magnitude = words & 0x7FFFFFFF
    # Without low bits, because rounding to float32 could change the exponent.
    leading = torch.where(magnitude < 1 << 24, magnitude, magnitude & ~0xFF).float()
    shift = (torch.frexp(leading).exponent.long() - 6).clamp_(min=0)
    piece = torch.where(magnitude < _EXACT, magnitude, _EXACT + (shift - 1) * 32 + ((magnitude >> shift) & 31))
    scale = 1.0 / (1 << shift).float()
    t = (magnitude & ((1 << shift) - 1)).float() * scale + (0.5 * scale - 0.5)
    rows = uploaded(_coefficients(), device)
    value = rows[0][piece] * t + rows[1][piece]
    value = value * t + rows[2][piece]
    value = value * t + rows[3][piece]
    return torch.where(words >> 31 == 1, -value, value)


def uniform(draws: SampleDraws, count: int | np.ndarray, low: Any, high: Any, dtype: Any = np.float32) -> np.ndarray:
    """Return uniformly distributed numbers in [low, high).

    Args:
        draws: random numbers of the group.
        count: numbers per sample: a number, or int64 [N].
        low: start of the range, [N] or one number.
        high: end of the range, above `low`, [N] or one number.
        dtype: float32 (24 random bits) or float64 (53).
    """
    first, end = column(low, dtype, count), column(high, dtype, count)
    values = draws.uniform(count, dtype)
    values *= end - first
    values += first
    # The sum may be rounded to the end of the range, which is excluded.
    return np.minimum(values, np.nextafter(end, first), out=values)


def uniform_few(out: np.ndarray, draws: SampleDraws, limits: np.ndarray) -> bool:
    """Fill an array with a few numbers of `uniform` in one call, which keeps the GIL.

    Args:
        out: output ``[N, ...]``.
        draws: random numbers of the group.
        limits: start and end of the range of each sample, ``[N, 2]``.

    Returns:
        False if `out` is large or not float32, or a range is invalid; its values are undefined then.
    """
    count = out.shape[0]
    if out.dtype != np.float32 or out.size > FEW or limits.shape != (count, 2) or not out.flags.c_contiguous:
        return False
    numbers = out.reshape(count, -1)
    return _fill_ranges(numbers, read_only(limits), *draws.draws.numba_arguments(draws.samples))


# Here and in `_fill_flips`, words are stored in the result, and each is replaced by its number.
@njit(cache=True)
def _fill_ranges(out, limits, samples, first_block, k0, k1, step):
    address, count = np.int64(out.ctypes.data), out.shape[1]
    for n in range(out.shape[0]):
        first, end = limits[n, 0], limits[n, 1]
        if not first < end:
            return False
        span, last = end - first, np.nextafter(end, first)
        row_at = address + n * count * WORD_BYTES
        store_words(row_at, count, samples[n], first_block, k0, k1, step)
        words = array_at(row_at, (count,), np.uint32)
        for i in range(count):
            value = uniform_of(words[i]) * span + first
            out[n, i] = last if value > last else value
    return True


def uniform_torch(
    draws: SampleDraws, count: int, low: Any, high: Any, device: torch.device | str, dtype: Any = np.float32
) -> torch.Tensor:
    """Return the numbers of `uniform` on `device`."""
    first, end = column(low, dtype), column(high, dtype)
    kind = wide_dtype(device) if dtype is np.float64 else torch.float32
    values = draws.uniform_torch(count, device, kind)
    values = values * uploaded(end - first, device) + uploaded(first, device)
    return torch.minimum(values, uploaded(np.nextafter(end, first), device))


def coin_flip(draws: SampleDraws, count: int | np.ndarray, probability: Any) -> np.ndarray:
    """Return booleans [N, count] that are True with `probability`, [N] or one number (from 1 on always)."""
    return draws.uniform(count, np.float32) < column(probability, np.float32, count)


def flip_few(out: np.ndarray, draws: SampleDraws, probability: np.ndarray) -> bool:
    """Fill an array with a few numbers of `coin_flip` in one call, which keeps the GIL.

    Args:
        out: output ``[N, ...]``.
        draws: random numbers of the group.
        probability: float32 ``[N]``.

    Returns:
        False if `out` is large or not int32, or a probability is NaN; its values are undefined then.
    """
    if out.dtype != np.int32 or out.size > FEW or not out.flags.c_contiguous:
        return False
    numbers = out.reshape(out.shape[0], -1)
    return _fill_flips(numbers, read_only(probability), *draws.draws.numba_arguments(draws.samples))


@njit(cache=True)
def _fill_flips(out, probability, samples, first_block, k0, k1, step):
    address, count = np.int64(out.ctypes.data), out.shape[1]
    for n in range(out.shape[0]):
        limit = probability[n]
        if limit != limit:  # NaN
            return False
        row_at = address + n * count * WORD_BYTES
        store_words(row_at, count, samples[n], first_block, k0, k1, step)
        words = array_at(row_at, (count,), np.uint32)
        for i in range(count):
            out[n, i] = uniform_of(words[i]) < limit
    return True


def coin_flip_torch(draws: SampleDraws, count: int, probability: Any, device: torch.device | str) -> torch.Tensor:
    """Return the booleans of `coin_flip` on `device`."""
    return draws.uniform_torch(count, device, torch.float32) < column_torch(probability, device)


def choice(
    draws: SampleDraws,
    count: int | np.ndarray,
    size: Any,
    p: Sequence[np.ndarray] | np.ndarray | None = None,
    dtype: np.dtype[Any] | type = np.int64,
) -> np.ndarray:
    """Return indices [N, count] in 0..size-1.

    Args:
        draws: random numbers of the group.
        count: indices per sample: a number, or int64 [N].
        size: number of choices, at least 1, below 2**31; [N] or one number.
        p: probability of each choice, non-negative, [size] for each sample, scaled to a sum of 1; None for equal ones.
        dtype: an integer type that can represent all indices.
    """
    if p is None:
        # The high half of word * size is exact.
        words = draws.bits(count).astype(np.uint64)
        return ((words * column(size, np.uint64, count)) >> np.uint64(32)).astype(dtype)
    u = draws.uniform(count, np.float64)
    found = np.empty(u.shape, np.int64)
    counts = np.full(len(draws), count, np.int64) if isinstance(count, int) else count
    sizes = np.array([len(row) for row in p], np.int64)
    _pick_each(found.reshape(-1), u.reshape(-1), counts, np.concatenate(list(p)).astype(np.float64), sizes)
    return found.astype(dtype, copy=False)


@njit(nogil=True, cache=True)
def _pick_each(out, uniforms, counts, weights, sizes):
    """Fill the index of the choice of each uniform number: the number of cumulative probabilities up to it."""
    limits = np.empty(sizes.max(), np.float64)
    first, start = 0, 0
    for n in range(len(counts)):
        size, total = sizes[n], 0.0
        for k in range(size):
            total += weights[start + k]
            limits[k] = total
        for k in range(size):
            limits[k] /= total
        for i in range(first, first + counts[n]):
            u, chosen = uniforms[i], 0
            for k in range(size - 1):
                chosen += u >= limits[k]
            out[i] = chosen
        first += counts[n]
        start += size


def choice_torch(
    draws: SampleDraws, count: int, size: Any, device: torch.device | str, p: np.ndarray | None = None
) -> torch.Tensor:
    """Return the indices of `choice` on `device`."""
    if p is None:
        return (draws.bits_torch(count, device) * column_torch(size, device, np.int64)) >> 32
    limits = uploaded(_cumulative(p), device)
    return (draws.uniform_torch(count, device)[:, :, None] >= limits[:, None, :]).sum(dim=2)


def _cumulative(p: np.ndarray) -> np.ndarray:
    """Return the cumulative probabilities of the choices, without the last, [N, size - 1]."""
    sums = np.atleast_2d(np.asarray(p, np.float64)).cumsum(axis=1)
    return sums[:, :-1] / sums[:, -1:]
