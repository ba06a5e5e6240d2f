"""Datasets that both loaders load, and the comparison of their batches."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch import DataLoader
from tests.helpers.torchvision_import import import_torchvision

transforms = import_torchvision("torchvision.transforms")
datasets = import_torchvision("torchvision.datasets")
TorchLoader = torch.utils.data.DataLoader


class Brighten:
    """A transform of a user that draws from all three generators."""

    def __call__(self, image: Any) -> Any:
        amount = random.random() + np.random.rand() + float(torch.rand(1))
        return Image.fromarray((np.asarray(image) * (amount / 3)).astype(np.uint8))


def cifar(transform: Any, count: int = 40, target_transform: Any = None) -> Any:
    """Return CIFAR10 with noise as images."""
    dataset = datasets.CIFAR10.__new__(datasets.CIFAR10)  # its constructor wants the files
    generator = np.random.default_rng(1)
    dataset.data = generator.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    dataset.targets = generator.integers(0, 10, count).tolist()
    dataset.transform, dataset.target_transform = transform, target_transform
    return dataset


def photos(root: Path, count: int = 7) -> Path:
    """Class folders of JPEGs of several sizes, one of them a PNG, one that is to be rotated."""
    generator = np.random.default_rng(2)
    for number in range(count):
        (root / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(generator.integers(0, 256, (9, 11, 3), dtype=np.uint8))
        image = coarse.resize((50 + 3 * number, 60 - 2 * number), Image.Resampling.BICUBIC)
        exif = Image.Exif()
        exif[0x0112] = 6 if number == 3 else 1
        image.save(root / "ab"[number % 2] / f"{number}.{'png' if number == 2 else 'jpg'}", exif=exif)
    return root


def seed() -> None:
    """Seed all generators of the process."""
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)


def events(kind: Any, dataset: Any, epochs: int = 2, **options: Any) -> list[Any]:
    """Return the batches of some epochs, or their errors, and the states of the generators."""
    seed()
    loader = kind(dataset, **{"batch_size": 3, "shuffle": True, **options})
    found: list[Any] = []
    for _ in range(epochs):
        try:
            found += list(loader)
        except Exception as error:
            found.append((type(error).__name__, str(error).splitlines()[0]))
    return [*found, torch.get_rng_state(), random.getstate()]


def until_the_end(loader: Any) -> list[Any]:
    """Return the batches of an epoch, and type and text of errors; torch's workers change the text.

    A loader of torch whose epoch ends early waits 5 s for its worker.
    """
    batches, found = iter(loader), []
    while True:
        try:
            found.append(next(batches))
        except StopIteration:
            return found
        except Exception as error:
            found.append((type(error).__name__, str(error) if loader.num_workers == 0 else ""))


def same(left: Any, right: Any) -> None:
    """Assert equal structure, types and values."""
    assert type(left) is type(right)
    if isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype
        assert torch.equal(left, right)
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            same(one, other)
    elif isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            same(left[key], right[key])
    else:
        assert left == right


def write_damaged(path: Path, encoded: bytes, damage: str) -> None:
    """Write an encoded image with a kind of damage; nothing if the kind is that there is no file."""
    middle = len(encoded) // 2
    contents = {
        "text": b"not an image",
        "cut": encoded[:middle],
        "corrupt": encoded[:middle] + bytes(9) + encoded[middle + 9 :],
        "empty": b"",
    }
    if damage == "folder":
        path.mkdir()
    elif damage in contents:
        path.write_bytes(contents[damage])


def check_threads(dataset: Any, workers: int) -> None:
    """Assert that dalify's threads compute the batches, and that they are equal to torch's."""
    report = DataLoader(dataset, batch_size=3, num_workers=workers, on_fallback="raise").explain()
    assert report.mode == "full", report
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


def check_processes(dataset: Any, workers: int, code: str) -> None:
    """Assert that torch's processes compute the batches because of this code, and that they are equal to torch's."""
    report = DataLoader(dataset, num_workers=workers).explain()
    assert (report.mode, report.code) == ("hybrid", "DS08")
    assert f"__getitem__ uses {code}, which several threads" in report.reason
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))
