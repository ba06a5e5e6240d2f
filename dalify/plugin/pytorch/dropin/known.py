"""Creates sources from torchvision's datasets.

A dataset is supported if ``dataset[index]`` calls the method of a supported class of torchvision. So subclasses with
other files or labels are supported, and subclasses that override reading are not.

Supported are ImageFolder and DatasetFolder (and with them ImageNet, EuroSAT, Country211 and all that derive from them),
Food101, Flowers102, FGVCAircraft, DTD, SUN397, CLEVRClassification, StanfordCars, GTSRB, Imagenette, RenderedSST2,
Places365, OxfordIIITPet, LFWPeople, INaturalist, CelebA, Caltech101, Caltech256, CocoDetection, CocoCaptions,
VOCDetection, VOCSegmentation and Cityscapes; in memory CIFAR10, CIFAR100, MNIST, FashionMNIST, KMNIST, EMNIST, QMNIST,
SVHN, STL10, USPS and SEMEION.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from dalify.base.wording import counted
from dalify.plugin.pytorch.dropin.getitem import NotEvaluatedError
from dalify.plugin.pytorch.dropin.getitem_source import GetitemSource
from dalify.plugin.pytorch.dropin.hugging_face import HuggingFaceSource, is_hugging_face
from dalify.plugin.pytorch.dropin.image_getitem import separate_image
from dalify.plugin.pytorch.dropin.image_symbols import FindImages
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError
from dalify.plugin.pytorch.dropin.registration import DATASETS
from dalify.plugin.pytorch.dropin.sources import ArraySource, FileSource, Lookup, Source

_FOLDERS = "torchvision.datasets.folder"
_VISION = "torchvision.datasets.vision"


class _Files(NamedTuple):
    """Files and labels of a dataset class.

    Attributes:
        lookup: returns, for a dataset, the function from an index to path and label.
        loader: attribute with the function that opens images; empty if the class opens them itself.
        is_joint: True if the class calls `transforms` with image and label.
        slow_labels: True if labels are read from other files, or computed by slow Python code.
        is_rgb: True if opened images are converted to RGB.
        methods: methods of the class that it calls to read a sample.
    """

    lookup: Callable[[Any], Lookup]
    loader: str = "loader"
    is_joint: bool = False
    slow_labels: bool = False
    is_rgb: bool = True
    methods: tuple[str, ...] = ()


def _pairs(name: str) -> Callable[[Any], Lookup]:
    return lambda dataset: lambda index: tuple(getattr(dataset, name)[index])


def _lists(paths: str, labels: str) -> Callable[[Any], Lookup]:
    return lambda dataset: lambda index: (getattr(dataset, paths)[index], getattr(dataset, labels)[index])


def _one_or_all(labels: list[Any]) -> Any:
    """Return the only label, or a tuple of several labels."""
    return tuple(labels) if len(labels) > 1 else labels[0]


def _pet(dataset: Any) -> Lookup:
    read: dict[str, Callable[[Any], Any]] = {
        "category": lambda index: dataset._labels[index],
        "binary-category": lambda index: dataset._bin_labels[index],
        "segmentation": lambda index: Image.open(dataset._segs[index]),
    }
    return lambda index: (
        dataset._images[index],
        _one_or_all([read[kind](index) for kind in dataset._target_types] or [None]),
    )


def _naturalist(dataset: Any) -> Lookup:
    def lookup(index: Any) -> tuple[Any, Any]:
        category, name = dataset.index[index]
        labels = {**dataset.categories_map[category], "full": category}
        path = Path(dataset.root) / dataset.all_categories[category] / name
        return path, _one_or_all([labels[kind] for kind in dataset.target_type])

    return lookup


def _caltech(folder: str, pattern: str) -> Callable[[Any], Lookup]:
    def lookup_of(dataset: Any) -> Lookup:
        if getattr(dataset, "target_type", ["category"]) != ["category"]:
            raise NotRecognizedError(f"{type(dataset).__name__} returns annotations")

        def lookup(index: Any) -> tuple[Any, Any]:
            label = dataset.y[index]
            name = pattern.format(category=label + 1, number=dataset.index[index])
            return Path(dataset.root) / folder / dataset.categories[label] / name, label

        return lookup

    return lookup_of


def _faces(dataset: Any) -> Lookup:
    read: dict[str, Callable[[Any], Any]] = {
        "attr": lambda index: dataset.attr[index, :],
        "identity": lambda index: dataset.identity[index, 0],
        "bbox": lambda index: dataset.bbox[index, :],
        "landmarks": lambda index: dataset.landmarks_align[index, :],
    }

    def lookup(index: Any) -> tuple[Any, Any]:
        path = Path(dataset.root) / dataset.base_folder / "img_align_celeba" / dataset.filename[index]
        return path, _one_or_all([read[kind](index) for kind in dataset.target_type] or [None])

    return lookup


def _coco(dataset: Any) -> Lookup:
    def lookup(index: Any) -> tuple[Any, Any]:
        if not isinstance(index, int):
            raise ValueError(f"Index must be of type integer, got {type(index)} instead.")
        number = dataset.ids[index]
        path = Path(dataset.root) / dataset.coco.loadImgs(number)[0]["file_name"]
        return path, dataset._load_target(number)

    return lookup


def _voc_boxes(dataset: Any) -> Lookup:
    parse = sys.modules["torchvision.datasets.voc"].ET_parse
    return lambda index: (dataset.images[index], dataset.parse_voc_xml(parse(dataset.annotations[index]).getroot()))


def _voc_masks(dataset: Any) -> Lookup:
    return lambda index: (dataset.images[index], Image.open(dataset.masks[index]))


def _cityscapes(dataset: Any) -> Lookup:
    def read(path: Any, kind: str) -> Any:
        return dataset._load_json(path) if kind == "polygon" else Image.open(path)

    return lambda index: (
        dataset.images[index],
        _one_or_all([read(dataset.targets[index][number], kind) for number, kind in enumerate(dataset.target_type)]),
    )


# By module of torchvision.datasets and the class that defines __getitem__.
_FILES: dict[tuple[str, str], _Files] = {
    ("folder", "DatasetFolder"): _Files(_pairs("samples")),
    ("stanford_cars", "StanfordCars"): _Files(_pairs("_samples")),
    ("imagenette", "Imagenette"): _Files(_pairs("_samples")),
    ("rendered_sst2", "RenderedSST2"): _Files(_pairs("_samples")),
    ("gtsrb", "GTSRB"): _Files(_pairs("_samples"), loader=""),
    ("places365", "Places365"): _Files(_pairs("imgs"), is_joint=True),
    ("food101", "Food101"): _Files(_lists("_image_files", "_labels")),
    ("flowers102", "Flowers102"): _Files(_lists("_image_files", "_labels")),
    ("fgvc_aircraft", "FGVCAircraft"): _Files(_lists("_image_files", "_labels")),
    ("dtd", "DTD"): _Files(_lists("_image_files", "_labels")),
    ("sun397", "SUN397"): _Files(_lists("_image_files", "_labels")),
    ("clevr", "CLEVRClassification"): _Files(_lists("_image_files", "_labels")),
    ("lfw", "LFWPeople"): _Files(_lists("data", "targets"), loader="_loader"),
    ("oxford_iiit_pet", "OxfordIIITPet"): _Files(_pet, loader="", is_joint=True),
    ("inaturalist", "INaturalist"): _Files(_naturalist),
    ("celeba", "CelebA"): _Files(_faces, "", is_rgb=False),
    ("caltech", "Caltech101"): _Files(_caltech("101_ObjectCategories", "image_{number:04d}.jpg"), "", is_rgb=False),
    ("caltech", "Caltech256"): _Files(
        _caltech("256_ObjectCategories", "{category:03d}_{number:04d}.jpg"), "", is_rgb=False
    ),
    ("coco", "CocoDetection"): _Files(_coco, "", is_joint=True, slow_labels=True, methods=("_load_image",)),
    ("voc", "VOCDetection"): _Files(_voc_boxes, "", is_joint=True, slow_labels=True),
    ("voc", "VOCSegmentation"): _Files(_voc_masks, "", is_joint=True, slow_labels=True),
    ("cityscapes", "Cityscapes"): _Files(_cityscapes, "", is_joint=True, slow_labels=True),
}


def _gray(images: Any) -> Any:
    return None if images is None else np.asarray(images)[..., None]


def _channels_last(images: Any) -> Any:
    return images.transpose(0, 2, 3, 1) if isinstance(images, np.ndarray) and images.ndim == 4 else images


def _of_tensor(images: Any) -> Any:
    return _gray(images.numpy()) if isinstance(images, torch.Tensor) else None


def _short_labels(dataset: Any) -> Any:
    return dataset.targets[:, 0] if dataset.compat and isinstance(dataset.targets, torch.Tensor) else None


def _python_integers(labels: Any) -> Any:
    """Return the labels if all are Python integers, otherwise None, because they are collated to other dtypes."""
    return labels if all(type(label) is int for label in labels) else None


_Parts = Callable[[Any], tuple[Any, Any]]
_ARRAYS: dict[tuple[str, str], _Parts] = {
    ("cifar", "CIFAR10"): lambda dataset: (dataset.data, _python_integers(dataset.targets)),
    ("mnist", "MNIST"): lambda dataset: (_of_tensor(dataset.data), dataset.targets),
    ("mnist", "QMNIST"): lambda dataset: (_of_tensor(dataset.data), _short_labels(dataset)),
    ("svhn", "SVHN"): lambda dataset: (_channels_last(dataset.data), dataset.labels),
    ("stl10", "STL10"): lambda dataset: (_channels_last(dataset.data), dataset.labels),
    ("usps", "USPS"): lambda dataset: (_gray(dataset.data), dataset.targets),
    ("semeion", "SEMEION"): lambda dataset: (_gray(dataset.data), dataset.labels),
}


def source_of(dataset: Any, find_images: FindImages) -> Source:
    """Return the source of a dataset with its own samples.

    Args:
        dataset: the dataset.
        find_images: returns the images of another dataset that returns samples to this one.

    Raises:
        NotRecognizedError: the dataset is not supported.
    """
    if type(dataset) in DATASETS:
        return _registered(dataset)
    if is_hugging_face(dataset):
        return HuggingFaceSource(dataset)
    source = known_source(dataset, getattr(type(dataset), "__getitem__", None))
    if source is not None:
        return source
    try:
        return GetitemSource(dataset, separate_image(dataset, find_images))
    except NotEvaluatedError as error:
        text = str(error)
    raise NotRecognizedError(
        f"the dataset is {type(dataset).__module__}.{type(dataset).__name__}, which is not supported{text}",
        "Torchvision's datasets of images with one label, subclasses that keep their __getitem__, and datasets whose "
        "__getitem__ opens an image and passes it to self.transform, or only returns rows of arrays, are supported; "
        "add others with dalify.plugin.pytorch.register_dataset.",
        "DS02",
    )


def known_source(dataset: Any, reads: Any) -> Source | None:
    """Return the source of a dataset that a method of torchvision's datasets reads; None for other methods.

    Args:
        dataset: the dataset.
        reads: the ``__getitem__`` that reads its samples.
    """
    for module, name in (*_FILES, *_ARRAYS):
        kind = getattr(sys.modules.get(f"torchvision.datasets.{module}"), name, None)
        if kind is not None and reads is kind.__getitem__:
            if (module, name) in _FILES:
                return _file_source(dataset, kind, _FILES[module, name])
            return _array_source(dataset, *_ARRAYS[module, name](dataset))
    return None


def _file_source(dataset: Any, kind: Any, files: _Files) -> Source:
    name = type(dataset).__name__
    for method in files.methods:
        if getattr(type(dataset), method) is not getattr(kind, method):
            raise NotRecognizedError(f"{name} defines its own {method}", code="DS03")
    loader = getattr(dataset, files.loader) if files.loader else None
    if loader is not None:
        folders = sys.modules[_FOLDERS]
        if loader not in (folders.default_loader, folders.pil_loader):
            raise NotRecognizedError(f"{name} has its own loader", code="DS04")
        if loader is folders.default_loader and sys.modules["torchvision"].get_image_backend() != "PIL":
            hint = "torchvision.set_image_backend('PIL')"
            raise NotRecognizedError("torchvision's image backend is not PIL", hint, "DS05")
    transforms = _separate_transforms(dataset) if files.is_joint else (dataset.transform, dataset.target_transform)
    is_rgb = files.is_rgb and not (files.loader and loader is None)
    lookup = files.lookup(dataset)
    return FileSource(dataset, transforms, len(dataset), lookup, slow_labels=files.slow_labels, is_rgb=is_rgb)


def _separate_transforms(dataset: Any) -> tuple[Any, Any]:
    """Return the transforms of image and label of a dataset that calls one transform for both."""
    both = dataset.transforms
    if both is None:
        return None, None
    if type(both) is not sys.modules[_VISION].StandardTransform:
        raise NotRecognizedError(
            f"{type(dataset).__name__} has joint transforms of image and label",
            "Use transform= and target_transform= if image and label need not share random numbers. A pipeline of "
            "dalify can give both the same transforms.",
            "TF03",
        )
    return both.transform, both.target_transform


def _array_source(dataset: Any, images: Any, labels: Any) -> Source:
    name = type(dataset).__name__
    if not _are_images(images) or 0 in images.shape[1:]:
        raise NotRecognizedError(f"the data of {name} are not uint8 images")
    numbers = np.asarray(labels)
    if numbers.shape != (len(images),) or (len(images) and numbers.dtype.kind not in "iu"):
        raise NotRecognizedError(f"the targets of {name} are not one integer per image")
    # A memoryview returns Python integers, as these datasets do, from the memory of the user's array.
    current: Any = labels if isinstance(labels, list) else memoryview(numbers)  # pyright: ignore[reportArgumentType]  # NumPy's stubs of Python 3.11
    return ArraySource(dataset, (dataset.transform, dataset.target_transform), images, current)


def _are_images(images: Any) -> bool:
    is_array = isinstance(images, np.ndarray) and images.dtype == np.uint8 and images.ndim == 4
    return is_array and images.shape[3] in (1, 3)


def _registered(dataset: Any) -> Source:
    found: Any = DATASETS[type(dataset)](dataset)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise ValueError(
            f"the function registered for {type(dataset).__name__} must return a tuple of images and labels; "
            f"got {reprlib.repr(found)}"
        )
    images, labels = found
    for name, part in (("images", images), ("labels", labels)):
        if not (hasattr(part, "__len__") and hasattr(part, "__getitem__")):
            raise ValueError(
                f"the function registered for {type(dataset).__name__} must return sequences; its {name} are of type "
                f"{type(part).__name__}, use list(...)"
            )
    if len(images) != len(labels):
        raise ValueError(
            f"the function registered for {type(dataset).__name__} returned {counted(len(images), 'image')} and "
            f"{len(labels)} labels, but each image has one label"
        )
    transforms = getattr(dataset, "transform", None), getattr(dataset, "target_transform", None)
    if not isinstance(images, np.ndarray) or images.ndim == 1:  # paths
        return FileSource(dataset, transforms, len(images), lambda index: (images[index], labels[index]))
    if not _are_images(images):
        raise ValueError(
            f"the function registered for {type(dataset).__name__} returned {images.dtype} {list(images.shape)}, but "
            "images in memory are uint8 [samples, height, width, 1 or 3]"
        )
    return ArraySource(dataset, transforms, images, labels)
