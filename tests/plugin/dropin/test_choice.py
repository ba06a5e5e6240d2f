"""The selected mode of a loader, the message of each reason, and the log."""

from __future__ import annotations

import doctest
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import PIL.Image
import PIL.ImageOps
import pytest
import torch

from dalify.base.errors import NotAcceleratedError
from dalify.plugin.pytorch import DataLoader, accelerate, patch, unpatch
from dalify.plugin.pytorch.dropin import accelerating, loader, lowering, registration
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

KNOWN = transforms.Compose([transforms.RandomCrop(24), transforms.ToTensor()])


class Stream(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(range(3))


class Numbers(torch.utils.data.Dataset[int]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        return 2 * index


class OtherSubset(torch.utils.data.Subset[Any]):
    def __getitems__(self, indices: Any) -> Any:
        return super().__getitems__(indices)


def own_loader(root: Any) -> Any:
    return datasets.ImageFolder(root, KNOWN, loader=PIL.Image.open)


KNOWN_DATASETS = (
    "Hint: Torchvision's datasets of images with one label, subclasses that keep their __getitem__, and datasets whose "
    "__getitem__ opens an image and passes it to self.transform, or only returns rows of arrays, are "
    "supported; add others with dalify.plugin.pytorch.register_dataset."
)
MODULE = Numbers.__module__
# name: dataset of a folder, arguments of the loader, and what is logged
MESSAGES: dict[str, tuple[Callable[[Any], Any], dict[str, Any], str]] = {
    "iterable": (
        lambda root: Stream(),
        {},
        "[DS01] the dataset is iterable. Hint: Datasets with __getitem__ are supported.",
    ),
    "unknown": (
        lambda root: Numbers(),
        {},
        f"[DS02] the dataset is {MODULE}.Numbers, which is not supported. {KNOWN_DATASETS}",
    ),
    "own __getitems__": (
        lambda root: OtherSubset(cifar(KNOWN), [0]),
        {},
        "[DS03] OtherSubset defines its own __getitems__.",
    ),
    "own loader": (
        own_loader,
        {},
        "[DS04] ImageFolder has its own loader. Hint: dataset.transform = lower(dataset.transform), of "
        "dalify.plugin.pytorch, makes its transforms faster.",
    ),
    "images": (
        lambda root: cifar(None),
        {"collate_fn": len},
        "[TF01] the dataset has no transform, and Pillow images cannot be collated. Hint: Add "
        "transforms.ToTensor() to the dataset.",
    ),
    "unknown transforms": (
        lambda root: cifar(transforms.Compose([Brighten(), transforms.Lambda(len)])),
        {"collate_fn": len},
        "[TF01] transform[0] is tests.plugin.dropin.torch_reference.Brighten, which is not supported. Hint: Most "
        "transforms of torchvision.transforms and v2 that return one image for one image are supported. If yours calls "
        "such transforms, lower(transform), of dalify.plugin.pytorch, makes them faster.",
    ),
    "a timeout without workers": (
        lambda root: cifar(KNOWN),
        {"timeout": 1},
        "[LO01] timeout is set without workers. Hint: Omit timeout, or set num_workers.",
    ),
}  # fmt: skip


def reported(caplog: Any) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "dalify"]


@pytest.mark.parametrize("name", MESSAGES)
def test_what_is_logged_once(tmp_path, name, caplog):
    make, options, message = MESSAGES[name]
    made = DataLoader(make(photos(tmp_path)), **options)
    report = made.explain()
    assert report.mode == "torch"
    assert not report.is_accelerated
    assert message.startswith(f"[{report.code}] {report.reason}.")
    with caplog.at_level(logging.WARNING, logger="dalify"):
        for _ in range(2):
            try:
                iter(made)
            except AssertionError:
                assert name == "a timeout without workers"  # torch's
    assert reported(caplog) == [f"DataLoader: torch's own loader runs: {message}"]


def test_explanation_of_a_hybrid():
    dataset = cifar(transforms.Compose([transforms.RandomCrop(24), Brighten(), transforms.ToTensor()]), 5, str)
    made: DataLoader[Any] = DataLoader(dataset, num_workers=2, worker_init_fn=print)
    assert str(made.explain()).splitlines() == [
        "CIFAR10 of 5 images in memory: RandomCrop by dalify, then Brighten in Python, then ToTensor by dalify",
        "[TF01] transform[1] is tests.plugin.dropin.torch_reference.Brighten, which is not supported",
        "hint: Most transforms of torchvision.transforms and v2 that return one image for one image are supported. If "
        "yours calls such transforms, lower(transform), of dalify.plugin.pytorch, makes them faster.",
        "[TF02] the dataset has a target_transform",
        "hint: Convert the labels once, in the dataset, so that threads can compute the batches.",
        "[WI01] worker_init_fn is set, which must be called in worker processes",
        "hint: Omit worker_init_fn to compute the batches in threads; torch.manual_seed or generator= sets the seeds.",
        "2 worker processes of torch, with reused shared memory for batches",
    ]


def test_fallbacks_are_logged_unless_disabled(caplog, monkeypatch):
    with caplog.at_level(logging.WARNING, logger="dalify"):
        list(DataLoader(Numbers(), on_fallback="silent"))
        list(DataLoader(cifar(KNOWN, 3), backend="torch"))
        monkeypatch.setenv("DALIFY_DATALOADER_FALLBACK", "silent")
        list(DataLoader(Numbers()))
    assert reported(caplog) == []
    monkeypatch.delenv("DALIFY_DATALOADER_FALLBACK")
    for options in ({"on_fallback": "raise"}, {"backend": "dalify"}):
        with pytest.raises(NotAcceleratedError, match=r"\[DS02\] the dataset is .*Numbers"):
            iter(DataLoader(Numbers(), **options))
    monkeypatch.setenv("DALIFY_DATALOADER_FALLBACK", "raise")
    with pytest.raises(NotAcceleratedError):
        iter(DataLoader(Numbers()))
    monkeypatch.setenv("DALIFY_DATALOADER_BACKEND", "torch")
    assert DataLoader(cifar(KNOWN)).explain().code == "LO00"
    monkeypatch.setenv("DALIFY_DATALOADER_BACKEND", "tensorflow")
    with pytest.raises(ValueError, match="DALIFY_DATALOADER_BACKEND must be one of auto, dalify, torch"):
        DataLoader(cifar(KNOWN))


def test_every_loader_of_torch():
    made = TorchLoader(cifar(KNOWN, 7), batch_size=2, shuffle=True)

    def run() -> Any:
        seed()
        return [type(iter(made)).__name__, list(made)]

    expected = run()
    patch()
    try:
        found = run()
        hybrid = TorchLoader(cifar(transforms.Compose([*KNOWN.transforms[:1], Brighten(), KNOWN]), 3))
        assert len(list(hybrid)) == 3
    finally:
        unpatch()
    same(found[1], expected[1])
    assert (found[0], expected[0]) == ("CallerIterator", "_SingleProcessDataLoaderIter")
    same(run(), expected)


class Counted(TorchLoader):  # type: ignore[type-arg]
    """A loader of a user."""

    def __init__(self, *arguments: Any, passes: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.passes = passes

    def __iter__(self) -> Any:
        self.passes += 1
        return super().__iter__()


class OtherIterator(TorchLoader):  # type: ignore[type-arg]
    def _get_iterator(self) -> Any:
        return super()._get_iterator()


def test_loaders_that_exist():
    made = Counted(cifar(KNOWN, 6), batch_size=2, shuffle=True, generator=torch.Generator(), passes=3)
    faster = accelerate(made)
    assert isinstance(faster, Counted)
    assert faster.explain().mode == "full"
    assert (faster.sampler, faster.generator) == (made.sampler, made.generator)
    made.generator.manual_seed(0)
    seed()
    ours = list(faster)
    made.generator.manual_seed(0)
    seed()
    same(ours, list(made))
    assert (faster.passes, made.passes) == (4, 4)
    assert accelerate(faster) is faster
    assert accelerate(accelerate(TorchLoader(Numbers()))).explain().code == "DS02"
    with pytest.raises(NotAcceleratedError, match="OtherIterator overrides the creation of iterators"):
        accelerate(OtherIterator(Numbers()))
    with pytest.raises(TypeError, match=r"requires a torch\.utils\.data\.DataLoader; got list"):
        accelerate([1, 2])


@pytest.mark.parametrize("module", [accelerating, loader, lowering, registration], ids=lambda module: module.__name__)
def test_examples(tmp_path, module):
    dataset = datasets.ImageFolder(
        photos(tmp_path, 5),
        transforms.Compose([transforms.Resize(30), transforms.CenterCrop(24), transforms.ToTensor()]),
    )
    names = {"dataset": dataset, "transforms": transforms, "torch": torch, "PIL": PIL}
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner()
    tables = [dict(registration.TRANSFORMS), dict(registration.DATASETS)]
    for example in finder.find(module, extraglobs=names):
        runner.run(example)
    for table, old in zip((registration.TRANSFORMS, registration.DATASETS), tables, strict=True):
        table.clear()
        table.update(old)
    assert runner.tries >= 2
    assert runner.failures == 0


WITHOUT_TORCHVISION = """
import sys
sys.modules["torchvision"] = None  # importing it fails
import numpy, torch
from PIL import Image
from dalify.plugin.pytorch import DataLoader, lower, register_dataset, register_transform

class Invert:
    def __call__(self, image):
        return Image.fromarray(255 - numpy.asarray(image))

class Images:
    pixels = numpy.arange(4 * 8 * 8 * 3, dtype=numpy.uint8).reshape(4, 8, 8, 3)
    def __init__(self, transform):
        self.transform = transform
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.pixels[index])), index

def as_tensor(image):
    return torch.from_numpy(numpy.asarray(image).copy())

class Both:
    def __call__(self, image):
        return as_tensor(Invert()(image))

register_dataset(Images)(lambda dataset: (dataset.pixels, list(range(4))))
register_transform(Invert)(lambda transform, pixels, generator: 255 - pixels)

for dataset, mode in ((Images(Both()), "torch"), (torch.utils.data.TensorDataset(torch.arange(4)), "full")):
    loader = DataLoader(dataset, batch_size=2, on_fallback="silent")
    assert loader.explain().mode == mode, loader.explain()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=2))
    for one, other in zip(loader, expected, strict=True):
        assert all(torch.equal(left, right) for left, right in zip(one, other, strict=True))
image = Image.fromarray(Images.pixels[0])
assert torch.equal(lower(Both())(image), Both()(image))
assert lower(Invert())(image).tobytes() == Invert()(image).tobytes()
assert not any(name.startswith("torchvision.") for name in sys.modules)
"""


def test_without_torchvision():
    subprocess.run([sys.executable, "-c", WITHOUT_TORCHVISION], check=True, timeout=280)
