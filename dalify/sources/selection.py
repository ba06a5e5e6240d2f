"""Samplers of ``dalify.samplers``: they select the entries of a reader that an epoch contains, and how often.

Each sampler computes the entry at any position of an epoch directly, so sharding, shuffling and resuming work as
without a sampler.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.fork_lock import ForkLock
from dalify.base.narrow import is_integer
from dalify.base.optional import is_loaded, torch
from dalify.base.user_error import without_stop_iteration
from dalify.base.wording import counted
from dalify.data.entries import Entries
from dalify.sources.permutation import mixed_key, permute, uniform

Numbers = NDArray[np.int64]
_DRAW, _ORDER, _GROUP, _USER_SAMPLER = 11, 12, 13, 14


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted:
    """Samples entries by weight, like ``torch.utils.data.WeightedRandomSampler``, in any number of shards.

    Args:
        weights: one per entry, not negative.
        num_samples: samples per epoch; the number of entries by default.
        replacement: allow an entry to occur several times in an epoch. If False, each occurs at most once, and the
            order is computed at the start of an epoch, which takes 8 MB and about 0.1 s for a million entries.
        seed: seed of the sampling; must be equal on all shards.

    Example:
        >>> fn.readers.file(file_root="photos", sampler=samplers.Weighted(weights=weights))
    """

    weights: ArrayLike
    num_samples: int | None = None
    replacement: bool = True
    seed: int = 0

    def bind(self, index: Entries[Any]) -> BoundSampler:
        """Bind the sampler to an index.

        Raises:
            ArgumentValueError: the weights do not match the index.
        """
        weights = np.asarray(self.weights, np.float64)
        if weights.shape != (len(index),):
            raise ArgumentValueError(f"weights must have shape ({len(index)},), one per entry; got {weights.shape}.")
        _check_weights(weights)
        size = _epoch_size(self.num_samples, len(index))
        if self.replacement:
            return _WithReplacement(size, np.cumsum(weights) / weights.sum(), self.seed)
        possible = int(np.count_nonzero(weights))
        if size > possible:
            raise ArgumentValueError(
                f"{counted(size, 'sample')} cannot be drawn without replacement from {counted(possible, 'entry')} "
                "with positive weights.",
                hint="Use a smaller num_samples, or replacement=True.",
            )
        return _WithoutReplacement(size, weights, self.seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Samples groups of entries (classes or sources) in given shares, for example large groups less often.

    Every epoch has exactly the share of each group, in random order. Within a group, every entry is used once before
    any is used again, also across epochs.

    Args:
        by: property that defines a group: ``label``, ``source`` (file or path of an entry, if there are several), or an
            array with a group for each entry.
        weights: share of each group, by name; None for the number of entries of each group.
        temperature: 1 keeps the shares; larger values make them more equal, ``share ** (1 / temperature)``.
        num_samples: samples per epoch; the number of entries by default.
        seed: seed of the order; must be equal on all shards.

    Example:
        >>> fn.readers.tfrecord(path=[web, books], ..., sampler=samplers.Mixture(by="source", temperature=3))
    """

    by: str | ArrayLike = "label"
    weights: dict[Any, float] | None = None
    temperature: float = 1.0
    num_samples: int | None = None
    seed: int = 0

    def bind(self, index: Entries[Any]) -> BoundSampler:
        """Bind the sampler to an index.

        Raises:
            ArgumentValueError: groups or shares do not match the index.
        """
        groups = self._groups(index)
        names, members = np.unique(groups, return_inverse=True)
        counts = np.bincount(members, minlength=len(names))
        if not self.temperature > 0:
            raise ArgumentValueError(f"temperature must be positive; got {self.temperature!r}.")
        shares = counts.astype(np.float64)
        if self.weights is not None:
            unknown = sorted(set(map(str, self.weights)) - set(map(str, names.tolist())))
            if unknown:
                raise ArgumentValueError(
                    f"weights contains unknown groups: {', '.join(unknown)}.",
                    hint=f"The groups are: {', '.join(map(str, names.tolist()[:20]))}.",
                )
            shares = np.array([self.weights.get(name, 0.0) for name in names.tolist()], np.float64)
            _check_weights(shares)
        shares = np.where(shares > 0, (shares / shares.max()) ** (1 / self.temperature), 0.0)
        size = _epoch_size(self.num_samples, len(index))
        taken = _apportion(shares / shares.sum(), size)
        return _BoundMixture(size, taken, np.argsort(members, kind="stable"), counts, self.seed)

    def _groups(self, index: Entries[Any]) -> NDArray[Any]:
        if not isinstance(self.by, str):
            groups = np.asarray(self.by)
            if groups.shape != (len(index),):
                raise ArgumentValueError(f"by must have shape ({len(index)},), one per entry; got {groups.shape}.")
            return groups
        if self.by not in ("label", "source"):
            raise ArgumentValueError(f"by must be 'label', 'source' or an array; got {self.by!r}.")
        groups = index.labels if self.by == "label" else index.sources
        if groups is None:
            raise ArgumentValueError(
                f"this reader does not know the {self.by} of an entry before reading it.",
                hint="Pass an array with a group for each entry: by=groups.",
            )
        return np.asarray(groups)


def ClassBalanced(*, num_samples: int | None = None, seed: int = 0) -> Mixture:  # noqa: N802 -- reads as a class
    """Return a sampler with equal shares of all classes.

    Args:
        num_samples: samples per epoch; the number of entries by default.
        seed: seed of the order; must be equal on all shards.
    """
    return Mixture(by="label", temperature=math.inf, num_samples=num_samples, seed=seed)


@dataclass(frozen=True, eq=False)
class Subset:
    """Samples given entries in the given order; ``random_shuffle`` shuffles them.

    Args:
        indices: indices of entries; an index may occur several times.
    """

    indices: ArrayLike

    def bind(self, index: Entries[Any]) -> BoundSampler:
        """Bind the sampler to an index.

        Raises:
            ArgumentValueError: there are no indices, or one is out of range.
        """
        return _Indices(_checked_entries(self.indices, len(index)))


def bind_sampler(sampler: Any, index: Entries[Any]) -> BoundSampler:
    """Bind a sampler to a reader's index.

    Args:
        sampler: a sampler of this module, or any object with a length that yields indices of entries, such as a
            ``torch.utils.data.Sampler``. Its order may depend only on the epoch: ``set_epoch`` is called if it exists,
            and torch's random generator is seeded for the iteration and restored afterwards. The indices are stored
            for one epoch, and requested again when a run is resumed.
        index: index of the reader.

    Raises:
        ArgumentTypeError: the value is not a sampler.
        ArgumentValueError: the sampler does not match the data.
    """
    if isinstance(sampler, (Weighted, Mixture, Subset)):
        return sampler.bind(index)
    if isinstance(sampler, type) or not hasattr(sampler, "__iter__") or not hasattr(sampler, "__len__"):
        raise ArgumentTypeError(
            f"sampler must be one of dalify.samplers or a torch Sampler; got {sampler!r}.",
            hint="Example: sampler=samplers.Weighted(weights=weights).",
        )
    return _UserSampler(len(sampler), sampler, len(index))


class BoundSampler(ABC):
    """A sampler bound to an index.

    Attributes:
        size: number of samples in an epoch.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    @abstractmethod
    def entries(self, epoch: int, positions: Numbers) -> Numbers:
        """Return the entries at positions of an epoch, int64 ``[N]``, each from 0 to ``size - 1``."""


class _Indices(BoundSampler):
    def __init__(self, indices: Numbers) -> None:
        super().__init__(len(indices))
        self._indices = indices

    def entries(self, epoch: int, positions: Numbers) -> Numbers:
        return self._indices[positions]


class _WithReplacement(BoundSampler):
    def __init__(self, size: int, shares: NDArray[np.float64], seed: int) -> None:
        super().__init__(size)
        self._shares = shares
        self._seed = seed

    def entries(self, epoch: int, positions: Numbers) -> Numbers:
        numbers = uniform(positions, mixed_key(_DRAW, self._seed, epoch))
        found = np.searchsorted(self._shares, numbers, side="right")
        return np.minimum(found, len(self._shares) - 1)  # rounding may make the last cumulative share less than 1


class _WithoutReplacement(BoundSampler):
    """One order per epoch; method of Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006."""

    def __init__(self, size: int, weights: NDArray[np.float64], seed: int) -> None:
        super().__init__(size)
        self._weights = weights
        self._seed = seed
        self._order: tuple[int, Numbers] | None = None

    def entries(self, epoch: int, positions: Numbers) -> Numbers:
        found = self._order  # read once, because other threads may replace it
        if found is None or found[0] != epoch:
            numbers = uniform(np.arange(len(self._weights)), mixed_key(_ORDER, self._seed, epoch))
            with np.errstate(divide="ignore"):
                keys = -np.log1p(-numbers) / self._weights
            found = self._order = epoch, np.argsort(keys, kind="stable")[: self.size]
        return found[1][positions]


class _BoundMixture(BoundSampler):
    def __init__(self, size: int, taken: Numbers, members: Numbers, counts: Numbers, seed: int) -> None:
        super().__init__(size)
        self._taken = taken  # number of samples of each group in an epoch
        self._ends = np.cumsum(taken)
        self._members = members  # entries, sorted by group
        self._counts = counts
        self._firsts = np.cumsum(counts) - counts
        self._seed = seed

    def entries(self, epoch: int, positions: Numbers) -> Numbers:
        places = permute(positions, self.size, mixed_key(_ORDER, self._seed, epoch))
        groups = np.searchsorted(self._ends, places, side="right")
        found = np.empty(len(positions), np.int64)
        for group in np.unique(groups).tolist():
            chosen = groups == group
            count = int(self._counts[group])
            # Counted across epochs, so that all entries of a group are used before one is repeated.
            numbers = places[chosen] - (self._ends[group] - self._taken[group]) + epoch * int(self._taken[group])
            rounds = numbers // count
            within = np.empty(len(numbers), np.int64)
            for number in np.unique(rounds).tolist():
                key = mixed_key(_GROUP, self._seed, group, number)
                within[rounds == number] = permute(numbers[rounds == number] % count, count, key)
            found[chosen] = self._members[self._firsts[group] + within]
        return found


class _UserSampler(BoundSampler):
    def __init__(self, size: int, sampler: Any, entry_count: int) -> None:
        super().__init__(size)
        self._sampler = sampler
        self._entry_count = entry_count
        self._first_seed: int | None = None
        self._lock = ForkLock()
        self._order: tuple[int, Numbers] | None = None

    def entries(self, epoch: int, positions: Numbers) -> Numbers:
        with self._lock:  # all threads share the user's sampler and torch's random generator
            if self._order is None or self._order[0] != epoch:
                try:
                    indices = self._indices_of_epoch(epoch)
                except StopIteration as error:
                    raise without_stop_iteration(error, "the sampler") from error
                order = _checked_entries(indices, self._entry_count)
                if len(order) != self.size:
                    found = "more" if len(order) > self.size else len(order)
                    raise ArgumentValueError(
                        f"the sampler has length {self.size} but yielded {found} items in epoch {epoch}."
                    )
                self._order = epoch, order
            return self._order[1][positions]

    def _indices_of_epoch(self, epoch: int) -> list[Any]:
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(epoch)
        with torch.random.fork_rng(devices=[]) if is_loaded("torch") else nullcontext():
            if is_loaded("torch"):
                torch.manual_seed(mixed_key(_USER_SAMPLER, epoch) >> 1)
                own = getattr(self._sampler, "generator", None)
                if isinstance(own, torch.Generator):
                    # The user may have set the initial seed; the generator's state depends on earlier reads.
                    if self._first_seed is None:
                        self._first_seed = own.initial_seed()
                    own.manual_seed(mixed_key(_USER_SAMPLER, self._first_seed, epoch) >> 1)
            return list(islice(self._sampler, self.size + 1))  # it may be endless


def _check_weights(weights: NDArray[np.float64]) -> None:
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ArgumentValueError("weights must be finite and not negative, and not all 0.")


def _epoch_size(num_samples: int | None, count: int) -> int:
    size = count if num_samples is None else num_samples
    if not (is_integer(size) and size >= 1):
        raise ArgumentValueError(f"num_samples must be at least 1; got {num_samples!r}.")
    return size


def _checked_entries(indices: Any, count: int) -> Numbers:
    try:
        entries = np.asarray(indices)
        if entries.dtype == np.bool_ or (entries.size and not np.issubdtype(entries.dtype, np.integer)):
            raise TypeError
        entries = entries.astype(np.int64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"a sampler must yield integer indices of entries; got {str(indices)[:60]}.") from None
    if entries.ndim != 1 or not entries.size:
        raise ArgumentValueError(f"a sampler must yield a non-empty 1-D list of indices; got {str(indices)[:60]}.")
    wrong = entries[(entries < 0) | (entries >= count)]
    if wrong.size:
        raise ArgumentValueError(f"a sampler yielded the index {wrong[0]}; valid indices are 0 to {count - 1}.")
    return entries


def _apportion(shares: NDArray[np.float64], size: int) -> Numbers:
    """Return integers proportional to shares that add up to ``size``, by the largest remainder method."""
    exact = shares * size
    counts = np.floor(exact).astype(np.int64)
    missing = size - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts
