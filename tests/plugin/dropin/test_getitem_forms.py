"""Named tuples, and assignments to elements, in the ``__getitem__`` of users' datasets: the batches are torch's."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset

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

COUNT = 7
SIZE = 24
RANDOM = transforms.Compose(
    [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)
OF_MASK = transforms.Compose([transforms.Resize((SIZE, SIZE)), transforms.PILToTensor()])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders of photographs."""
    return photos(tmp_path_factory.mktemp("photos"), COUNT)


class Photos(Dataset[Any]):
    def __init__(self, root: Path, transform: Any = RANDOM) -> None:
        self.paths = [str(file) for file in sorted(root.glob("*/*"))]
        self.labels = [number % 3 for number in range(len(self.paths))]
        self.joints = np.random.default_rng(1).random((len(self.paths), 5, 3), np.float32)
        self.scores = torch.arange(2.0 * len(self.paths)).reshape(-1, 2)
        self.transform, self.of_mask = transform, OF_MASK
        self.cache: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.paths)


Sample = collections.namedtuple("Sample", "image label")
Pair = collections.namedtuple("Pair", "image label")


class Typed(NamedTuple):
    name: str
    image: Any
    label: int = 5


class Derived(Sample):
    def __new__(cls, image: Any, label: Any) -> Any:
        return super().__new__(cls, image, label + 1)


class ByPosition(Photos):
    def __getitem__(self, index: int) -> Any:
        return Sample(self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index])


class OtherPair(Photos):
    def __getitem__(self, index: int) -> Any:
        return Pair(self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index])


class Plain(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class ByName(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        return Typed(label=self.labels[index], name=str(index), image=image)


class Nested(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        views = Sample(self.transform(image), self.transform(image))
        return {"views": views, "label": Sample(self.labels[index], str(index))}


class Taken(Photos):
    def __getitem__(self, index: int) -> Any:
        sample = Sample(Image.open(self.paths[index]).convert("RGB"), self.labels[index])
        image, label = sample
        return Sample(self.transform(image), label + sample[1])


class OneHot(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        label = torch.zeros(3, dtype=torch.float64)
        label[self.labels[index]] = 1.0
        return self.transform(image), label


class Joints(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        width, height = image.size
        joints = self.joints[index].copy()
        joints[:, 0] = joints[:, 0] / width
        joints[:, 1] /= height
        for number in range(len(joints)):
            if joints[number, 2] < 0.5:
                joints[number] = 0
        image = self.transform(image)
        return image, torch.from_numpy(joints)


class Mask(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        mask = np.array(Image.open(self.paths[index]).convert("L").resize((SIZE, SIZE)), dtype=np.float32)
        mask[mask > 128.0] = 1.0
        image = self.transform(image)
        return {"image": image, "mask": torch.from_numpy(mask)}


class MaskMethods(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        mask = self.of_mask(Image.open(self.paths[index]).convert("L"))
        return self.transform(image), mask.squeeze(0).long(), (mask > 99).float(), (mask - 1).permute(1, 2, 0).bool()


FULL = [ByPosition, ByName, Nested, Taken, OneHot, Joints, Mask, MaskMethods]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", FULL)
def test_batches_of_threads(root: Path, kind: Any, workers: int) -> None:
    check_threads(kind(root), workers)


@pytest.mark.parametrize("workers", [0, 2])
def test_named_tuples_of_several_types(root: Path, workers: int) -> None:
    for kinds in ((ByPosition, ByPosition), (ByPosition, OtherPair), (ByPosition, Plain), (Plain, ByPosition)):
        check_threads(ConcatDataset([kind(root) for kind in kinds]), workers)
    check_threads(Subset(ByPosition(root), [5, 0, 3, 3]), workers)
    dataset = ByName(root)
    options = {"num_workers": workers, "collate_fn": list}
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


class OfAttribute(Photos):
    """Changes the data of the dataset."""

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        scores = self.scores[index]
        scores[0] += 1
        return self.transform(image), scores.clone()


class Alias(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        scores = torch.zeros(2)
        if self.labels[index] == 1:
            scores = self.scores[index]
        scores[1] = scores[1] + 1
        return self.transform(image), scores.clone()


class AfterTransform(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        joints = np.asarray(self.joints[index])
        joints[0] += 1
        return image, joints.copy()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("kind", "code"), [(OfAttribute, "scores[0]"), (Alias, "scores[1]"), (AfterTransform, "joints[0]")]
)
def test_threads_do_not_change_data_of_the_dataset(root: Path, kind: Any, code: str, workers: int) -> None:
    dataset, other = kind(root), kind(root)
    report = DataLoader(dataset, num_workers=workers).explain()
    assert (report.mode, report.code) == ("hybrid", "DS08")
    assert f"__getitem__ uses {code}, which several threads" in report.reason
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, other, num_workers=workers))
    np.testing.assert_array_equal(dataset.joints, other.joints)
    assert torch.equal(dataset.scores, other.scores)


class OfDerived(Photos):
    def __getitem__(self, index: int) -> Any:
        return Derived(self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index])


class WithDefault(Photos):
    def __getitem__(self, index: int) -> Any:
        return Typed(str(index), self.transform(Image.open(self.paths[index]).convert("RGB")))


class Starred(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        return Sample(*[image, index])


class IntoCache(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        self.cache[index] = index
        return image, len(self.cache)


class OfImage(Photos):
    def __getitem__(self, index: int) -> Any:
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        image[0] = 0.5
        return image, index


class IntoListWithImage(Photos):
    def __getitem__(self, index: int) -> Any:
        found = [None, index]
        found[0] = self.transform(Image.open(self.paths[index]).convert("RGB"))
        return found


@pytest.mark.parametrize("kind", [OfDerived, WithDefault, Starred, IntoCache, OfImage, IntoListWithImage])
def test_forms_that_only_look_similar_are_left_to_torch(root: Path, kind: Any) -> None:
    assert DataLoader(kind(root)).explain().mode == "torch"
    same(events(DataLoader, kind(root)), events(TorchLoader, kind(root)))


class Fails(OneHot):
    """The second label is out of range."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.labels[1] = 9


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_are_torchs_for_the_same_batches(root: Path, workers: int) -> None:
    found = []
    for kind in (DataLoader, TorchLoader):
        seed()
        batches = until_the_end(kind(Fails(root), batch_size=2, num_workers=workers))
        found.append([batch[0] if isinstance(batch[0], str) else batch for batch in batches])
    assert "IndexError" in found[0]
    same(found[0], found[1])


def test_the_report_names_other_functions(root: Path) -> None:
    class Calls(OneHot):
        def __getitem__(self, index: int) -> Any:
            image = Image.open(self.paths[index]).convert("RGB")
            label = np.random.permutation(3)
            label[0] = 1
            return self.transform(image), label

    check_processes(Calls(root), 0, "np.random.permutation")


class IntoBuffer(Photos):
    """Writes a result into an array of the dataset, which threads would share."""

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        rows = [self.joints[index], self.joints[0]]
        joints = np.concatenate(rows, out=self.buffer)
        return self.transform(image), joints.copy()

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.buffer = np.empty((10, 3), np.float32)


@pytest.mark.parametrize("workers", [0, 2])
def test_functions_that_write_into_arguments_run_in_processes(root: Path, workers: int) -> None:
    check_processes(IntoBuffer(root), workers, "np.concatenate(rows, out=self.buffer)")
