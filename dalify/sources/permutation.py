"""Keyed pseudorandom permutation of 0 … size-1 whose values are computed individually.

It lets the sampler shuffle any number of entries exactly and resume anywhere, without a list of indices or a shuffle
buffer. The construction is a Feistel network on the smallest power of two that contains the size, with cycle walking
(Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit

_MASK_64 = (1 << 64) - 1
# Constants of the splitmix64 finalizer (Steele, Lea, Flood, 2014).
_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLIER_1 = 0xBF58476D1CE4E5B9
_MULTIPLIER_2 = 0x94D049BB133111EB
# Each round changes one half; after eight rounds, tests find no structure, down to size 3.
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


@njit(cache=True, no_cpython_wrapper=True)
def _round_value(half, round_key):
    value = half + round_key
    value = (value ^ (value >> np.uint64(30))) * np.uint64(_MULTIPLIER_1)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(_MULTIPLIER_2)
    return value >> np.uint64(31)


# Compiled, because NumPy calls take a hundred times as long for small epochs.
# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _permute(positions, size, bits, round_keys, out):
    low_bits = np.uint64((bits + 1) // 2)
    high_mask = (np.uint64(1) << np.uint64(bits // 2)) - np.uint64(1)
    low_mask = (np.uint64(1) << low_bits) - np.uint64(1)
    for n in range(positions.size):
        value = np.uint64(positions[n])
        # The network permutes 2**bits < 2 * size values; a value out of range is mapped again until it is in range.
        while True:
            high, low = value >> low_bits, value & low_mask
            for number in range(round_keys.size):
                # The halves may differ by one bit, so they are not swapped: each is mixed into the other alternately.
                if number % 2:
                    high ^= _round_value(low, round_keys[number]) & high_mask
                else:
                    low ^= _round_value(high, round_keys[number]) & low_mask
            value = (high << low_bits) | low
            if value < np.uint64(size):
                break
        out[n] = value


@njit(cache=True)
def _uniform(positions, round_keys, out):
    for n in range(positions.size):
        value = np.uint64(positions[n]) * np.uint64(_GOLDEN)
        # One mixing step yields 33 bits.
        high, low = _round_value(value, round_keys[0]), _round_value(value, round_keys[1])
        out[n] = np.float64((high << np.uint64(20)) | (low >> np.uint64(13))) * 2.0**-53


def _round_keys(key: int, rounds: int) -> NDArray[np.uint64]:
    return np.array([mixed_key(key, number) for number in range(rounds)], np.uint64)


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
    out = np.empty(len(positions), np.int64)
    _permute(np.ascontiguousarray(positions, np.int64), size, (size - 1).bit_length(), _round_keys(key, _ROUNDS), out)
    return out


def uniform(positions: NDArray[Any], key: int) -> NDArray[np.float64]:
    """Return a random number in [0, 1) for each position, ``[N]``; equal positions and keys give equal numbers."""
    out = np.empty(len(positions), np.float64)
    _uniform(np.ascontiguousarray(positions, np.int64), _round_keys(key, 2), out)
    return out
