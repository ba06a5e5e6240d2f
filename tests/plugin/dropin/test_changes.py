"""Programs that change datasets during an epoch, and unusual samplers and samples: same batches and errors as torch."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import data

from dalify.plugin.pytorch import DataLoader
from tests.plugin.dropin.torch_reference import TorchLoader, cifar, datasets, same, seed, transforms

RANDOM = transforms.Compose([transforms.RandomCrop(30, padding=4), transforms.ToTensor()])


def gray_images() -> Any:
    dataset = datasets.MNIST.__new__(datasets.MNIST)
    dataset.data = torch.arange(12 * 28 * 28).reshape(12, 28, 28).to(torch.uint8)
    dataset.targets = torch.arange(12)
    dataset.transform, dataset.target_transform = transforms.ToTensor(), None
    return dataset


def flipped() -> Any:
    return cifar(transforms.Compose([transforms.RandomHorizontalFlip(0.0), transforms.ToTensor()]), 12)


def change_labels(dataset: Any) -> None:
    for number in range(12):
        dataset.targets[number] += 100


def change_probability(dataset: Any) -> None:
    dataset.transform.transforms[0].p = 1.0


def append_transform(dataset: Any) -> None:
    dataset.transform.transforms.append(transforms.Normalize((0.5,) * 3, (0.2,) * 3))


def replace_dataset(dataset: Any) -> None:
    dataset.dataset = cifar(transforms.ToTensor(), 12)


def replace_part(dataset: Any) -> None:
    dataset.datasets[0] = cifar(transforms.ToTensor(), 12)


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "labels in a list": (flipped, change_labels),
    "labels in a tensor": (gray_images, change_labels),
    "a parameter of a transform": (flipped, change_probability),
    "a transform is appended": (flipped, append_transform),
    "the dataset of a Subset": (lambda: data.Subset(flipped(), range(12)), replace_dataset),
    "a part of a ConcatDataset": (lambda: data.ConcatDataset([flipped()]), replace_part),
}


@pytest.mark.parametrize("collate", [None, list])
@pytest.mark.parametrize("name", CHANGES)
def test_changes_in_place_without_workers(name, collate):
    make, change = CHANGES[name]

    def run(kind: Any) -> list[Any]:
        dataset = make()
        batches = iter(kind(dataset, batch_size=4, collate_fn=collate))
        found = [next(batches)]
        change(dataset)
        return [*found, *batches]

    same(run(DataLoader), run(TorchLoader))


@pytest.mark.parametrize("make", [flipped, gray_images])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_keep_the_labels_of_the_start(make):
    def run(kind: Any) -> list[Any]:
        dataset = make()
        batches = iter(kind(dataset, num_workers=1, prefetch_factor=1))
        found = [next(batches)]
        change_labels(dataset)
        return [*found, *batches]

    same(run(DataLoader), run(TorchLoader))


def photos(folder: Path) -> Any:
    return datasets.ImageFolder(str(folder), transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()]))


def replace_indices(dataset: Any) -> None:
    dataset.datasets[0].indices = [5, 4, 3, 2, 1, 0]


def change_indices(dataset: Any) -> None:
    for part in dataset.datasets:
        part.indices[:] = part.indices[-1:] * len(part.indices)


def replace_samples(dataset: Any) -> None:
    dataset.datasets[0].dataset.samples = dataset.datasets[0].dataset.samples[::-1]


def change_samples(dataset: Any) -> None:
    dataset.datasets[0].dataset.samples.reverse()


def change_parts(dataset: Any) -> None:
    dataset.datasets.reverse()


@pytest.mark.parametrize("is_persistent", [False, True])
@pytest.mark.parametrize(
    "change", [replace_indices, change_indices, replace_samples, change_samples, change_parts, lambda dataset: None]
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_keep_the_samples_of_the_start(photo_folder, change, is_persistent):
    def run(kind: Any) -> list[Any]:
        folder = photos(photo_folder)
        parts = [data.Subset(folder, [0, 1, 2, 3, 4, 5]), data.Subset(folder, torch.tensor([5, 4, 0, 2]))]
        loader = kind(data.ConcatDataset(parts), num_workers=1, prefetch_factor=1, persistent_workers=is_persistent)
        batches = iter(loader)
        found = [next(batches)]
        change(loader.dataset)
        return [*found, *batches, *(loader if is_persistent else ())]

    same(run(DataLoader), run(TorchLoader))


class OwnSampler:
    """A sampler with a generator that is not torch's."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = list(range(9))
        self.generator.shuffle(order)
        return iter(order)


@pytest.mark.parametrize("make", [lambda: np.random.default_rng(3), lambda: random.Random(3)])
@pytest.mark.parametrize("dataset", [cifar(RANDOM, 9), list(range(9))])
def test_samplers_with_other_generators(dataset, make):
    def run(kind: Any) -> list[Any]:
        seed()
        loader = kind(dataset, batch_size=2, sampler=OwnSampler(make()))
        return [*loader, *loader]

    same(run(DataLoader), run(TorchLoader))


class NoShape:
    """Its shape is unknown."""

    @property
    def shape(self) -> Any:
        raise RuntimeError("unknown shape")


class NotReady(data.Dataset[int]):
    """The transform is created later."""

    @property
    def transform(self) -> Any:
        raise RuntimeError("not ready")

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        return index


def outcome(kind: Any, dataset: Any, **options: Any) -> Any:
    try:
        return list(kind(dataset, **options))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        ([NoShape()], {}),
        (NotReady(), {}),
        (cifar(RANDOM, 4), {"num_workers": 1, "prefetch_factor": 0}),
        (cifar(RANDOM, 4), {"generator": 3, "shuffle": True}),
    ],
    ids=["shape raises", "transform raises", "prefetch_factor=0", "generator=3"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_unusual_values(dataset, options):
    same(outcome(DataLoader, dataset, **options), outcome(TorchLoader, dataset, **options))


class Comparable(DataLoader[Any]):
    """A loader that cannot be hashed."""

    def __eq__(self, other: object) -> bool:
        return self is other


def test_loader_that_cannot_be_hashed():
    dataset: Any = list(range(3))
    same(list(Comparable(dataset)), list(TorchLoader(dataset)))
