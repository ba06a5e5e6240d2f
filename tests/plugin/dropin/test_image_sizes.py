"""Datasets of users that read the size of the image before its transforms, as for boxes: the batches are torch's."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

from dalify.plugin.pytorch import DataLoader
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import (
    TorchLoader,
    check_processes,
    check_threads,
    events,
    photos,
    same,
    seed,
    until_the_end,
)

transforms = import_torchvision("torchvision.transforms")
v2 = import_torchvision("torchvision.transforms.v2")
tv_tensors = import_torchvision("torchvision.tv_tensors")
datasets = import_torchvision("torchvision.datasets")
folder = import_torchvision("torchvision.datasets.folder")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

COUNT = 7
SIZE = 24
RANDOM = transforms.Compose(
    [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)
BOXES = v2.Compose(
    [v2.ToImage(), v2.RandomHorizontalFlip(), v2.Resize((SIZE, SIZE)), v2.ToDtype(torch.float32, scale=True)]
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = photos(tmp_path_factory.mktemp("photos"), COUNT - 2)
    generator = np.random.default_rng(6)
    for name, mode in (("5.bmp", "P"), ("6.ppm", "L")):
        pixels = generator.integers(0, 256, (40, 31, 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(path / "a" / name)
    return path


class Photos(Dataset[Any]):
    def __init__(self, root: Path, transform: Any = RANDOM) -> None:
        self.paths = sorted(map(str, root.glob("*/*")))
        self.blobs = [Path(path).read_bytes() for path in self.paths]
        self.arrays = np.random.default_rng(4).integers(0, 256, (COUNT, 30, 28, 3), dtype=np.uint8)
        self.inner = datasets.ImageFolder(str(root), is_valid_file=lambda path: True)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.paths)


class Size(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        width, height = image.size
        target = {"area": width * height, "ratio": width / height, "index": index}
        if self.transform is not None:
            image = self.transform(image)
        return image, target


class Parts(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index])
        size = torch.tensor([image.height, image.width])
        image = image.convert("RGB")
        return {"image": self.transform(image), "size": size, "original": (image.size[0], image.height)}


class InBlock(Photos):
    def __getitem__(self, index: int) -> Any:
        with Image.open(self.paths[index]) as file:
            width = file.width
            if self.transform is not None:
                image = self.transform(file.convert("RGB"))
            return [image, width, np.float32(file.height)]


class Loaded(Photos):
    def __getitem__(self, index: int) -> Any:
        image = folder.default_loader(self.paths[index])
        return self.transform(image), image.size


class FromBytes(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(io.BytesIO(self.blobs[index])).convert("RGB")
        return self.transform(image), image.width, image.height


class FromArray(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.fromarray(self.arrays[index])
        return self.transform(image), image.width, image.height


class OfAnother(Photos):
    def __getitem__(self, index: int) -> Any:
        image, label = self.inner[index]
        width, height = image.size
        return self.transform(image), label, max(width, height)


class Detection(Photos):
    def __init__(self, root: Path) -> None:
        super().__init__(root, BOXES)
        self.boxes = [torch.tensor([[1.0, 2, 9, 14]]) + number for number in range(COUNT)]

    def __getitem__(self, idx: int) -> Any:
        image = Image.open(self.paths[idx]).convert("RGB")
        w, h = image.size
        boxes = tv_tensors.BoundingBoxes(self.boxes[idx], format="XYXY", canvas_size=(h, w))
        target = {"boxes": boxes, "labels": torch.ones((len(self.boxes[idx]),), dtype=torch.int64), "image_id": idx}
        if self.transform is not None:
            image, target = self.transform(image, target)
        return image, target


FULL = [Size, Parts, InBlock, Loaded, FromBytes, FromArray, OfAnother, Detection]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", FULL)
def test_batches_of_threads(kind, workers, root):
    check_threads(kind(root), workers)


class Draws(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        left = random.randrange(image.width)
        points = torch.tensor([image.height, random.random()])
        image = self.transform(image)
        return image, left, points, random.random()


@pytest.mark.parametrize("workers", [0, 2])
def test_functions_of_the_user_run_in_workers_once(workers, root):
    check_processes(Draws(root), workers, "random.randrange")


class OfTheResult(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        image = self.transform(image)
        return image, image.size


class InCondition(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        label = 0
        if image.width > 52:
            label = 1
        return self.transform(image), label


class AfterTransform(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
            size = image.shape[1]
        return image, size


@pytest.mark.parametrize("kind", [OfTheResult, InCondition, AfterTransform])
def test_other_methods_are_left_to_torch(kind, root):
    dataset = kind(root)
    assert DataLoader(dataset, on_fallback="silent").explain().mode == "torch"
    same(events(DataLoader, dataset, on_fallback="silent"), events(TorchLoader, dataset))


ERRORS = [(kind, change) for kind in (Size, Parts, Loaded, Draws) for change in ("missing", "text", "no header")]
ERRORS += [(kind, "truncated") for kind in (Size, Parts, Loaded)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # these methods do not close the file
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("kind", "change"), ERRORS)
def test_errors_are_those_of_torch_and_the_next_batch_comes(kind, change, workers, root, tmp_path):
    def found(loader: Any) -> list[Any]:
        dataset = kind(root)
        path = tmp_path / "photo.jpg"
        contents = Path(dataset.paths[1]).read_bytes()
        if change != "missing":
            path.write_bytes({"text": b"text", "truncated": contents[:-200]}.get(change, contents[:20]))
        dataset.paths[1] = str(path)
        seed()
        results = until_the_end(loader(dataset, batch_size=2, num_workers=workers))
        return [*results, torch.get_rng_state()]

    same(found(DataLoader), found(TorchLoader))


@pytest.mark.parametrize("workers", [0, 1])
def test_relative_paths_belong_to_the_folder_of_the_workers(workers, root, tmp_path, monkeypatch):
    def found(loader: Any) -> list[Any]:
        dataset = Size(root)
        dataset.paths = [str(Path(path).relative_to(root)) for path in dataset.paths]
        monkeypatch.chdir(root)
        seed()
        batches = iter(loader(dataset, batch_size=1, num_workers=workers))
        first = next(batches)
        if workers:
            monkeypatch.chdir(tmp_path)
        return [first, *batches]

    same(found(DataLoader), found(TorchLoader))
