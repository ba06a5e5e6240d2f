"""Random numbers identical to those that torchvision's transforms draw: same generator, same order, same values.

Drawing single numbers from torch takes longer than the computation of small images. So the words of torch's Mersenne
Twister are computed for a whole batch, and torch's generator is then advanced by the number of used words.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from dalify.plugin.pytorch.dropin.kernels.mersenne_twister import STATE_WORDS, following_words

# Byte offsets in torch's state: number of words left, index of the next word, and the words, eight bytes each.
_LEFT_AT, _NEXT_AT, _WORDS_AT = 8, 16, 24
_MANTISSA = (1 << 24) - 1
_UNIT = 2.0**-24
_WORDS_PER_SAMPLE = 8  # enough for most combinations of a random crop, a flip and a random erasing
_RANDOM_FUNCTIONS = frozenset(
    {
        torch.multinomial,
        torch.rand,
        torch.randint,
        torch.randperm,
        torch._sample_dirichlet,  # pyright: ignore[reportPrivateImportUsage]  # torchvision's AugMix calls it
        torch.Tensor.normal_,
        torch.Tensor.uniform_,
    }
)


class Draws(Protocol):
    """Random numbers for steps: one number, or an array with one for each sample of a batch."""

    def integer(self, end: int, /) -> Any:
        """Draw integers from 0 to `end` - 1, as ``torch.randint`` does; `end` is at most 2 ** 27."""
        ...

    def is_below(self, probability: float, /) -> Any:
        """Return whether ``torch.rand(1)`` is less than a probability."""
        ...


class RandomStates(NamedTuple):
    """States of the generators of a process: torch's, Python's, NumPy's."""

    torch: torch.Tensor
    python: Any
    numpy: Any

    @classmethod
    def current(cls) -> RandomStates:
        """Return the current states."""
        return cls(torch.get_rng_state(), random.getstate(), np.random.get_state())

    def restore(self) -> None:
        """Set the generators to these states."""
        torch.set_rng_state(self.torch)
        random.setstate(self.python)
        np.random.set_state(self.numpy)


class _PrecomputedWords:
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
        """Return the uniform number of each word; torch computes it, because rounding depends on the processor."""
        found = self._uniforms.get((low, high))
        if found is None:
            self._copy.set_state(self.state)
            drawn = torch.empty(len(self.words)).uniform_(low, high, generator=self._copy)
            found = self._uniforms[low, high] = drawn.tolist()
        return found


class _GeneratorMode(TorchFunctionMode):
    """Adds a generator to calls of torch's random functions, in this thread.

    torchvision's transforms call them without a generator, so they would draw from the default generator, which all
    threads share.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _RANDOM_FUNCTIONS:
            return func(*args, **(kwargs or {}), generator=self._generator)
        return func(*args, **(kwargs or {}))


class TorchDraws:
    """Random numbers for one sample at a time.

    Args:
        generator: torch's default generator in the main process, or the generator of a worker.
        python: generator for transforms that use Python's: the module ``random``, or the ``Random`` of a worker.
    """

    def __init__(self, generator: Any, python: Any = random) -> None:
        self._generator = generator
        self._precomputed: _PrecomputedWords | None = None
        with torch.inference_mode(mode=False):  # an inference tensor could not be changed in other threads
            self._scalar = torch.empty(1)
        self._scalar_value = self._scalar.numpy()  # creating a tensor for each number takes 20 times as long
        self.python = python

    @property
    def generator(self) -> torch.Generator:
        """The generator, advanced by the used numbers; later numbers are drawn from it directly."""
        self._synchronize()
        return self._generator

    @contextmanager
    def precomputed(self, samples: int) -> Iterator[None]:
        """Compute the random numbers of a number of samples in advance.

        The generator is advanced at the end, or when `generator` is accessed.
        """
        if samples > 1 and predicts_torch():
            self._precomputed = _PrecomputedWords(self._generator, samples * _WORDS_PER_SAMPLE)
        try:
            yield
        finally:
            self._synchronize()

    def as_default(self) -> AbstractContextManager[Any]:
        """Return a context in which torch's functions draw from this generator, in this thread."""
        generator = self.generator
        return nullcontext() if generator is torch.default_generator else _GeneratorMode(generator)

    def _synchronize(self) -> None:
        if self._precomputed is not None:
            _advance(self._generator, self._precomputed.used)
            self._precomputed = None

    def _word(self) -> int | None:
        """Return the next precomputed word; None if no words are precomputed."""
        precomputed = self._precomputed
        if precomputed is None:
            return None
        if precomputed.used == len(precomputed.words):
            self._synchronize()
            self._precomputed = precomputed = _PrecomputedWords(self._generator, len(precomputed.words))
        precomputed.used += 1
        return precomputed.words[precomputed.used - 1]

    def integer(self, end: int) -> int:
        """Draw an integer from 0 to `end` - 1."""
        word = self._word()
        return int(torch.randint(end, (1,), generator=self._generator)) if word is None else word % end

    def is_below(self, probability: float) -> bool:
        """Return whether a number from [0, 1) is less than a probability."""
        word = self._word()
        if word is None:
            return bool(torch.rand(1, generator=self._generator) < probability)
        return (word & _MANTISSA) * _UNIT < _float32(probability)

    def uniform(self, low: Any, high: Any) -> float:
        """Draw a float32."""
        if self._word() is None:
            return torch.empty(1).uniform_(low, high, generator=self._generator).item()
        assert self._precomputed is not None
        return self._precomputed.uniforms(low, high)[self._precomputed.used - 1]

    def permutation(self, count: int) -> list[int]:
        """Draw a random permutation of 0 to `count` - 1, as ``torch.randperm`` does for small counts."""
        if self._precomputed is None:
            return torch.randperm(count, generator=self._generator).tolist()
        order = list(range(count))
        for position in range(count - 1):
            other = position + self.integer(count - position)
            order[position], order[other] = order[other], order[position]
        return order

    def exp(self, value: float) -> float:
        """Return e to the power of a float32, rounded as by torch."""
        self._scalar_value[0] = value
        torch.exp(self._scalar, out=self._scalar)
        return float(self._scalar_value[0])

    def get_state(self) -> tuple[torch.Tensor, int]:
        """Return the position in the random numbers, for `set_state`."""
        if self._precomputed is not None:
            return self._precomputed.state, self._precomputed.used
        return self._generator.get_state(), 0

    def set_state(self, state: tuple[torch.Tensor, int]) -> None:
        """Continue at a position returned by `get_state`."""
        self._precomputed = None
        self._generator.set_state(state[0])
        _advance(self._generator, state[1])

    def batch(self, samples: int, draws_per_sample: int) -> BatchDraws:
        """Return the numbers of a batch, the same as if its samples were computed one after the other."""
        generator, count = self.generator, samples * draws_per_sample
        words = _words_of(generator.get_state(), count) if count else np.empty(0, np.uint32)
        _advance(generator, count)
        return BatchDraws(words.reshape(samples, draws_per_sample))


@lru_cache(maxsize=64)
def _float32(probability: float) -> float:
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
    """Return whether the installed torch derives numbers from words as implemented here; versions may differ."""
    generator = torch.Generator().manual_seed(1)
    draws = TorchDraws(generator)
    expected = [draws.integer(70001), draws.is_below(0.5), draws.uniform(-1, 2), draws.permutation(4), draws.integer(3)]
    draws = TorchDraws(torch.Generator().manual_seed(1))
    draws._precomputed = _PrecomputedWords(draws.generator, _WORDS_PER_SAMPLE)
    found = [draws.integer(70001), draws.is_below(0.5), draws.uniform(-1, 2), draws.permutation(4), draws.integer(3)]
    return found == expected and torch.equal(draws.generator.get_state(), generator.get_state())


class BatchDraws:
    """Random numbers for all samples of a batch at once.

    Args:
        words: 32-bit words, ``[samples, draws]``.

    Attributes:
        used: number of words that each sample has used.
    """

    def __init__(self, words: np.ndarray[Any, Any]) -> None:
        self._words = words.astype(np.int64)
        self.used = 0

    def _word(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        self.used += 1
        return self._words[:, self.used - 1]

    def integer(self, end: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Draw integers from 0 to `end` - 1."""
        return self._word() % end

    def is_below(self, probability: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return where numbers from [0, 1) are less than a probability."""
        return (self._word() & _MANTISSA) * _UNIT < _float32(probability)


@lru_cache(maxsize=64)
def _logarithms(ratio: tuple[float, float]) -> tuple[float, float]:
    """Return the logarithms of two ratios in float32, as computed by torch."""
    low, high = torch.log(torch.tensor(ratio, dtype=torch.float32)).tolist()
    return low, high


def resized_crop_window(
    draws: TorchDraws, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Draw a window as torchvision's RandomResizedCrop does.

    Up to ten times, an area is drawn as a fraction of the image area, uniform in `scale`, and a ratio of width to
    height, log-uniform in `ratio`. The first window that fits gets a uniform position. If none fits, the result is the
    largest centered window with an allowed ratio.

    Returns:
        Top, left, height and width of the window in pixels.
    """
    area = height * width
    lowest, highest = _logarithms(ratio)
    for _ in range(10):
        target_area = area * draws.uniform(scale[0], scale[1])
        aspect = draws.exp(draws.uniform(lowest, highest))
        crop_width = round(math.sqrt(target_area * aspect))
        crop_height = round(math.sqrt(target_area / aspect))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            top = draws.integer(height - crop_height + 1)
            left = draws.integer(width - crop_width + 1)
            return top, left, crop_height, crop_width
    image_ratio = width / height
    crop_height, crop_width = height, width
    if image_ratio < min(ratio):
        crop_height = round(width / min(ratio))
    elif image_ratio > max(ratio):
        crop_width = round(height * max(ratio))
    return (height - crop_height) // 2, (width - crop_width) // 2, crop_height, crop_width
