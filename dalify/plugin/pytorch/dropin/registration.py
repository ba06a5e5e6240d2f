"""Registration of users' transforms and datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

__all__ = ["DATASETS", "TRANSFORMS", "WRAPPERS", "register_dataset", "register_transform"]

_Array = np.ndarray[Any, Any]
PixelFunction = Callable[[Any, _Array, torch.Generator], _Array]
DatasetFunction = Callable[[Any], tuple[Any, Any]]

TRANSFORMS: dict[type, PixelFunction] = {}
DATASETS: dict[type, DatasetFunction] = {}
# Classes of ours that stand for transforms: what they stand for.
WRAPPERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def register_transform(kind: type) -> Callable[[PixelFunction], PixelFunction]:
    """Let the loader know a transform of yours on images, so that threads run it and nothing is left for processes.

    The decorated function does to an array what the transform does to a Pillow image. It is called as
    ``function(transform, pixels, generator)`` with the transform of the dataset, uint8 ``[height, width, channels]``
    that it must not write to, and the generator that random numbers have to be drawn from; several threads call it at
    once. It returns uint8 ``[height, width, channels]`` of as many channels. Whether that is what the transform gives
    is in your hands.

    Args:
        kind: class of the transform; subclasses of it are not meant.

    Example:
        >>> from dalify.plugin.pytorch import register_transform
        >>> class Invert:
        ...     def __call__(self, picture):
        ...         return PIL.ImageOps.invert(picture)
        >>> @register_transform(Invert)
        ... def invert(transform, pixels, generator):
        ...     return 255 - pixels
    """

    def register(function: PixelFunction) -> PixelFunction:
        TRANSFORMS[kind] = function
        return function

    return register


def register_dataset(kind: type) -> Callable[[DatasetFunction], DatasetFunction]:
    """Let the loader know a dataset of yours: where its images are, and what their labels are.

    The decorated function gets the dataset and returns two sequences of equal length: paths of image files, or an array
    uint8 ``[samples, height, width, channels]``; and the labels. The loader then takes ``dataset[index]`` to be
    ``(transform(image), target_transform(label))``, with the attributes ``transform`` and ``target_transform`` of the
    dataset where it has them, and images as torchvision's ImageFolder opens them (RGB by Pillow). The function is
    called at the beginning of each pass over the loader.

    Args:
        kind: class of the dataset; subclasses of it are not meant.

    Example:
        >>> from dalify.plugin.pytorch import register_dataset
        >>> class Flowers(torch.utils.data.Dataset):
        ...     def __init__(self, table, transform):
        ...         self.table, self.transform = table, transform
        ...     def __len__(self):
        ...         return len(self.table)
        ...     def __getitem__(self, index):
        ...         path, label = self.table[index]
        ...         return self.transform(PIL.Image.open(path).convert("RGB")), label
        >>> @register_dataset(Flowers)
        ... def flowers(dataset):
        ...     return [path for path, _ in dataset.table], [label for _, label in dataset.table]
    """

    def register(function: DatasetFunction) -> DatasetFunction:
        DATASETS[kind] = function
        return function

    return register
