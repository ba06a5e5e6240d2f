"""Statistics of the channels of uint8 images, and lines ``a * x + b`` per channel.

For speed, 256 pixels are processed as one row of 256 * C values, so that loops run over contiguous values for any C (16
pixels at a time take five times as long).
"""

from __future__ import annotations

import cv2
import numpy as np

from dalify.base.compiling import njit
from dalify.kernels.arrays.convert import to_uint8
from dalify.kernels.arrays.frozen import read_only

__all__ = ["channel_limits", "channel_lines", "channel_means"]

_PIXELS = 256


@njit(nogil=True, cache=True)
def _line(target: np.ndarray, source: np.ndarray, factor: np.ndarray, summand: np.ndarray) -> None:
    for j in range(source.size):
        target[j] = to_uint8(np.float32(source[j]) * factor[j] + summand[j])


@njit(nogil=True, cache=True)
def _lines(out: np.ndarray, x: np.ndarray, factor: np.ndarray, summand: np.ndarray) -> None:
    width = factor.shape[1]
    for m in range(x.shape[0]):
        source, target, a, b = x[m], out[m], factor[m], summand[m]
        for start in range(0, source.size, width):
            # A separate function: aliasing is checked once per row, so the loop is vectorized.
            _line(target[start : start + width], source[start : start + width], a, b)


def channel_limits(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum and maximum of each channel.

    Args:
        x: uint8 [M, ..., C], C-contiguous, with at least one pixel.

    Returns:
        two arrays uint8 [M, C].
    """
    count, channels = x.shape[0], x.shape[-1]
    flat = x.reshape(count, -1)
    width = _PIXELS * channels
    whole = flat.shape[1] // width * width
    parts = [flat[:, whole:].reshape(count, -1, channels)]
    if whole:
        rows = flat[:, :whole].reshape(count, -1, width)
        parts += [limit(1).reshape(count, -1, channels) for limit in (rows.min, rows.max)]
    gathered = np.concatenate(parts, axis=1)
    return gathered.min(1), gathered.max(1)


def channel_means(x: np.ndarray) -> np.ndarray:
    """Return the mean of each channel.

    Args:
        x: uint8 [M, H, W, C], C-contiguous, with at least one pixel and at most 4 channels.

    Returns:
        float64 [M, C], from exact sums.
    """
    _, height, width, channels = x.shape
    return np.array([cv2.sumElems(image)[:channels] for image in x]) / (height * width)


def channel_lines(out: np.ndarray, x: np.ndarray, factor: np.ndarray, summand: np.ndarray) -> None:
    """Write ``x * factor + summand``, computed in float32, rounded half away from zero and clamped to 0 … 255.

    Args:
        out: uint8 [M, ..., C], C-contiguous.
        x: uint8 [M, ..., C], C-contiguous.
        factor: [M, C].
        summand: [M, C].
    """
    count = x.shape[0]
    wide = [np.ascontiguousarray(np.tile(values, (1, _PIXELS)), np.float32) for values in (factor, summand)]
    _lines(out.reshape(count, -1), read_only(x.reshape(count, -1)), *wide)
