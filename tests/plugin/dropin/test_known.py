"""Sources compared with ``dataset[index]`` of torchvision's datasets, with tiny files in their order on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from dalify.plugin.pytorch import DataLoader, register_dataset
from dalify.plugin.pytorch.dropin.datasets import find_sources, locate
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError
from dalify.plugin.pytorch.dropin.registration import DATASETS
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import TorchLoader, same

transforms = import_torchvision("torchvision.transforms")
datasets = import_torchvision("torchvision.datasets")
StandardTransform = import_torchvision("torchvision.datasets.vision").StandardTransform

TO_TENSOR = transforms.Compose([transforms.RandomCrop(20), transforms.ToTensor()])
COUNT = 3


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    root = tmp_path_factory.mktemp("files")
    generator = np.random.default_rng(0)
    for number in range(COUNT):
        pixels = generator.integers(0, 256, (30 + number, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / f"{number}.jpg")
        Image.fromarray(pixels[..., 0] % 5).save(root / f"{number}.png")
    return sorted(root.glob("*.jpg"))


def noise(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


def make(kind: Any, transform: Any = TO_TENSOR, **attributes: Any) -> Any:
    """Create a dataset of torchvision without its constructor, which needs the complete data."""
    dataset = kind.__new__(kind)
    dataset.transform, dataset.target_transform = transform, None
    dataset.transforms = StandardTransform(transform, None) if transform else None
    dataset.loader = datasets.folder.default_loader
    for name, value in attributes.items():
        setattr(dataset, name, value)
    return dataset


def pairs(files: list[Path]) -> list[tuple[str, int]]:
    return [(str(file), number) for number, file in enumerate(files)]


LABELS = [4, 0, 2]
PAIRS = {
    "ImageFolder": "samples",
    "EuroSAT": "samples",
    "StanfordCars": "_samples",
    "Imagenette": "_samples",
    "RenderedSST2": "_samples",
    "GTSRB": "_samples",
    "Places365": "imgs",
}
LISTS = ["Food101", "Flowers102", "FGVCAircraft", "DTD", "SUN397", "CLEVRClassification"]


ARRAYS = {
    "CIFAR100": {"data": noise(COUNT, 32, 32, 3), "targets": LABELS},
    "KMNIST": {"data": torch.from_numpy(noise(COUNT, 28, 28)), "targets": torch.tensor(LABELS)},
    "EMNIST": {"data": torch.from_numpy(noise(COUNT, 28, 28)), "targets": torch.tensor(LABELS)},
    "QMNIST": {"data": torch.from_numpy(noise(COUNT, 28, 28)), "targets": torch.tensor([LABELS] * COUNT), "compat": 1},
    "SVHN": {"data": noise(COUNT, 3, 32, 32), "labels": np.array(LABELS, np.uint8)},
    "STL10": {"data": noise(COUNT, 3, 96, 96), "labels": np.array(LABELS, np.int64)},
    "USPS": {"data": noise(COUNT, 28, 28), "targets": LABELS},
    "SEMEION": {"data": noise(COUNT, 28, 28), "labels": np.array(LABELS)},
}


def beside(dataset: Any) -> None:
    """Compare all samples, and the number of used random numbers."""
    sources = find_sources(dataset)
    for index in (*range(COUNT), -1):
        torch.manual_seed(index)
        expected = dataset[index]
        draws = TorchDraws(torch.Generator().manual_seed(index))
        source, place = locate(sources, dataset, index)
        picture, label = source.read(place, draws)
        found = source.plan.sample(picture, draws)
        assert torch.equal(found, expected[0])
        assert type(label) is type(expected[1])
        if isinstance(label, Image.Image):
            label, expected = np.asarray(label).tolist(), (None, np.asarray(expected[1]).tolist())
        assert label == expected[1]
        assert torch.equal(draws.generator.get_state(), torch.get_rng_state())
        image, again = source.open(place)
        image.close()
        if isinstance(again, Image.Image):
            again.close()
        else:
            assert again == label
    with pytest.raises(IndexError):
        locate(sources, dataset, COUNT)[0].read(COUNT, TorchDraws(torch.default_generator))


@pytest.mark.parametrize("name", PAIRS)
def test_paths_with_labels(files, name):
    beside(make(getattr(datasets, name), **{PAIRS[name]: pairs(files)}))


@pytest.mark.parametrize("name", LISTS)
def test_paths_and_labels(files, name):
    beside(make(getattr(datasets, name), _image_files=files, _labels=LABELS))


def test_faces(files):
    dataset = make(datasets.LFWPeople, data=[str(file) for file in files], targets=LABELS)
    dataset._loader = datasets.folder.default_loader
    beside(dataset)


@pytest.mark.parametrize("kinds", [["category"], ["binary-category", "category"], ["segmentation"], []])
def test_pets(files, kinds):
    masks = [file.with_suffix(".png") for file in files]
    attributes = {"_images": files, "_labels": LABELS, "_bin_labels": [1, 0, 1], "_segs": masks, "_target_types": kinds}
    beside(make(datasets.OxfordIIITPet, **attributes))


@pytest.mark.parametrize("kinds", [["full"], ["kingdom", "full"]])
def test_species(files, kinds):
    index = [(number % 2, file.name) for number, file in enumerate(files)]
    root, folder = str(files[0].parent.parent), files[0].parent.name
    attributes = {"index": index, "root": root, "all_categories": [folder] * 2, "target_type": kinds}
    beside(make(datasets.INaturalist, **attributes, categories_map=[{"kingdom": 5}, {"kingdom": 6}]))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> Path:
    """Return a tree in which the second image is gray, and the third has a palette."""
    root = tmp_path_factory.mktemp("mixed")
    for folder in ("101_ObjectCategories/x", "256_ObjectCategories/x", "celeba/img_align_celeba"):
        (root / folder).mkdir(parents=True)
        for number, mode in enumerate(("RGB", "L", "CMYK")):
            image = Image.fromarray(noise(30, 40, 3)).convert(mode)
            for name in (f"image_{number:04d}.jpg", f"001_{number:04d}.jpg", f"{number}.jpg"):
                image.save(root / folder / name)
    return root


@pytest.mark.parametrize("name", ["Caltech101", "Caltech256"])
def test_images_as_they_are(mixed, name):
    pytest.importorskip("scipy.io")
    attributes = {"root": str(mixed), "y": [0] * COUNT, "index": list(range(COUNT)), "categories": ["x"]}
    dataset = make(getattr(datasets, name), **attributes, target_type=["category"])
    beside(dataset)
    dataset.transform = transforms.Compose([transforms.RandomChoice([transforms.RandomInvert()]), TO_TENSOR])
    with pytest.raises(NotRecognizedError, match="not all RGB"):
        find_sources(dataset)


@pytest.mark.parametrize("kinds", [["identity"], ["identity", "identity"], []])
def test_celebrities(mixed, kinds):
    names = [f"{number}.jpg" for number in range(COUNT)]
    attributes = {"root": str(mixed), "base_folder": "celeba", "filename": names, "target_type": kinds}
    beside(make(datasets.CelebA, **attributes, identity=torch.arange(COUNT)[:, None], attr=[0] * COUNT))


def test_species_as_they_are(mixed):
    index = [(0, f"{number}.jpg") for number in range(COUNT)]
    attributes = {"index": index, "root": str(mixed), "all_categories": ["celeba/img_align_celeba"]}
    beside(make(datasets.INaturalist, **attributes, loader=None, target_type=["full"], categories_map=[{}]))


class Annotations:
    """The members of pycocotools' COCO that datasets use."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def loadImgs(self, number: int) -> list[dict[str, Any]]:  # noqa: N802
        return [{"file_name": self.files[number].name}]

    def getAnnIds(self, number: int) -> list[int]:  # noqa: N802
        return [number, 7]

    def loadAnns(self, numbers: list[int]) -> list[dict[str, Any]]:  # noqa: N802
        return [{"bbox": [1, 2, 3, number], "caption": f"no {number}"} for number in numbers]


@pytest.mark.parametrize("name", ["CocoDetection", "CocoCaptions"])
def test_coco(files, name):
    dataset = make(getattr(datasets, name), ids=[0, 2, 1], root=files[0].parent, coco=Annotations(files))
    beside(dataset)
    assert find_sources(dataset)[id(dataset)].slow_labels
    with pytest.raises(ValueError, match="must be of type integer"):
        find_sources(dataset)[id(dataset)].read("1", TorchDraws(torch.default_generator))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 1])
def test_detection_in_a_loader(files, workers):
    dataset = make(datasets.CocoDetection, ids=[0, 2, 1], root=files[0].parent, coco=Annotations(files))
    found = []
    for kind in (DataLoader, TorchLoader):
        torch.manual_seed(1)
        found.append(list(kind(dataset, batch_size=2, shuffle=True, collate_fn=list, num_workers=workers)))
    same(*found)
    assert str(DataLoader(dataset).explain().mode) == "hybrid"


@pytest.mark.parametrize("name", ["SVHN", "STL10", "QMNIST"])
def test_batches_of_arrays_in_other_orders(name):
    dataset = make(getattr(datasets, name), **ARRAYS[name])
    found = []
    for kind in (DataLoader, TorchLoader):
        torch.manual_seed(1)
        found.append(list(kind(dataset, batch_size=2, shuffle=True)))
    same(*found)
    assert str(DataLoader(dataset).explain().mode) == "full"


def test_voc(files, tmp_path):
    annotations = []
    for number in range(COUNT):
        file = tmp_path / f"{number}.xml"
        file.write_text(f"<annotation><object><name>cat</name><n>{number}</n></object></annotation>")
        annotations.append(str(file))
    beside(make(datasets.VOCDetection, images=files, targets=annotations))
    beside(make(datasets.VOCSegmentation, images=files, targets=[file.with_suffix(".png") for file in files]))


def test_cityscapes(files, tmp_path):
    polygon = tmp_path / "polygon.json"
    polygon.write_text('{"objects": [1, 2]}')
    masks = [file.with_suffix(".png") for file in files]
    beside(make(datasets.Cityscapes, images=files, targets=[[polygon]] * COUNT, target_type=["polygon"]))
    beside(make(datasets.Cityscapes, images=files, targets=[[mask] for mask in masks], target_type=["semantic"]))


@pytest.mark.parametrize("name", ARRAYS)
def test_images_in_memory(name):
    beside(make(getattr(datasets, name), **ARRAYS[name]))


class Other(torch.utils.data.Dataset):
    """A dataset that is supported only after its registration."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.transform = TO_TENSOR

    def __len__(self) -> int:
        return len(self.files)

    def opened(self, index: int) -> Image.Image:
        return Image.open(self.files[index]).convert("RGB")

    def __getitem__(self, index: int) -> tuple[Any, str]:
        return self.transform(self.opened(index)), self.files[index].name


class OtherArrays(Other):
    def opened(self, index: int) -> Image.Image:
        return Image.fromarray(noise(COUNT, 30, 30, 3)[index])


@pytest.fixture
def registry() -> Iterator[None]:
    kept = dict(DATASETS)
    yield
    DATASETS.clear()
    DATASETS.update(kept)


@pytest.mark.usefixtures("registry")
def test_registered_datasets(files):
    with pytest.raises(NotRecognizedError, match=r"Other, which is not supported"):
        find_sources(Other(files))
    names = [file.name for file in files]
    register_dataset(Other)(lambda dataset: (dataset.files, names))
    beside(Other(files))
    register_dataset(OtherArrays)(lambda dataset: (noise(COUNT, 30, 30, 3), names))
    beside(OtherArrays(files))
    register_dataset(OtherArrays)(lambda dataset: (noise(COUNT, 30, 30, 3), names[:2]))
    with pytest.raises(ValueError, match="3 images and 2 labels"):
        find_sources(OtherArrays(files))
    register_dataset(OtherArrays)(lambda dataset: (noise(COUNT, 30, 30, 4), names))
    with pytest.raises(ValueError, match=r"uint8 \[3, 30, 30, 4\]"):
        find_sources(OtherArrays(files))
    register_dataset(OtherArrays)(lambda dataset: (noise(COUNT, 30, 30), names))
    with pytest.raises(ValueError, match=r"uint8 \[3, 30, 30\], but images in memory are"):
        find_sources(OtherArrays(files))
    register_dataset(OtherArrays)(lambda dataset: names)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"must return a tuple of images and labels; got \['"):
        find_sources(OtherArrays(files))
    register_dataset(Other)(lambda dataset: (dataset.files, set(names)))
    with pytest.raises(ValueError, match="must return sequences; its labels are of type set"):
        find_sources(Other(files))
    register_dataset(Other)(lambda dataset: (iter(dataset.files), names))
    with pytest.raises(ValueError, match="must return sequences; its images are of type list_iterator"):
        find_sources(Other(files))


class OwnImages(datasets.CocoDetection):
    def _load_image(self, number: int) -> Image.Image:
        return Image.new("RGB", (30, 30))


def joint(image: Any, label: Any) -> tuple[Any, Any]:
    return image, label


@pytest.mark.parametrize(
    ("build", "reason", "code"),
    [
        (lambda: make(datasets.ImageFolder, samples=[], loader=Image.open), "its own loader", "DS04"),
        (lambda: make(datasets.Places365, imgs=[], transforms=joint), "joint transforms of image and label", "TF03"),
        (lambda: make(OwnImages, ids=[], coco=None), "defines its own _load_image", "DS03"),
        (lambda: make(datasets.STL10, data=noise(2, 3, 96, 96), labels=None), "not one integer", "DS02"),
        (lambda: make(datasets.CIFAR10, data=noise(2, 4, 4, 3), targets=[np.int32(1), 2]), "not one integer", "DS02"),
        (lambda: make(datasets.CIFAR10, data=np.zeros((2, 4, 4, 3)), targets=[1, 2]), "not uint8", "DS02"),
        (lambda: make(datasets.Omniglot, loader=None), "not supported", "DS02"),
        (lambda: make(datasets.Caltech101, target_type=["annotation"]), "annotations", "DS02"),
    ],
)
def test_unknown_datasets(build, reason, code):
    with pytest.raises(NotRecognizedError, match=reason) as caught:
        find_sources(build())
    assert caught.value.reason.code == code


def test_transforms_that_are_not_there(files):
    dataset = make(datasets.Places365, None, imgs=pairs(files))
    source = find_sources(dataset)[id(dataset)]
    assert not source.plan.is_complete
    assert source.target_transform is None
