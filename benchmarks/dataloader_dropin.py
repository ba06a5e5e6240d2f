"""Compare dalify's DataLoader with torch's, with equal datasets, transforms and arguments, on one core.

The last table is for a worker process and the process of the program, so wall time is compared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from benchmarks.common import Contender, Options, RunBatch, compare, photo_folder
from benchmarks.torch_loader import DEVIATION, MEAN, training_transform, validation_transform
from dalify.base.wording import counted
from tests.helpers.torchvision_import import import_torchvision

PHOTO_BATCH = 32
SMALL_BATCH = 128
COMPUTED_BATCH = 64
SMALL_IMAGES = 10_000
ROWS, COLUMNS = 10_000, 64
COMPUTED_IMAGES = 2_048


def small_images() -> Any:
    """Return CIFAR10 with random noise as images and the usual augmentation."""
    transforms, datasets = import_torchvision(), import_torchvision("torchvision.datasets")
    dataset = datasets.CIFAR10.__new__(datasets.CIFAR10)  # its constructor needs the files
    generator = np.random.default_rng(0)
    dataset.data = generator.integers(0, 256, (SMALL_IMAGES, 32, 32, 3), dtype=np.uint8)
    dataset.targets = generator.integers(0, 10, SMALL_IMAGES).tolist()
    dataset.target_transform = None
    dataset.transform = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, DEVIATION),
        ]
    )
    return dataset


def rows() -> Any:
    """Return a dataset of tensors in memory."""
    import torch  # imported only for its rows

    return torch.utils.data.TensorDataset(torch.randn(ROWS, COLUMNS), torch.arange(ROWS))


class ComputedImages:
    """Images that Python code of a user computes. Neither loader knows the code."""

    def __len__(self) -> int:
        return COMPUTED_IMAGES

    def __getitem__(self, index: int) -> Any:
        import torch  # imported only for its rows

        return torch.full((3, 224, 224), float(index)), index


class LabeledPhotos:
    """Photographs as in the dataset class of a user, for both loaders."""

    def __init__(self, folder: Path, transform: Any) -> None:
        self.paths = sorted(folder.glob("*/*.jpg"))
        self.labels = [ord(path.parent.name[0]) for path in self.paths]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


class PhotosOfOpenCV(LabeledPhotos):
    """The same photographs, read with OpenCV."""

    def __getitem__(self, index: int) -> Any:
        image: Any = cv2.imread(str(self.paths[index]))
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


class Dim:
    """A custom transform in Python with NumPy, which uses Python's random generator."""

    def __call__(self, image: Image.Image) -> Image.Image:
        """Return the image with darker pixels."""
        table = (np.arange(256) * random.uniform(0.6, 1.0)).astype(np.uint8)
        return Image.fromarray(table[np.asarray(image)])


class TwoViews:
    """A transform of a user that returns two views of an image, for contrastive learning."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __call__(self, image: Image.Image) -> list[Any]:
        """Return the views."""
        return [self.transform(image), self.transform(image)]


def training_with_python() -> Any:
    """Return the training transforms with a custom transform in the middle, which dalify does not support."""
    transforms = import_torchvision()
    crop, *others = training_transform().transforms
    return transforms.Compose([crop, Dim(), *others])


@contextmanager
def run_loader(kind: Any, dataset: Any, batch_size: int, workers: int) -> Iterator[RunBatch]:
    """Time a loader over an endless epoch."""
    import torch  # imported only for its rows

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # torch's threads spin for small images
    sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=10**8)
    batches = iter(kind(dataset, batch_size=batch_size, sampler=sampler, num_workers=workers))

    def run_batch() -> int:
        _, labels = next(batches)
        return len(labels)

    yield run_batch
    torch.set_num_threads(threads)


def contenders(dataset: Any, batch_size: int, workers: int = 0) -> list[Contender]:
    """Return dalify's loader and torch's loader for one dataset.

    Without workers, batches are computed in the caller's thread, so that the CPU time is complete.
    """
    import torch  # imported only for its rows

    from dalify.plugin.pytorch import DataLoader  # this imports torch

    kinds = {"dalify": partial(DataLoader, on_fallback="silent"), "torch": torch.utils.data.DataLoader}
    return [
        Contender(
            name,
            lambda kind=kind: run_loader(kind, dataset, batch_size, workers),
            ("torch", "torchvision"),
            not workers,
        )
        for name, kind in kinds.items()
    ]


def main(options: Options) -> None:
    """Time each dataset and transform on one core."""
    datasets = import_torchvision("torchvision.datasets")
    folder = photo_folder(options)
    titles = {
        "evaluation": validation_transform(),
        "training": training_transform(),
        "training with a transform in Python": training_with_python(),
        "training with two views of each image": TwoViews(training_transform()),
    }
    for title, transform in titles.items():
        dataset = datasets.ImageFolder(str(folder), transform)
        compare(f"DataLoader of an ImageFolder, {title}", contenders(dataset, PHOTO_BATCH), options)
    own = LabeledPhotos(folder, training_transform())
    compare("DataLoader of a user's dataset class, training", contenders(own, PHOTO_BATCH), options)
    transforms = import_torchvision()
    read = PhotosOfOpenCV(folder, transforms.Compose([transforms.ToPILImage(), training_transform()]))
    compare("DataLoader of images that a user's class reads with OpenCV", contenders(read, PHOTO_BATCH), options)
    compare("DataLoader of CIFAR10, training", contenders(small_images(), SMALL_BATCH), options)
    compare("DataLoader of a TensorDataset", contenders(rows(), SMALL_BATCH), options)
    for workers in (0, 1):
        title = f"DataLoader of images that a user's class computes, {counted(workers, 'worker process')}"
        compare(title, contenders(ComputedImages(), COMPUTED_BATCH, workers), options)
