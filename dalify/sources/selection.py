"""Which entries of a reader an epoch is made of, and how often: what ``dalify.samplers`` offers.

Alone because it is what users write for themselves where readers read everything once. Each of these tells by formula
which entry stands at a place of an epoch, so shards, shuffling and resuming work as without them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import is_loaded, torch
from dalify.sources.permutation import mixed_key, permute, uniform

__all__ = ["ClassBalanced", "Mixture", "Subset", "Weighted", "bound_selection"]

Index = Sequence[Any]
Entries = NDArray[np.int64]
_DRAW, _ORDER, _GROUP, _FOREIGN = 11, 12, 13, 14


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted:
    """Entries by weight, like ``torch.utils.data.WeightedRandomSampler``, in any number of shards.

    Args:
        weights: one per entry, not negative.
        num_samples: of an epoch; as many as there are entries by default.
        replacement: an entry may come several times; without, each at most once, heavy ones rather than light ones,
            for which the order of an epoch is made when it begins: 8 MB and some tenths of a second for a million.
        seed: decides what is drawn; must be equal on all shards.

    Example:
        >>> fn.readers.file(file_root="photos", sampler=samplers.Weighted(weights=weights))
    """

    weights: ArrayLike
    num_samples: int | None = None
    replacement: bool = True
    seed: int = 0

    def bound(self, index: Index) -> _Bound:
        """Return what is drawn from an index.

        Raises:
            ArgumentValueError: weights that do not fit.
        """
        weights = np.asarray(self.weights, np.float64)
        if weights.shape != (len(index),):
            raise ArgumentValueError(f"there must be one weight for each of {len(index)} entries; got {weights.shape}.")
        if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise ArgumentValueError("weights must be finite and not negative, and not all 0.")
        size = _checked_size(self.num_samples, len(index))
        if self.replacement:
            return _Drawn(size, np.cumsum(weights) / weights.sum(), self.seed)
        possible = int(np.count_nonzero(weights))
        if size > possible:
            raise ArgumentValueError(
                f"{size} samples cannot be drawn from {possible} entries of a weight above 0 without replacement.",
                hint="Give a smaller num_samples, or replacement=True.",
            )
        return _DrawnOnce(size, weights, self.seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Groups of entries in given shares: classes, or several sources, large ones less often than they would come.

    Every epoch has exactly the share of each group, in a random order. Within a group, every entry is taken once before
    any is taken again, also over the ends of epochs.

    Args:
        by: what makes a group: ``label``, ``source`` (the file or path that an entry is from, where the reader has
            several), or an array with a group for each entry.
        weights: share of each group, by its name; by its number of entries where None.
        temperature: 1: shares as they are; above: more equal, ``share ** (1 / temperature)``; infinity: all alike.
        num_samples: of an epoch; as many as there are entries by default.
        seed: decides on the order; must be equal on all shards.

    Example:
        >>> fn.readers.tfrecord(path=[web, books], ..., sampler=samplers.Mixture(by="source", temperature=3))
    """

    by: str | ArrayLike = "label"
    weights: dict[Any, float] | None = None
    temperature: float = 1.0
    num_samples: int | None = None
    seed: int = 0

    def bound(self, index: Index) -> _Bound:
        """Return what is drawn from an index.

        Raises:
            ArgumentValueError: groups or shares that do not fit.
        """
        groups = self._groups(index)
        names, members = np.unique(groups, return_inverse=True)
        counts = np.bincount(members, minlength=len(names))
        if not self.temperature > 0:
            raise ArgumentValueError(f"temperature must be above 0; got {self.temperature!r}.")
        shares = counts.astype(np.float64)
        if self.weights is not None:
            unknown = sorted(set(map(str, self.weights)) - set(map(str, names.tolist())))
            if unknown:
                raise ArgumentValueError(
                    f"weights names groups that have no entry: {', '.join(unknown)}.",
                    hint=f"The groups are: {', '.join(map(str, names.tolist()[:20]))}.",
                )
            shares = np.array([self.weights.get(name, 0.0) for name in names.tolist()], np.float64)
            if not np.isfinite(shares).all() or (shares < 0).any() or not shares.any():
                raise ArgumentValueError("weights must be finite and not negative, and not all 0.")
        shares = np.where(shares > 0, (shares / shares.max()) ** (1 / self.temperature), 0.0)
        size = _checked_size(self.num_samples, len(index))
        taken = _apportioned(shares / shares.sum(), size)
        return _Mixed(size, taken, np.argsort(members, kind="stable"), counts, self.seed)

    def _groups(self, index: Index) -> NDArray[Any]:
        if not isinstance(self.by, str):
            groups = np.asarray(self.by)
            if groups.shape != (len(index),):
                raise ArgumentValueError(f"by needs a group for each of {len(index)} entries; got {groups.shape}.")
            return groups
        if self.by not in ("label", "source"):
            raise ArgumentValueError(f"by must be 'label', 'source' or an array; got {self.by!r}.")
        groups = getattr(index, f"{self.by}s", None)
        if groups is None:
            raise ArgumentValueError(
                f"this reader does not know the {self.by} of an entry before it is read.",
                hint="Pass an array with a group for each entry: by=groups.",
            )
        return np.asarray(groups)


def ClassBalanced(*, num_samples: int | None = None, seed: int = 0) -> Mixture:  # noqa: N802 -- reads as a class
    """Return a sampler that gives every class equally often.

    Args:
        num_samples: of an epoch; as many as there are entries by default.
        seed: decides on the order; must be equal on all shards.
    """
    return Mixture(by="label", temperature=math.inf, num_samples=num_samples, seed=seed)


@dataclass(frozen=True, eq=False)
class Subset:
    """Some of the entries, in the given order; ``random_shuffle`` shuffles them.

    Args:
        indices: numbers of entries; one may come several times.
    """

    indices: ArrayLike

    def bound(self, index: Index) -> _Bound:
        """Return what is taken from an index.

        Raises:
            ArgumentValueError: no indices, or one that is no entry.
        """
        return _Listed(_checked_entries(self.indices, len(index)))


def bound_selection(sampler: Any, index: Index) -> _Bound:
    """Return what a sampler takes from a reader's index.

    Args:
        sampler: one of this module, or any object that yields the numbers of entries and has a length, such as a
            ``torch.utils.data.Sampler``. What it yields in an epoch must depend on the epoch alone: ``set_epoch`` is
            called where it exists, and torch's random numbers are set for it, and put back. Its numbers are kept for
            one epoch, and asked for anew where a run is resumed.
        index: of the reader.

    Raises:
        ArgumentTypeError: nothing of the kind.
        ArgumentValueError: it does not fit the data.
    """
    if isinstance(sampler, (Weighted, Mixture, Subset)):
        return sampler.bound(index)
    if isinstance(sampler, type) or not hasattr(sampler, "__iter__") or not hasattr(sampler, "__len__"):
        raise ArgumentTypeError(
            f"sampler must be one of dalify.samplers or a torch Sampler; got {sampler!r}.",
            hint="For instance: sampler=samplers.Weighted(weights=weights).",
        )
    return _Foreign(len(sampler), sampler, len(index))


class _Bound:
    """What an epoch is made of.

    Attributes:
        size: samples in an epoch.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def entries(self, epoch: int, positions: Entries) -> Entries:
        """Return the entries at places of an epoch."""
        raise AssertionError("dalify bug: a selection that selects nothing")


class _Listed(_Bound):
    def __init__(self, indices: Entries) -> None:
        super().__init__(len(indices))
        self._indices = indices

    def entries(self, epoch: int, positions: Entries) -> Entries:
        return self._indices[positions]


class _Drawn(_Bound):
    def __init__(self, size: int, shares: NDArray[np.float64], seed: int) -> None:
        super().__init__(size)
        self._shares = shares
        self._seed = seed

    def entries(self, epoch: int, positions: Entries) -> Entries:
        numbers = uniform(positions, mixed_key(_DRAW, self._seed, epoch))
        found = np.searchsorted(self._shares, numbers, side="right")
        return np.minimum(found, len(self._shares) - 1)  # the last share may be rounded to below 1


class _DrawnOnce(_Bound):
    """One order for each epoch: Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006."""

    def __init__(self, size: int, weights: NDArray[np.float64], seed: int) -> None:
        super().__init__(size)
        self._weights = weights
        self._seed = seed
        self._order: tuple[int, Entries] | None = None

    def entries(self, epoch: int, positions: Entries) -> Entries:
        found = self._order  # several threads may ask, for several epochs
        if found is None or found[0] != epoch:
            numbers = uniform(np.arange(len(self._weights)), mixed_key(_ORDER, self._seed, epoch))
            with np.errstate(divide="ignore"):
                keys = -np.log1p(-numbers) / self._weights
            found = self._order = epoch, np.argsort(keys, kind="stable")[: self.size]
        return found[1][positions]


class _Mixed(_Bound):
    def __init__(self, size: int, taken: Entries, members: Entries, counts: Entries, seed: int) -> None:
        super().__init__(size)
        self._taken = taken  # of each group in an epoch
        self._ends = np.cumsum(taken)
        self._members = members  # entries, group by group
        self._counts = counts
        self._firsts = np.cumsum(counts) - counts
        self._seed = seed

    def entries(self, epoch: int, positions: Entries) -> Entries:
        places = permute(positions, self.size, mixed_key(_ORDER, self._seed, epoch))
        groups = np.searchsorted(self._ends, places, side="right")
        found = np.empty(len(positions), np.int64)
        for group in np.unique(groups).tolist():
            chosen = groups == group
            count = int(self._counts[group])
            # Counted on over the epochs, so that all of a group come before one comes again.
            numbers = places[chosen] - (self._ends[group] - self._taken[group]) + epoch * int(self._taken[group])
            rounds = numbers // count
            within = np.empty(len(numbers), np.int64)
            for number in np.unique(rounds).tolist():
                key = mixed_key(_GROUP, self._seed, group, number)
                within[rounds == number] = permute(numbers[rounds == number] % count, count, key)
            found[chosen] = self._members[self._firsts[group] + within]
        return found


class _Foreign(_Bound):
    def __init__(self, size: int, sampler: Any, entry_count: int) -> None:
        super().__init__(size)
        self._sampler = sampler
        self._entry_count = entry_count
        self._first_seed: int | None = None
        self._lock = ForkLock()
        self._order: tuple[int, Entries] | None = None

    def entries(self, epoch: int, positions: Entries) -> Entries:
        with self._lock:  # users' samplers and torch's random numbers are one for all threads
            if self._order is None or self._order[0] != epoch:
                order = _checked_entries(self._yielded(epoch), self._entry_count)
                if len(order) != self.size:
                    raise ArgumentValueError(
                        f"the sampler says that it has {self.size} items and has yielded {len(order)} in epoch {epoch}."
                    )
                self._order = epoch, order
            return self._order[1][positions]

    def _yielded(self, epoch: int) -> list[Any]:
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(epoch)
        with torch.random.fork_rng(devices=[]) if is_loaded("torch") else nullcontext():
            if is_loaded("torch"):
                torch.manual_seed(mixed_key(_FOREIGN, epoch) >> 1)
                own = getattr(self._sampler, "generator", None)
                if isinstance(own, torch.Generator):
                    # Its first seed may be the user's choice; its state would depend on what was read before.
                    if self._first_seed is None:
                        self._first_seed = own.initial_seed()
                    own.manual_seed(mixed_key(_FOREIGN, self._first_seed, epoch) >> 1)
            return list(self._sampler)


def _checked_size(num_samples: int | None, count: int) -> int:
    size = count if num_samples is None else num_samples
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ArgumentValueError(f"num_samples must be at least 1; got {num_samples!r}.")
    return size


def _checked_entries(indices: Any, count: int) -> Entries:
    try:
        entries = np.asarray(indices)
        if entries.dtype == np.bool_ or (entries.size and not np.issubdtype(entries.dtype, np.integer)):
            raise TypeError
        entries = entries.astype(np.int64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"a sampler must give the numbers of entries; got {str(indices)[:60]}.") from None
    if entries.ndim != 1 or not entries.size:
        raise ArgumentValueError(f"a sampler must give a list of at least one number; got {str(indices)[:60]}.")
    wrong = entries[(entries < 0) | (entries >= count)]
    if wrong.size:
        raise ArgumentValueError(f"a sampler gave the number {wrong[0]}; the reader has the entries 0 to {count - 1}.")
    return entries


def _apportioned(shares: NDArray[np.float64], size: int) -> Entries:
    """Return whole numbers that add up to ``size``, nearest to the shares: the largest remainders are rounded up."""
    exact = shares * size
    counts = np.floor(exact).astype(np.int64)
    missing = size - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts
