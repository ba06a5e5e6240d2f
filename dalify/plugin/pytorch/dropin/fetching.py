"""Computes batches from indices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from dalify.plugin.pytorch.dropin.collating import collate_labels, default_collate, image_pool
from dalify.plugin.pytorch.dropin.datasets import ChangeMonitor, locate
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.hints import NotedCollate, note_failed_sample
from dalify.plugin.pytorch.dropin.hugging_face import HuggingFaceSource
from dalify.plugin.pytorch.dropin.kernels.pixel_table import planes_of_windows
from dalify.plugin.pytorch.dropin.plan import ViewsPlan
from dalify.plugin.pytorch.dropin.sources import ArraySource, ImageSource, Source

_Array = np.ndarray[Any, Any]
Samples = list[tuple[Any, Any]]
_default_collate = NotedCollate(torch.utils.data.default_collate)
_pooled_collate = NotedCollate(default_collate)


def _is_integer(index: Any) -> bool:
    """Return whether a value is an integer of 64 bits, and not a Boolean."""
    if isinstance(index, bool):
        return False
    try:
        return -(2**63) <= operator.index(index) < 2**63
    except TypeError:
        return False


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
        names = {name for source in sources.values() for name in source.watched}
        others = [source.inner for source in sources.values() if source.inner is not None]
        others += [source for source in sources.values() if isinstance(source, HuggingFaceSource)]
        self.change_monitor = ChangeMonitor(dataset, names=names, others=others)
        self.is_random = any(source.plan.is_random for source in sources.values())
        self._is_complete = all(source.is_complete for source in sources.values())
        forms = [source.form for source in sources.values()]
        self._form = forms[0] if forms else None
        self._have_one_form = all(form == self._form for form in forms)
        self._calls_batch_functions = any(isinstance(source, HuggingFaceSource) for source in sources.values())
        self._collates_samples = self._calls_batch_functions or any(
            isinstance(source.plan, ViewsPlan) for source in sources.values()
        )
        only = next(iter(sources.values())) if len(sources) == 1 else None
        self._array_source = only if isinstance(only, ArraySource) and only.draws_per_sample is not None else None

    def fetch(self, indices: Sequence[Any], draws: TorchDraws) -> Any:
        """Compute one batch.

        Args:
            indices: an element of the batch sampler.
            draws: random numbers of the worker.

        Returns:
            ``[images, labels]``, or another form of batches that torch's collate function returns. With a collate
            function of the user its argument, the samples.

        Raises:
            Exception: the errors of the dataset, the transforms and torch's collate function.
        """
        if self.collate is not None:
            return self.samples(indices, draws)
        if self._collates_samples:
            return _pooled_collate(self.samples(indices, draws))
        if not self._have_one_form:
            return _default_collate(self.samples(indices, draws))
        indices = list(indices)
        images, labels = self._fetch_windows(indices, draws) or self._fetch_each(indices, draws)
        if isinstance(images, list):  # of different sizes, or empty: torch raises its error
            return _default_collate([torch.from_numpy(image) for image in images])
        if self._form is not None:
            return self._form.batch(torch.from_numpy(images), labels)
        return [torch.from_numpy(images), collate_labels(labels)]

    def samples(self, indices: Sequence[Any], draws: TorchDraws) -> list[Any]:
        """Compute the samples of a batch, with the types of torchvision; see `fetch`."""
        if self._calls_batch_functions:
            found = self._call_batch_function(list(indices), draws)
            if found is not None:
                return found
        if not self._is_complete:  # the user's code draws from the same generators, so no number is computed in advance
            return [self.sample(index, draws) for index in indices]
        indices = list(indices)
        found = self._fetch_windows(indices, draws)
        if found is None:
            with draws.precomputed(len(indices) if self.is_random else 0):
                return [self.sample(index, draws) for index in indices]
        assert self._array_source is not None
        assert self._array_source.plan.table is not None
        (images, labels), kind = found, self._array_source.plan.table.tensor_type
        return list(zip((torch.from_numpy(image).as_subclass(kind) for image in images), labels, strict=True))

    def sample(self, index: Any, draws: TorchDraws) -> Any:
        """Compute one sample, for an element of the sampler."""
        try:
            source, position = locate(self.sources, self.dataset, index)
            return source.sample(position, draws)
        except Exception as error:
            self._note_failed(error, index)
            raise

    def _note_failed(self, error: Exception, index: Any) -> None:
        """Add a note with the index of a sample to its error.

        Raises:
            Exception: the error of the dataset itself for an index that is not an integer of 64 bits; a source may
                raise another one.
        """
        if not _is_integer(index):
            try:
                self.dataset[index]
            except Exception as own:
                note_failed_sample(own, index, self.dataset)
                raise own from None
        note_failed_sample(error, index, self.dataset)

    def _call_batch_function(self, indices: list[Any], draws: TorchDraws) -> list[Any] | None:
        """Compute all samples at once if they are of one dataset with such a function; otherwise return None."""
        dataset = self.dataset
        while isinstance(dataset, torch.utils.data.Subset):
            dataset = dataset.dataset
        source = self.sources.get(id(dataset))
        if not isinstance(source, HuggingFaceSource):
            return None
        positions = [locate(self.sources, self.dataset, index)[1] for index in indices]
        try:
            with draws.precomputed(len(indices) if self._is_complete and self.is_random else 0):
                return source.samples(positions, draws)
        except Exception as error:
            place = source.note_unreadable(error, positions)
            if place is not None:
                note_failed_sample(error, indices[place], self.dataset)
            raise

    def _fetch_windows(self, indices: list[Any], draws: TorchDraws) -> tuple[_Array, list[Any]] | None:
        """Compute all samples at once if each is a window of an image in memory; otherwise return None."""
        source = self._array_source
        if source is None or not indices:
            return None
        count, height, width, channels = source.images.shape
        positions = self._positions(indices, count)
        if positions is None:
            return None
        assert source.draws_per_sample is not None
        batch_draws = draws.batch(len(indices), source.draws_per_sample)
        windows = source.plan.windows(len(indices), height, width, batch_draws)
        assert source.plan.table is not None
        table = source.plan.table.values
        batch = image_pool.empty((len(indices), channels, windows.height, windows.width), table.dtype)
        fill = np.array(windows.fill or (0,) * channels, np.uint8)
        planes_of_windows(source.images, positions, windows.corners, windows.flips, fill, table, batch)
        return batch, list(map(source.labels.__getitem__, positions.tolist()))

    def _positions(self, indices: list[Any], count: int) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """Return the positions in the only source, which has `count` samples; None if an index is invalid.

        Then the samples are computed one by one, so that those before the error draw their random numbers.
        """
        is_source = id(self.dataset) in self.sources
        if bool in map(type, indices):  # an integer for NumPy, but not for all datasets
            return None
        try:
            found: Any = indices if is_source else [locate(self.sources, self.dataset, index)[1] for index in indices]
            positions = np.asarray(found)
        except Exception:
            return None
        are_integers = positions.ndim == 1 and positions.dtype.kind in "iu"
        if not are_integers or positions.min() < -count or positions.max() >= count:
            return None
        return positions.astype(np.int64) % count

    def _fetch_each(self, indices: list[Any], draws: TorchDraws) -> tuple[Any, list[Any]]:
        """Compute the samples one by one; the images are a list if their sizes differ."""
        batch: _Array | None = None
        images: list[_Array] = []
        labels: list[Any] = []
        are_alike = True

        def allocate(shape: tuple[int, ...], dtype: Any) -> _Array:
            nonlocal batch, are_alike
            if batch is None:
                batch = image_pool.empty((len(indices), *shape), dtype)
            are_alike = are_alike and batch.shape[1:] == shape and batch.dtype == dtype
            images.append(batch[len(images)] if are_alike else np.empty(shape, dtype))
            return images[-1]

        with draws.precomputed(len(indices) if self.is_random else 0):
            for index in indices:
                try:
                    source, position = locate(self.sources, self.dataset, index)
                    assert isinstance(source, ImageSource)
                    image, label = source.read(position, draws)
                    source.plan.write(image, draws, allocate)
                except Exception as error:
                    self._note_failed(error, index)
                    raise
                labels.append(label)
        return images if batch is None or not are_alike else batch, labels
