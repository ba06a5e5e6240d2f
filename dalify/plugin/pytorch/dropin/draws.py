"""Random numbers as torch gives them to torchvision's transforms: same generator, same order, same values.

One sample after the other they are asked for from torch itself. For a batch of small images that would take longer than
the images, so there the words of torch's Mersenne Twister are computed by numpy's, which is the same algorithm, and
torch's generator is moved on by as many.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch

__all__ = ["BatchDraws", "CountingDraws", "Draws", "TorchDraws", "resized_crop_window", "words"]

_STATE_WORDS = 624
_TWISTER = np.random.MT19937  # its stream of words is the standard's, as torch's is
# torch's state as bytes: seed, words left, whether seeded, next word, then the words, each in eight bytes.
_LEFT_AT, _NEXT_AT, _WORDS_AT = 8, 16, 24
_MANTISSA = (1 << 24) - 1


class Draws(Protocol):
    """Where steps get their random numbers from: one number, or one for each sample of a batch."""

    def integer(self, end: int) -> Any:
        """Draw integers from 0 to `end` - 1, as ``torch.randint`` does."""
        ...

    def is_below(self, probability: float) -> Any:
        """Tell whether ``torch.rand(1)`` is below a probability."""
        ...


class TorchDraws:
    """Numbers for one sample after the other.

    Args:
        generator: torch's own for the main process, or a worker's.
        python: likewise for transforms that draw from Python's module: ``random`` itself, or a worker's ``Random``.
    """

    def __init__(self, generator: Any, python: Any = random) -> None:
        self.generator = generator
        self.python = python

    def integer(self, end: int) -> int:
        """Draw an integer from 0 to `end` - 1."""
        return int(torch.randint(0, end, size=(1,), generator=self.generator).item())

    def is_below(self, probability: float) -> bool:
        """Tell whether a draw from [0, 1) is below a probability."""
        return bool(torch.rand(1, generator=self.generator) < probability)

    def uniform(self, low: Any, high: Any) -> Any:
        """Draw a float32 tensor of one element."""
        return torch.empty(1).uniform_(low, high, generator=self.generator)

    def batch(self, samples: int, draws_per_sample: int) -> BatchDraws:
        """Draw for a batch what the samples would have drawn one after the other."""
        found = words(self.generator, samples * draws_per_sample)
        return BatchDraws(found.reshape(samples, draws_per_sample))


def words(generator: Any, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Draw 32-bit words from a CPU generator of torch.

    Args:
        generator: moved on by `count` words.
        count: how many.

    Returns:
        uint64 ``[count]``, each below 2 ** 32.
    """
    if count == 0:
        return np.zeros(0, np.uint64)
    state = generator.get_state().numpy()
    left = int(state[_LEFT_AT : _LEFT_AT + 4].view(np.int32)[0])
    following = int(state[_NEXT_AT : _NEXT_AT + 8].view(np.uint64)[0])
    key = state[_WORDS_AT : _WORDS_AT + 8 * _STATE_WORDS].view(np.uint64).astype(np.uint32)
    twister = _TWISTER()
    position = _STATE_WORDS if left == 1 else following
    twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
    torch.empty(count, dtype=torch.float32).uniform_(generator=generator)
    return twister.random_raw(count)


class BatchDraws:
    """Numbers for all samples of a batch at once.

    Args:
        words: uint64 ``[samples, draws]``.
    """

    def __init__(self, words: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        self._words = words
        self._next = 0

    def _column(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        self._next += 1
        return self._words[:, self._next - 1]

    def integer(self, end: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Draw integers from 0 to `end` - 1."""
        return (self._column() % np.uint64(end)).astype(np.int64)

    def is_below(self, probability: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell where draws from [0, 1) are below a probability, compared in float32."""
        fractions = (self._column() & np.uint64(_MANTISSA)).astype(np.float32) * np.float32(2**-24)
        return fractions < np.float32(probability)


class CountingDraws:
    """Counts the numbers that a sample asks for, and gives zeros."""

    def __init__(self) -> None:
        self.count = 0

    def integer(self, end: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Count one number."""
        self.count += 1
        return np.zeros(1, np.int64)

    def is_below(self, probability: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Count one number."""
        self.count += 1
        return np.zeros(1, np.bool_)


@lru_cache(maxsize=64)
def _logarithms(ratio: tuple[float, float]) -> tuple[float, float]:
    """Logarithms in float32, as torch computes them."""
    low, high = torch.log(torch.tensor(ratio, dtype=torch.float32)).tolist()
    return low, high


def resized_crop_window(
    draws: TorchDraws, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Draw a window as torchvision's RandomResizedCrop does.

    Ten times: an area, uniform in `scale` of the image's, and a ratio of width to height, uniform in its logarithm;
    the first window that fits is placed uniformly. Else the largest central one whose ratio is allowed.

    Returns:
        top, left, height, width.
    """
    area = height * width
    lowest, highest = _logarithms(ratio)
    for _ in range(10):
        target_area = area * draws.uniform(scale[0], scale[1]).item()
        aspect = torch.exp(draws.uniform(lowest, highest)).item()
        wanted_width = round(math.sqrt(target_area * aspect))
        wanted_height = round(math.sqrt(target_area / aspect))
        if 0 < wanted_width <= width and 0 < wanted_height <= height:
            top = draws.integer(height - wanted_height + 1)
            left = draws.integer(width - wanted_width + 1)
            return top, left, wanted_height, wanted_width
    image_ratio = width / height
    wanted_height, wanted_width = height, width
    if image_ratio < min(ratio):
        wanted_height = round(width / min(ratio))
    elif image_ratio > max(ratio):
        wanted_width = round(height * max(ratio))
    return (height - wanted_height) // 2, (width - wanted_width) // 2, wanted_height, wanted_width
