"""Statistics of the channels of uint8 images, and linear functions ``a * x + b`` per channel.

256 pixels are processed as one row of 256 * C values, so that loops are long and contiguous for any C; with 16 pixels
they take five times as long.
"""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import flat_at
from dalify.base.compiling import njit
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import to_uint8

_PIXELS = 256
# Sums of this many rows of uint8 fit into uint32.
_ROWS = 1 << 24


@njit(nogil=True, cache=True)
def _line(target: np.ndarray, source: np.ndarray, factor: np.ndarray, summand: np.ndarray) -> None:
    for j in range(source.size):
        target[j] = to_uint8(np.float32(source[j]) * factor[j] + summand[j])


@njit(nogil=True, cache=True)
def _lines(out_at, out_shapes, out_like, x_at, x_shapes, x_like, factor, summand):
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        channels = x_shapes[n, -1]
        width = _PIXELS * channels
        a, b = np.empty(width, np.float32), np.empty(width, np.float32)
        for j in range(width):
            a[j], b[j] = factor[n, j % channels], summand[n, j % channels]
        for start in range(0, source.size, width):
            # In a separate function, aliasing is checked once per row, and the loop is vectorized.
            _line(target[start : start + width], source[start : start + width], a, b)


@njit(nogil=True, cache=True)
def _limits(lows, highs, x_at, x_shapes, x_like):
    for n in range(len(x_at)):
        values, channels = flat_at(x_at[n], x_shapes[n], x_like), x_shapes[n, -1]
        width = min(_PIXELS * channels, values.size)
        low, high = values[:width].copy(), values[:width].copy()
        for start in range(width, values.size, width):
            row = values[start : start + width]
            for j in range(row.size):
                low[j], high[j] = min(low[j], row[j]), max(high[j], row[j])
        for j in range(width):
            channel = j % channels
            lows[n, channel] = min(lows[n, channel], low[j])
            highs[n, channel] = max(highs[n, channel], high[j])


@njit(nogil=True, cache=True)
def _sums(totals, x_at, x_shapes, x_like):
    for n in range(len(x_at)):
        values, channels = flat_at(x_at[n], x_shapes[n], x_like), x_shapes[n, -1]
        width = _PIXELS * channels
        for first in range(0, values.size, width * _ROWS):
            part = values[first : first + width * _ROWS]
            sums = np.zeros(width, np.uint32)
            for start in range(0, part.size, width):
                row = part[start : start + width]
                for j in range(row.size):
                    sums[j] += row[j]
            for j in range(width):
                totals[n, j % channels] += sums[j]


def channel_limits(x: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum and maximum of each channel.

    Args:
        x: samples uint8 [..., C] with at least one pixel.

    Returns:
        two arrays uint8 [N, largest C]; 255 and 0 for channels that a sample does not have.
    """
    form = len(x), int(x.extents(-1).max())
    lows, highs = np.full(form, 255, np.uint8), np.zeros(form, np.uint8)
    _limits(lows, highs, *x.compiled)
    return lows, highs


def channel_means(x: Samples) -> np.ndarray:
    """Return the mean of each channel.

    Args:
        x: samples uint8 [..., C] with at least one pixel.

    Returns:
        float64 [N, largest C], from exact sums; 0 for channels that a sample does not have.
    """
    totals = np.zeros((len(x), int(x.extents(-1).max())), np.int64)
    _sums(totals, *x.compiled)
    return totals / x.shapes[:, :-1].prod(1)[:, None]


def channel_lines(out: Samples, x: Samples, factor: np.ndarray, summand: np.ndarray) -> None:
    """Compute ``x * factor + summand`` in float32, rounded half away from zero and clamped to 0 … 255.

    Args:
        out: samples uint8 [..., C], output.
        x: samples uint8 [..., C].
        factor: float32 [N, largest C].
        summand: float32 [N, largest C].
    """
    _lines(*out.compiled, *x.compiled, factor, summand)
