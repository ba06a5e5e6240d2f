"""The values of datasets in memory: a batch is one selection of rows for each array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import default_collate

from dalify.plugin.pytorch.dropin.collating import image_pool

Positions = NDArray[np.int64]

# Functions are applied to this many elements of rows at a time: their results remain in the CPU cache, and torch only
# divides larger operations among threads. If other processes use the CPU, such threads wait for each other for
# milliseconds: epochs of small images took 40 times as long.
_PART_ELEMENTS = (1 << 15) - 1

INDEX = object()
"""In the place of a column: the index of the sample."""


_INDEX_TYPES = int, np.int64, torch.Tensor
_ARRAYS = np.ndarray, torch.Tensor


class _NoColumnError(Exception):
    """The samples must be computed one by one."""


@dataclass(frozen=True)
class Column:
    """One value of each sample.

    Attributes:
        values: tensor or array ``[samples, ...]``, or a list with a value for each sample.
        functions: applied to the selected rows ``[batch, ...]`` one after the other. The first one for a list receives
            a list.
    """

    values: Any
    functions: tuple[Callable[[Any], Any], ...] = ()

    def select(self, positions: Positions, group: Callable[[list[Any]], Any]) -> Any:
        """Return the values of a batch in the form in which torch collates them; see `collated`."""
        count = len(self.values)
        if positions.min() < 0:
            positions = np.where(positions < 0, positions + count, positions)
        if positions.min() < 0 or positions.max() >= count:
            raise _NoColumnError
        if isinstance(self.values, list):
            rows = self._computed(list(map(self.values.__getitem__, positions.tolist())))
            return default_collate(group(rows)) if isinstance(rows, list) else rows
        rows_of: Any = _rows_of_tensor if isinstance(self.values, torch.Tensor) else _rows_of_array
        size = max(1, _PART_ELEMENTS * count // max(1, math.prod(self.values.shape)))
        if not self.functions or size >= len(positions):
            rows = self._computed(rows_of(self.values, positions))
            return torch.from_numpy(rows) if isinstance(rows, np.ndarray) else rows.contiguous()
        found: torch.Tensor | None = None
        for start in range(0, len(positions), size):
            part = torch.as_tensor(self._computed(rows_of(self.values, positions[start : start + size])))
            if found is None:
                found = _empty((len(positions), *part.shape[1:]), part.dtype)
            found[start : start + size] = part
        return found

    def _computed(self, rows: Any) -> Any:
        for function in self.functions:
            rows = function(rows)
        return rows


@dataclass(frozen=True)
class Picked:
    """The samples of a Subset.

    Attributes:
        indices: position of each sample in `samples`; see `index_of`.
        samples: the samples of the whole dataset: a column, `INDEX`, another `Picked`, `Joined`, or a tuple, list or
            dictionary of these.
    """

    indices: Any
    samples: Any


@dataclass(frozen=True)
class Joined:
    """The samples of a ConcatDataset.

    Attributes:
        stops: end of each dataset, as an index in all of them.
        parts: the samples of each dataset; see `Picked`.
    """

    stops: Sequence[int]
    parts: Sequence[Any]

    def collated(self, positions: Positions, group: Callable[[list[Any]], Any]) -> Any:
        """Return what torch's collate function returns; see `collated`."""
        stops = np.array(self.stops, np.int64)
        positions = np.where(positions < 0, positions + stops[-1], positions)
        numbers = np.searchsorted(stops, positions, "right")
        if positions.min() < 0 or numbers.max() >= len(stops):
            raise _NoColumnError
        found: list[Any] = []
        for number in np.unique(numbers).tolist():
            start = self.stops[number - 1] if number else 0
            found.append(collated(self.parts[number], positions[numbers == number] - start, group))
        places = np.empty(len(positions), np.int64)
        places[np.argsort(numbers, kind="stable")] = np.arange(len(positions))
        return found[0] if len(found) == 1 else _merged(found, places)


def _merged(parts: list[Any], places: Positions) -> Any:
    """Join batches.

    Args:
        parts: the batches, collated.
        places: index of each sample in the joined batches.
    """
    first = parts[0]
    if any(type(part) is not type(first) for part in parts):
        raise _NoColumnError
    if isinstance(first, torch.Tensor):
        if any(part.dtype != first.dtype or part.shape[1:] != first.shape[1:] for part in parts):
            raise _NoColumnError
        return torch.cat(parts)[torch.from_numpy(places)]
    if isinstance(first, dict):
        return {name: _merged([part[name] for part in parts], places) for name in first}
    if all(isinstance(value, str | bytes) for value in first):
        values = [value for part in parts for value in part]
        return type(first)(values[place] for place in places.tolist())
    return [_merged(list(values), places) for values in zip(*parts, strict=True)]


def _empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    try:
        return torch.from_numpy(image_pool.empty(shape, torch.empty(0, dtype=dtype).numpy().dtype))
    except TypeError:  # NumPy has no such dtype
        return torch.empty(shape, dtype=dtype)


def _rows_of_array(values: NDArray[Any], positions: Positions) -> NDArray[Any]:
    if not (values.flags.c_contiguous and values.flags.aligned):  # `take` would copy all values
        return values[positions]
    rows = image_pool.empty((len(positions), *values.shape[1:]), values.dtype)
    return values.take(positions, 0, rows, "clip")  # the positions are valid; the other modes copy `rows` first


def _rows_of_tensor(values: torch.Tensor, positions: Positions) -> torch.Tensor:
    # NumPy uses one thread: torch would start a team of threads for each thread of the loader.
    if values.dtype is torch.bfloat16:
        return torch.from_numpy(_rows_of_array(values.view(torch.int16).numpy(), positions)).view(torch.bfloat16)
    return torch.from_numpy(_rows_of_array(values.numpy(), positions))


def is_column(values: Any) -> bool:
    """Return whether rows of a value can be selected for a whole batch, with torch's results."""
    if type(values) is torch.Tensor:
        is_plain = values.layout is torch.strided and values.device.type == "cpu" and not values.is_quantized
        if not is_plain or values.requires_grad or values.is_conj() or values.is_neg() or not values.ndim:
            return False
        try:
            _rows_of_tensor(values[:0], np.empty(0, np.int64))
        except TypeError:  # NumPy has no such dtype
            return False
        return True
    if type(values) in (np.ndarray, np.memmap):
        try:
            torch.from_numpy(np.empty(0, values.dtype))
        except (TypeError, ValueError):  # torch has no such dtype or byte order
            return False
        return values.ndim > 1 or (values.ndim == 1 and values.dtype != np.uint64)  # torch cannot collate such scalars
    return type(values) is list


def index_of(indices: Any) -> Any:
    """Return 0 as an index of the type of the elements of a list, range, array or tensor.

    Args:
        indices: indices of samples, such as those of a Subset or a batch.

    Returns:
        A Python integer, an integer of NumPy or a tensor without dimensions; None for other elements.
    """
    if type(indices) is range:
        return 0
    if type(indices) is list:
        kinds = set(map(type, indices)) or {int}
        kind = kinds.pop()
        if kinds or kind not in _INDEX_TYPES:
            return None
        if kind is not torch.Tensor:
            return kind(0)
        is_integer = all(each.ndim == 0 and each.dtype == torch.int64 for each in indices)
        return torch.tensor(0) if is_integer else None
    if type(indices) is np.ndarray:
        return np.int64(0) if indices.ndim == 1 and indices.dtype == np.int64 else None
    if type(indices) is torch.Tensor:
        return torch.tensor(0) if indices.ndim == 1 and indices.dtype == torch.int64 else None
    return None


def positions_of(indices: Any) -> Positions:
    """Return indices for which `index_of` returns a value as an array ``[batch]``."""
    if isinstance(indices, _ARRAYS):
        return np.array(indices, np.int64)
    return np.fromiter(map(int, indices), np.int64, len(indices))


def collated(samples: Any, positions: Positions, group: Callable[[list[Any]], Any] = list) -> Any:
    """Return what torch's collate function returns for samples.

    Args:
        samples: see ``Picked.samples``.
        positions: indices of the samples in the dataset, ``[batch]``, at least one.
        group: tuple if the samples are elements of a tuple or a list: torch then returns their strings as a tuple.

    Raises:
        Exception: the samples must be computed one by one, for instance to raise the error of an index.
    """
    if isinstance(samples, Column):
        return samples.select(positions, group)
    if isinstance(samples, Picked):
        indices = samples.indices
        if isinstance(indices, _ARRAYS):
            return collated(samples.samples, np.asarray(indices)[positions], group)
        picked = [indices[position] for position in positions.tolist()]
        if set(map(type, picked)) != {int}:
            raise _NoColumnError
        return collated(samples.samples, np.array(picked, np.int64), group)
    if isinstance(samples, Joined):
        return samples.collated(positions, group)
    if samples is INDEX:
        return torch.from_numpy(positions.copy())
    if isinstance(samples, dict):
        return {name: collated(part, positions) for name, part in samples.items()}
    return [collated(part, positions, tuple) for part in samples]


def copied(samples: Any) -> Any:
    """Return samples with copies of their lists, so that later changes by the user have no effect."""
    if isinstance(samples, Column):
        return Column(list(samples.values), samples.functions) if isinstance(samples.values, list) else samples
    if isinstance(samples, Picked):
        indices = deepcopy(samples.indices) if isinstance(samples.indices, _ARRAYS) else list(samples.indices)
        return Picked(indices, copied(samples.samples))
    if isinstance(samples, Joined):
        return Joined(list(samples.stops), list(map(copied, samples.parts)))
    if isinstance(samples, dict):
        return {name: copied(part) for name, part in samples.items()}
    return samples if samples is INDEX else type(samples)(map(copied, samples))
