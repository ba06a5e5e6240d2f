"""Single transforms compared with those that they replace, and transforms that users register."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from dalify.base.errors import ArgumentTypeError
from dalify.plugin.pytorch import DataLoader, lower, register_dataset, register_transform
from dalify.plugin.pytorch.dropin import registration
from tests.helpers.torchvision_import import import_torchvision
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

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

TRAINING = transforms.Compose(
    [transforms.RandomResizedCrop(20), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)
MIXED = transforms.Compose([Brighten(), transforms.RandomResizedCrop(20), Brighten(), *TRAINING.transforms[1:]])
STAYING = transforms.Compose([transforms.Resize(20), transforms.CenterCrop(18)])
# Of images with `info`, which some transforms keep.
CHANGING = [
    transforms.ColorJitter(0.4, 0.4, 0.4, 0.2),
    transforms.ColorJitter(hue=0.2),
    transforms.RandomRotation(20),
    transforms.Compose([transforms.Resize(20), transforms.RandomVerticalFlip(1.0), transforms.RandomCrop(10)]),
]


@pytest.fixture
def registered():
    """Remove what a test registers after the test."""
    before = dict(registration.TRANSFORMS), dict(registration.DATASETS)
    yield
    for table, old in zip((registration.TRANSFORMS, registration.DATASETS), before, strict=True):
        table.clear()
        table.update(old)  # type: ignore[arg-type]


def images() -> dict[str, Any]:
    pixels = np.random.default_rng(0).integers(0, 256, (31, 47, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    image.info = {"title": "noise"}
    return {"RGB": image, "L": image.convert("L"), "palette": image.convert("P"), "CMYK": image.convert("CMYK")}


@pytest.mark.parametrize("mode", ["RGB", "L", "palette", "CMYK"])
@pytest.mark.parametrize("transform", [TRAINING, MIXED, STAYING, *CHANGING, transforms.ToTensor()])
def test_results_equal_the_transform(transform, mode):
    image = images()[mode]
    found = []
    for function in (lower(transform), pickle.loads(pickle.dumps(lower(transform))), transform):
        seed()
        outcome: Any = None
        try:
            outcome = function(image)
        except Exception as error:  # torchvision's Brighten of a palette: the same error
            outcome = type(error)
        if isinstance(outcome, Image.Image):
            outcome = [outcome.mode, outcome.info, torch.from_numpy(np.asarray(outcome).copy())]
        found.append([outcome, torch.get_rng_state()])
    same(found[0], found[2])
    same(found[1], found[2])


def test_arrays_are_taken_as_images():
    pixels = np.asarray(images()["RGB"])
    for array, image in ((pixels, Image.fromarray(pixels)), (pixels[..., :1], Image.fromarray(pixels[..., 0]))):
        same(lower(STAYING)(array).tobytes(), STAYING(image).tobytes())
    tensor = torch.zeros(3, 30, 40, dtype=torch.uint8)
    same(lower(STAYING)(tensor), STAYING(tensor))


@pytest.mark.parametrize("version", [transforms, import_torchvision("torchvision.transforms.v2")], ids=["v1", "v2"])
def test_arrays_become_images_once(version):
    """ToPILImage takes arrays, and no images."""
    pixels = np.asarray(images()["RGB"])
    first = version.Compose([version.ToPILImage(), version.Resize((8, 9))])
    cases = [(transform, array) for transform in (version.ToPILImage(), first) for array in (pixels, pixels[..., :1])]
    cases += [(version.Compose([version.ToPILImage(mode), version.Resize(8)]), pixels) for mode in ("RGB", "YCbCr")]
    for transform, array in cases:
        found, expected = lower(transform)(array), transform(array)
        assert found.mode == expected.mode
        same(found.tobytes(), expected.tobytes())
    if version is transforms:  # version 2 ignores images
        with pytest.raises(TypeError, match="should be Tensor or ndarray"):
            lower(first)(images()["RGB"])


def test_explain_lists_devices_of_operators():
    assert repr(lower(TRAINING)) == "Lowered(RandomResizedCrop → RandomHorizontalFlip → ToTensor by dalify)"
    assert repr(lower(MIXED)) == (
        "Lowered(Brighten in Python, then RandomResizedCrop by dalify, then Brighten in Python, then "
        "RandomHorizontalFlip → ToTensor by dalify)"
    )
    behind = transforms.Compose([transforms.ToTensor(), Brighten(), transforms.Normalize(0, 1)])
    assert repr(lower(behind)) == "Lowered(ToTensor by dalify, then Brighten → Normalize in Python)"
    assert lower(lower(STAYING)).transform is STAYING
    with pytest.raises(ArgumentTypeError, match="a transform must be callable"):
        lower("resize")


def test_a_lowered_transform_is_known():
    assert DataLoader(cifar(lower(TRAINING))).explain().mode == "full"


class TorchvisionStep(torch.utils.data.Dataset[Any]):
    """A user's dataset, which is not supported."""

    def __init__(self, pairs: list[Any], transform: Any) -> None:
        self.pairs, self.transform = pairs, transform

    def __len__(self) -> int:
        return len(self.pairs)

    def image(self, index: int) -> Any:
        return Image.open(self.pairs[index][0]).convert("RGB")

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.image(index)), self.pairs[index][1]


class Invert:
    """A user's transform, which is not supported."""

    def __call__(self, image: Any) -> Any:
        return ImageOps.invert(image)


def batches(kind: Any, dataset: Any, **options: Any) -> list[Any]:
    seed()
    return list(kind(dataset, batch_size=3, shuffle=True, **options))


@pytest.mark.parametrize("workers", [0, 2])
def test_registered_datasets_and_transforms(tmp_path, registered, workers):
    pairs = datasets.ImageFolder(photos(tmp_path)).samples
    dataset = TorchvisionStep(pairs, transforms.Compose([transforms.RandomCrop(20), Invert(), transforms.ToTensor()]))
    options = {"batch_size": 3, "num_workers": workers}
    report = DataLoader(dataset, **options).explain()
    assert (report.mode, report.code) == ("torch", "DS02")
    assert "register_dataset" in report.hint
    assert "lower(dataset.transform)" in report.hint

    @register_dataset(TorchvisionStep)
    def _(dataset: Any) -> Any:
        return [path for path, _ in dataset.pairs], [label for _, label in dataset.pairs]

    dataset.pairs = [(path, f"class {label}") for path, label in dataset.pairs]
    assert DataLoader(dataset, **options).explain().mode == "hybrid"

    @register_transform(Invert)
    def _(transform: Any, pixels: Any, generator: Any) -> Any:
        return 255 - pixels

    report = DataLoader(dataset, **options).explain()
    assert report.mode == "full"
    assert "RandomCrop → Invert → ToTensor by dalify" in report.lines[0]
    same(batches(DataLoader, dataset, num_workers=workers), batches(TorchLoader, dataset, num_workers=workers))


def test_a_registered_function_that_exits_ends_the_program_not_only_its_thread(tmp_path, registered):
    @register_transform(Invert)
    def _(transform: Any, pixels: Any, generator: Any) -> Any:
        sys.exit("no more data")

    dataset = datasets.ImageFolder(photos(tmp_path), transforms.Compose([Invert(), transforms.ToTensor()]))
    loader = DataLoader(dataset, num_workers=2)
    assert loader.explain().mode == "full"
    with pytest.raises(SystemExit, match="no more data"):
        next(iter(loader))
