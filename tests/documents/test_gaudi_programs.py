"""Programs that were published for Gaudi run unchanged after `shim.install()`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, SequentialSampler

from dalify.mediapipe import shim
from tests.helpers.torchvision_import import import_torchvision

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Document 000, which imports itself by the name that its authors gave it."""
    shim.install()
    module = importlib.import_module("tests.documents.programs_000")
    monkeypatch.setitem(sys.modules, "resnet_media_pipe", module)
    yield module
    shim.uninstall()
    del sys.modules["tests.documents.programs_000"]


def options(photo_folder: Path, sampler: Any, batch_size: int) -> dict[str, Any]:
    dataset = SimpleNamespace(root=str(photo_folder))
    return {"dataset": dataset, "sampler": sampler, "batch_size": batch_size, "num_workers": 8}


def test_evaluation(
    program: Any, photo_folder: Path, photo_list: list[tuple[Path, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    given = options(photo_folder, SequentialSampler(photo_list), 4)
    loader = program.build_data_loader(False, "HABANA", **given)
    assert "Running with Media API DataLoader" in capsys.readouterr().out
    assert len(loader) == 3
    batches = list(loader)
    labels = torch.cat([labels for _, labels in batches])
    assert labels.tolist() == [label for _, label in photo_list]
    assert labels.dtype == torch.int64
    images = torch.cat([images for images, _ in batches])
    assert images.shape == (12, 3, 24, 24)
    for image, (path, _) in zip(images.cpu(), photo_list, strict=True):
        small = Image.open(path).convert("RGB").resize((24, 24), Image.Resampling.BILINEAR)
        expected = torch.from_numpy(np.array(small, np.float32).transpose(2, 0, 1) / 255)
        shown = image * torch.tensor(STD).reshape(3, 1, 1) + torch.tensor(MEAN).reshape(3, 1, 1)
        assert (shown - expected).abs().mean() < 1 / 255
        assert (shown - expected).abs().max() < 8 / 255


def test_training(program: Any, photo_folder: Path, photo_list: list[tuple[Path, int]]) -> None:
    loader = program.build_data_loader(True, "HABANA", **options(photo_folder, RandomSampler(photo_list), 4))
    epochs = [list(loader) for _ in range(2)]
    for batches in epochs:
        assert sorted(torch.cat([labels for _, labels in batches]).tolist()) == sorted(label for _, label in photo_list)
    assert not torch.equal(epochs[0][0][0], epochs[1][0][0])


def test_unsupported_loaders_fall_back(
    program: Any, photo_folder: Path, photo_list: list[tuple[Path, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    given = {**options(photo_folder, None, 4), "dataset": photo_list, "num_workers": 0}  # a list has no root
    assert isinstance(program.build_data_loader(True, "HABANA", **given), DataLoader)
    text = capsys.readouterr().out
    assert text.startswith("Failed to initialize Habana Dataloader, error: ")
    assert text.endswith("\nRunning with PyTorch Dataloader\n")
    with pytest.raises(ValueError, match="Unknown data_loader_type"):
        program.build_data_loader(True, "MP", **given)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
def test_the_example_of_habana_dataloader(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = importlib.import_module("tests.documents.programs_001")
    transforms = import_torchvision("torchvision.transforms")
    first = [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(p=0.5)]
    last = [transforms.ToTensor(), transforms.Normalize(mean=MEAN, std=STD)]
    dataset = import_torchvision("torchvision.datasets").ImageFolder(
        str(photo_folder), transforms.Compose([*first, *last])
    )
    sampler = DistributedSampler(dataset, num_replicas=2, rank=1)
    monkeypatch.setattr(program, "dataset", dataset)
    monkeypatch.setattr(program, "train_sampler", sampler)
    monkeypatch.setattr(program, "args", SimpleNamespace(batch_size=4, workers=2))
    shim.install()
    try:
        loader: Any = program.loader()
    finally:
        shim.uninstall()
    assert loader.accelerated
    assert isinstance(loader, DataLoader)
    torch.manual_seed(1)
    found = list(loader)
    torch.manual_seed(1)
    expected = list(DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=2, drop_last=True))
    for batch, other in zip(found, expected, strict=True):
        assert all(torch.equal(tensor, wanted) for tensor, wanted in zip(batch, other, strict=True))
