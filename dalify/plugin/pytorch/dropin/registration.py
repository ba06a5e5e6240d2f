"""Registration of users' transforms and datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

_Array = np.ndarray[Any, Any]
PixelFunction = Callable[[Any, _Array, torch.Generator], _Array]
DatasetFunction = Callable[[Any], tuple[Any, Any]]

TRANSFORMS: dict[type, PixelFunction] = {}
DATASETS: dict[type, DatasetFunction] = {}


def register_transform(kind: type) -> Callable[[PixelFunction], PixelFunction]:
    """Register a transform of images, so that threads compute it instead of worker processes.

    The decorated function is the transform for arrays instead of Pillow images. It is called as
    ``function(transform, pixels, generator)`` with the transform of the dataset, read-only pixels uint8
    ``[height, width, channels]``, and the ``torch.Generator`` for random numbers. Several threads call it at the same
    time. It returns uint8 ``[height, width, channels]`` with the same number of channels. The loader does not check
    that its results equal those of the transform.

    Args:
        kind: class of the transform; subclasses are not included.

    Example:
        >>> from dalify.plugin.pytorch import register_transform
        >>> class Invert:
        ...     def __call__(self, image):
        ...         return PIL.ImageOps.invert(image)
        >>> @register_transform(Invert)
        ... def invert(transform, pixels, generator):
        ...     return 255 - pixels
    """

    def register(function: PixelFunction) -> PixelFunction:
        TRANSFORMS[kind] = function
        return function

    return register


def register_dataset(kind: type) -> Callable[[DatasetFunction], DatasetFunction]:
    """Register a function that returns the images and labels of a dataset.

    The decorated function receives the dataset and returns two sequences of equal length: paths of image files, or an
    array uint8 ``[samples, height, width, channels]``; and the labels. The loader then assumes that ``dataset[index]``
    is ``(transform(image), target_transform(label))``, with the attributes ``transform`` and ``target_transform`` of
    the dataset if it has them, and with images opened like those of torchvision's ImageFolder (RGB, by Pillow). The
    function is called at the start of each epoch.

    Args:
        kind: class of the dataset; subclasses are not included.

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
