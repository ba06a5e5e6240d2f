"""Trees of datasets: Subset and ConcatDataset, and in them datasets with samples."""

from __future__ import annotations

import bisect
import operator
from collections import UserDict
from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from dalify.plugin.pytorch.dropin.hugging_face import hugging_face_images, is_hugging_face
from dalify.plugin.pytorch.dropin.image_symbols import InnerImages, OpenedImage
from dalify.plugin.pytorch.dropin.known import known_source, source_of
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError
from dalify.plugin.pytorch.dropin.registration import DATASETS
from dalify.plugin.pytorch.dropin.sources import ImageSource, Source
from dalify.plugin.pytorch.dropin.views import views_of

_WATCHED = ("transform", "target_transform", "transforms", "data", "targets", "labels", "loader")
_WATCHED_OF_HUGGING_FACE = ("_data", "_indices", "_format_type", "_format_kwargs", "_format_columns")
_TRANSFORM_MODULES = "torchvision.transforms", "torch.nn"
Located = tuple[Source, Any]


def find_sources(dataset: Any) -> dict[int, Source]:
    """Find the sources of the samples of a dataset.

    Returns:
        The source of each dataset with its own samples, by the id of that dataset.

    Raises:
        NotRecognizedError: a dataset is not supported.
    """
    parts = _parts(dataset)
    if parts is None:
        return {id(dataset): source_of(dataset, _find_images)}
    return {key: source for part in parts for key, source in find_sources(part).items()}


def _find_images(dataset: Any, reads: Any) -> InnerImages | None:
    """Return the images of a dataset whose samples are tuples of image and label.

    Args:
        dataset: the dataset.
        reads: a ``__getitem__`` of a superclass that reads the samples; None for that of the dataset.
    """
    try:
        if reads is None and is_hugging_face(dataset):
            return hugging_face_images(dataset)
        source = None if reads is None else known_source(dataset, reads)
        sources = find_sources(dataset) if reads is None else {} if source is None else {id(dataset): source}
    except NotRecognizedError:
        return None
    source = next(iter(sources.values()), None)
    if len(sources) != 1 or not isinstance(source, ImageSource):
        return None
    if source.form is not None or source.target_transform is not None:
        return None
    if source.slow_labels or source.user_code or source.inner is not None or source.is_joint:
        return None

    def lookup(index: Any) -> tuple[Any, Any]:
        found, position = locate(sources, dataset, index)
        assert isinstance(found, ImageSource)
        return found.path_and_label(position)

    transforms = () if source.transform is None else (source.transform,)
    return InnerImages(lookup, OpenedImage(source.is_rgb, source.decode, transforms), source.opens_files)


def _parts(dataset: Any) -> list[Any] | None:
    """Return the datasets that a dataset consists of; None if it has its own samples."""
    if type(dataset) in DATASETS or is_hugging_face(dataset):
        return None
    reads = type(dataset).__getitem__ if hasattr(type(dataset), "__getitem__") else None
    if reads is torch.utils.data.Subset.__getitem__:
        if type(dataset).__getitems__ is not torch.utils.data.Subset.__getitems__:
            raise NotRecognizedError(f"{type(dataset).__name__} defines its own __getitems__", code="DS03")
        return [dataset.dataset]
    if hasattr(dataset, "__getitems__"):
        raise NotRecognizedError(f"{type(dataset).__name__} defines its own __getitems__", code="DS03")
    return list(dataset.datasets) if reads is torch.utils.data.ConcatDataset.__getitem__ else None


def copied_lists(dataset: Any, sources: Mapping[int, Source]) -> tuple[Any, dict[int, Source]]:
    """Copy the lists of samples, indices and parts of a dataset, so that later changes by the user have no effect.

    Workers of torch have copies, too. Images in memory and transforms are not copied.

    Args:
        dataset: the dataset.
        sources: see `find_sources`.

    Returns:
        The copy and its sources.
    """
    copies: dict[int, Any] = {}  # by the id of the original, because a dataset or a list may be used several times
    found: dict[int, Source] = {}

    def copied(part: Any) -> Any:
        if id(part) not in copies:
            copies[id(part)] = new_copy(part)
        return copies[id(part)]

    def new_copy(part: Any) -> Any:
        if type(part) in DATASETS:  # the source already has the results of the registered function
            found[id(part)] = sources[id(part)]
            return part
        copy = object.__new__(type(part))
        for name, value in vars(part).items():
            if type(value) is list:
                vars(copy)[name] = copies.setdefault(id(value), list(value))
            elif name == "indices" and isinstance(value, np.ndarray | torch.Tensor):
                vars(copy)[name] = deepcopy(value)
            else:
                vars(copy)[name] = value
        if id(part) in sources:
            inner = sources[id(part)].inner
            for name, value in vars(part).items():
                if value is inner is not None and not is_hugging_face(inner):  # whose source has a copy
                    vars(copy)[name] = copied_lists(inner, find_sources(inner))[0]
            found[id(copy)] = source_of(copy, _find_images)
        elif isinstance(part, torch.utils.data.Subset):
            vars(copy)["dataset"] = copied(part.dataset)
        else:
            vars(copy)["datasets"] = [copied(child) for child in part.datasets]
        return copy

    return copied(dataset), found


class ChangeMonitor:
    """Detects that the user has assigned other parts, transforms, parameters of transforms, or data.

    Args:
        dataset: the dataset.
        watches_all: whether to watch all attributes of the datasets, not only those of torchvision's datasets.
        names: other attributes to watch.
        others: other datasets to watch.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        watches_all: bool = False,
        names: Collection[str] = (),
        others: Collection[Any] = (),
    ) -> None:
        self._watches_all = watches_all
        self._names = (*_WATCHED, *_WATCHED_OF_HUGGING_FACE, *names)
        self._attributes: list[tuple[dict[str, Any], str, Any]] = []
        self._collections: list[tuple[Collection[Any], tuple[Any, ...]]] = []
        for each in (dataset, *others):
            self._add_dataset(each)

    def is_unchanged(self) -> bool:
        """Return whether no attribute of the datasets and of torchvision's transforms has been replaced."""
        return all(values.get(name) is value for values, name, value in self._attributes) and all(
            len(now) == len(then) and all(map(operator.is_, now, then)) for now, then in self._collections
        )

    def _add_dataset(self, dataset: Any) -> None:
        values = getattr(dataset, "__dict__", {})  # not getattr: a property may return another object each time
        watched = tuple(values) if self._watches_all else self._names
        self._attributes += [(values, name, values.get(name)) for name in watched]
        if self._watches_all:
            self._collections.append((values, watched))
            inner = [value.values() for value in values.values() if isinstance(value, dict | UserDict)]
            self._collections += [(each, tuple(each)) for each in inner]
        for name in self._names:
            value = values.get(name)
            if name == "transform" or _has_transforms(value):
                self._add_transform(value)
        if isinstance(dataset, torch.utils.data.Subset):
            self._attributes.append((values, "dataset", dataset.dataset))
            self._add_dataset(dataset.dataset)
        elif isinstance(dataset, torch.utils.data.ConcatDataset | torch.utils.data.StackDataset):
            parts: Any = dataset.datasets.values() if isinstance(dataset.datasets, dict) else dataset.datasets
            self._collections.append((parts, tuple(parts)))
            for part in parts:
                self._add_dataset(part)

    def _add_transform(self, value: Any) -> None:
        """Add the parameters of a transform of torchvision or torch, or of one with views, and of transforms in it."""
        children: Collection[Any] = ()
        if _has_transforms(value):
            children = vars(value).values()
        elif isinstance(value, dict):
            children = value.values()
        elif isinstance(value, list | tuple):
            children = value
        if children:
            self._collections.append((children, tuple(children)))
        for child in children:
            self._add_transform(child)


def _has_transforms(value: Any) -> bool:
    """Return whether the attributes of a value are the parameters, and the parts, of a supported transform."""
    return type(value).__module__.startswith(_TRANSFORM_MODULES) or views_of(value) is not None


def locate(sources: dict[int, Source], dataset: Any, index: Any) -> Located:
    """Return source and index of the sample ``dataset[index]``.

    Raises:
        IndexError: there is no such sample.
        ValueError: a negative index exceeds the length of a ConcatDataset.
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
        if part:  # otherwise the index keeps its type, such as bool
            index = index - dataset.cumulative_sizes[part - 1]
        dataset = dataset.datasets[part]
    return source, index
