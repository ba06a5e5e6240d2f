"""Batches of datasets in memory, selected at once from their arrays.

Supported are torch's TensorDataset, StackDataset, ConcatDataset and Subset, and classes with a ``__getitem__`` that
`getitem` can evaluate for a whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import ConcatDataset, StackDataset, Subset, TensorDataset, default_collate

from dalify.base.wording import counted
from dalify.plugin.pytorch.dropin.columns import (
    Column,
    Joined,
    Picked,
    collated,
    copied,
    index_of,
    is_column,
    positions_of,
)
from dalify.plugin.pytorch.dropin.datasets import ChangeMonitor
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from dalify.plugin.pytorch.dropin.getitem import samples_of_getitem
from dalify.plugin.pytorch.dropin.hints import NotedCollate, note_failed_sample

_default_collate = NotedCollate(default_collate)


def samples_in_memory(dataset: Any, index: Any = 0) -> Any:
    """Return the samples of a dataset in the form of ``Picked.samples``.

    None if batches cannot be selected at once, or torch returns something else for the first or the last sample. If
    both raise, the samples are loaded one by one later, so that the error has an index.

    Args:
        dataset: the dataset.
        index: an index of the type that the sampler returns, see `index_of`.
    """
    try:
        samples, count = _samples_of(dataset, index), len(dataset)
    except Exception:  # torch raises it again
        return None
    if samples is None or not count:
        return None
    for position in (0, count - 1):
        found = _result_of(collated, samples, np.array([position], np.int64))
        if not _are_equal(found, _result_of(_loaded, dataset, index + position)):
            return None
    return samples


def _result_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function; None if it raises."""
    try:
        return function(*arguments)
    except Exception:
        return None


def _loaded(dataset: Any, index: Any) -> Any:
    return default_collate([dataset[index]])


def _samples_of(dataset: Any, index: Any) -> Any:
    kind = type(dataset)
    reads, reads_many = getattr(kind, "__getitem__", None), getattr(kind, "__getitems__", None)
    if reads is Subset.__getitem__ and reads_many is Subset.__getitems__:
        inner = index_of(dataset.indices)
        samples = None if inner is None else _samples_of(dataset.dataset, inner)
        return None if samples is None else Picked(dataset.indices, samples)
    if reads is StackDataset.__getitem__ and reads_many is StackDataset.__getitems__:
        parts = dataset.datasets
        is_dict = isinstance(parts, dict)
        found = [_samples_of(part, index) for part in (parts.values() if is_dict else parts)]
        if any(part is None for part in found):
            return None
        return dict(zip(parts, found, strict=True)) if is_dict else tuple(found)
    if is_column(dataset):  # torch accepts tensors, arrays and lists as datasets
        return Column(dataset)
    if hasattr(dataset, "__getitems__"):
        return None
    if reads is ConcatDataset.__getitem__:
        found = [_samples_of(part, index) for part in dataset.datasets]
        return None if any(part is None for part in found) else Joined(dataset.cumulative_sizes, found)
    if reads is TensorDataset.__getitem__:
        return tuple(map(Column, dataset.tensors)) if all(map(is_column, dataset.tensors)) else None
    return samples_of_getitem(dataset, index)


def _are_equal(first: Any, second: Any) -> bool:
    """Return whether two batches have the same types, shapes and bytes."""
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor):
        is_alike = first.dtype == second.dtype and first.shape == second.shape
        return is_alike and (not first.numel() or torch.equal(_bytes(first), _bytes(second)))
    if isinstance(first, dict):
        return list(first) == list(second) and all(_are_equal(part, second[name]) for name, part in first.items())
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(_are_equal, first, second))
    return first == second


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor, in which NaN equals NaN."""
    return tensor.contiguous().view(torch.uint8)


def describe_columns(dataset: Any) -> str:
    """Return a description of a dataset in memory, for reports."""
    return f"{type(dataset).__name__} of {counted(len(dataset), 'sample')} in memory: batches selected by dalify"


class ColumnFetcher(Fetcher):
    """Selects batches from the arrays of a dataset.

    Args:
        dataset: the user's dataset.
        samples: see `samples_in_memory`, for indices that are Python integers.
        has_copies: whether later changes of the dataset's lists have no effect.
    """

    def __init__(self, dataset: Any, samples: Any, has_copies: bool) -> None:
        super().__init__(dataset, {}, None)
        self.change_monitor = ChangeMonitor(dataset, watches_all=True)
        self._columns: dict[type, Any] = {int: samples}  # by the type of the indices
        if has_copies:
            for index in (np.int64(0), torch.tensor(0)):
                self._columns[type(index)] = samples_in_memory(dataset, index)
            self._columns = {kind: None if each is None else copied(each) for kind, each in self._columns.items()}

    def fetch(self, indices: Sequence[Any], draws: TorchDraws) -> Any:
        """Compute one batch; see `Fetcher.fetch`."""
        if not isinstance(indices, np.ndarray | torch.Tensor):
            indices = list(indices)
        try:
            found = self._selected(indices)
            if found is not None:
                return found
        except Exception:  # the samples one by one, for the error of the right one
            pass
        samples: list[Any] = []
        for index in indices:
            try:
                samples.append(self.dataset[index])
            except Exception as error:
                note_failed_sample(error, index, self.dataset)
                raise
        return _default_collate(samples)

    def _selected(self, indices: Any) -> Any:
        """Return the batch, or None if its samples must be computed one by one."""
        example = index_of(indices)
        if example is None or not len(indices):
            return None
        kind = type(example)
        if kind not in self._columns:  # a method may treat integers of NumPy and tensors in another way
            self._columns[kind] = samples_in_memory(self.dataset, example)
        samples = self._columns[kind]
        return None if samples is None else collated(samples, positions_of(indices))
