"""Random numbers as torch gives them to torchvision's transforms: same generator, same order, same values.

One number after the other takes longer than the pixels of small images, and a tenth of the time of photographs. So for
a batch the words of torch's Mersenne Twister are computed ahead, and torch's generator is moved on afterwards by as
many as were used.
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

__all__ = ["BatchDraws", "CountingDraws", "Draws", "TorchDraws", "foresees_torch", "resized_crop_window", "words"]

# torch's state as bytes: seed, words left, whether seeded, next word, then the words, each in eight bytes.
_LEFT_AT, _NEXT_AT, _WORDS_AT = 8, 16, 24
_MANTISSA = (1 << 24) - 1
_UNIT = 2.0**-24
_WORDS_AHEAD = 8  # per sample: what a random crop, a flip and an erasing draw as a rule


class Draws(Protocol):
    """Where steps get their random numbers from: one number, or one for each sample of a batch."""

    def integer(self, end: int) -> Any:
        """Draw integers from 0 to `end` - 1, as ``torch.randint`` does."""
        ...

    def is_below(self, probability: float) -> Any:
        """Tell whether ``torch.rand(1)`` is below a probability."""
        ...


class _Ahead:
    """Numbers that a generator is going to draw, and how many of them were used.

    Args:
        generator: left as it is.
        count: how many.
    """

    def __init__(self, generator: torch.Generator, count: int) -> None:
        self.state = generator.get_state()
        self.used = 0
        self.words: list[int] = _words_of(self.state, count).tolist()
        self._copy = torch.Generator()
        self._uniforms: dict[tuple[Any, Any], list[float]] = {}

    def uniforms(self, low: Any, high: Any) -> list[float]:
        """What each word would be as a number between two: by torch, whose rounding depends on the processor."""
        found = self._uniforms.get((low, high))
        if found is None:
            self._copy.set_state(self.state)
            drawn = torch.empty(len(self.words)).uniform_(low, high, generator=self._copy)
            found = self._uniforms[low, high] = drawn.tolist()
        return found


class TorchDraws:
    """Numbers for one sample after the other.

    Args:
        generator: torch's own for the main process, or a worker's.
        python: likewise for transforms that draw from Python's module: ``random`` itself, or a worker's ``Random``.
    """

    def __init__(self, generator: Any, python: Any = random) -> None:
        self._generator = generator
        self._ahead: _Ahead | None = None
        self._cell = torch.empty(1)
        self._cell_value = self._cell.numpy()  # to make a tensor of each number would take twenty times as long
        self.python = python

    @property
    def generator(self) -> torch.Generator:
        """The generator, moved on by what was drawn; from here on numbers are drawn from it one by one."""
        self._settle()
        return self._generator

    @contextmanager
    def for_samples(self, samples: int) -> Iterator[None]:
        """Compute the random numbers of a number of samples in advance.

        The generator is moved on at the end, or when it is asked for.
        """
        if samples > 1 and foresees_torch():
            self._ahead = _Ahead(self._generator, samples * _WORDS_AHEAD)
        try:
            yield
        finally:
            self._settle()

    def _settle(self) -> None:
        if self._ahead is not None:
            _move_on(self._generator, self._ahead.used)
            self._ahead = None

    def _numbers(self) -> _Ahead | None:
        """The numbers ahead, and at least one that is not used."""
        ahead = self._ahead
        if ahead is not None and ahead.used == len(ahead.words):
            _move_on(self._generator, ahead.used)
            ahead = self._ahead = _Ahead(self._generator, len(ahead.words))
        return ahead

    def integer(self, end: int) -> int:
        """Draw an integer from 0 to `end` - 1, at most 2 ** 27 of them."""
        ahead = self._numbers()
        if ahead is None:
            return int(torch.randint(0, end, size=(1,), generator=self._generator).item())
        ahead.used += 1
        return ahead.words[ahead.used - 1] % end

    def is_below(self, probability: float) -> bool:
        """Tell whether a draw from [0, 1) is below a probability."""
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
        """Draw the numbers from 0 to `count` - 1 in random order, as ``torch.randperm`` does for a few."""
        if self._ahead is None:
            return torch.randperm(count, generator=self._generator).tolist()
        order = list(range(count))
        for place in range(count - 1):
            other = place + self.integer(count - place)
            order[place], order[other] = order[other], order[place]
        return order

    def exp(self, value: float) -> float:
        """Raise e to a float32, rounded as torch does it."""
        self._cell_value[0] = value
        torch.exp(self._cell, out=self._cell)
        return float(self._cell_value[0])

    def mark(self) -> tuple[torch.Tensor, int]:
        """Remember where the numbers are, for `rewind`."""
        if self._ahead is not None:
            return self._ahead.state, self._ahead.used
        return self._generator.get_state(), 0

    def rewind(self, mark: tuple[torch.Tensor, int]) -> None:
        """Go back: the next number is the one that was next at the mark."""
        state, used = mark
        self._ahead = None
        self._generator.set_state(state)
        _move_on(self._generator, used)

    def batch(self, samples: int, draws_per_sample: int) -> BatchDraws:
        """Draw for a batch what the samples would have drawn one after the other."""
        found = words(self.generator, samples * draws_per_sample)
        return BatchDraws(found.reshape(samples, draws_per_sample))


@lru_cache(maxsize=64)
def _single(probability: float) -> float:
    """Rounded to float32, in which torch compares."""
    return float(np.float32(probability))


def _move_on(generator: torch.Generator, count: int) -> None:
    if count:
        torch.empty(count, dtype=torch.float32).uniform_(generator=generator)


def _words_of(state: torch.Tensor, count: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The words that a generator of torch in this state draws next."""
    data = state.numpy()
    left = int(data[_LEFT_AT : _LEFT_AT + 4].view(np.int32)[0])
    following = int(data[_NEXT_AT : _NEXT_AT + 8].view(np.uint64)[0])
    key = data[_WORDS_AT : _WORDS_AT + 8 * STATE_WORDS].view(np.uint64).astype(np.uint32)
    return following_words(key, STATE_WORDS if left == 1 else following, count)


@lru_cache(maxsize=1)
def foresees_torch() -> bool:
    """Ask the torch that is installed: another version may make its numbers of the words in another way."""
    generator = torch.Generator().manual_seed(1)
    draws = TorchDraws(generator)
    expected = [draws.integer(70001), draws.is_below(0.5), draws.uniform(-1, 2), draws.permutation(4), draws.integer(3)]
    draws = TorchDraws(torch.Generator().manual_seed(1))
    draws._ahead = _Ahead(draws.generator, _WORDS_AHEAD)
    found = [draws.integer(70001), draws.is_below(0.5), draws.uniform(-1, 2), draws.permutation(4), draws.integer(3)]
    return found == expected and torch.equal(draws.generator.get_state(), generator.get_state())


def words(generator: torch.Generator, count: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Draw 32-bit words from a CPU generator of torch.

    Args:
        generator: moved on by `count` words.
        count: how many.

    Returns:
        uint32 ``[count]``.
    """
    found = _words_of(generator.get_state(), count)
    _move_on(generator, count)
    return found


class BatchDraws:
    """Numbers for all samples of a batch at once.

    Args:
        words: uint32 ``[samples, draws]``.
    """

    def __init__(self, words: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        self._words = words
        self._next = 0

    def _column(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        self._next += 1
        return self._words[:, self._next - 1]

    def integer(self, end: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Draw integers from 0 to `end` - 1."""
        return (self._column() % np.uint32(end)).astype(np.int64)

    def is_below(self, probability: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell where draws from [0, 1) are below a probability, compared in float32."""
        fractions = (self._column() & np.uint32(_MANTISSA)).astype(np.float32) * np.float32(_UNIT)
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
