"""Datasets of users that open an image and a mask, or several images, per sample: the batches are torch's."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset

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
    transforms,
    until_the_end,
)

v2 = import_torchvision("torchvision.transforms.v2")
tv_tensors = import_torchvision("torchvision.tv_tensors")
functional = import_torchvision("torchvision.transforms.v2.functional")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Pillow leaves damaged files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COUNT = 7
SIZE = 24
NEAREST = transforms.InterpolationMode.NEAREST
OF_IMAGE = transforms.Compose([transforms.Resize((SIZE, SIZE)), transforms.ToTensor()])
OF_MASK = transforms.Compose([transforms.Resize((SIZE, SIZE), interpolation=NEAREST), transforms.PILToTensor()])
TO_TENSORS = (
    v2.ToImage(),
    v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, scale=True),
    v2.Normalize([0.5] * 3, [0.2] * 3),
)
OF_BOTH = v2.Compose([v2.RandomResizedCrop(SIZE), v2.RandomHorizontalFlip(), *TO_TENSORS])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs, and masks of the same sizes."""
    folder = tmp_path_factory.mktemp("photos")
    photos(folder / "images", COUNT)
    (folder / "masks").mkdir()
    generator = np.random.default_rng(3)
    for number, file in enumerate(sorted((folder / "images").glob("*/*"))):
        with Image.open(file) as image:
            pixels = generator.integers(0, 4, image.size[::-1], dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "masks" / f"{number}.png")
    return folder


class Masks(Dataset[Any]):
    target_transform: Any = None

    def __init__(self, root: Path, transform: Any = OF_IMAGE) -> None:
        self.images = [str(file) for file in sorted((root / "images").glob("*/*"))]
        self.masks = [str(file) for file in sorted((root / "masks").glob("*"))]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.images)


class WithTargetTransform(Masks):
    target_transform = None

    def __init__(self, root: Path, transform: Any = OF_IMAGE, target_transform: Any = OF_MASK) -> None:
        super().__init__(root, transform)
        self.target_transform = target_transform

    def __getitem__(self, idx: int) -> Any:
        image = Image.open(self.images[idx]).convert("RGB")
        mask = Image.open(self.masks[idx]).convert("L")
        if self.transform:
            image = self.transform(image)
        if self.target_transform:
            mask = self.target_transform(mask)
        return image, mask


class WithLabels(Masks):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        mask = Image.open(self.masks[index]).resize((SIZE, SIZE), 0)
        mask = np.array(mask)
        image = self.transform(image)
        return {"image": image, "mask": torch.as_tensor(mask, dtype=torch.int64), "has": mask.sum() > 0, "index": index}


class Joint(Masks):
    def __init__(self, root: Path, transforms: Any = OF_BOTH) -> None:
        super().__init__(root)
        self.transforms = transforms

    def __getitem__(self, index: int) -> Any:
        img = Image.open(self.images[index]).convert("RGB")
        mask = tv_tensors.Mask(Image.open(self.masks[index]))
        if self.transforms is not None:
            img, mask = self.transforms(img, mask)
        return img, mask


class JointWithTarget(Joint):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        target = {}
        target["masks"] = tv_tensors.Mask(torch.from_numpy(np.array(Image.open(self.masks[index])))[None])
        target["labels"] = torch.tensor([index, 3])
        image, target = self.transforms(image, target)
        return {"image": image, "target": target, "index": index}


class JointOfThree(Joint):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        mask = torch.from_numpy(np.array(Image.open(self.masks[index])))
        return self.transforms(image, tv_tensors.Mask(mask), index)


FULL: list[Any] = [WithTargetTransform, WithLabels, Joint, JointWithTarget, JointOfThree]


class WithSameSeeds(WithTargetTransform):
    """The idiom with which the old transforms draw the same numbers for image and mask."""

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        mask = Image.open(self.masks[index])
        number = np.random.randint(2147483647)
        random.seed(number)
        torch.manual_seed(number)
        image = self.transform(image)
        random.seed(number)
        torch.manual_seed(number)
        return image, self.target_transform(mask)


class Two(Masks):
    def __getitem__(self, index: int) -> Any:
        first = Image.open(self.images[index]).convert("RGB")
        second = Image.open(self.images[random.randrange(COUNT)]).convert("RGB")
        return self.transform(first), self.transform(second), torch.rand(1)


class OpenedByMethod(Joint):
    def mask_of(self, index: int) -> Any:
        if torch.rand(1) < 0:
            return None
        return tv_tensors.Mask(Image.open(self.masks[index]))

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        image, mask = self.transforms(image, self.mask_of(index))
        return image, mask


RANDOM = transforms.Compose([transforms.RandomCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
RANDOM_MASK = transforms.Compose(
    [transforms.RandomCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
)
HYBRID: dict[str, Any] = {
    "np.random.randint": lambda root: WithSameSeeds(root, RANDOM, RANDOM_MASK),
    "random.randrange": lambda root: Two(root, RANDOM),
    "self.mask_of": OpenedByMethod,
    "self.target_transform": lambda root: WithTargetTransform(
        root, OF_IMAGE, transforms.Compose([OF_MASK, lambda mask: mask.long()])
    ),
}


class Reversed(Joint):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        mask, image = self.transforms(tv_tensors.Mask(Image.open(self.masks[index])), image)
        return image, mask


class Twice(Joint):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        image, mask = self.transforms(image, tv_tensors.Mask(Image.open(self.masks[index])))
        image, mask = self.transforms(image, mask)
        return image, mask


class DrawsAfterwards(Joint):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        image, mask = self.transforms(image, tv_tensors.Mask(Image.open(self.masks[index])))
        return image, mask, torch.rand(1)


class Own:
    def __call__(self, image: Any, mask: Any) -> Any:
        return functional.to_image(image)[:, :SIZE, :SIZE], mask[..., :SIZE, :SIZE]


TORCH: list[Any] = [
    lambda root: Joint(root, v2.Compose([v2.CenterCrop(20), v2.ToImage(), v2.Normalize([0.5] * 3, [0.2] * 3)])),
    Reversed, Twice, DrawsAfterwards, lambda root: Joint(root, Own()), lambda root: Joint(root, v2.Compose([Own()])),
    lambda root: Joint(root, v2.Compose([v2.CenterCrop(30), Own()])),
]  # fmt: skip


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", FULL)
def test_batches_of_threads(kind, workers, root):
    check_threads(kind(root), workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", HYBRID)
def test_functions_of_the_user_run_in_workers(name, workers, root):
    check_processes(HYBRID[name](root), workers, name)


@pytest.mark.parametrize("kind", TORCH)
def test_other_methods_are_left_to_torch(kind, root):
    dataset = kind(root)
    assert DataLoader(dataset, on_fallback="silent").explain().mode == "torch"
    options = {"on_fallback": "silent"}
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset))


# One of each kind that image and mask may get together.
STEPS = {
    "CenterCrop": v2.CenterCrop(40),
    "ColorJitter": v2.ColorJitter(0.3, 0.3, 0.3, 0.3),
    "ElasticTransform": v2.ElasticTransform(),
    "GaussianBlur": v2.GaussianBlur(3),
    "Grayscale": v2.Grayscale(3),
    "Identity": v2.Identity(),
    "Pad": v2.Pad(3),
    "RGB": v2.RGB(),
    "RandomAdjustSharpness": v2.RandomAdjustSharpness(2),
    "RandomAffine": v2.RandomAffine(20, (0.1, 0.1)),
    "RandomAutocontrast": v2.RandomAutocontrast(),
    "RandomChannelPermutation": v2.RandomChannelPermutation(),
    "RandomCrop": v2.RandomCrop(30, padding=2),
    "RandomEqualize": v2.RandomEqualize(),
    "RandomGrayscale": v2.RandomGrayscale(0.5),
    "RandomInvert": v2.RandomInvert(),
    "RandomPerspective": v2.RandomPerspective(),
    "RandomPhotometricDistort": v2.RandomPhotometricDistort(),
    "RandomPosterize": v2.RandomPosterize(3),
    "RandomResize": v2.RandomResize(20, 40),
    "RandomRotation": v2.RandomRotation(30),
    "RandomShortestSize": v2.RandomShortestSize(30),
    "RandomSolarize": v2.RandomSolarize(100),
    "RandomVerticalFlip": v2.RandomVerticalFlip(),
    "RandomZoomOut": v2.RandomZoomOut(),
    "Resize": v2.Resize((20, 30)),
    "ScaleJitter": v2.ScaleJitter((40, 40)),
}


@pytest.mark.parametrize("name", STEPS)
def test_transforms_of_image_and_mask(name, root):
    both = v2.Compose([STEPS[name], v2.RandomHorizontalFlip(), *TO_TENSORS, v2.RandomErasing(value="random")])
    dataset = JointWithTarget(root, both)
    loader = DataLoader(dataset, batch_size=3, on_fallback="raise")
    assert loader.explain().mode == "full", loader.explain()
    options = {"batch_size": 1, "epochs": 1}
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


def test_images_that_are_collated_by_the_user(root):
    dataset = Joint(root, v2.Compose([v2.RandomCrop(SIZE), v2.ToImage(), v2.ToPureTensor()]))
    options = {"collate_fn": list, "num_workers": 1}
    assert DataLoader(dataset, **options).explain().mode == "full"
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))
    dataset = Joint(root, v2.RandomCrop(SIZE))  # returns Pillow images
    options = {"collate_fn": lambda samples: [(np.array(image), mask) for image, mask in samples]}
    assert DataLoader(dataset, **options).explain().mode == "hybrid"
    ours, others = (events(kind, dataset, **options) for kind in (DataLoader, TorchLoader))
    for one, other in zip(ours[:-2], others[:-2], strict=True):
        for (pixels, mask), (expected, expected_mask) in zip(one, other, strict=True):
            np.testing.assert_array_equal(pixels, expected)
            same(mask, expected_mask)
    same(ours[-2:], others[-2:])


@pytest.mark.parametrize("workers", [0, 2])
def test_trees_of_datasets(workers, root):
    dataset = ConcatDataset([Joint(root), Subset(Joint(root, v2.Compose([v2.Resize((SIZE, SIZE)), *TO_TENSORS])), [4])])
    options = {"num_workers": workers, "batch_size": 2}
    assert DataLoader(dataset, **options).explain().mode == "full"
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


class Wrapper(Dataset[Any]):
    def __init__(self, inner: Any) -> None:
        self.inner, self.transform = inner, transforms.RandomErasing()

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        image, mask = self.inner[index]
        return self.transform(image), mask


@pytest.mark.parametrize(("inner", "mode"), [(WithTargetTransform, "full"), (Joint, "torch")])
def test_samples_of_another_dataset(inner, mode, root):
    dataset = Wrapper(inner(root))
    assert DataLoader(dataset, on_fallback="silent").explain().mode == mode
    same(events(DataLoader, dataset, on_fallback="silent"), events(TorchLoader, dataset))


def missing_mask(dataset: Any, folder: Path) -> None:
    dataset.masks[2] += ".missing"


def damaged_mask(dataset: Any, folder: Path) -> None:
    encoded = Path(dataset.masks[2]).read_bytes()
    dataset.masks[2] = str(folder / "damaged.png")
    (folder / "damaged.png").write_bytes(encoded[: len(encoded) // 2])


def mask_of_another_size(dataset: Any, folder: Path) -> None:
    dataset.masks[2] = dataset.masks[6]


def missing_image(dataset: Any, folder: Path) -> None:
    dataset.images[2] += ".missing"


def damaged_image(dataset: Any, folder: Path) -> None:
    encoded = Path(dataset.images[0]).read_bytes()
    dataset.images[0] = str(folder / "damaged.jpg")
    (folder / "damaged.jpg").write_bytes(encoded[: len(encoded) // 2])


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("change", [missing_mask, damaged_mask, mask_of_another_size, missing_image, damaged_image])
@pytest.mark.parametrize("kind", [WithTargetTransform, Joint])
def test_errors_are_those_of_torch_and_the_next_batch_comes(kind, change, workers, root, tmp_path):
    def found(loader_kind: Any) -> list[Any]:
        dataset = kind(root)
        change(dataset, tmp_path)
        seed()
        results = until_the_end(loader_kind(dataset, batch_size=2, num_workers=workers))
        return [*results, torch.get_rng_state(), random.getstate()]

    same(found(DataLoader), found(TorchLoader))


@pytest.mark.parametrize("workers", [0, 1])
def test_transforms_may_change_between_epochs(workers, root):
    def found(kind: Any) -> list[Any]:
        seed()
        joint, separate = Joint(root), WithTargetTransform(root)
        loaders = [kind(dataset, batch_size=1, num_workers=workers) for dataset in (joint, separate)]
        results = [list(loader) for loader in loaders]
        joint.transforms = v2.Compose([v2.RandomCrop(SIZE), *TO_TENSORS])
        separate.target_transform = transforms.Compose([transforms.CenterCrop(9), transforms.ToTensor()])
        results += [list(loader) for loader in loaders]
        joint.transforms.transforms[0] = v2.RandomCrop(11)
        separate.target_transform.transforms[0] = transforms.CenterCrop(7)
        return [*results, *(list(loader) for loader in loaders)]

    same(found(DataLoader), found(TorchLoader))


class Albumentations(Masks):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.images[index]).convert("RGB")
        if self.transform is not None:
            found = self.transform(image=np.array(image), mask=np.array(Image.open(self.masks[index])))
        return found["image"], found["mask"]


class Tries(Masks):
    def __getitem__(self, index: int) -> Any:
        try:
            return self.transform(Image.open(self.images[index]).convert("RGB"))
        except OSError:
            return torch.zeros(3, SIZE, SIZE)


def test_the_report_names_the_unsupported_statement(root):
    report = DataLoader(Albumentations(root), on_fallback="silent").explain()
    assert report.code == "DS02"
    line = Albumentations.__getitem__.__code__.co_firstlineno + 3
    assert f"{Path(__file__).name}:{line}): found = self.transform(image=np.array(image)" in report.reason
    report = DataLoader(Tries(root), on_fallback="silent").explain()
    assert report.reason.endswith(f"{Path(__file__).name}:{Tries.__getitem__.__code__.co_firstlineno + 1}): try:")


def test_the_report_names_the_unsupported_transform(root):
    both = v2.Compose([v2.CenterCrop(20), v2.ToImage(), v2.Normalize([0.5] * 3, [0.2] * 3)])
    report = DataLoader(Joint(root, both), on_fallback="silent").explain()
    assert report.code == "TF03"
    assert report.reason.startswith("transform[2] (Normalize) rejects such images")
    assert report.reason.endswith(", in a transform of image and mask")
