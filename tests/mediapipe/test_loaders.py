"""HabanaDataLoader and the chain of loaders compared with torch's loader."""

from __future__ import annotations

import inspect
import itertools
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, DistributedSampler, RandomSampler, Subset

from dalify.base.errors import ArgumentValueError
from dalify.mediapipe.habana_dataloader import HabanaDataLoader, falls_back
from dalify.mediapipe.loaders import (
    DataLoaderType,
    MediaApiDataLoader,
    build_data_loader,
    choose_data_loader,
)
from tests.helpers.photos import drawn_photo
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import same

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
MESSAGE = r"(?s)Failed to initialize Habana Dataloader, error: .*\nRunning with PyTorch Dataloader"


class Squares(Dataset[Any]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if index >= self.count:
            raise IndexError
        return torch.tensor(float(index)), index * index


@pytest.fixture
def folder(photo_folder: Path) -> Callable[..., Any]:
    """ImageFolder with transforms for evaluation, or for training."""
    transforms = import_torchvision("torchvision.transforms")
    datasets = import_torchvision("torchvision.datasets")
    last = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    first = {
        False: [transforms.Resize(40), transforms.CenterCrop(32)],
        True: [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip()],
    }

    def make(is_training: bool = False, *further: Any) -> Any:
        transform = transforms.Compose([*first[is_training], *further, *last])
        return datasets.ImageFolder(str(photo_folder), transform)

    return make


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 4, "drop_last": True},
        {"batch_size": 5, "pin_memory": False},
        {"batch_size": 5, "sampler": [3, 1, 2, 7, 7, 0]},
        {"batch_sampler": [[0], [3, 2, 1]]},
        {"batch_size": 3, "collate_fn": lambda samples: [len(samples), samples[0][0]]},
    ],
    ids=["drop_last", "plain", "sampler", "batch_sampler", "collate_fn"],
)
def test_batches_equal_torch(folder: Callable[..., Any], options: dict[str, Any], num_workers: int) -> None:
    loader = HabanaDataLoader(folder(), num_workers=num_workers, **options)
    assert loader.accelerated
    assert isinstance(loader, DataLoader)
    expected = DataLoader(folder(), **options)
    assert len(loader) == len(expected)
    same(list(loader), list(expected))


def test_training_draws_as_torch_does(folder: Callable[..., Any]) -> None:
    """The call of the published example: sampler, workers, pinned memory, drop_last."""

    def batches(kind: type[DataLoader]) -> Any:
        torch.manual_seed(3)
        dataset = folder(True)
        sampler = RandomSampler(dataset)
        return list(kind(dataset, batch_size=5, sampler=sampler, num_workers=0, drop_last=True))

    same(batches(HabanaDataLoader), batches(DataLoader))


def test_the_call_equals_that_of_torch(folder: Callable[..., Any]) -> None:
    """All of torch's arguments, by place and by name."""
    parameters = inspect.signature(DataLoader.__init__).parameters.values()
    known = {item.name: item.default for item in parameters if item.name not in ("self", "dataset")}
    assert HabanaDataLoader(folder(), **known).accelerated
    assert HabanaDataLoader(folder(), 4, None, [1, 2], None, 0, None, False, True).accelerated


STEPS = ["RandomResizedCrop", "RandomHorizontalFlip", "Resize", "CenterCrop"]


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
@pytest.mark.filterwarnings("ignore:This DataLoader will create 8 worker processes")
@pytest.mark.parametrize("chosen", [names for count in range(3) for names in itertools.combinations(STEPS, count)])
def test_what_gaudi_accelerates_is_accelerated(folder: Callable[..., Any], chosen: tuple[str, ...]) -> None:
    """Exactly the arguments and transforms of its list of limits."""
    transforms = import_torchvision("torchvision.transforms")
    sizes = {"RandomHorizontalFlip": {"p": 0.5}}
    first = [getattr(transforms, name)(**sizes.get(name, {"size": 32})) for name in chosen]
    dataset = folder()
    dataset.transform = transforms.Compose([*first, transforms.ToTensor(), transforms.Normalize(mean=MEAN, std=STD)])
    loader = HabanaDataLoader(
        dataset, batch_size=4, shuffle=False, batch_sampler=None, num_workers=8, collate_fn=None, pin_memory=True,
        timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, prefetch_factor=2,
        persistent_workers=False, drop_last=True,
    )  # fmt: skip
    assert loader.accelerated


def test_a_distributed_sampler_is_followed(folder: Callable[..., Any]) -> None:
    dataset = Subset(folder(), [5, 3, 9, 0, 1, 11])
    sampler = DistributedSampler(dataset, num_replicas=2, rank=1, shuffle=True)
    sampler.set_epoch(4)
    loader = HabanaDataLoader(dataset, batch_size=2, sampler=sampler)
    same(list(loader), list(DataLoader(dataset, batch_size=2, sampler=sampler)))


def test_unknown_items_are_left_to_torch(caplog: pytest.LogCaptureFixture) -> None:
    dataset = Squares(10)
    loader = HabanaDataLoader(dataset, batch_size=4)
    assert not loader.accelerated
    assert loader.fallback_reason
    same(list(loader), list(DataLoader(dataset, batch_size=4)))
    assert len(caplog.records) == 1
    assert re.fullmatch(MESSAGE, caplog.records[0].getMessage())


@pytest.mark.parametrize("text", ["False", "0", "no", "OFF"])
def test_the_fallback_can_be_switched_off(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATALOADER_FALLBACK_EN", text)
    assert not falls_back()
    with pytest.raises(ArgumentValueError, match=r"register_dataset\. Set DATALOADER_FALLBACK_EN=true") as caught:
        HabanaDataLoader(Squares(10), batch_size=4)
    assert "test_loaders.py" in str(caught.value.line)


def test_the_environment_variable_is_a_boolean(monkeypatch: pytest.MonkeyPatch) -> None:
    assert falls_back()
    monkeypatch.setenv("DATALOADER_FALLBACK_EN", "Yes")
    assert falls_back()
    monkeypatch.setenv("DATALOADER_FALLBACK_EN", "perhaps")
    with pytest.raises(ArgumentValueError, match="perhaps"):
        falls_back()


def test_mistakes_raise_the_errors_of_torch(folder: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="mutually exclusive"):
        HabanaDataLoader(folder(), shuffle=True, sampler=[1, 2])


def test_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_data_loader("MP") is DataLoaderType.Python
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    assert choose_data_loader() is DataLoaderType.MediaAPI
    monkeypatch.setenv("PT_HPU_MEDIA_PIPE", "False")
    assert choose_data_loader("DALIFY") is DataLoaderType.Aeon
    with pytest.raises(ArgumentValueError, match="HABANA"):
        choose_data_loader("GAUDI")


def test_evaluation_by_a_pipe_is_close_to_torch(folder: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for index in range(7):  # window sizes without rounding, which differs
        Image.fromarray(drawn_photo(80, 120, index)).save(tmp_path / "a" / f"{index}.jpg", quality=95)
    dataset = folder()
    dataset.samples = [(str(path), index) for index, path in enumerate(sorted(tmp_path.glob("a/*.jpg")))]
    order = [4, 2, 6, 1, 0, 5, 3]
    loader = MediaApiDataLoader(dataset, sampler=order, batch_size=3, num_workers=2, is_training=False)
    expected = list(DataLoader(dataset, sampler=order, batch_size=3))
    assert len(loader) == 3
    for _ in range(2):
        for (images, labels), (others, wanted) in zip(loader, expected, strict=True):
            assert images.dtype == others.dtype
            assert labels.dtype == wanted.dtype
            assert torch.equal(labels, wanted)
            difference = (images - others).abs() * torch.tensor(STD).reshape(3, 1, 1) * 255
            assert difference.max() < 4


def test_a_size_may_be_a_list_of_one(folder: Callable[..., Any]) -> None:
    dataset = folder()
    expected = list(MediaApiDataLoader(dataset, batch_size=5))
    resize = dataset.transform.transforms[0]
    resize.size = [resize.size]
    same(list(MediaApiDataLoader(dataset, batch_size=5)), expected)
    resize.size = [40, 40]  # squeezes the image
    with pytest.raises(ArgumentValueError, match="must set the shorter side"):
        MediaApiDataLoader(dataset, batch_size=5)


def test_training_by_a_pipe(folder: Callable[..., Any]) -> None:
    def epochs() -> list[torch.Tensor]:
        loader = MediaApiDataLoader(folder(True), batch_size=6, is_training=True, seed=5)
        return [images for _ in range(2) for images, _ in loader]

    first, again = epochs(), epochs()
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], first[2])


def test_the_chain(
    folder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dalify.dataloader")
    options = {"sampler": None, "batch_size": 4, "num_workers": 1, "pin_memory": False, "pin_memory_device": None}
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    gray = import_torchvision("torchvision.transforms").Grayscale(3)
    assert type(build_data_loader(False, "MP", dataset=folder(), **options)) is DataLoader
    assert isinstance(build_data_loader(False, dataset=folder(), **options), MediaApiDataLoader)
    loader = build_data_loader(False, "HABANA", dataset=folder(False, gray), **options)
    assert isinstance(loader, HabanaDataLoader)
    assert loader.accelerated
    loader = build_data_loader(True, dataset=Squares(8), **options)
    assert isinstance(loader, HabanaDataLoader)
    assert not loader.accelerated
    assert len(list(loader)) == 2
    for text in ("Running with Media API", "Failed to initialize Media API", "Running with Habana aeon", "PyTorch"):
        assert text in caplog.text
    monkeypatch.setenv("DATALOADER_FALLBACK_EN", "false")
    with pytest.raises(ArgumentValueError, match="Resize, CenterCrop"):
        build_data_loader(False, dataset=folder(False, gray), **options)
