"""Keyed pseudorandom permutation of 0 … size-1 whose values are computed individually.

It lets the sampler shuffle any number of entries exactly and resume anywhere, without a list of indices or a shuffle
buffer. The construction is a Feistel network on the smallest power of two that contains the size, with cycle walking
(Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["mixed_key", "permute", "uniform"]

_MASK_64 = (1 << 64) - 1
# Constants of the splitmix64 finalizer (Steele, Lea, Flood, 2014).
_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLIER_1 = 0xBF58476D1CE4E5B9
_MULTIPLIER_2 = 0x94D049BB133111EB
# Each round changes one half; eight leave no measurable structure, down to size 3 (see the tests).
_ROUNDS = 8


def _mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * _MULTIPLIER_1) & _MASK_64
    value = ((value ^ (value >> 27)) * _MULTIPLIER_2) & _MASK_64
    return value ^ (value >> 31)


def mixed_key(*parts: int) -> int:
    """Return a 64-bit key that depends on every part and on their order; parts are arbitrary integers."""
    key = 0
    for part in parts:
        key = _mixed((key + _GOLDEN + (part & _MASK_64)) & _MASK_64)
    return key


def _round_values(half: NDArray[np.uint64], round_key: int) -> NDArray[np.uint64]:
    # In place on one temporary: this runs per batch, and allocations take a third of its time.
    value = half + np.uint64(round_key)
    value ^= value >> np.uint64(30)
    value *= np.uint64(_MULTIPLIER_1)
    value ^= value >> np.uint64(27)
    value *= np.uint64(_MULTIPLIER_2)
    value >>= np.uint64(31)
    return value


def _encrypt(values: NDArray[np.uint64], bits: int, round_keys: list[int]) -> NDArray[np.uint64]:
    low_bits = np.uint64((bits + 1) // 2)
    high_mask = np.uint64((1 << (bits // 2)) - 1)
    low_mask = np.uint64((1 << ((bits + 1) // 2)) - 1)
    high, low = values >> low_bits, values & low_mask
    for number, round_key in enumerate(round_keys):
        # The halves may differ by one bit, so they are not swapped: each is mixed into the other alternately.
        if number % 2:
            high ^= _round_values(low, round_key) & high_mask
        else:
            low ^= _round_values(high, round_key) & low_mask
    return (high << low_bits) | low


def permute(positions: NDArray[Any], size: int, key: int) -> NDArray[np.int64]:
    """Map positions of a shuffled order to entries.

    Args:
        positions: integers in ``[0, size)``, ``[N]``.
        size: number of entries, 1 to 2**62.
        key: 64-bit key; another key gives another order.

    Returns:
        int64 ``[N]``, values in ``[0, size)``; ``positions = arange(size)`` gives every entry once.
    """
    if size == 1:
        return np.zeros(len(positions), np.int64)
    bits = (size - 1).bit_length()
    round_keys = [mixed_key(key, number) for number in range(_ROUNDS)]
    limit = np.uint64(size)
    values = _encrypt(positions.astype(np.uint64), bits, round_keys)
    # The network permutes 2**bits < 2 * size values; values out of range are encrypted again until they are in range.
    outside = np.flatnonzero(values >= limit)
    walking = values[outside]
    while walking.size:
        walking = _encrypt(walking, bits, round_keys)
        inside = walking < limit
        values[outside[inside]] = walking[inside]
        outside, walking = outside[~inside], walking[~inside]
    return values.astype(np.int64)


def uniform(positions: NDArray[Any], key: int) -> NDArray[np.float64]:
    """Return a random number in [0, 1) for each position, ``[N]``; equal positions and keys give equal numbers."""
    values = positions.astype(np.uint64) * np.uint64(_GOLDEN)
    # One mixing step yields 33 good bits.
    high, low = (_round_values(values, mixed_key(key, number)) for number in range(2))
    return ((high << np.uint64(20)) | (low >> np.uint64(13))).astype(np.float64) * 2.0**-53
