"""Compute batches from indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from dalify.data.pool import BufferPool
from dalify.plugin.pytorch.dropin.datasets import ChangeMonitor, locate
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.hints import NotedCollate, SampleNote
from dalify.plugin.pytorch.dropin.kernels.pixel_table import planes_of_windows
from dalify.plugin.pytorch.dropin.plan import windows_of
from dalify.plugin.pytorch.dropin.sources import ArraySource, Source

__all__ = ["Fetcher"]

_Array = np.ndarray[Any, Any]
Samples = list[tuple[Any, Any]]
_pool = BufferPool()
_default_collate = NotedCollate(torch.utils.data.default_collate)


class Fetcher:
    """Computes batches. Several threads may use it at the same time, each with its own random numbers.

    Args:
        dataset: the user's dataset.
        sources: the sources of its samples.
        collate: the user's collate function; None for torch's default, which requires complete sources.
    """

    def __init__(self, dataset: Any, sources: dict[int, Source], collate: Callable[[Samples], Any] | None) -> None:
        self.dataset = dataset
        self.sources = sources
        self.collate = collate
        self.watch = ChangeMonitor(dataset)
        self.is_random = any(source.plan.is_random for source in sources.values())
        self._is_complete = all(source.is_complete for source in sources.values())

    def fetch(self, indices: Sequence[Any], draws: TorchDraws) -> Any:
        """Compute one batch.

        Args:
            indices: an element of the batch sampler.
            draws: random numbers of the worker.

        Returns:
            ``[images, labels]``; with a collate function of the user, the samples, its argument.

        Raises:
            Exception: the errors of the dataset, the transforms and torch's collate function.
        """
        if self.collate is not None:
            return self.samples(indices, draws)
        indices = list(indices)
        found = self._fetch_windows(indices, draws)
        images, labels = self._fetch_each(indices, draws) if found is None else found
        if isinstance(images, list):  # of different sizes, or empty: torch raises its error
            return _default_collate([torch.from_numpy(image) for image in images])
        if set(map(type, labels)) == {int} and (numbers := np.array(labels)).dtype == np.int64:
            return [torch.from_numpy(images), torch.from_numpy(numbers)]  # what torch's function returns, but faster
        of_samples: Any = tuple(labels)
        return [torch.from_numpy(images), torch.utils.data.default_collate(of_samples)]

    def samples(self, indices: Sequence[Any], draws: TorchDraws) -> list[Any]:
        """Compute the samples of a batch, with the types of torchvision; see `fetch`."""
        if not self._is_complete:  # the user's code draws from the same generators, so no number is computed in advance
            return [self.sample(index, draws) for index in indices]
        indices = list(indices)
        found = self._fetch_windows(indices, draws)
        if found is None:
            with draws.for_samples(len(indices) if self.is_random else 0):
                return [self.sample(index, draws) for index in indices]
        (images, labels), kind = found, self._tensor_type()
        return list(zip((torch.from_numpy(image).as_subclass(kind) for image in images), labels, strict=True))

    def sample(self, index: Any, draws: TorchDraws) -> Any:
        """Compute one sample, for an element of the sampler."""
        with SampleNote(index, self.dataset):
            source, place = locate(self.sources, self.dataset, index)
            return source.sample(place, draws)

    def _fetch_windows(self, indices: list[Any], draws: TorchDraws) -> tuple[_Array, list[Any]] | None:
        """Compute all samples at once if each is a window of an image in memory; otherwise return None."""
        source = next(iter(self.sources.values())) if len(self.sources) == 1 else None
        if not isinstance(source, ArraySource) or source.draws_per_sample is None or not indices:
            return None
        count, height, width, channels = source.images.shape
        numbers = self._numbers(indices, count)
        if numbers is None:
            return None
        batch_draws = draws.batch(len(indices), source.draws_per_sample)
        windows = windows_of(source.plan, len(indices), height, width, batch_draws)
        assert source.plan.table is not None
        table = source.plan.table.values
        batch = _pool.empty((len(indices), channels, windows.height, windows.width), table.dtype)
        fill = np.array(windows.fill or (0,) * channels, np.uint8)
        planes_of_windows(source.images, numbers, windows.corners, windows.flips, fill, table, batch)
        return batch, list(map(source.labels.__getitem__, numbers.tolist()))

    def _numbers(self, indices: list[Any], count: int) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """Return the positions in the only source, which has `count` samples; None if an index is invalid.

        The samples of such a batch are computed one by one, so that those before the error draw their random numbers.
        """
        try:
            is_source = id(self.dataset) in self.sources
            places = indices if is_source else [locate(self.sources, self.dataset, index)[1] for index in indices]
            numbers = np.asarray(places)
        except Exception:
            return None
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.min() < -count or numbers.max() >= count:
            return None
        return numbers.astype(np.int64) % count

    def _tensor_type(self) -> type[torch.Tensor]:
        """Return the tensor type of the samples of the only source."""
        (source,) = self.sources.values()
        assert source.plan.table is not None
        return source.plan.table.tensor_type

    def _fetch_each(self, indices: list[Any], draws: TorchDraws) -> tuple[Any, list[Any]]:
        """Compute the samples one by one; the images are a list if their sizes differ."""
        batch: _Array | None = None
        separate: list[_Array] | None = None
        labels = []

        def allocate(shape: tuple[int, ...], dtype: Any) -> _Array:
            nonlocal batch, separate
            number = len(labels)
            if batch is None:
                batch = _pool.empty((len(indices), *shape), dtype)
            if separate is None and (batch.shape[1:] != shape or batch.dtype != dtype):
                separate = list(batch[:number])
            if separate is None:
                return batch[number]
            separate.append(np.empty(shape, dtype))
            return separate[number]

        with draws.for_samples(len(indices) if self.is_random else 0):
            for index in indices:
                with SampleNote(index, self.dataset):
                    source, place = locate(self.sources, self.dataset, index)
                    image, label = source.read(place, draws)
                    source.plan.write(image, draws, allocate)
                    labels.append(label)
        if batch is None or separate is not None:
            return separate or [], labels
        return batch, labels
