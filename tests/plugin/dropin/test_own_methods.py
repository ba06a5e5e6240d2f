"""Methods and functions that the ``__getitem__`` of users' datasets calls: the batches are torch's."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

from dalify.plugin.pytorch import DataLoader
from tests.plugin.dropin.torch_reference import (
    TorchLoader,
    check_processes,
    check_threads,
    events,
    photos,
    same,
    seed,
    transforms,
    until_the_end,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Pillow leaves damaged files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SIZE = 24
RANDOM = transforms.Compose(
    [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders of photographs."""
    return photos(tmp_path_factory.mktemp("photos"), 7)


class Photos(Dataset[Any]):
    def __init__(self, root: Path) -> None:
        self.paths = sorted(root.glob("*/*"))
        self.folder = root
        self.labels = list(range(len(self.paths)))
        self.class_to_idx = {"a": 0, "b": 1}
        self.transform = RANDOM

    def __len__(self) -> int:
        return len(self.paths)

    def load_image(self, index: int) -> Image.Image:
        """Open an image."""
        image_path = self.paths[index]
        return Image.open(image_path)


class OfFolder(Photos):
    """The form of tutorials."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        img = self.load_image(index).convert("RGB")
        return self.transform(img), index


class Tutorial(Photos):
    def load_image(self, index: int) -> Image.Image:
        """Open an image."""
        image_path = self.paths[index]
        return Image.open(image_path).convert("RGB")

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Return one sample."""
        img: Image.Image = self.load_image(index)
        class_name = self.paths[index].parent.name
        class_idx = self.class_to_idx[class_name]
        if self.transform:
            return self.transform(img), class_idx
        return img, class_idx  # pyright: ignore[reportReturnType]


class SameNames(Photos):
    """Both methods have the variables ``path`` and ``index``."""

    def path_of(this, index: int) -> str:  # noqa: N805  # pyright: ignore[reportSelfClsParameterName]
        path = this.paths[index]
        return str(path)

    def opened(this, index: int, path: Any) -> Any:  # noqa: N805  # pyright: ignore[reportSelfClsParameterName]
        path = this.path_of(index)
        with open(path, "rb") as file:  # noqa: PTH123 -- the supported form
            img = Image.open(file)
            return img.convert("RGB")

    def __getitem__(self, index: int) -> Any:
        path, index = "none", index - 1
        image = self.opened(path=path, index=index + 1)
        return {"image": self.transform(image), "path": path, "index": index}


class Both(Photos):
    def pair(self, index: int) -> Any:
        return Image.open(self.paths[index]).convert("RGB"), self.labels[index]

    def mask(self, path: Any) -> Any:
        pixels = np.array(Image.open(path).convert("L").resize((SIZE, SIZE)))
        return torch.from_numpy(pixels)

    def __getitem__(self, index: int) -> Any:
        image, label = self.pair(index)
        mask = self.mask(self.paths[index])
        other = self.mask(self.paths[0])
        return self.transform(image), label, mask, other


class Functions(Photos):
    """Functions that compute masks, and errors that are only raised for bad samples."""

    def __getitem__(self, index: int) -> Any:
        if self.labels[index] < 0:
            raise ValueError(f"label {self.labels[index]}")
        image = Image.open(self.paths[index]).convert("RGB")
        mask = np.array(Image.open(self.paths[index]).convert("L").resize((SIZE, SIZE)))
        mask = np.where(mask > 100, 1, 0) + np.ones_like(mask)
        one = torch.from_numpy(np.expand_dims(mask, 0)).long()
        both = torch.where(one > 1, torch.zeros_like(one), torch.ones_like(one))
        found = np.isin(mask, np.unique(self.labels)).astype(np.float32)
        return self.transform(image), both, np.zeros_like(found), found


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Tutorial, SameNames, Both, Functions])
def test_batches_of_threads(root: Path, kind: Any, workers: int) -> None:
    check_threads(kind(root), workers)


class Branches(Photos):
    def opened(self, index: int) -> Any:
        if index == 3:
            return Image.new("RGB", (30, 30))
        return Image.open(self.paths[index]).convert("RGB")

    def __getitem__(self, index: int) -> Any:
        image = self.opened(index)
        return self.transform(image), index


class Default(Photos):
    def opened(self, index: int, mode: str = "RGB") -> Any:
        return Image.open(self.paths[index]).convert("RGB")

    def __getitem__(self, index: int) -> Any:
        image = self.opened(index)
        return self.transform(image), index


class Static(Photos):
    @staticmethod
    def opened(path: Any) -> Any:
        return Image.open(path).convert("RGB")

    def __getitem__(self, index: int) -> Any:
        image = self.opened(self.paths[index])
        return self.transform(image), index


class OfInstance(Tutorial):
    """An attribute is in the place of the method."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        vars(self)["load_image"] = lambda index: Image.new("RGB", (30 + index, 30))


class Recursive(Photos):
    def opened(self, index: int) -> Any:
        image = self.opened(index)
        return image if index else Image.open(self.paths[index])

    def __getitem__(self, index: int) -> Any:
        image = self.opened(index)
        return self.transform(image), index


class Shadows(Photos):
    """A local variable has the name of a function that the method calls."""

    def opened(self, index: int) -> Any:
        return Image.open(str(self.paths[index])).convert("RGB")

    def __getitem__(self, index: int) -> Any:
        str = self.labels[index]
        image = self.opened(index)
        return self.transform(image), str


class Random(Photos):
    def opened(self, index: int) -> Any:
        number = np.random.randint(7)
        return Image.open(self.paths[number]).convert("RGB")

    def __getitem__(self, index: int) -> Any:
        image = self.opened(index)
        return self.transform(image), index


class Changes(Photos):
    def opened(self, index: int) -> Any:
        self.last = index
        return Image.open(self.paths[index]).convert("RGB")

    def __getitem__(self, index: int) -> Any:
        image = self.opened(index)
        return self.transform(image), self.last


SIMILAR = [Branches, Default, Static, OfInstance, Shadows, Random, Changes, OfFolder]


@pytest.mark.parametrize("kind", SIMILAR)
def test_forms_that_only_look_similar_are_left_to_torch(root: Path, kind: Any) -> None:
    assert DataLoader(kind(root)).explain().mode == "torch"
    same(events(DataLoader, kind(root)), events(TorchLoader, kind(root)))


def test_a_recursive_method_is_left_to_torch(root: Path) -> None:
    assert DataLoader(Recursive(root)).explain().mode == "torch"


class RandomMask(Photos):
    def mask(self, index: int) -> Any:
        number = np.random.randint(7)
        return torch.tensor(self.labels[number])

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        mask = self.mask(index)
        return self.transform(image), mask


def test_the_report_quotes_the_code_of_the_user(root: Path) -> None:
    check_processes(RandomMask(root), 0, "self.mask")


def test_a_method_that_is_replaced_between_epochs(root: Path) -> None:
    found = []
    for kind in (DataLoader, TorchLoader):
        dataset = Tutorial(root)
        loader = kind(dataset, batch_size=3)
        seed()
        batches = list(loader)
        vars(dataset)["load_image"] = lambda index: Image.new("RGB", (30 + index, 30), (index, 0, 0))
        found.append([*batches, *loader])
    same(*found)


def test_a_method_that_is_replaced_during_an_epoch(root: Path) -> None:
    found = []
    for kind in (DataLoader, TorchLoader):
        dataset = Tutorial(root)
        seed()
        batches = iter(kind(dataset, batch_size=2))
        first = next(batches)
        vars(dataset)["load_image"] = lambda index: Image.new("RGB", (30 + index, 30), (index, 0, 0))
        found.append([first, *batches])
    same(*found)


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_are_torchs_for_the_same_batches(root: Path, workers: int) -> None:
    for kind in (Tutorial, SameNames, Both):
        found = []
        for loader in (DataLoader, TorchLoader):
            dataset = kind(root)
            dataset.paths[2] = root / "a" / "missing.jpg"
            seed()
            batches = until_the_end(loader(dataset, batch_size=2, num_workers=workers))
            found.append(batches)
        assert any(batch[0] == "FileNotFoundError" for batch in found[0] if isinstance(batch, tuple))
        same(*found)


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_that_the_method_raises(root: Path, workers: int) -> None:
    found = []
    for loader in (DataLoader, TorchLoader):
        dataset = Functions(root)
        dataset.labels[3] = -5
        seed()
        found.append(until_the_end(loader(dataset, batch_size=2, num_workers=workers)))
    assert any(batch[0] == "ValueError" for batch in found[0] if isinstance(batch, tuple))
    same(*found)


ASSERTIONS = """
from PIL import Image
from tests.plugin.dropin.test_own_methods import Photos

class Checked(Photos):
    def __getitem__(self, index):
        assert self.labels[index] >= 0, "negative label"
        image = Image.open(self.paths[index]).convert("RGB")
        return self.transform(image), self.labels[index]
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_assertions_with_a_message(root: Path, tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"assertions_{workers}"  # pytest changes assertions of test modules, so this is another one
    (tmp_path / f"{name}.py").write_text(ASSERTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module(name).Checked
    check_threads(kind(root), workers)
    found = []
    for loader in (DataLoader, TorchLoader):
        dataset = kind(root)
        dataset.labels[3] = -5
        seed()
        found.append(until_the_end(loader(dataset, batch_size=2, num_workers=workers)))
    assert any(batch[0] == "AssertionError" for batch in found[0] if isinstance(batch, tuple))
    same(*found)
