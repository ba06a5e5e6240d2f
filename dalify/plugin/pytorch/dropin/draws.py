"""Random numbers identical to those that torchvision's transforms draw: same generator, same order, same values.

Drawing single numbers from torch takes longer than the pixels of small images, and a tenth of the time of photographs.
So the words of torch's Mersenne Twister are computed for a whole batch, and torch's generator is then advanced by the
number of words that were used.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch

from dalify.plugin.pytorch.dropin.kernels.mersenne_twister import STATE_WORDS, following_words

__all__ = ["BatchDraws", "Draws", "TorchDraws", "predicts_torch", "resized_crop_window", "words"]

# Byte offsets in torch's state: seed, words left, whether seeded, next word, then the words, eight bytes each.
_LEFT_AT, _NEXT_AT, _WORDS_AT = 8, 16, 24
_MANTISSA = (1 << 24) - 1
_UNIT = 2.0**-24
_WORDS_AHEAD = 8  # per sample; enough for most combinations of a random crop, a flip and a random erasing


class Draws(Protocol):
    """A source of random numbers for steps: one number, or one for each sample of a batch."""

    def integer(self, end: int) -> Any:
        """Draw integers from 0 to `end` - 1, as ``torch.randint`` does."""
        ...

    def is_below(self, probability: float) -> Any:
        """Return whether ``torch.rand(1)`` is less than a probability."""
        ...


class _PrecomputedDraws:
    """The next random words of a generator, and the number of used ones.

    Args:
        generator: the generator; it is not advanced.
        count: number of words.
    """

    def __init__(self, generator: torch.Generator, count: int) -> None:
        self.state = generator.get_state()
        self.used = 0
        self.words: list[int] = _words_of(self.state, count).tolist()
        self._copy = torch.Generator()
        self._uniforms: dict[tuple[Any, Any], list[float]] = {}

    def uniforms(self, low: Any, high: Any) -> list[float]:
        """Return the uniform number of each word, computed by torch, because rounding depends on the processor."""
        found = self._uniforms.get((low, high))
        if found is None:
            self._copy.set_state(self.state)
            drawn = torch.empty(len(self.words)).uniform_(low, high, generator=self._copy)
            found = self._uniforms[low, high] = drawn.tolist()
        return found


class TorchDraws:
    """Random numbers for one sample at a time.

    Args:
        generator: torch's default generator in the main process, or that of a worker.
        python: source for transforms that draw from Python's module: ``random``, or the ``Random`` of a worker.
    """

    def __init__(self, generator: Any, python: Any = random) -> None:
        self._generator = generator
        self._precomputed: _PrecomputedDraws | None = None
        self._cell = torch.empty(1)
        self._cell_value = self._cell.numpy()  # creating a tensor for each number takes 20 times as long
        self.python = python

    @property
    def generator(self) -> torch.Generator:
        """The generator, advanced by the used numbers; later numbers are drawn from it directly."""
        self._synchronize()
        return self._generator

    @contextmanager
    def for_samples(self, samples: int) -> Iterator[None]:
        """Compute the random numbers of a number of samples in advance.

        The generator is advanced at the end, or when `generator` is accessed.
        """
        if samples > 1 and predicts_torch():
            self._precomputed = _PrecomputedDraws(self._generator, samples * _WORDS_AHEAD)
        try:
            yield
        finally:
            self._synchronize()

    def _synchronize(self) -> None:
        if self._precomputed is not None:
            _advance(self._generator, self._precomputed.used)
            self._precomputed = None

    def _numbers(self) -> _PrecomputedDraws | None:
        """Return the precomputed numbers, with at least one unused number."""
        ahead = self._precomputed
        if ahead is not None and ahead.used == len(ahead.words):
            _advance(self._generator, ahead.used)
            ahead = self._precomputed = _PrecomputedDraws(self._generator, len(ahead.words))
        return ahead

    def integer(self, end: int) -> int:
        """Draw an integer from 0 to `end` - 1; `end` is at most 2 ** 27."""
        ahead = self._numbers()
        if ahead is None:
            return int(torch.randint(0, end, size=(1,), generator=self._generator).item())
        ahead.used += 1
        return ahead.words[ahead.used - 1] % end

    def is_below(self, probability: float) -> bool:
        """Return whether a number from [0, 1) is less than a probability."""
        ahead = self._numbers()
        if ahead is None:
            return bool(torch.rand(1, generator=self._generator) < probability)
        ahead.used += 1
        return (ahead.words[ahead.used - 1] & _MANTISSA) * _UNIT < _single(probability)

    def uniform(self, low: Any, high: Any) -> float:
        """Draw a float32."""
        ahead = self._numbers()
        if ahead is None:
            return torch.empty(1).uniform_(low, high, generator=self._generator).item()
        ahead.used += 1
        return ahead.uniforms(low, high)[ahead.used - 1]

    def permutation(self, count: int) -> list[int]:
        """Draw a random permutation of 0 to `count` - 1, as ``torch.randperm`` does for small counts."""
        if self._precomputed is None:
            return torch.randperm(count, generator=self._generator).tolist()
        order = list(range(count))
        for place in range(count - 1):
            other = place + self.integer(count - place)
            order[place], order[other] = order[other], order[place]
        return order

    def exp(self, value: float) -> float:
        """Return e to the power of a float32, rounded as by torch."""
        self._cell_value[0] = value
        torch.exp(self._cell, out=self._cell)
        return float(self._cell_value[0])

    def mark(self) -> tuple[torch.Tensor, int]:
        """Return the position in the random numbers, for `rewind`."""
        if self._precomputed is not None:
            return self._precomputed.state, self._precomputed.used
        return self._generator.get_state(), 0

    def rewind(self, mark: tuple[torch.Tensor, int]) -> None:
        """Return to a position of `mark`."""
        state, used = mark
        self._precomputed = None
        self._generator.set_state(state)
        _advance(self._generator, used)

    def batch(self, samples: int, draws_per_sample: int) -> BatchDraws:
        """Return the numbers of a batch, equal to those of one sample at a time."""
        found = words(self.generator, samples * draws_per_sample)
        return BatchDraws(found.reshape(samples, draws_per_sample))


@lru_cache(maxsize=64)
def _single(probability: float) -> float:
    """Round to float32, the type in which torch compares."""
    return float(np.float32(probability))


def _advance(generator: torch.Generator, count: int) -> None:
    if count:
        torch.empty(count, dtype=torch.float32).uniform_(generator=generator)


def _words_of(state: torch.Tensor, count: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the next words of a torch generator with this state."""
    data = state.numpy()
    left = int(data[_LEFT_AT : _LEFT_AT + 4].view(np.int32)[0])
    following = int(data[_NEXT_AT : _NEXT_AT + 8].view(np.uint64)[0])
    key = data[_WORDS_AT : _WORDS_AT + 8 * STATE_WORDS].view(np.uint64).astype(np.uint32)
    return following_words(key, STATE_WORDS if left == 1 else following, count)


@lru_cache(maxsize=1)
def predicts_torch() -> bool:
    """Return whether the installed torch derives numbers from words in the known way; other versions may not."""
    generator = torch.Generator().manual_seed(1)
    draws = TorchDraws(generator)
    expected = [draws.integer(70001), draws.is_below(0.5), draws.uniform(-1, 2), draws.permutation(4), draws.integer(3)]
    draws = TorchDraws(torch.Generator().manual_seed(1))
    draws._precomputed = _PrecomputedDraws(draws.generator, _WORDS_AHEAD)
    found = [draws.integer(70001), draws.is_below(0.5), draws.uniform(-1, 2), draws.permutation(4), draws.integer(3)]
    return found == expected and torch.equal(draws.generator.get_state(), generator.get_state())


def words(generator: torch.Generator, count: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Draw 32-bit words from a CPU generator of torch.

    Args:
        generator: the generator; it is advanced.
        count: number of words.

    Returns:
        uint32 ``[count]``.
    """
    found = _words_of(generator.get_state(), count)
    _advance(generator, count)
    return found


class BatchDraws:
    """Random numbers for all samples of a batch at once.

    Args:
        words: uint32 ``[samples, draws]``.

    Attributes:
        used: how many numbers each sample has drawn.
    """

    def __init__(self, words: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        self._words = words
        self.used = 0

    def _column(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        self.used += 1
        return self._words[:, self.used - 1]

    def integer(self, end: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Draw integers from 0 to `end` - 1."""
        return (self._column() % np.uint32(end)).astype(np.int64)

    def is_below(self, probability: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return where numbers from [0, 1) are less than a probability, compared in float32."""
        fractions = (self._column() & np.uint32(_MANTISSA)).astype(np.float32) * np.float32(_UNIT)
        return fractions < np.float32(probability)


@lru_cache(maxsize=64)
def _logarithms(ratio: tuple[float, float]) -> tuple[float, float]:
    """Return logarithms in float32, as computed by torch."""
    low, high = torch.log(torch.tensor(ratio, dtype=torch.float32)).tolist()
    return low, high


def resized_crop_window(
    draws: TorchDraws, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Draw a window as torchvision's RandomResizedCrop does.

    Up to ten times: draw an area as a fraction of the image area, uniform in `scale`, and a ratio of width to height,
    log-uniform in `ratio`; the first window that fits gets a uniform position. If none fits: the largest centered
    window with an allowed ratio.

    Returns:
        top, left, height, width.
    """
    area = height * width
    lowest, highest = _logarithms(ratio)
    for _ in range(10):
        target_area = area * draws.uniform(scale[0], scale[1])
        aspect = draws.exp(draws.uniform(lowest, highest))
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
