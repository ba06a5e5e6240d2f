"""Define the loaders for comparisons: torch's DataLoader with workers and torchvision's transforms of Pillow images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.common import RunBatch
from tests.helpers.torchvision_import import import_torchvision

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def training_transform() -> Any:
    """Return the transforms of ResNet-50 training in torchvision's reference scripts."""
    transforms = import_torchvision("torchvision.transforms")
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, DEVIATION),
        ]
    )


def validation_transform() -> Callable[[Image.Image], Any]:
    """Return the transforms of ResNet-50 validation: shorter side 256, center crop 224."""
    transforms = import_torchvision("torchvision.transforms")
    return transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, DEVIATION),
        ]
    )


class PhotoDataset:
    """Class folders of JPEG files, for torch's DataLoader."""

    def __init__(self, folder: Path, transform: Callable[[Image.Image], Any]) -> None:
        classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
        self.entries = [(path, classes.index(path.parent.name)) for path in sorted(folder.glob("*/*.jpg"))]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, label = self.entries[index]
        with Image.open(path) as image:
            return self.transform(image.convert("RGB")), label


@contextmanager
def run_data_loader(
    make_dataset: Callable[[], Any], batch_size: int, workers: int, *, collate: Callable[[list[Any]], Any] | None = None
) -> Iterator[RunBatch]:
    """Time a DataLoader over an endless epoch, so that workers are never restarted.

    Args:
        make_dataset: returns a torch Dataset; the first element of its samples is counted.
        batch_size: number of samples in a batch.
        workers: number of worker processes.
        collate: collate function; None for torch's default.
    """
    import torch  # imported only for its row

    dataset = make_dataset()
    sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=10**9)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=batch_size, sampler=sampler, num_workers=workers, collate_fn=collate
    )
    batches = iter(loader)

    def run_batch() -> int:
        images, _ = next(batches)
        return len(images)

    yield run_batch
