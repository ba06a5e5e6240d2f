"""Magnitude bins and their signs, drawn once for the whole batch before it is split by augmentation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalify import types
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, IndexingError
from dalify.graph import DataNode, apply

_SEEDS = 2**31 - 1


@dataclass(frozen=True, eq=False, slots=True)
class SignedBin:
    """A magnitude bin with a sign per sample; created by `signed_bin`.

    Attributes:
        bin: the bin without its sign: a number, or a graph value of integers.
        random_sign: graph value of integers, 1 to negate a magnitude, otherwise 0.
        row: result of `signed_magnitude_idx`, if it was computed before the batch was split; otherwise None.
    """

    bin: int | DataNode
    random_sign: DataNode
    row: DataNode | None = None

    @property
    def signed_magnitude_idx(self) -> DataNode:
        """Row in a table of magnitudes, each followed by its negation: ``2 * bin + sign``."""
        return self.bin * 2 + self.random_sign if self.row is None else self.row

    def __getitem__(self, index: int) -> SignedBin:
        """Return one of several bins and signs drawn per sample."""
        return SignedBin(self.bin[index] if isinstance(self.bin, DataNode) else self.bin, self.random_sign[index])


def signed_bin(
    magnitude_bin: int | DataNode,
    random_sign: DataNode | None = None,
    seed: int | None = None,
    shape: tuple[int, ...] | None = None,
) -> SignedBin:
    """Combine a magnitude bin with a random sign, for augmentations in either direction.

    Args:
        magnitude_bin: 0 to the number of bins - 1: a number, or a graph value of integers.
        random_sign: graph value of integers, 1 to negate the magnitude; by default a fair coin flip.
        seed: seed of the coin flip.
        shape: shape of the coin flips, if a sample needs several signs; index the result to select one.

    Returns:
        a value for the argument ``magnitude_bin`` of augmentations.

    Raises:
        ArgumentTypeError: the bin is neither an integer nor a graph value.
        ArgumentValueError: both `random_sign` and `seed` or `shape` are specified.
    """
    if not isinstance(magnitude_bin, DataNode):
        check_bin(magnitude_bin, None)
    if random_sign is None:
        random_sign = apply("random.coin_flip", seed=seed, dtype=types.INT32, shape=shape)
    elif seed is not None or shape is not None:
        raise ArgumentValueError.here(
            "seed and shape cannot be combined with random_sign.", hint="Omit seed and shape, or random_sign."
        )
    return SignedBin(magnitude_bin, random_sign)


def derived_seed(seed: int | None, part: int) -> int | None:
    """Return the seed of one of the draws of a scheme; None without a seed.

    Draws with equal seeds are equal: with one seed for all, as in DALI, the augmentation would determine its
    magnitude. (In DALI, 4 augmentations with 5 bins and a seed give 8 of the 20 combinations.)

    Raises:
        ArgumentTypeError: the seed is not a finite number.
    """
    if seed is None:
        return None
    if not isinstance(seed, (int, float, np.number)) or not np.isfinite(seed):
        raise ArgumentTypeError.here(f"seed must be an integer; got {seed!r}.")
    number = seed.item() if isinstance(seed, np.number) else seed  # small types would overflow
    return (number * 1_000_003 + part * 7_919) % _SEEDS


def random_index(count: int, *, seed: int | None, shape: tuple[int, ...] | None = None) -> DataNode:
    """Return random integers in [0, count): one per sample, or `shape`."""
    return apply("random.uniform", values=list(range(count)), dtype=types.INT32, seed=seed, shape=shape)


def check_bin_count(count: object) -> None:
    """Raise if a number of bins is not a positive integer."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        raise ArgumentTypeError.here(f"num_magnitude_bins must be a positive integer; got {count!r}.")
    if count < 1:
        raise ArgumentValueError.here(f"num_magnitude_bins must be at least 1; got {count}.")


def check_bin(
    magnitude_bin: object,
    count: int | None,
    name: str = "magnitude_bin",
    error: type[ArgumentValueError | IndexingError] = IndexingError,
) -> None:
    """Raise if a bin is not an integer in [0, count); `error` is raised for other integers."""
    if isinstance(magnitude_bin, bool) or not isinstance(magnitude_bin, (int, np.integer)):
        raise ArgumentTypeError.here(
            f"{name} must be an integer or a graph value of integers; got {magnitude_bin!r} of type "
            f"{type(magnitude_bin).__name__}."
        )
    if magnitude_bin < 0 or (count is not None and magnitude_bin >= count):
        limit = "at least 0" if count is None else f"between 0 and {count - 1}"
        raise error.here(f"{name} must be {limit}; got {magnitude_bin}.")
