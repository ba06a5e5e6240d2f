"""Samples with several views of one image, as for contrastive learning: the batches are torch's."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from torch.utils.data import ConcatDataset, Dataset, Subset

from dalify.plugin.pytorch import DataLoader
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import (
    TorchLoader,
    check_threads,
    cifar,
    datasets,
    events,
    photos,
    same,
    seed,
    transforms,
    until_the_end,
)

v2 = import_torchvision("torchvision.transforms.v2")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Pillow leaves damaged files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SIZE = 24
STRONG = transforms.Compose(
    [
        transforms.RandomResizedCrop(SIZE),
        transforms.RandomHorizontalFlip(),
        transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
        transforms.RandomGrayscale(p=0.2),
        transforms.ToTensor(),
        transforms.Normalize([0.5] * 3, [0.2] * 3),
    ]
)
WEAK = transforms.Compose([transforms.Resize((SIZE, SIZE)), transforms.RandomCrop(SIZE, 4), transforms.ToTensor()])
SMALL = transforms.Compose([transforms.RandomResizedCrop(8), transforms.GaussianBlur(3), transforms.ToTensor()])
VERSION_2 = v2.Compose([v2.RandomResizedCrop(SIZE), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders of photographs."""
    return photos(tmp_path_factory.mktemp("photos"))


class Base:
    def __init__(self, first: Any = STRONG, second: Any = WEAK, count: int = 3) -> None:
        self.transform, self.second, self.n_views = first, second, count
        self.transforms = [first, second]


class InList(Base):
    """Take two random crops of one image as the query and key."""

    def __call__(self, x: Any) -> Any:
        return [self.transform(x), self.transform(x)]


class InTuple(Base):
    def __call__(self, img: Any) -> Any:
        return self.transform(img), self.second(img)


class InVariables(Base):
    def __call__(self, x: Any) -> Any:
        """Return query and key."""
        q = self.transform(x)
        k = self.second(x)
        return [k, q]


class Comprehension(Base):
    def __call__(self, x: Any) -> Any:
        return [self.transform(x) for i in range(self.n_views)]


class OfTransforms(Base):
    def __call__(self, sample: Any) -> Any:
        return [transform(sample) for transform in self.transforms]


class OfModules(Base):
    def __init__(self) -> None:
        super().__init__()
        self.transforms = torch.nn.ModuleList([v2.RandomCrop(SIZE), v2.Resize((9, 9))])
        self.to_tensor = transforms.ToTensor()

    def __call__(self, x: Any) -> Any:
        return [self.transform(x) for _ in range(2)]


class MultiCrop(Base):
    """The crops of DINO."""

    def __init__(self) -> None:
        super().__init__(count=4)
        self.local = SMALL

    def __call__(self, image: Any) -> Any:
        crops = []
        crops.append(self.transform(image))
        crops.append(self.second(image))
        for _ in range(self.n_views):
            crops.append(self.local(image))
        return crops


FULL = [InList, InTuple, InVariables, Comprehension, OfTransforms, OfModules, MultiCrop]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", FULL)
def test_a_transform_returns_views(root: Path, kind: Any, workers: int) -> None:
    check_threads(datasets.ImageFolder(root, kind()), workers)


@pytest.mark.parametrize("workers", [0, 2])
def test_views_of_images_in_memory_and_of_version_2(workers: int) -> None:
    check_threads(cifar(InTuple(VERSION_2, STRONG)), workers)
    check_threads(Subset(cifar(InList(), 9), [4, 1, 8]), workers)
    digits = datasets.MNIST.__new__(datasets.MNIST)  # its constructor needs the files
    digits.data, digits.targets = torch.arange(7 * 784).reshape(7, 28, 28).to(torch.uint8), torch.arange(7)
    digits.transform = InList(transforms.Compose([transforms.RandomResizedCrop(SIZE), transforms.ToTensor()]))
    digits.target_transform = None
    check_threads(digits, workers)
    check_threads(ConcatDataset([cifar(InList(), 5), cifar(InTuple(), 6)]), workers)


class Blur:
    """MoCo's transform, which draws from Python's generator."""

    def __call__(self, x: Any) -> Any:
        return x.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2.0)))


@pytest.mark.parametrize("workers", [0, 2])
def test_code_of_the_user_in_a_view(root: Path, workers: int) -> None:
    with_blur = transforms.Compose([transforms.RandomResizedCrop(SIZE), Blur(), *STRONG.transforms[1:]])
    dataset = datasets.ImageFolder(root, InTuple(with_blur, WEAK))
    assert DataLoader(dataset, num_workers=workers).explain().mode == "hybrid"
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


class Photos(Dataset[Any]):
    def __init__(self, root: Path, transform: Any = STRONG, second: Any = WEAK, count: int = 3) -> None:
        self.paths = [str(file) for file in sorted(root.glob("*/*"))]
        self.transform, self.transform2, self.n_views = transform, second, count

    def __len__(self) -> int:
        return len(self.paths)


class Pair(Photos):
    def __getitem__(self, index: int) -> Any:
        img = Image.open(self.paths[index]).convert("RGB")
        pos_1 = self.transform(img)
        pos_2 = self.transform(img)
        return pos_1, pos_2, index


class WeakAndStrong(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        return {"views": (self.transform2(image), self.transform(image)), "index": index, "name": str(index)}


class OtherOrder(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        first = self.transform(image)
        second = self.transform2(image)
        return [second, first], index


class Repeated(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        return [self.transform(image) for _ in range(self.n_views)], index


class Unpacked(Photos):
    def __getitem__(self, index: int) -> Any:
        with open(self.paths[index], "rb") as file:  # noqa: PTH123
            image = Image.open(file).convert("RGB")
        first, second = self.transform(image)
        return first, second, torch.tensor(index)


class LabelBetween(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        first = self.transform(image)
        label = len(self.paths[index]) % 3
        return first, self.transform2(image), label


class PairOfSuper(datasets.CIFAR10):
    def __getitem__(self, index: int) -> Any:
        img, target = self.data[index], self.targets[index]
        img = Image.fromarray(img)
        im_1 = self.transform(img)
        im_2 = self.transform(img)
        return im_1, im_2, target


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Pair, WeakAndStrong, OtherOrder, Repeated, LabelBetween])
def test_a_dataset_returns_views(root: Path, kind: Any, workers: int) -> None:
    check_threads(kind(root), workers)


@pytest.mark.parametrize("workers", [0, 2])
def test_views_of_a_transform_in_a_dataset(root: Path, workers: int) -> None:
    check_threads(Unpacked(root, InTuple()), workers)
    check_threads(Pair(root, SMALL), workers)
    pairs = cifar(STRONG, 9)
    pairs.__class__ = PairOfSuper
    check_threads(pairs, workers)


class DrawsBetween(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        first = self.transform(image)
        draw = torch.rand(1)
        return first, self.transform(image), draw


class BetweenTransforms(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.transform2(Image.open(self.paths[index]).convert("RGB"))
        draw = torch.rand(1)
        return self.transform(image), draw


class WithOriginal(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        return self.transform(image), image.size, np.array(image)[0, 0]


class Interleaved(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        first = self.transform2(image)
        second = self.transform2(image)
        first = self.transform(first)
        return first, self.transform(second)


class SamePrefix(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.transform2(Image.open(self.paths[index]).convert("RGB"))
        return self.transform(image), self.transform(image)


class SameTwice(Photos):
    def __getitem__(self, index: int) -> Any:
        view = self.transform(Image.open(self.paths[index]).convert("RGB"))
        return view, view


class Unused(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        self.transform(image)
        return self.transform(image)


class ByNumber(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        return [(self.transform(image), number) for number in range(2)]


OTHER_DATASETS = [DrawsBetween, BetweenTransforms, WithOriginal, Interleaved, SamePrefix, SameTwice, Unused, ByNumber]
CROP, FLIP = transforms.RandomCrop(SIZE), transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])


@pytest.mark.parametrize("kind", OTHER_DATASETS)
def test_datasets_that_only_look_similar_are_left_to_torch(root: Path, kind: Any) -> None:
    has_two_steps = kind in (BetweenTransforms, Interleaved, SamePrefix)
    dataset = kind(root, FLIP, CROP) if has_two_steps else kind(root)
    assert DataLoader(dataset).explain().mode == "torch"
    same(events(DataLoader, dataset), events(TorchLoader, dataset))


class Draws(Base):
    def __call__(self, x: Any) -> Any:
        return [self.transform(x), self.transform(x)] if random.random() < 0.5 else [self.second(x), self.second(x)]


class Doubled(Base):
    def __call__(self, x: Any) -> Any:
        view = self.transform(x)
        return [view, view]


class Dropped(Base):
    def __call__(self, x: Any) -> Any:
        views = [self.transform(x), self.transform(x)]
        return views[:1]


class Chained(Base):
    def __call__(self, x: Any) -> Any:
        return [FLIP(CROP(x)), self.transform(x)]


class Stacked(Base):
    def __call__(self, x: Any) -> Any:
        return torch.stack([self.transform(x), self.transform(x)])


class ByProperty(Base):
    @property
    def third(self) -> Any:
        return self.second

    def __call__(self, x: Any) -> Any:
        return [self.third(x), self.transform(x)]


class BlursFirst(Base):
    """A first transform of a user might modify the common image."""

    def __init__(self) -> None:
        super().__init__(transforms.Compose([Blur(), *STRONG.transforms]))

    def __call__(self, x: Any) -> Any:
        return [self.transform(x), self.second(x)]


class Whiten:
    """A transform of a user that modifies its argument."""

    def __call__(self, x: Any) -> Any:
        x.paste((255, 255, 255), (0, 0, 20, 20))
        return x


class Modifies(Base):
    def __init__(self) -> None:
        first = transforms.Compose([transforms.RandomHorizontalFlip(), Whiten(), *WEAK.transforms])
        super().__init__(first)

    def __call__(self, x: Any) -> Any:
        return [self.transform(x), self.second(x)]


class AppendsToAttribute(Base):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []

    def __call__(self, x: Any) -> Any:
        kept = self.kept
        kept.append(self.transform(x))
        return kept[-1:]


OTHER_TRANSFORMS = [Draws, Doubled, Dropped, Chained, Stacked, ByProperty, BlursFirst, Modifies, AppendsToAttribute]


@pytest.mark.parametrize("kind", OTHER_TRANSFORMS)
def test_transforms_that_only_look_similar_are_left_to_torch(root: Path, kind: Any) -> None:
    dataset, other = datasets.ImageFolder(root, kind()), datasets.ImageFolder(root, kind())
    assert DataLoader(dataset).explain().mode == "torch"
    same(events(DataLoader, dataset), events(TorchLoader, other))


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_are_torchs_for_the_same_batches(root: Path, tmp_path: Path, workers: int) -> None:
    folder = photos(tmp_path / "photos")
    damaged = sorted(folder.glob("*/*.jpg"))[3]
    damaged.write_bytes(damaged.read_bytes()[:200])
    too_large = transforms.Compose([transforms.RandomCrop(55), transforms.ToTensor()])
    different_sizes = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    for transform in (InList(), InTuple(STRONG, too_large), InTuple(STRONG, different_sizes)):
        dataset = datasets.ImageFolder(folder, transform)
        found = []
        for kind in (DataLoader, TorchLoader):
            seed()
            loader = kind(dataset, batch_size=2, num_workers=workers)
            batches = until_the_end(loader)
            found.append([batch[0] if isinstance(batch[0], str) else batch for batch in batches])
        assert any(isinstance(each, str) for each in found[0])
        same(found[0], found[1])


def test_changes_of_a_transform_have_an_effect(root: Path) -> None:
    found = []
    for kind in (DataLoader, TorchLoader):
        seed()
        dataset = datasets.ImageFolder(root, Comprehension())
        loader = kind(dataset, batch_size=2)
        batches: list[Any] = list(loader)
        iterator = iter(loader)
        batches.append(next(iterator))
        dataset.transform.n_views = 2
        batches.append(next(iterator))
        dataset.transform.transform = WEAK
        found.append([*batches, *iterator, *loader])
    same(found[0], found[1])


def test_collate_functions_get_the_samples(root: Path) -> None:
    def collate(samples: list[Any]) -> Any:
        return [torch.cat([torch.stack(views) for views, _ in samples]), [label for _, label in samples]]

    for workers in (0, 2):
        dataset = datasets.ImageFolder(root, InList())
        options = {"num_workers": workers, "collate_fn": collate}
        same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))
