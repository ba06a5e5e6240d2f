"""Datasets of users that read one image per sample with OpenCV: the batches, random numbers and errors are torch's."""

from __future__ import annotations

import importlib.util
import random
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, Subset

from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin import opening
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import (
    Brighten,
    TorchLoader,
    check_processes,
    check_threads,
    events,
    photos,
    same,
    seed,
    transforms,
    until_the_end,
    write_damaged,
)

v2 = import_torchvision("torchvision.transforms.v2")
tv_tensors = import_torchvision("torchvision.tv_tensors")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

COUNT = 7
SIZE = 24
MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.3, 0.1]
OF_IMAGES = transforms.Compose(
    [
        transforms.RandomResizedCrop(SIZE),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
OF_ARRAYS = transforms.Compose([transforms.ToPILImage(), *OF_IMAGES.transforms])
TO_FLOAT = v2.ToDtype(torch.float32, scale=True)
TRANSFORMS = {
    "training": OF_ARRAYS,
    "evaluation": transforms.Compose(
        [transforms.ToPILImage("RGB"), transforms.Resize(30), transforms.CenterCrop(SIZE), transforms.ToTensor()]
    ),
    "gray": transforms.Compose(
        [transforms.ToPILImage(), transforms.Resize((SIZE, SIZE)), transforms.Grayscale(), transforms.ToTensor()]
    ),
    "jitter": v2.Compose([v2.ToPILImage(), v2.RandomCrop(SIZE), v2.ColorJitter(0.5, 0.5, 0.5), v2.ToImage(), TO_FLOAT]),
    "tensors": transforms.Compose(
        [transforms.ToTensor(), transforms.Resize((SIZE, SIZE), antialias=True), transforms.Normalize(MEAN, STD)]
    ),
    "tensors of version 2": v2.Compose([v2.ToImage(), v2.RandomResizedCrop(SIZE), v2.RandomVerticalFlip(), TO_FLOAT]),
    "flipped": v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(), v2.Resize((SIZE, SIZE)), TO_FLOAT]),
    "bytes": v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(), v2.RandomCrop(SIZE)]),
    "gray tensors": v2.Compose([v2.ToImage(), v2.CenterCrop(SIZE), v2.Grayscale(), TO_FLOAT]),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photos(tmp_path_factory.mktemp("photos"), COUNT)


class Photos(Dataset[Any]):
    def __init__(self, root: Path, transform: Any = OF_ARRAYS) -> None:
        self.files = sorted(root.glob("*/*"))
        self.paths = [str(file) for file in self.files]
        self.labels = list(range(COUNT))
        self.arrays = np.random.default_rng(4).integers(0, 256, (COUNT, 30, 28, 3), dtype=np.uint8)
        self.flags = cv2.IMREAD_COLOR
        self.transform = transform

    def __len__(self) -> int:
        return len(self.paths)


class Usual(Photos):
    def __getitem__(self, idx: int) -> Any:
        image = cv2.imread(self.paths[idx])
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        if self.transform:
            image = self.transform(image)
        return image, self.labels[idx]


class InOneLine(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(cv2.cvtColor(cv2.imread(self.paths[index], cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)), index


class NotConverted(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.imread(self.paths[index], 1)
        return {"image": self.transform(image), "label": torch.tensor(self.labels[index])}


class ReadAsRgb(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.imread(self.files[index], flags=cv2.IMREAD_COLOR_RGB)
        return self.transform(image), self.labels[index]


class Copied(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.imread(self.paths[index], self.flags)[:, :, ::-1].copy()
        return self.transform(image), self.labels[index]


class Contiguous(Photos):
    def __getitem__(self, index: int) -> Any:
        path = self.paths[index]
        image = np.ascontiguousarray(cv2.imread(path)[..., ::-1])
        return self.transform(image), path


class Twice(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.cvtColor(cv2.imread(self.paths[index]), cv2.COLOR_BGR2RGB)
        image = cv2.cvtColor(np.array(image), cv2.COLOR_RGB2BGR)
        return self.transform(image), self.labels[index]


class Checked(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.imread(self.paths[index])
        if image is None:
            raise FileNotFoundError(f"no image in {self.paths[index]}")
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        return self.transform(image), self.labels[index]


class Reversed(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.imread(self.paths[index])[..., ::-1]
        return self.transform(image), self.labels[index]


class AsPillow(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.cvtColor(cv2.imread(self.paths[index]), cv2.COLOR_BGR2RGB)
        image = Image.fromarray(image)
        return self.transform(image), self.labels[index]


class AsPillowInOneLine(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.fromarray(cv2.imread(self.paths[index])[:, :, ::-1]).convert("RGB")
        return self.transform(image), self.labels[index]


class BlueFirst(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.fromarray(cv2.imread(self.paths[index]))), self.labels[index]


class WithMask(Photos):
    def __getitem__(self, index: int) -> Any:
        image = Image.fromarray(cv2.imread(self.paths[index], cv2.IMREAD_COLOR_RGB))
        mask = tv_tensors.Mask(cv2.imread(self.paths[index])[..., 0].copy())
        image, mask = self.transform(image, mask)
        return image, mask


class Resized(Photos):
    """The array is changed before an image of Pillow is created from it."""

    def __getitem__(self, index: int) -> Any:
        image = cv2.cvtColor(cv2.imread(self.paths[index]), cv2.COLOR_BGR2RGB)
        image = Image.fromarray(cv2.resize(image, (40, 36)))
        return self.transform(image), self.labels[index]


class OtherLabels(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.cvtColor(cv2.imread(self.paths[index]), cv2.COLOR_BGR2RGB)
        return self.transform(image), index + random.random()


class Wrapper(Dataset[Any]):
    def __init__(self, inner: Any, transform: Any) -> None:
        self.inner, self.transform = inner, transform

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        image, label = self.inner[index]
        return self.transform(image), label


ARRAYS = [Usual, InOneLine, NotConverted, ReadAsRgb, Copied, Contiguous, Twice, Checked]
IMAGES = [AsPillow, AsPillowInOneLine, BlueFirst, Resized]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("kind", "transform"),
    [*((Usual, each) for each in TRANSFORMS.values()), *((kind, OF_ARRAYS) for kind in (*ARRAYS, Reversed)),
     *((NotConverted, TRANSFORMS[name]) for name in ("evaluation", "tensors", "flipped", "bytes", "gray tensors")),
     *((kind, OF_IMAGES) for kind in IMAGES)],
)  # fmt: skip
def test_batches_of_threads(kind, transform, workers, root):
    check_threads(kind(root, transform), workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["tensors of version 2", "flipped"])
def test_the_memory_layout_is_that_of_torch(name, workers, root):
    options: dict[str, Any] = {"num_workers": workers, "collate_fn": list, "batch_size": 1}
    dataset = Usual(root, TRANSFORMS[name])
    assert DataLoader(dataset, **options).explain().mode == "full"
    for ours, expected in zip(
        events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options), strict=True
    ):
        same(ours, expected)
        if isinstance(ours, list):
            assert ours[0][0].stride() == expected[0][0].stride()


class FromArray(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.fromarray(self.arrays[index])), self.labels[index]


def test_arrays_in_memory_become_tensors(root):
    check_threads(FromArray(root, TRANSFORMS["tensors of version 2"]), 0)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_and_a_mask_have_one_transform(workers, root):
    steps = [v2.RandomResizedCrop(SIZE), v2.RandomHorizontalFlip(), v2.ToImage(), TO_FLOAT]
    check_threads(WithMask(root, v2.Compose(steps)), workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "inner", [lambda root: Usual(root, None), lambda root: Subset(Checked(root, v2.Identity()), [3, 1])]
)
def test_samples_of_another_dataset(inner, workers, root):
    dataset = Wrapper(inner(root), OF_ARRAYS)
    options = {"num_workers": workers, "on_fallback": "silent"}
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, num_workers=workers))


def test_the_samples_of_another_dataset_are_read_by_threads(root):
    check_threads(Wrapper(Usual(root, None), OF_ARRAYS), 0)


@pytest.mark.parametrize("workers", [0, 2])
def test_code_of_the_user_runs_in_workers(workers, root):
    check_processes(OtherLabels(root), workers, "random.random")


class Inspect:
    """A transform of a user that keeps all that it gets."""

    def __call__(self, image: Any) -> Any:
        kind = isinstance(image, np.ndarray)
        return torch.from_numpy(np.array(image, np.float32)) + kind + len(getattr(image, "info", {}))


@pytest.mark.parametrize("workers", [0, 2])
def test_transforms_of_the_user_get_the_same_images(workers, root):
    steps = [transforms.RandomCrop(SIZE), Brighten(), transforms.RandomCrop(16), Inspect()]
    for dataset in (
        Usual(root, transforms.Compose([transforms.ToPILImage(), *steps])),
        AsPillow(root, transforms.Compose(steps)),
    ):
        assert DataLoader(dataset, num_workers=workers).explain().mode == "hybrid"
        same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        (lambda root: Usual(root, transforms.Compose([Inspect()])), "Inspect"),
        (lambda root: Usual(root, transforms.Compose([v2.RandomCrop(9), v2.ToImage()])), "(RandomCrop) gets an array"),
        (lambda root: Usual(root, transforms.Compose([transforms.ToPILImage("HSV")])), "has the mode HSV"),
        (lambda root: Usual(root, None), "the dataset has no transform, and torch collates arrays"),
        (lambda root: Reversed(root, transforms.ToTensor()), "negative"),
        (lambda root: Changed(root), "image = cv2.resize(image, (30, 30))"),
        (lambda root: Gray(root), "cv2.imread(self.paths[index], cv2.IMREAD_GRAYSCALE)"),
    ],
)  # fmt: skip
def test_others_are_left_to_torch(dataset, reason, root):
    found = dataset(root)
    report = DataLoader(found, on_fallback="silent").explain()
    assert report.mode == "torch"
    assert reason in report.reason
    options = {"batch_size": 1}
    same(events(DataLoader, found, on_fallback="silent", **options), events(TorchLoader, found, **options))


class Changed(Photos):
    def __getitem__(self, index: int) -> Any:
        image = cv2.imread(self.paths[index])
        image = cv2.resize(image, (30, 30))
        return torch.from_numpy(image / 255.0).permute(2, 0, 1).float(), self.labels[index]


class Gray(Photos):
    def __getitem__(self, index: int) -> Any:
        return self.transform(cv2.imread(self.paths[index], cv2.IMREAD_GRAYSCALE)), self.labels[index]


class CheckedWithOtherLabels(Photos):
    def __getitem__(self, index: int) -> Any:
        label = random.random()
        image = cv2.imread(self.paths[index])
        if image is None:
            raise FileNotFoundError(self.paths[index])
        return self.transform(image), label


def test_an_assertion_that_the_file_was_read(root, tmp_path):
    (tmp_path / "asserted.py").write_text(ASSERTED)  # pytest changes the assertions of this file
    specification: Any = importlib.util.spec_from_file_location("asserted", tmp_path / "asserted.py")
    module: Any = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    dataset = module.Asserted()
    dataset.paths, dataset.transform = Usual(root).paths, OF_ARRAYS
    check_threads(dataset, 0)
    dataset.paths[2] += ".missing"
    same(events(DataLoader, dataset), events(TorchLoader, dataset))


ASSERTED = """
import cv2

class Asserted:
    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = cv2.imread(self.paths[index])
        assert image is not None, f"no image {index}"
        return self.transform(image), index
"""


def test_a_method_with_random_numbers_does_not_run_twice(root):
    dataset = CheckedWithOtherLabels(root)
    dataset.paths[2] += ".missing"
    assert DataLoader(dataset, on_fallback="silent").explain().mode == "torch"
    same(events(DataLoader, dataset, on_fallback="silent"), events(TorchLoader, dataset))


def test_another_jpeg_library_is_left_to_torch(root, monkeypatch):
    monkeypatch.setattr("dalify.plugin.pytorch.dropin.decoder_calls.matches_opencv", lambda: False)
    assert DataLoader(Usual(root), on_fallback="silent").explain().mode == "torch"


def test_a_function_that_replaces_that_of_opencv_is_left_to_torch(root, monkeypatch):
    read = cv2.imread
    monkeypatch.setattr(cv2, "imread", lambda path: 255 - read(path))
    dataset = Usual(root)
    assert DataLoader(dataset, on_fallback="silent").explain().mode == "torch"
    same(events(DataLoader, dataset, on_fallback="silent"), events(TorchLoader, dataset))


def test_opencv_decodes_the_same_pixels(monkeypatch):
    assert opening.matches_opencv.__wrapped__()
    decode = cv2.imdecode
    monkeypatch.setattr(cv2, "imdecode", lambda data, flags: decode(data, flags) + 1)
    assert not opening.matches_opencv.__wrapped__()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", [Usual, NotConverted])
def test_images_are_rotated_as_exif_specifies(kind, orientation, root, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = np.random.default_rng(1).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    for suffix in ("jpg", "png"):
        Image.fromarray(pixels).save(tmp_path / f"rotated.{suffix}", exif=exif)
        dataset = kind(root, TRANSFORMS["evaluation"])
        dataset.paths[2] = str(tmp_path / f"rotated.{suffix}")
        same(events(DataLoader, dataset), events(TorchLoader, dataset))


def test_exif_with_a_damaged_byte_order(root, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "rotated.jpg"
    Image.new("RGB", (40, 30), "red").save(path, exif=exif)
    encoded = path.read_bytes()
    start = encoded.index(b"Exif") + 6
    for order in (b"xM", b"Mx", b"xI", b"xx"):
        path.write_bytes(encoded[:start] + order + encoded[start + 2 :])
        dataset = Usual(root, transforms.ToTensor())
        dataset.paths[:] = [str(path)] * COUNT
        same(events(DataLoader, dataset), events(TorchLoader, dataset))


FORMATS = {
    "gray.jpg": "L",
    "inks.jpg": "CMYK",
    "gray.png": "L",
    "alpha.png": "RGBA",
    "deep.png": "I;16",
    "a.bmp": "RGB",
}


@pytest.mark.parametrize("kind", [Usual, NotConverted])
@pytest.mark.parametrize("name", FORMATS)
def test_other_formats(name, kind, root, tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (40, 30, 4), dtype=np.uint8)
    mode = FORMATS[name]
    image = Image.fromarray(pixels[..., :3]).convert(mode) if mode != "I;16" else Image.new(mode, (30, 40), 1000)
    image.save(tmp_path / name)
    for transform in (OF_ARRAYS, TRANSFORMS["tensors"]):
        dataset = kind(root, transform)
        dataset.paths[2] = str(tmp_path / name)
        same(events(DataLoader, dataset), events(TorchLoader, dataset))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("damage", ["missing", "text", "cut", "folder", "corrupt", "empty", "no path"])
@pytest.mark.parametrize("kind", [Usual, NotConverted, Checked, Reversed, OtherLabels])
def test_errors_are_those_of_torch_and_the_next_batch_comes(kind, damage, workers, root, tmp_path):
    path = tmp_path / "damaged.jpg"
    write_damaged(path, (root / "a" / "0.jpg").read_bytes(), damage)

    def found(loader_kind: Any) -> list[Any]:
        dataset = kind(root)
        dataset.paths[2] = None if damage == "no path" else str(path)
        seed()
        results = until_the_end(loader_kind(dataset, batch_size=2, num_workers=workers))
        return [*results, torch.get_rng_state()]

    same(found(DataLoader), found(TorchLoader))


def test_an_error_names_the_sample_and_the_file(root):
    dataset = Usual(root)
    dataset.paths[2] = "missing.jpg"
    with pytest.raises(cv2.error, match="empty") as caught:
        list(DataLoader(dataset, batch_size=1))
    notes = "".join(caught.value.__notes__)
    assert "sample 2" in notes
    assert "missing.jpg" in notes
    lines = [entry.statement for entry in caught.traceback if Path(str(entry.path)) == Path(__file__)]
    assert "cv2.cvtColor(image" in str(lines[-1])


def test_relative_paths_are_those_of_the_start_of_an_epoch(root, monkeypatch, tmp_path):
    shutil.copytree(root, tmp_path / "photos")
    monkeypatch.chdir(tmp_path / "photos")
    dataset = Usual(root, TRANSFORMS["evaluation"])
    dataset.paths = [str(file.relative_to(root)) for file in dataset.files]
    expected = list(TorchLoader(dataset, batch_size=1))
    batches = iter(DataLoader(dataset, batch_size=1, num_workers=1))
    first = next(batches)
    monkeypatch.chdir(tmp_path)
    same([first, *batches], expected)
