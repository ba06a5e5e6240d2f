"""Datasets of users that decode one image per sample to a tensor, with torchvision: the batches are torch's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, Subset

from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin import opening
from tests.helpers.torchvision_decoder import import_decoder
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import (
    TorchLoader,
    check_threads,
    events,
    photos,
    same,
    seed,
    transforms,
    until_the_end,
    write_damaged,
)

torchvision_io: Any = import_decoder()
v2 = import_torchvision("torchvision.transforms.v2")
decode_image, read_image = torchvision_io.decode_image, torchvision_io.read_image
ImageReadMode = torchvision_io.ImageReadMode

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

COUNT = 7
SIZE = 24
MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.3, 0.1]
VERSION_1 = transforms.Compose(
    [
        transforms.RandomResizedCrop(SIZE, antialias=True),
        transforms.RandomHorizontalFlip(),
        transforms.ConvertImageDtype(torch.float32),
        transforms.Normalize(MEAN, STD),
    ]
)
VERSION_2 = v2.Compose(
    [
        v2.RandomResizedCrop(SIZE),
        v2.RandomVerticalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
)
TRANSFORMS = {
    "version 1": VERSION_1,
    "version 2": VERSION_2,
    "resize": transforms.Resize((SIZE, SIZE)),
    "crop": v2.Compose([v2.Pad(3), v2.RandomCrop(SIZE), v2.ToDtype(torch.float32, scale=True), v2.RandomErasing()]),
    "center": v2.Compose([v2.Resize(30), v2.CenterCrop(SIZE), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
    "gray": transforms.Compose([transforms.Grayscale(), transforms.CenterCrop(70)]),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photos(tmp_path_factory.mktemp("photos"), COUNT)


class Tutorial(Dataset[Any]):
    """The dataset of PyTorch's introduction."""

    def __init__(self, root: Path, transform: Any = VERSION_1, target_transform: Any = None) -> None:
        names = [f"{file.parent.name}/{file.name}" for file in sorted(root.glob("*/*"))]
        self.img_labels = pd.DataFrame({"file": names, "label": range(COUNT)})
        self.img_dir = str(root)
        self.transform = transform
        self.target_transform = target_transform
        self.mode = "RGB"

    def __len__(self) -> int:
        return len(self.img_labels)

    def __getitem__(self, idx: int) -> Any:
        img_path = os.path.join(self.img_dir, self.img_labels.iloc[idx, 0])  # noqa: PTH118 -- as in users' programs
        image = decode_image(img_path)
        label = self.img_labels.iloc[idx, 1]
        if self.transform:
            image = self.transform(image)
        if self.target_transform:
            label = self.target_transform(label)
        return image, label

    def path(self, index: int) -> Path:
        return Path(self.img_dir) / self.img_labels.iloc[index, 0]


class Colors(Tutorial):
    def __getitem__(self, index: int) -> Any:
        path = self.img_dir + "/" + self.img_labels["file"][index]
        image = read_image(path, mode=ImageReadMode.RGB)
        return {"image": self.transform(image), "index": index}


class ByPosition(Tutorial):
    def __getitem__(self, index: int) -> Any:
        image = torchvision_io.decode_image(f"{self.img_dir}/{self.img_labels['file'][index]}", self.mode, False)
        return self.transform(image) if self.transform else image


class WithMask(Tutorial):
    def __getitem__(self, index: int) -> Any:
        path = f"{self.img_dir}/{self.img_labels['file'][index]}"
        image = decode_image(path, mode="RGB")
        mask = read_image(path, ImageReadMode.GRAY)
        return self.transform(image), (mask > 100).sum()


class OfAnother(Dataset[Any]):
    def __init__(self, inner: Any) -> None:
        self.inner, self.transform = inner, VERSION_2

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        image, label = self.inner[index]
        return self.transform(image), label


class Gray(Tutorial):
    def __getitem__(self, index: int) -> Any:
        return self.transform(decode_image(f"{self.img_dir}/{self.img_labels['file'][index]}", ImageReadMode.GRAY))


class Upright(Tutorial):
    def __getitem__(self, index: int) -> Any:
        path = f"{self.img_dir}/{self.img_labels['file'][index]}"
        return self.transform(decode_image(path, apply_exif_orientation=True))


class Scaled(Tutorial):
    def __getitem__(self, index: int) -> Any:
        return self.transform(decode_image(f"{self.img_dir}/{self.img_labels['file'][index]}").float() / 255)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("kind", "name"),
    [*((Tutorial, name) for name in TRANSFORMS), (WithMask, "crop"), (Colors, "crop"), (ByPosition, "version 2")],
)
def test_batches_of_threads(kind, name, workers, root):
    check_threads(kind(root, TRANSFORMS[name]), workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Tutorial, ByPosition])
def test_without_transforms(kind, workers, root):
    dataset = kind(root, None)
    options = {"num_workers": workers, "batch_size": 1}
    assert DataLoader(dataset, **options).explain().mode == "full"
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))
    options = {"num_workers": workers, "batch_size": None, "shuffle": False, "sampler": [4, 2]}
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_target_transform_runs_in_workers(workers, root):
    dataset = Tutorial(root, VERSION_2, lambda label: label + torch.randint(9, ()))
    assert DataLoader(dataset, num_workers=workers).explain().mode == "hybrid"
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


@pytest.mark.parametrize("workers", [0, 2])
def test_transforms_of_the_user_get_the_same_tensors(workers, root):
    def inspect(image: torch.Tensor) -> torch.Tensor:
        return torch.tensor([type(image) is torch.Tensor, image.dtype is torch.uint8, *image.shape, *image.flatten()])

    dataset = Tutorial(root, transforms.Compose([transforms.RandomCrop(SIZE), inspect]))
    assert DataLoader(dataset, num_workers=workers).explain().mode == "hybrid"
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_of_another_dataset(workers, root):
    dataset = OfAnother(Subset(Tutorial(root, transforms.CenterCrop(40)), [4, 1, 0]))
    assert DataLoader(dataset, num_workers=workers).explain().mode == "full"
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


@pytest.mark.parametrize("kind", [Gray, Upright, Scaled])
def test_other_methods_are_left_to_torch(kind, root):
    dataset = kind(root, transforms.CenterCrop(20))
    assert DataLoader(dataset, on_fallback="silent").explain().mode == "torch"


def test_another_jpeg_library_is_left_to_torch(root, monkeypatch):
    monkeypatch.setattr("dalify.plugin.pytorch.dropin.decoder_calls.matches_torchvision", lambda: False)
    assert DataLoader(Tutorial(root), on_fallback="silent").explain().mode == "torch"


def test_torchvision_decodes_the_same_pixels(monkeypatch):
    assert opening.matches_torchvision.__wrapped__()
    decode = torchvision_io.image.decode_image
    monkeypatch.setattr(torchvision_io.image, "decode_image", lambda data: decode(data) + 1)
    assert not opening.matches_torchvision.__wrapped__()

    def fail(data: torch.Tensor) -> None:
        raise RuntimeError

    monkeypatch.setattr(torchvision_io.image, "decode_image", fail)  # as without the compiled part
    assert not opening.matches_torchvision.__wrapped__()


FORMATS = {"gray.jpg": "L", "color.png": "RGB", "gray.png": "L", "alpha.png": "RGBA", "deep.png": "I;16"}


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", [Tutorial, Colors])
@pytest.mark.parametrize("name", FORMATS)
def test_other_formats(name, kind, workers, root, tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (40, 30, 4), dtype=np.uint8)
    mode = FORMATS[name]
    image = Image.fromarray(pixels[..., :3]).convert(mode) if mode != "I;16" else Image.new(mode, (30, 40), 1000)
    image.save(tmp_path / name)
    steps = [transforms.Resize((SIZE, SIZE)), transforms.RandomHorizontalFlip()]
    for transform in (VERSION_2, transforms.Compose(steps)):
        dataset = kind(root, transform)
        dataset.img_labels.loc[2, "file"] = os.path.relpath(tmp_path / name, root)
        options = {"num_workers": workers, "batch_size": 1}
        same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("damage", ["missing", "text", "cut", "folder", "corrupt"])
@pytest.mark.parametrize("kind", [Tutorial, Colors])
def test_errors_are_those_of_torch_and_the_next_batch_comes(kind, damage, workers, root, tmp_path):
    path = tmp_path / "damaged.jpg"
    write_damaged(path, (root / "a" / "0.jpg").read_bytes(), damage)

    def found(loader_kind: Any) -> list[Any]:
        dataset = kind(root)
        dataset.img_labels.loc[2, "file"] = os.path.relpath(path, root)
        seed()
        results = until_the_end(loader_kind(dataset, batch_size=2, num_workers=workers))
        return [*results, torch.get_rng_state()]

    same(found(DataLoader), found(TorchLoader))


def test_an_error_names_the_sample_and_the_file(root):
    dataset = Tutorial(root)
    dataset.img_labels.loc[2, "file"] = "a/missing.jpg"
    with pytest.raises(RuntimeError, match="No such file") as caught:
        list(DataLoader(dataset, batch_size=1))
    notes = "".join(caught.value.__notes__)
    assert "sample 2" in notes
    assert "a/missing.jpg" in notes
