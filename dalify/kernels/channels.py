"""What a channel of a byte image is like as a whole, and lines ``a * x + b`` for each channel.

Alone because interleaved channels need care to be fast: 16 pixels are taken as one row of 16 * C values, so that the
inner loops run over neighbours whatever C is.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["channel_limits", "channel_lines", "channel_means"]

_PIXELS = 16


@njit(nogil=True, cache=True)
def _limits(lows: np.ndarray, highs: np.ndarray, x: np.ndarray, width: int) -> None:
    for m in range(x.shape[0]):
        row = x[m]
        low, high = np.full(width, 255, np.uint8), np.zeros(width, np.uint8)
        whole = row.size // width * width
        for start in range(0, whole, width):
            for j in range(width):
                low[j] = min(low[j], row[start + j])
                high[j] = max(high[j], row[start + j])
        for i in range(whole, row.size):
            low[i - whole] = min(low[i - whole], row[i])
            high[i - whole] = max(high[i - whole], row[i])
        channels = lows.shape[1]
        for j in range(width):
            lows[m, j % channels] = min(lows[m, j % channels], low[j])
            highs[m, j % channels] = max(highs[m, j % channels], high[j])


@njit(nogil=True, cache=True)
def _sums(sums: np.ndarray, x: np.ndarray, width: int) -> None:
    for m in range(x.shape[0]):
        row = x[m]
        whole = row.size // width * width
        channels = sums.shape[1]
        start = 0
        while start < whole:
            # 255 * 2**23 fits 32 bits, in which twice as many are added at once.
            total = np.zeros(width, np.uint32)
            stop = min(whole, start + width * (1 << 23))
            for first in range(start, stop, width):
                for j in range(width):
                    total[j] += row[first + j]
            for j in range(width):
                sums[m, j % channels] += total[j]
            start = stop
        for i in range(whole, row.size):
            sums[m, i % channels] += row[i]


@njit(nogil=True, cache=True)
def _lines(out: np.ndarray, x: np.ndarray, factor: np.ndarray, summand: np.ndarray) -> None:
    width = factor.shape[1]
    for m in range(x.shape[0]):
        source, target, a, b = x[m], out[m], factor[m], summand[m]
        whole = source.size // width * width
        for start in range(0, whole, width):
            for j in range(width):
                value = np.float32(source[start + j]) * a[j] + b[j] + np.float32(0.5)
                target[start + j] = np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(255))))
        for i in range(whole, source.size):
            value = np.float32(source[i]) * a[i - whole] + b[i - whole] + np.float32(0.5)
            target[i] = np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(255))))


def channel_limits(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each channel.

    Args:
        x: uint8 [M, ..., C], C-contiguous, with at least one pixel.

    Returns:
        two arrays uint8 [M, C].
    """
    count, channels = x.shape[0], x.shape[-1]
    lows, highs = np.full((count, channels), 255, np.uint8), np.zeros((count, channels), np.uint8)
    _limits(lows, highs, x.reshape(count, -1), _PIXELS * channels)
    return lows, highs


def channel_means(x: np.ndarray) -> np.ndarray:
    """Return the mean of each channel.

    Args:
        x: uint8 [M, ..., C], C-contiguous, with at least one pixel.

    Returns:
        float64 [M, C], from exact sums.
    """
    count, channels = x.shape[0], x.shape[-1]
    sums = np.zeros((count, channels), np.int64)
    flat = x.reshape(count, -1)
    _sums(sums, flat, _PIXELS * channels)
    return sums / (flat.shape[1] // channels)


def channel_lines(out: np.ndarray, x: np.ndarray, factor: np.ndarray, summand: np.ndarray) -> None:
    """Write ``x * factor + summand``, computed in float32, rounded half up and limited to 0 … 255.

    Args:
        out: uint8 [M, ..., C], C-contiguous.
        x: uint8 [M, ..., C], C-contiguous.
        factor: [M, C].
        summand: [M, C].
    """
    count = x.shape[0]
    wide = [np.ascontiguousarray(np.tile(values, (1, _PIXELS)), np.float32) for values in (factor, summand)]
    _lines(out.reshape(count, -1), x.reshape(count, -1), *wide)
