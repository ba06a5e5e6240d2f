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
from dalify.plugin.pytorch.dropin.columns import Column, Joined, Picked, collated, is_column
from dalify.plugin.pytorch.dropin.datasets import ChangeMonitor
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from dalify.plugin.pytorch.dropin.getitem import samples_of_getitem
from dalify.plugin.pytorch.dropin.hints import NotedCollate, note_failed_sample

_default_collate = NotedCollate(default_collate)


def samples_in_memory(dataset: Any) -> Any:
    """Return the samples of a dataset in the form of ``Picked.samples``.

    None if batches cannot be selected at once, or torch returns something else for the first or the last sample. If
    both raise, the samples are loaded one by one later, so that the error has an index.
    """
    try:
        samples, count = _samples_of(dataset), len(dataset)
    except Exception:  # torch raises it again
        return None
    if samples is None or not count:
        return None
    for index in (0, count - 1):
        found = _result_of(collated, samples, np.array([index], np.int64))
        if not _are_equal(found, _result_of(_loaded, dataset, index)):
            return None
    return samples


def _result_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function; None if it raises."""
    try:
        return function(*arguments)
    except Exception:
        return None


def _loaded(dataset: Any, index: int) -> Any:
    return default_collate([dataset[index]])


def _samples_of(dataset: Any) -> Any:
    kind = type(dataset)
    reads, reads_many = getattr(kind, "__getitem__", None), getattr(kind, "__getitems__", None)
    if reads is Subset.__getitem__ and reads_many is Subset.__getitems__:
        samples = _samples_of(dataset.dataset)
        is_list = type(dataset.indices) in (list, range)
        return Picked(dataset.indices, samples) if samples is not None and is_list else None
    if reads is StackDataset.__getitem__ and reads_many is StackDataset.__getitems__:
        parts = dataset.datasets
        is_dict = isinstance(parts, dict)
        found = [_samples_of(part) for part in (parts.values() if is_dict else parts)]
        if any(part is None for part in found):
            return None
        return dict(zip(parts, found, strict=True)) if is_dict else tuple(found)
    if is_column(dataset):  # torch accepts tensors, arrays and lists as datasets
        return Column(dataset)
    if hasattr(dataset, "__getitems__"):
        return None
    if reads is ConcatDataset.__getitem__:
        found = list(map(_samples_of, dataset.datasets))
        return None if any(part is None for part in found) else Joined(dataset.cumulative_sizes, found)
    if reads is TensorDataset.__getitem__:
        return tuple(map(Column, dataset.tensors)) if all(map(is_column, dataset.tensors)) else None
    return samples_of_getitem(dataset)


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
        samples: see `samples_in_memory`.
    """

    def __init__(self, dataset: Any, samples: Any) -> None:
        super().__init__(dataset, {}, None)
        self.change_monitor = ChangeMonitor(dataset, watches_all=True)
        self._columns = samples

    def fetch(self, indices: Sequence[Any], draws: TorchDraws) -> Any:
        """Compute one batch; see `Fetcher.fetch`."""
        indices = list(indices)
        if set(map(type, indices)) == {int}:
            try:
                return collated(self._columns, np.array(indices, np.int64))
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
