"""Rows of arrays, also of memory-mapped files, that a dataset copies or converts: batches are selected at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset

from dalify.plugin.pytorch import DataLoader
from tests.plugin.dropin.torch_reference import TorchLoader, events, same

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

COUNT = 11


class Rows(Dataset[Any]):
    def __init__(self, folder: Path) -> None:
        numbers = np.random.default_rng(2)
        np.save(folder / "rows.npy", numbers.normal(size=(COUNT, 3, 4)).astype(np.float32))
        self.mapped = np.load(folder / "rows.npy", mmap_mode="r")
        self.array = numbers.normal(size=(COUNT, 5)) * 1e30
        self.array[3, :3] = np.nan, 1e300, -0.0
        self.integers = numbers.integers(-(2**62), 2**62, (COUNT, 2))
        self.halves = numbers.normal(size=(COUNT, 2)).astype(np.float16)
        self.scalars = np.arange(COUNT) / 3
        self.labels = list(range(COUNT))
        self.tensor = torch.arange(COUNT * 2.0).reshape(COUNT, 2)

    def __len__(self) -> int:
        return COUNT


class Copied(Rows):
    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.array(self.mapped[index])), self.labels[index]


class WithType(Rows):
    def __getitem__(self, index: int) -> Any:
        row = np.array(self.mapped[index], dtype=np.float64)
        return torch.tensor(row) / 2, np.array(self.integers[index], np.int16), np.asarray(self.array[index])


class Chained(Rows):
    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.array(np.array(self.mapped[index]) * 2, dtype=np.float16)).float()


class OfClasses(Rows):
    def __getitem__(self, index: int) -> Any:
        x, y = torch.FloatTensor(self.array[index]), torch.LongTensor(self.integers[index])
        return {"x": x, "y": y, "z": torch.Tensor(self.array[index]) + 1, "half": torch.FloatTensor(self.halves[index])}


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Copied, WithType, Chained, OfClasses])
def test_batches_are_torchs(tmp_path: Path, kind: Any, workers: int) -> None:
    for dataset in (kind(tmp_path), Subset(kind(tmp_path), [9, 0, 3, 3])):
        report = DataLoader(dataset, num_workers=workers, on_fallback="raise").explain()
        assert report.mode == "full"
        assert "in memory" in str(report)
        found = [repr(events(loader, dataset, num_workers=workers)) for loader in (DataLoader, TorchLoader)]
        assert found[0] == found[1]  # repr, because the data contain NaN
    dataset = kind(tmp_path)
    dataset.array[3] = 1.5
    same(events(DataLoader, dataset, num_workers=workers), events(TorchLoader, dataset, num_workers=workers))


class OfScalar(Rows):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.scalars[index])


class OfList(Rows):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.labels[index])


class OfTensor(Rows):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.tensor[index])


class FloatsOfIntegers(Rows):
    def __getitem__(self, index: int) -> Any:
        return torch.FloatTensor(self.integers[index])


class OfComputed(Rows):
    def __getitem__(self, index: int) -> Any:
        return torch.FloatTensor(self.array[index] * 2)


class OfSize(Rows):
    def __getitem__(self, index: int) -> Any:
        return torch.FloatTensor(self.labels[index]).shape[0]


class WithDimensions(Rows):
    def __getitem__(self, index: int) -> Any:
        return np.array(self.array[index], ndmin=3)


OTHERS = [OfScalar, OfList, OfTensor, FloatsOfIntegers, OfComputed, OfSize, WithDimensions]


@pytest.mark.parametrize("kind", OTHERS)
def test_other_conversions_are_left_to_torch(tmp_path: Path, kind: Any) -> None:
    dataset = kind(tmp_path)
    dataset.array[3] = 1.5
    assert DataLoader(dataset).explain().mode == "torch"
    same(events(DataLoader, dataset), events(TorchLoader, dataset))
