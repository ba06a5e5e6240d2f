"""Datasets as trees: datasets with samples, inside Subset and ConcatDataset."""

from __future__ import annotations

import bisect
from typing import Any

import torch

from dalify.plugin.pytorch.dropin.known import source_of
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError
from dalify.plugin.pytorch.dropin.registration import DATASETS
from dalify.plugin.pytorch.dropin.sources import Source

__all__ = ["ChangeMonitor", "find_sources", "locate"]

_WATCHED = ("transform", "target_transform", "transforms", "data", "targets", "labels", "loader")
Located = tuple[Source, Any]


def find_sources(dataset: Any) -> dict[int, Source]:
    """Find the sources of the samples of a dataset.

    Returns:
        the source of each dataset that has samples of its own, by the id of that dataset.

    Raises:
        NotRecognizedError: a dataset is not supported.
    """
    if type(dataset) in DATASETS:
        return {id(dataset): source_of(dataset)}
    parts: list[Any]
    reads = type(dataset).__getitem__ if hasattr(type(dataset), "__getitem__") else None
    if reads is torch.utils.data.Subset.__getitem__:
        if type(dataset).__getitems__ is not torch.utils.data.Subset.__getitems__:
            raise NotRecognizedError(f"{type(dataset).__name__} defines its own __getitems__", code="DS03")
        parts = [dataset.dataset]
    elif hasattr(dataset, "__getitems__"):
        raise NotRecognizedError(f"{type(dataset).__name__} defines its own __getitems__", code="DS03")
    elif reads is torch.utils.data.ConcatDataset.__getitem__:
        parts = list(dataset.datasets)
    else:
        return {id(dataset): source_of(dataset)}
    return {key: source for part in parts for key, source in find_sources(part).items()}


class ChangeMonitor:
    """Detects that the user has assigned other transforms or data to a dataset.

    Args:
        sources: the result of `find_sources`.
    """

    def __init__(self, sources: dict[int, Source]) -> None:
        self._seen = [(source.dataset, _settings(source.dataset)) for source in sources.values()]

    def is_unchanged(self) -> bool:
        """Return whether no attribute has been replaced."""
        return all(
            now is then
            for dataset, settings in self._seen
            for now, then in zip(_settings(dataset), settings, strict=True)
        )


def _settings(dataset: Any) -> list[Any]:
    values = getattr(dataset, "__dict__", {})  # not getattr: a property may return another object each time
    return [values.get(name) for name in _WATCHED]


def locate(sources: dict[int, Source], dataset: Any, index: Any) -> Located:
    """Return source and index of the sample ``dataset[index]``.

    Raises:
        IndexError: there is no such sample.
        ValueError: a negative index that exceeds the length of a ConcatDataset.
    """
    while (source := sources.get(id(dataset))) is None:
        if isinstance(dataset, torch.utils.data.Subset):
            index, dataset = dataset.indices[index], dataset.dataset
            continue
        if index < 0:
            if -index > len(dataset):
                raise ValueError("absolute value of index should not exceed dataset length")
            index = len(dataset) + index
        part = bisect.bisect_right(dataset.cumulative_sizes, index)
        index = index - (0 if part == 0 else dataset.cumulative_sizes[part - 1])
        dataset = dataset.datasets[part]
    return source, index
