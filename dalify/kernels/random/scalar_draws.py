"""One random number per sample for each of several operators, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dalify.base.compiling import njit
from dalify.kernels.random.philox import Draws, uniform_of
from dalify.kernels.random.philox_words import philox4x32


class ScalarDraw(NamedTuple):
    """Parameters of a number of `distributions.uniform`, in float32, or of `distributions.coin_flip`, in int32.

    Attributes:
        is_flip: whether the number is that of `coin_flip`.
        low: start of the range; not used if `is_flip`.
        high: end of the range, above `low`; the probability of 1 if `is_flip`.
    """

    is_flip: bool
    low: float
    high: float


class ScalarDraws:
    """The numbers of several operators.

    Args:
        draws: parameters of the number of each operator.
        streams: seed and stream of each operator.
    """

    def __init__(self, draws: Sequence[ScalarDraw], streams: Sequence[tuple[int, int]]) -> None:
        self._is_flip = [draw.is_flip for draw in draws]
        self._constants = (
            np.array(self._is_flip),
            np.array([(draw.low, draw.high) for draw in draws], np.float32),
            np.array([Draws(seed, stream).key for seed, stream in streams], np.uint64),
        )

    def numbers(self, samples: np.ndarray, step: int) -> list[np.ndarray]:
        """Return the numbers of each operator, ``[N]``.

        Args:
            samples: position of each sample, int64 ``[N]``.
            step: number of the iteration.
        """
        floats = np.empty((len(self._is_flip), len(samples)), np.float32)
        flips = floats.view(np.int32)
        _fill(floats, flips, *self._constants, samples, np.uint64(step))
        rows: list[np.ndarray] = []
        for row, is_flip in enumerate(self._is_flip):
            rows.append(flips[row] if is_flip else floats[row])
        return rows


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _fill(floats, flips, is_flip, limits, keys, samples, step):
    """Fill the row of each operator in `floats` or `flips`, which are the same memory."""
    low_32 = np.uint64(0xFFFFFFFF)
    for row in range(keys.shape[0]):
        low, high = limits[row, 0], limits[row, 1]
        span, last = high - low, np.nextafter(high, low)
        for n in range(samples.size):
            words = philox4x32(
                np.uint64(0),
                np.uint64(samples[n]) & low_32,
                step & low_32,
                step >> np.uint64(32),
                keys[row, 0],
                keys[row, 1],
            )
            number = uniform_of(np.uint32(words[0]))
            if is_flip[row]:
                flips[row, n] = number < high
            else:
                value = number * span + low
                floats[row, n] = last if value > last else value
