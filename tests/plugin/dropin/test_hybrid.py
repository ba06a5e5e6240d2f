"""Loaders with transforms that dalify does not support: torch's batches, and which parts dalify executes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch.utils.data import ConcatDataset, Subset

from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin.hybrid import AcceleratedDataset
from tests.plugin.dropin.torch_reference import (
    Brighten,
    TorchLoader,
    cifar,
    datasets,
    photos,
    same,
    seed,
    transforms,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]

NORMALIZE = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CROP, FLIP, TO_TENSOR = transforms.RandomResizedCrop(24), transforms.RandomHorizontalFlip(), transforms.ToTensor()


def add_noise(tensor: Any) -> Any:
    return tensor + torch.rand(tensor.shape) * np.random.rand()


def as_array(image: Any) -> Any:
    return np.asarray(image).copy()


def description_of(image: Any) -> Any:
    """Return the attributes of a Pillow image other than its pixels."""
    return torch.tensor([len(image.info), *image.getexif().values(), image.mode == "RGB", type(image) is Image.Image])


def double(label: Any) -> Any:
    return label * 2 + torch.rand(1).item()


# name: transforms, and those of them that dalify is to do
COMPOSITIONS: dict[str, tuple[list[Any], list[str]]] = {
    "python in the middle": ([CROP, Brighten(), FLIP, TO_TENSOR, NORMALIZE], ["RandomResizedCrop", "Normalize"]),
    "python first": ([ImageOps.exif_transpose, CROP, TO_TENSOR], ["RandomResizedCrop → ToTensor"]),
    "python last": ([CROP, TO_TENSOR, add_noise], ["RandomResizedCrop → ToTensor"]),
    "python everywhere": ([Brighten(), CROP, Brighten(), TO_TENSOR, add_noise, NORMALIZE], ["RandomResizedCrop"]),
    "arrays between": ([CROP, as_array, TO_TENSOR], ["RandomResizedCrop"]),
    "nested": ([CROP, transforms.Compose([Brighten(), transforms.Compose([FLIP, TO_TENSOR])])], ["ToTensor"]),
    "gray": ([CROP, transforms.Grayscale(1), ImageOps.invert, TO_TENSOR], ["Grayscale", "ToTensor"]),
    "known to Pillow": ([transforms.Resize(20), description_of], ["Resize"]),
    "known to Pillow, after a pad": ([transforms.Pad(2), description_of], ["Pad"]),
    "rotated late": ([transforms.Resize((20, 30)), ImageOps.exif_transpose, CROP, TO_TENSOR], ["RandomResizedCrop"]),
}  # fmt: skip


def run(kind: Any, dataset: Any, epochs: int = 1, **options: Any) -> list[Any]:
    seed()
    loader = kind(dataset, **options)
    found = [batch for _ in range(epochs) for batch in loader]
    return [found, torch.get_rng_state(), np.random.rand()]


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_batches_equal_torch(tmp_path, name):
    stages, ours = COMPOSITIONS[name]
    dataset = datasets.ImageFolder(photos(tmp_path), transforms.Compose(stages))
    options: dict[str, Any] = {"batch_size": 1 if "knows" in name else 3, "shuffle": True}
    same(run(DataLoader, dataset, **options), run(TorchLoader, dataset, **options))
    report = DataLoader(dataset, **options).explain()
    assert report.mode == "hybrid"
    assert report.code == "TF01"
    for names in ours:
        assert f"{names} by dalify" in report.lines[0] or f"{names} →" in report.lines[0]


@pytest.mark.parametrize("persistent", [False, True])
def test_in_worker_processes(tmp_path, persistent):
    dataset = datasets.ImageFolder(photos(tmp_path), transforms.Compose(COMPOSITIONS["python everywhere"][0]))
    dataset.target_transform = double
    options = {"batch_size": 2, "shuffle": True, "num_workers": 2, "persistent_workers": persistent}
    same(run(DataLoader, dataset, 2, **options), run(TorchLoader, dataset, 2, **options))


def test_parts_and_collate():
    dataset = cifar(transforms.Compose([transforms.RandomCrop(28), Brighten(), TO_TENSOR]))
    other = cifar(transforms.Compose([transforms.CenterCrop(28), TO_TENSOR]), 5)
    both = ConcatDataset([Subset(dataset, [3, 1, 2]), other])
    options: dict[str, Any] = {"batch_size": 3, "shuffle": True}
    same(run(DataLoader, both, **options), run(TorchLoader, both, **options))
    same(run(DataLoader, both, collate_fn=list, **options), run(TorchLoader, both, collate_fn=list, **options))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("transform", [TO_TENSOR, transforms.Compose([CROP, Brighten(), TO_TENSOR])])
def test_single_samples(transform, workers):
    options = {"batch_size": None, "shuffle": True, "num_workers": workers}
    dataset = cifar(transform, 6)
    assert DataLoader(dataset, **options).explain().mode == "hybrid"
    same(run(DataLoader, dataset, **options), run(TorchLoader, dataset, **options))


@pytest.mark.parametrize("workers", [0, 1])
def test_target_transform(workers):
    dataset = cifar(transforms.Compose([CROP, TO_TENSOR]), 6, double)
    options = {"batch_size": 4, "num_workers": workers}
    report = DataLoader(dataset, **options).explain()
    assert (report.mode, report.code) == ("hybrid", "TF02")
    same(run(DataLoader, dataset, **options), run(TorchLoader, dataset, **options))


@pytest.mark.parametrize("first", [TO_TENSOR, transforms.Compose([Brighten(), CROP, TO_TENSOR])])
@pytest.mark.parametrize("then", [CROP, Brighten(), add_noise])
def test_a_dataset_that_changes_during_the_epoch(first, then):
    """Without workers, the next batch is computed with the changed dataset."""

    def run_on(kind: Any) -> list[Any]:
        dataset = cifar(first, 12)
        seed()
        batches = iter(kind(dataset, batch_size=3, shuffle=True))
        found = [next(batches)]
        dataset.transform = transforms.Compose([CROP, TO_TENSOR, then] if then is add_noise else [then, TO_TENSOR])
        found.append(next(batches))
        dataset.targets = [label + 100 for label in dataset.targets]
        return [*found, *batches, torch.get_rng_state()]

    same(run_on(DataLoader), run_on(TorchLoader))


def other_labels(worker: int) -> None:
    """Change the dataset of this worker, and draw random numbers."""
    info = torch.utils.data.get_worker_info()
    assert type(info.dataset) is datasets.CIFAR10  # type: ignore[union-attr]
    info.dataset.targets = [worker + 100 * label for label in info.dataset.targets]  # type: ignore[union-attr]
    info.dataset.transform = transforms.Compose([transforms.CenterCrop(20), TO_TENSOR])  # type: ignore[union-attr]
    torch.rand(1)


def draw(worker: int) -> None:
    """Do not change the dataset."""
    torch.rand(worker + 1)


def give_up_the_transform(worker: int) -> None:
    info = torch.utils.data.get_worker_info()
    info.dataset.transform = as_tensor_of_worker  # type: ignore[union-attr]


def as_tensor_of_worker(image: Any) -> Any:
    info = torch.utils.data.get_worker_info()
    return torch.tensor([int(np.asarray(image).sum()), info.id, len(info.dataset)])  # type: ignore[union-attr]


@pytest.mark.parametrize("start", [other_labels, draw, give_up_the_transform])
def test_worker_init_fn_sees_and_changes_the_users_dataset(start):
    dataset = cifar(transforms.Compose([transforms.RandomCrop(20), TO_TENSOR]), 12)
    options = {"batch_size": 2, "num_workers": 2, "worker_init_fn": start, "shuffle": True}
    report = DataLoader(dataset, **options).explain()
    assert (report.mode, report.code) == ("hybrid", "WI01")
    same(run(DataLoader, dataset, **options), run(TorchLoader, dataset, **options))


def test_what_is_sent_to_spawned_workers(tmp_path):
    dataset = datasets.ImageFolder(photos(tmp_path), transforms.Compose([CROP, Brighten(), TO_TENSOR]))
    faster = pickle.loads(pickle.dumps(AcceleratedDataset(dataset)))
    assert len(faster) == len(dataset)
    seed()
    found = [*faster.__getitems__([0, 4]), faster[2]]
    seed()
    same(found, [dataset[index] for index in (0, 4, 2)])


def test_a_dataset_that_is_not_known_any_more_in_the_worker():
    faster = AcceleratedDataset(torch.utils.data.TensorDataset(torch.arange(5)))
    same(faster[2], (torch.tensor(2),))
    same(faster.__getitems__([0, 1]), [(torch.tensor(0),), (torch.tensor(1),)])
    squares = AcceleratedDataset(Squares())
    assert [squares[3], squares.__getitems__([1, 2])] == [9, [1, 4]]


class Squares(torch.utils.data.Dataset[int]):
    def __getitem__(self, index: int) -> int:
        return index**2
