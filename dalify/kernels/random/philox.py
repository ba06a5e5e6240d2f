"""Counter-based random numbers: Philox4x32-10, on the CPU (numba) and on the accelerator (torch).

There is no generator state: a number is a function of (seed, operator, step, sample, position in the sample). Both
devices produce the same bits.

Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) maps a 64-bit key and a 128-bit counter to
four 32-bit words. The counter is (block, sample, step low, step high); the key mixes seed and operator.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import wide_dtype
from dalify.kernels.random.philox_words import store_words

_SHIFT_8 = np.uint32(8)
_SHIFT_6 = np.uint32(6)
_SHIFT_5 = np.uint32(5)
_INVERSE_2_24 = np.float32(2.0**-24)
_ROUNDS = 10
_MASK_64 = (1 << 64) - 1
_STATE_WORDS = 7
WORD_BYTES = 4
FEW = 1 << 12  # below, compiled functions keep the GIL


@njit(nogil=True, cache=True)
def fill_words(
    out: np.ndarray, samples: np.ndarray, first_block: np.uint64, k0: np.uint64, k1: np.uint64, step: np.uint64
) -> None:
    """Fill uint32 [N, count] with the words of `Draws.bits`; for compiled functions, with `numba_arguments`."""
    address, count = np.int64(out.ctypes.data), out.shape[1]
    for n in range(out.shape[0]):
        store_words(address + n * count * WORD_BYTES, count, samples[n], first_block, k0, k1, step)


@njit(nogil=True, inline="always")
def uniform_of(word: np.uint32) -> np.float32:
    """Return the number of `Draws.uniform` for one word, in float32."""
    return np.float32(word >> _SHIFT_8) * _INVERSE_2_24


# Numbers replace their words in memory: a float32 is computed from one word, a float64 from two.
def _fill_uniform_float32(
    out: np.ndarray, samples: np.ndarray, first_block: np.uint64, k0: np.uint64, k1: np.uint64, step: np.uint64
) -> None:
    """Fill float32 [N, count] with the numbers of `Draws.uniform`; for compiled functions, with `numba_arguments`."""
    address, count = np.int64(out.ctypes.data), out.shape[1]
    for n in range(out.shape[0]):
        row_at = address + n * count * WORD_BYTES
        store_words(row_at, count, samples[n], first_block, k0, k1, step)
        words = array_at(row_at, (count,), np.uint32)
        for i in range(count):
            out[n, i] = uniform_of(words[i])


def _fill_uniform(
    out: np.ndarray, samples: np.ndarray, first_block: np.uint64, k0: np.uint64, k1: np.uint64, step: np.uint64
) -> None:
    """Fill float64 [N, count] with the numbers of `Draws.uniform`; for compiled functions, with `numba_arguments`."""
    address, count = np.int64(out.ctypes.data), 2 * out.shape[1]
    for n in range(out.shape[0]):
        row_at = address + n * count * WORD_BYTES
        store_words(row_at, count, samples[n], first_block, k0, k1, step)
        words = array_at(row_at, (out.shape[1], 2), np.uint32)
        for i in range(out.shape[1]):
            high, low = np.float64(words[i, 0] >> _SHIFT_5), np.float64(words[i, 1] >> _SHIFT_6)
            out[n, i] = (high * 2.0**26 + low) * 2.0**-53


fill_uniform_float32 = njit(nogil=True, cache=True)(_fill_uniform_float32)
fill_uniform = njit(nogil=True, cache=True)(_fill_uniform)
# For few numbers. They keep the GIL, because releasing it takes longer than the computation.
_fill_uniform_float32_briefly = njit(cache=True)(_fill_uniform_float32)
_fill_uniform_briefly = njit(cache=True)(_fill_uniform)


@njit(nogil=True, cache=True)
def _fill_words_each(out, counts, samples, first_block, k0, k1, step):
    start = 0
    for n in range(len(samples)):
        row = out[start : start + counts[n]].reshape((1, counts[n]))
        fill_words(row, samples[n : n + 1], first_block, k0, k1, step)
        start += counts[n]


def _mix(value: int) -> int:
    """Return the hash of 64 bits by the finalizer of SplitMix64, so that similar seeds have unrelated keys."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK_64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return value ^ (value >> 31)


@lru_cache(1024)  # used for every operator and chunk
def _key_of(seed: int, operator: int) -> tuple[int, int]:
    mixed = _mix((seed & _MASK_64) ^ _mix(operator & 0xFFFFFFFF))
    return mixed & 0xFFFFFFFF, mixed >> 32


def seed_of(state: np.ndarray[Any, Any]) -> int:
    """Return the seed for the state of a generator, at least seven uint32; others are ignored.

    Raises:
        ArgumentValueError: the state is too short.
    """
    if state.size < _STATE_WORDS:
        raise ArgumentValueError(
            f"the state of a generator has {counted(_STATE_WORDS, 'number')} of 32 bits; got {state.size}."
        )
    digest = hashlib.blake2b(np.ascontiguousarray(state[:_STATE_WORDS]).tobytes(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


class Draws:
    """The random numbers of an operator at one step. Stateless: repeated calls return the same numbers.

    Args:
        seed: the seed of the operator or pipeline, 64 bits; reduced modulo 2**64.
        operator: number of the operator in its pipeline, 32 bits.
        step: number of the iteration or epoch, 64 bits.
    """

    __slots__ = ("key", "operator", "seed", "step")

    def __init__(self, seed: int, operator: int = 0, step: int = 0) -> None:
        self.seed = seed
        self.operator = operator
        self.step = step & _MASK_64
        self.key = _key_of(seed, operator)

    def numba_arguments(self, samples: np.ndarray, first_block: int = 0) -> tuple[Any, ...]:
        """Return (samples int64 [N], first block, key low, key high, step) for compiled functions."""
        k0, k1 = self.key
        positions = samples if samples.dtype == np.int64 else samples.astype(np.int64)
        return positions, np.uint64(first_block), np.uint64(k0), np.uint64(k1), np.uint64(self.step)

    def bits(self, samples: np.ndarray, count: int | np.ndarray, *, first_block: int = 0) -> np.ndarray:
        """Return random words.

        Args:
            samples: position of each sample, integer array [N]; the low 32 bits are used.
            count: words per sample, below 2**34: a number, or int64 [N].
            first_block: first block of four words: skips ``4 * first_block`` words.

        Returns:
            uint32 array [N, count]; if `count` is an array, the words of all samples concatenated.
        """
        if not isinstance(count, int):
            words = np.empty(int(count.sum()), np.uint32)
            _fill_words_each(words, count, *self.numba_arguments(samples, first_block))
            return words
        out = np.empty((len(samples), count), np.uint32)
        fill_words(out, *self.numba_arguments(samples, first_block))
        return out

    def uniform(
        self,
        samples: np.ndarray,
        count: int | np.ndarray,
        dtype: type[np.floating] = np.float32,
        *,
        first_block: int = 0,
    ) -> np.ndarray:
        """Return numbers uniform in [0, 1): multiples of 2**-24 in float32 (one word each), of 2**-53 in float64 (two).

        Args:
            samples: position of each sample, integer array [N].
            count: numbers per sample: a number, or int64 [N].
            dtype: float32 or float64.
            first_block: as in `bits`.

        Returns:
            Array [N, count] of `dtype`; [total] if `count` is an array.
        """
        if not isinstance(count, int):
            words = self.bits(samples, count * (2 if dtype is np.float64 else 1), first_block=first_block)
            if dtype is np.float64:
                return ((words[::2] >> _SHIFT_5) * 2.0**26 + (words[1::2] >> _SHIFT_6)) * 2.0**-53
            return (words >> _SHIFT_8).astype(np.float32) * _INVERSE_2_24
        if dtype is np.float64:
            doubles = np.empty((len(samples), count), np.float64)
            fill = _fill_uniform_briefly if doubles.size <= FEW else fill_uniform
            fill(doubles, *self.numba_arguments(samples, first_block))
            return doubles
        out = np.empty((len(samples), count), np.float32)
        fill = _fill_uniform_float32_briefly if out.size <= FEW else fill_uniform_float32
        fill(out, *self.numba_arguments(samples, first_block))
        return out

    def bits_torch(
        self, samples: np.ndarray, count: int, device: torch.device | str, *, first_block: int | np.ndarray = 0
    ) -> torch.Tensor:
        """Return the words of `bits` as an int64 tensor [N, count] on `device`, because torch hardly supports uint32.

        `first_block` may be int64 [N].
        """
        blocks = -(-count // 4)
        first = uploaded(np.atleast_1d(first_block), device, np.int64)[:, None]
        c0 = (torch.arange(blocks, device=device)[None, :] + first) & 0xFFFFFFFF
        c1 = uploaded(np.asarray(samples, np.int64) & 0xFFFFFFFF, device)[:, None]
        c2 = torch.full((1, 1), self.step & 0xFFFFFFFF, dtype=torch.int64, device=device)
        c3 = torch.full((1, 1), self.step >> 32, dtype=torch.int64, device=device)
        k0, k1 = self.key
        for _ in range(_ROUNDS):
            # The product of two 32-bit words wraps to the same 64 bits in int64; the masks remove the sign bits.
            p0 = c0 * 0xD2511F53
            p1 = c2 * 0xCD9E8D57
            c0, c1 = ((p1 >> 32) & 0xFFFFFFFF) ^ c1 ^ k0, p1 & 0xFFFFFFFF
            c2, c3 = ((p0 >> 32) & 0xFFFFFFFF) ^ c3 ^ k1, p0 & 0xFFFFFFFF
            k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
            k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
        words = torch.stack(torch.broadcast_tensors(c0, c1, c2, c3), dim=-1)
        return words.reshape(len(samples), 4 * blocks)[:, :count]

    def uniform_torch(
        self,
        samples: np.ndarray,
        count: int,
        device: torch.device | str,
        dtype: torch.dtype | None = None,
        *,
        first_block: int = 0,
    ) -> torch.Tensor:
        """Return the numbers of `uniform`, bit for bit, as a float32 (default) or float64 tensor on `device`."""
        if dtype == torch.float64:
            words = self.bits_torch(samples, 2 * count, device, first_block=first_block)
            return ((words[:, ::2] >> 5).double() * 2.0**26 + (words[:, 1::2] >> 6)) * 2.0**-53
        words = self.bits_torch(samples, count, device, first_block=first_block)
        return (words >> 8).float() * 2.0**-24

    def at(self, samples: np.ndarray) -> SampleDraws:
        """Return these numbers for selected samples, for a kernel.

        Args:
            samples: position of each sample, integer array [N].
        """
        return SampleDraws(self, np.asarray(samples, np.int64))

    def __repr__(self) -> str:
        """Return for example ``Draws(seed=1, operator=2, step=3)``."""
        return f"Draws(seed={self.seed}, operator={self.operator}, step={self.step})"


class SampleDraws:
    """The random numbers of a group of samples: `Draws` with the positions filled in.

    Args:
        draws: the numbers of the operator at this step.
        samples: position of each sample, int64 array [N].
    """

    __slots__ = ("draws", "samples")

    def __init__(self, draws: Draws, samples: np.ndarray) -> None:
        self.draws = draws
        self.samples = samples

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.samples)

    def take(self, indices: np.ndarray) -> SampleDraws:
        """Return the numbers of some of the samples."""
        return SampleDraws(self.draws, self.samples[indices])

    def bits(self, count: int | np.ndarray, *, first_block: int = 0) -> np.ndarray:
        """Return random words, uint32 [N, count] or [total]; see `Draws.bits`."""
        return self.draws.bits(self.samples, count, first_block=first_block)

    def uniform(
        self, count: int | np.ndarray, dtype: type[np.floating] = np.float64, *, first_block: int = 0
    ) -> np.ndarray:
        """Return numbers in [0, 1), [N, count] or [total], of `dtype` (float64 or float32); see `Draws.uniform`."""
        return self.draws.uniform(self.samples, count, dtype, first_block=first_block)

    def bits_torch(self, count: int, device: torch.device | str, *, first_block: int | np.ndarray = 0) -> torch.Tensor:
        """Return the words of `bits` as an int64 tensor on `device`."""
        return self.draws.bits_torch(self.samples, count, device, first_block=first_block)

    def uniform_torch(
        self, count: int, device: torch.device | str, dtype: torch.dtype | None = None, *, first_block: int = 0
    ) -> torch.Tensor:
        """Return the numbers of `uniform` on `device`, of `dtype`; None for `wide_dtype`."""
        dtype = wide_dtype(device) if dtype is None else dtype
        return self.draws.uniform_torch(self.samples, count, device, dtype, first_block=first_block)
