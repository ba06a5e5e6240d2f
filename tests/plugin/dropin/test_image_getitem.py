"""Datasets of users that open one image per sample: the batches, random numbers and errors are torch's."""

from __future__ import annotations

import io
import json
import os
import os.path as osp
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import PIL.Image
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset, random_split

from dalify.plugin.pytorch import DataLoader
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import (
    Brighten,
    TorchLoader,
    check_processes,
    check_threads,
    cifar,
    events,
    photos,
    same,
    seed,
    until_the_end,
)

transforms = import_torchvision("torchvision.transforms")
datasets = import_torchvision("torchvision.datasets")
folder = import_torchvision("torchvision.datasets.folder")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

COUNT = 7
SIZE = 24
CLASSES = {"a": 3, "b": 1}
RANDOM = transforms.Compose(
    [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)
PLAIN = transforms.Compose([transforms.Resize((SIZE, SIZE)), transforms.ToTensor()])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photos(tmp_path_factory.mktemp("photos"), COUNT)


@dataclass
class Entry:
    file: str
    label: int


class Photos(Dataset[Any]):
    """Attributes in many forms; subclasses read their samples in different ways."""

    transform: Any
    target_transform: Any = None
    is_training = True
    shift = 0

    def __init__(self, root: Path, transform: Any = RANDOM) -> None:
        self.root = root
        self.folder = str(root)
        self.transform = transform
        self.files = sorted(root.glob("*/*"))
        self.paths = [str(file) for file in self.files]
        self.names = [f"{file.parent.name}/{file.name}" for file in self.files]
        self.labels = [CLASSES[file.parent.name] for file in self.files]
        self.pairs = list(zip(self.paths, self.labels, strict=True))
        self.numbers = np.array(self.labels)
        self.targets = torch.tensor(self.labels)
        self.table = pd.DataFrame({"file": self.names, "label": self.labels, "weight": np.linspace(0, 1, COUNT)})
        self.entries = [Entry(path, label) for path, label in self.pairs]
        self.blobs = [file.read_bytes() for file in self.files]
        self.arrays = np.random.default_rng(4).integers(0, 256, (COUNT, 30, 28, 3), dtype=np.uint8)
        self.classes = CLASSES
        self.mode = "train"
        self.loader = folder.default_loader
        self.folders = datasets.ImageFolder(str(root))
        self.resize = transforms.Resize(30)
        self.crop = transforms.RandomCrop(SIZE)
        self.to_tensor = transforms.ToTensor()

    def __len__(self) -> int:
        return len(self.files)


class Usual(Photos):
    def __getitem__(self, idx: Any) -> Any:
        """Return image and label."""
        if torch.is_tensor(idx):
            idx = idx.tolist()
        image = Image.open(self.paths[idx]).convert("RGB")
        if self.transform:
            image = self.transform(image)
        label = self.labels[idx]
        if self.target_transform:
            label = self.target_transform(label)
        return image, label


class InOneLine(Photos):
    def __getitem__(self, i: int) -> Any:
        return self.transform(Image.open(self.paths[i]).convert("RGB")), self.labels[i]


class Table(Photos):
    def __getitem__(self, index: int) -> Any:
        row = self.table.iloc[index]
        path = os.path.join(self.folder, row["file"])  # noqa: PTH118 -- as in users' programs
        image = PIL.Image.open(path).convert("RGB")
        label = torch.tensor(row["label"], dtype=torch.float32)
        if self.transform is not None:
            image = self.transform(image)
        return {"image": image, "label": label, "path": path, "weight": row["weight"], "index": index}


class TableByPosition(Photos):
    def __getitem__(self, index: int) -> Any:
        path = osp.join(self.folder, self.table.iloc[index, 0])  # noqa: PTH118
        image = Image.open(path).convert("RGB")
        label = int(self.table.loc[index, "label"])
        image = self.transform(image) if self.transform is not None else self.to_tensor(image)
        return image, label, self.table["file"].values[index]


class Pairs(Photos):
    def __getitem__(self, index: int) -> Any:
        path, label = self.pairs[index]
        with open(path, "rb") as file:  # noqa: PTH123
            path = "another"
            image = Image.open(file).convert("RGB")
        image = self.transform(image)
        return image, torch.as_tensor(label)


class InBlock(Photos):
    def __getitem__(self, index: int) -> Any:
        with Image.open(self.root / self.names[index]) as file:
            image = file.convert("RGB")
            if self.transform is not None:
                image = self.transform(image)
            return [image, self.numbers[index]]


class Loaded(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.loader(self.paths[index])
        return self.transform(image), self.targets[index]


class LoadedByFunction(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(folder.pil_loader(self.paths[index]))


class Modes(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        if self.mode == "train" and self.is_training:
            image = self.transform(image)
        else:
            image = self.to_tensor(self.resize(image))
        return image, self.labels[index]


class SeveralTransforms(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        image = self.resize(image)
        image = self.crop(image)
        return self.to_tensor(image), self.labels[index]


class Filled(Photos):
    def __getitem__(self, index: int) -> Any:
        name = self.names[index]
        sample = {"image": Image.open(f"{self.folder}/{name}").convert("RGB"), "class": name.split("/")[0]}
        if self.transform:
            sample["image"] = self.transform(sample["image"])
        target = {}
        target["label"] = self.classes[name[0]]
        target["onehot"] = torch.nn.functional.one_hot(torch.tensor(target["label"]), 4)
        sample["target"] = (target["onehot"], len(name))
        return sample


class Branches(Photos):
    def __getitem__(self, index: int) -> Any:
        name: str = self.names[index]
        label = CLASSES["a"]
        if name.startswith("b"):
            label = CLASSES["b"] + 1
        elif index % 2 == 0:
            label += 10
        image = Image.open(os.path.join(self.folder, name)).convert("RGB")  # noqa: PTH118
        scores = [label * each for each in range(3)]
        return self.transform(image), (label, np.array(scores), torch.tensor(scores).float())


class Loops(Photos):
    def __getitem__(self, index: int) -> Any:
        total, count = 0, 0
        for number, label in enumerate(self.labels):
            if number > index:
                break
            total = total + label
        while count < total:
            count += 2
        return self.transform(Image.open(self.paths[index]).convert("RGB")), total, count


class Records(Photos):
    def __getitem__(self, index: int) -> Any:
        entry = self.entries[index]
        image = Image.open(entry.file).convert("RGB")
        image = self.transform(image)
        return image, entry.label


class InMemory(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(io.BytesIO(self.blobs[index])).convert("RGB")
        return self.transform(image), self.labels[index]


class FromArray(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.fromarray(self.arrays[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, self.targets[index]


class FromGrayArray(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.fromarray(self.arrays[index][..., 0]).convert("RGB")
        return self.transform(image), self.targets[index]


class NotConverted(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.open(self.paths[index])), self.labels[index]


class Returns(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        if self.shift or self.transform is not None:
            return self.transform(image), self.labels[index]
        return image, 0


class Twice(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        return self.transform(image), self.transform(image)


FULL = [
    Twice,
    Usual, InOneLine, Table, TableByPosition, Pairs, InBlock, Loaded, LoadedByFunction, Modes, SeveralTransforms,
    Filled, Branches, Loops, Records, InMemory, FromArray, FromGrayArray, NotConverted, Returns,
]  # fmt: skip


class Wrapper(Dataset[Any]):
    """Applies a transform to the samples of another dataset, as after `random_split`."""

    def __init__(self, inner: Any, transform: Any = RANDOM) -> None:
        self.inner, self.transform = inner, transform

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        image, label = self.inner[index]
        if self.transform:
            image = self.transform(image)
        return image, label


class WrapperWithIndex(Wrapper):
    def __getitem__(self, index: int) -> Any:
        sample = self.inner[index]
        return {"image": self.transform(sample[0]), "label": torch.tensor(sample[1]), "index": index}


class WrapperWithoutLabel(Wrapper):
    def __getitem__(self, index: int) -> Any:
        return self.transform(self.inner[index][0]), index


class WithPaths(datasets.ImageFolder):
    def __getitem__(self, index: int) -> Any:
        original = super().__getitem__(index)
        path = self.imgs[index][0]
        return original + (path,)  # noqa: RUF005


class WithIndex(datasets.ImageFolder):
    def __getitem__(self, index: int) -> Any:
        image, label = super(WithIndex, self).__getitem__(index)  # noqa: UP008
        return image, label, index


class Numbered(datasets.ImageFolder):
    def __getitem__(self, index: int) -> Any:
        image, label = super().__getitem__(index)
        return {"image": image, "target": label, "name": self.samples[index][0].split("/")[-1]}


def digits() -> Any:
    dataset = datasets.MNIST.__new__(datasets.MNIST)  # its constructor needs the files
    dataset.data = torch.randint(0, 256, (COUNT, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    dataset.targets = torch.arange(COUNT)
    dataset.transform = dataset.target_transform = None
    return dataset


WRAPPED: dict[str, Callable[[Path], Any]] = {
    "folder": lambda root: Wrapper(datasets.ImageFolder(str(root))),
    "split": lambda root: Wrapper(random_split(datasets.ImageFolder(str(root)), [4, 3], torch.Generator())[0]),
    "two transforms": lambda root: Wrapper(datasets.ImageFolder(str(root), transforms.RandomCrop(26))),
    "own dataset": lambda root: Wrapper(NotTransformed(root)),
    "dictionary": lambda root: WrapperWithIndex(Subset(datasets.ImageFolder(str(root)), [6, 1, 1])),
    "without label": lambda root: WrapperWithoutLabel(datasets.ImageFolder(str(root))),
    "in memory": lambda root: Wrapper(cifar(None, COUNT)),
    "gray, in memory": lambda root: Wrapper(digits(), PLAIN),
    "subset of a wrapper": lambda root: Subset(Wrapper(datasets.ImageFolder(str(root))), [5, 2]),
    "inherited, tuple": lambda root: WithPaths(str(root), RANDOM),
    "inherited, dictionary": lambda root: Numbered(str(root), PLAIN),
}


class NotTransformed(Photos):
    def __getitem__(self, index: int) -> Any:
        return Image.open(self.paths[index]).convert("RGB"), self.labels[index]


class Draws(Photos):
    def __getitem__(self, index: int) -> Any:
        other = random.randrange(COUNT) if torch.rand(1) < 0.5 else index
        image = Image.open(self.paths[other]).convert("RGB")
        return self.transform(image), self.labels[other]


class Calls(Photos):
    def label_of(self, index: int) -> int:
        return self.labels[index] + np.random.randint(3)

    def __getitem__(self, index: int) -> Any:
        label = self.label_of(index)
        image = Image.open(self.paths[index]).convert("RGB")
        return self.transform(image), label


class ByProperty(Photos):
    @property
    def sorted_paths(self) -> list[str]:
        return self.paths[::-1]

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.open(self.sorted_paths[index]).convert("RGB")), self.labels[index]


class WithLength(Photos):
    def __getitem__(self, index: int) -> Any:
        index = index % len(self)
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Parsed(Photos):
    def __getitem__(self, index: int) -> Any:
        label = json.loads(str(self.labels[index]))
        return self.transform(Image.open(self.paths[index]).convert("RGB")), label


class DrawsAfterwards(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        return image, random.random()


class CallsAfterwards(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        draw = torch.rand(1)
        image = self.crop(image)
        other = torch.rand(1)
        sample = {"image": self.to_tensor(image), "draws": (draw, other, np.random.rand())}
        sample["index"] = str(index)
        return sample


class TwoImages(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        other = Image.open(self.paths[0]).convert("RGB")
        return self.transform(image), self.transform(other)


class OfLabels(Usual):
    def __init__(self, root: Path, transform: Any = RANDOM) -> None:
        super().__init__(root, transform)
        self.target_transform = lambda label: label + random.randrange(5)


# With the name in the report.
HYBRID: dict[Any, str] = {
    Draws: "random.randrange",
    Calls: "self.label_of",
    ByProperty: "self.sorted_paths",
    WithLength: "index % len(self)",
    Parsed: "json.loads",
    DrawsAfterwards: "random.random",
    CallsAfterwards: "torch.rand",
    OfLabels: "self.target_transform",
    TwoImages: "self.transform",
}


class Unused(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        self.transform(image)
        return self.to_tensor(self.crop(image)), self.labels[index]


class Discarded(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        ignored = self.transform(image)  # noqa: F841
        return self.to_tensor(self.crop(image)), self.labels[index]


class ByMethod(Photos):
    def change(self, image: Any) -> Any:
        return self.transform(image)

    def __getitem__(self, index: int) -> Any:
        return self.change(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Gray(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.open(self.paths[index]).convert("L")), self.labels[index]


class Counts(Photos):
    calls = 0

    def __getitem__(self, index: int) -> Any:
        self.calls += 1
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Tries(Photos):
    def __getitem__(self, index: int) -> Any:
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except OSError:
            image = Image.new("RGB", (SIZE, SIZE))
        return self.transform(image), self.labels[index]


class DependsOnSample(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        image = self.transform(image) if self.labels[index] > 1 else self.to_tensor(self.crop(image))
        return image, self.labels[index]


class Private(Photos):
    __hidden = 3

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.__hidden


class Inherited(Usual):
    def __getitem__(self, index: int) -> Any:
        return (*super().__getitem__(index), index)


class WithoutSuper:
    def __init__(self, root: Path) -> None:
        self.files = Usual(root, PLAIN)

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return self.files[index] if index >= 0 else super().__getitem__(index)


class Itself(Photos):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.inner = self

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, str):
            return self.inner[int(index)]
        return torch.full((2,), index), self.labels[index]


class WithLabelTwice(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(self.folders[index][0]), self.folders[index][1]


class CallsLambda(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        return self.transform(image), (lambda label: label + 1)(self.labels[index])


class OpensForWriting(Photos):
    def __getitem__(self, index: int) -> Any:
        with open(self.paths[index], "r+b") as file:  # noqa: PTH123
            image = Image.open(file).convert("RGB")
        return self.transform(image), self.labels[index]


class DrawsBetweenTransforms(Photos):
    """The order of the random numbers depends on code between two transforms."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.crop, self.flip = transforms.RandomCrop(20), transforms.RandomHorizontalFlip()

    def __getitem__(self, index: int) -> Any:
        image = self.crop(Image.open(self.paths[index]).convert("RGB"))
        draw = torch.rand(1)
        image = self.flip(image)
        return self.to_tensor(image), draw


class Overwrites(Photos):
    def __getitem__(self, index: int) -> Any:
        sample = [Image.open(self.paths[index]).convert("RGB"), self.labels[index]]
        sample[0] = self.transform(sample[0])
        return sample


TORCH = [
    Unused, Discarded, ByMethod, Gray, Counts, Tries, DependsOnSample,
    Private, Inherited, WithoutSuper, Itself, WithLabelTwice, CallsLambda, OpensForWriting, Overwrites,
    DrawsBetweenTransforms,
]  # fmt: skip


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", FULL)
def test_batches_of_threads(kind, workers, root):
    check_threads(kind(root), workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", HYBRID)
def test_functions_of_the_user_run_in_workers(kind, workers, root):
    check_processes(kind(root), workers, HYBRID[kind])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", WRAPPED)
def test_samples_of_another_dataset(name, workers, root):
    dataset = WRAPPED[name](root)
    loader = DataLoader(dataset, num_workers=workers, on_fallback="raise")
    assert loader.explain().mode == "full", loader.explain()
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


@pytest.mark.parametrize(
    "make",
    [
        lambda root: Wrapper(datasets.ImageFolder(str(root), PLAIN, target_transform=str), transforms.RandomErasing()),
        lambda root: Wrapper(Wrapper(datasets.ImageFolder(str(root)), transforms.RandomCrop(20)), PLAIN),
        lambda root: Wrapper(ConcatDataset([datasets.ImageFolder(str(root)), datasets.ImageFolder(str(root))])),
        lambda root: WithIndex(str(root), PLAIN),
        lambda root: Wrapper([(Image.new("RGB", (30, 30)), 3)] * COUNT),
    ],
    ids=["transformed label", "wrapper", "several", "super with arguments", "list"],
)
def test_samples_of_other_datasets_are_left_to_torch(make, root):
    dataset = make(root)
    assert DataLoader(dataset, on_fallback="silent").explain().mode == "torch"
    same(events(DataLoader, dataset, on_fallback="silent"), events(TorchLoader, dataset))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("changed", ["transform of the inner dataset", "inner dataset", "samples of the inner dataset"])
def test_changes_of_another_dataset(changed, workers, root):
    def found(kind: Any) -> list[Any]:
        dataset = Wrapper(datasets.ImageFolder(str(root)), PLAIN)
        loader = kind(dataset, batch_size=1, num_workers=workers)
        results: list[Any] = []
        for number, batch in enumerate(loader):
            results.append(batch)
            if number != 2:
                continue
            if changed == "inner dataset":
                dataset.inner = Subset(dataset.inner, [0] * COUNT)
            elif changed == "transform of the inner dataset":
                dataset.inner.transform = transforms.CenterCrop(9)
            else:
                dataset.inner.samples[5:] = dataset.inner.samples[:2]
        return [*results, *loader]

    same(found(DataLoader), found(TorchLoader))


@pytest.mark.parametrize("kind", TORCH)
def test_other_methods_are_left_to_torch(kind, root):
    dataset = kind(root)
    assert DataLoader(dataset, on_fallback="silent").explain().mode == "torch"
    assert getattr(dataset, "calls", 0) == 0
    options = {"on_fallback": "silent"}
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "make",
    [
        lambda root: Subset(Table(root), [5, 0, 3, 3]),
        lambda root: ConcatDataset([Table(root), Table(root, PLAIN)]),
        lambda root: ConcatDataset([Usual(root), Subset(Records(root), range(4))]),
    ],
    ids=["subset", "one form", "two classes"],
)
def test_trees_of_datasets(make, workers, root):
    dataset = make(root)
    assert DataLoader(dataset, num_workers=workers).explain().mode == "full"
    options = {"num_workers": workers, "batch_size": 2}
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


def test_samples_of_different_forms(root):
    dataset = ConcatDataset([Usual(root), Table(root)])
    batches = [[0, 3], [COUNT, COUNT + 1], [1, COUNT]]
    for chosen in (batches[:2], batches):
        options = {"batch_sampler": chosen, "batch_size": 1, "shuffle": False}
        same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", [Usual, Filled])
def test_a_collate_function_gets_the_samples(kind, workers, root):
    options = {"num_workers": workers, "collate_fn": list}
    dataset = kind(root)
    assert DataLoader(dataset, **options).explain().mode == "full"
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Usual, Table, NotConverted])
def test_transforms_of_the_user_run_in_workers(kind, workers, root):
    transform = transforms.Compose([transforms.RandomCrop(20), Brighten(), transforms.ToTensor()])
    dataset = kind(root, transform)
    report = DataLoader(dataset, num_workers=workers).explain()
    assert (report.mode, report.code) == ("hybrid", "TF01")
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


def test_a_dataset_without_a_length(root):
    class WithoutLength:
        def __init__(self) -> None:
            self.paths, self.transform = Usual(root).paths, PLAIN

        def __getitem__(self, index: int) -> Any:
            return self.transform(Image.open(self.paths[index]).convert("RGB"))

    options = {"sampler": [2, 0, 5], "shuffle": False, "on_fallback": "silent"}
    same(
        events(DataLoader, WithoutLength(), **options),
        events(TorchLoader, WithoutLength(), sampler=[2, 0, 5], shuffle=False),
    )


def missing_file(dataset: Any) -> None:
    dataset.paths[2] = dataset.paths[2] + ".missing"
    dataset.names[2] += ".missing"
    dataset.pairs[2] = dataset.paths[2], 0
    dataset.table.loc[2, "file"] = "a/missing.jpg"


def not_an_image(dataset: Any) -> None:
    (dataset.root.parent / "text.jpg").write_bytes(b"not an image")
    dataset.paths[4] = str(dataset.root.parent / "text.jpg")
    dataset.names[4] = "../text.jpg"
    dataset.pairs[4] = dataset.paths[4], 0
    dataset.table.loc[4, "file"] = "../text.jpg"


def fewer_labels(dataset: Any) -> None:
    dataset.labels = dataset.labels[:3]
    dataset.pairs = dataset.pairs[:3]
    dataset.table = dataset.table[:3]
    dataset.numbers = dataset.numbers[:3]


def label_of_another_type(dataset: Any) -> None:
    dataset.labels[5] = None
    dataset.pairs[5] = dataset.paths[5], "text"
    dataset.numbers = dataset.numbers.astype(object)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("change", [missing_file, not_an_image, fewer_labels, label_of_another_type])
@pytest.mark.parametrize("kind", [Usual, InOneLine, Pairs, InBlock, Table])
def test_errors_are_those_of_torch_and_the_next_batch_comes(kind, change, workers, root):
    def found(loader_kind: Any) -> list[Any]:
        dataset = kind(root)
        change(dataset)
        seed()
        results = until_the_end(loader_kind(dataset, batch_size=2, num_workers=workers))
        return [*results, torch.get_rng_state()]

    dataset = kind(root)
    change(dataset)
    assert DataLoader(dataset, num_workers=workers).explain().mode == "full"
    same(found(DataLoader), found(TorchLoader))


class Fails(Photos):
    def label_of(self, index: int) -> int:
        if index == 3:
            raise ValueError(f"no label {random.random()}")
        return self.labels[index]

    def __getitem__(self, index: int) -> Any:
        first = self.label_of(index - self.shift)
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        return image, first, self.label_of(index)


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("workers", [0, 1])
def test_errors_of_functions_of_the_user(workers, shift, root):
    def found(kind: Any) -> list[Any]:
        dataset = Fails(root)
        dataset.shift = shift
        seed()
        results = until_the_end(kind(dataset, batch_size=1, num_workers=workers))
        return [*results, torch.get_rng_state(), random.getstate()]

    same(found(DataLoader), found(TorchLoader))


def test_an_error_names_the_sample_and_the_line_of_the_user(root):
    dataset = Usual(root)
    dataset.labels = dataset.labels[:3]
    with pytest.raises(IndexError) as caught:
        list(DataLoader(dataset, batch_size=1))
    assert "sample 3" in "".join(caught.value.__notes__)
    lines = [entry.statement for entry in caught.traceback if Path(str(entry.path)) == Path(__file__)]
    assert "label = self.labels[idx]" in str(lines[-1])


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ["transform", "mode", "is_training", "resize"])
def test_attributes_may_change_between_epochs(name, workers, root):
    def found(kind: Any) -> list[Any]:
        dataset = Modes(root, PLAIN)
        loader = kind(dataset, batch_size=1, num_workers=workers)
        results = list(loader)
        if name != "transform":
            dataset.mode = "val"
            results += list(loader)
        changed = {"transform": RANDOM, "mode": "train", "is_training": False, "resize": transforms.Resize(11)}
        setattr(dataset, name, changed[name])
        return [*results, *loader]

    seed()
    ours = found(DataLoader)
    seed()
    same(ours, found(TorchLoader))


def test_attributes_may_change_during_an_epoch(root):
    def found(kind: Any) -> list[Any]:
        seed()
        dataset = Modes(root, PLAIN)
        results: list[Any] = []
        for number, batch in enumerate(kind(dataset, batch_size=1)):
            results.append(batch)
            if number == 2:
                dataset.mode = "val"
            if number == 4:
                dataset.labels[6] = 99
                dataset.resize.size = 17
        return results

    same(found(DataLoader), found(TorchLoader))


def test_lists_that_change_while_threads_read_have_no_effect(root):
    def found(kind: Any) -> list[Any]:
        dataset = Table(root, PLAIN)
        dataset.table = dataset.table.copy()
        usual = Usual(root, PLAIN)
        batches = iter(kind(usual, batch_size=1, num_workers=1))
        results = [next(batches)]
        usual.labels[:] = [77] * COUNT
        usual.paths.clear()
        usual.transform = None
        return [*results, *batches]

    same(found(DataLoader), found(TorchLoader))


def test_relative_paths_are_those_of_the_start_of_an_epoch(root, monkeypatch, tmp_path):
    monkeypatch.chdir(root)
    dataset = Usual(root, PLAIN)
    dataset.paths = list(dataset.names)
    loader = DataLoader(dataset, batch_size=1, num_workers=1)
    expected = list(TorchLoader(dataset, batch_size=1))
    batches = iter(loader)
    first = next(batches)
    monkeypatch.chdir(tmp_path)
    same([first, *batches], expected)


@pytest.mark.parametrize("kind", [Usual, Filled])
def test_an_epoch_resumes_in_the_middle(kind, root):
    seed()
    expected = list(DataLoader(kind(root), batch_size=2, shuffle=True, num_workers=2))
    seed()
    first = DataLoader(kind(root), batch_size=2, shuffle=True, num_workers=2)
    batches = iter(first)
    found = [next(batches), next(batches)]
    state = first.state_dict()
    second = DataLoader(kind(root), batch_size=2, shuffle=True, num_workers=2)
    second.load_state_dict(state)
    same([*found, *second], expected)


def test_a_truncated_file_follows_the_setting_of_pillow(root, tmp_path, monkeypatch):
    encoded = next(root.glob("*/*.jpg")).read_bytes()
    (tmp_path / "cut.jpg").write_bytes(encoded[: len(encoded) * 2 // 3])
    dataset = Usual(root, PLAIN)
    dataset.paths[:] = [str(tmp_path / "cut.jpg")] * COUNT
    with pytest.raises(OSError, match="truncated"):
        list(DataLoader(dataset))
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)
    same(list(DataLoader(dataset)), list(TorchLoader(dataset)))
