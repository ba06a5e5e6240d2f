"""Transforms of every kind with threads instead of torch's workers: same batches, same states of generators."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from dalify.plugin.pytorch.dropin.iterators import _Worker
from tests.helpers.programs import finished
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import TorchLoader, cifar, datasets, photos, same, seed

v1 = import_torchvision("torchvision.transforms")
v2 = import_torchvision("torchvision.transforms.v2")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]

FLOAT = v2.ToDtype(torch.float32, scale=True)
NORMALIZE_1, NORMALIZE_2 = (version.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4)) for version in (v1, v2))
TRANSFORMS = {
    "contrastive": v1.Compose(
        [
            v1.RandomResizedCrop(24),
            v1.RandomApply([v1.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8),
            v1.RandomGrayscale(0.2),
            v1.RandomHorizontalFlip(),
            v1.ToTensor(),
        ]
    ),
    "automatic": v1.Compose(
        [
            v1.RandomResizedCrop(24),
            v1.TrivialAugmentWide(),
            v1.PILToTensor(),
            v1.ConvertImageDtype(torch.float),
            NORMALIZE_1,
            v1.RandomErasing(0.5, value="random"),
        ]
    ),
    "Python's numbers": v1.Compose(
        [
            v1.RandomChoice([v1.RandomCrop(24, pad_if_needed=True), v1.RandomResizedCrop(24)], p=[0.3, 0.7]),
            v1.RandomOrder([v1.RandomRotation(20), v1.RandomPosterize(3), v1.RandomInvert()]),
            v1.RandomHorizontalFlip(),
            v1.ToTensor(),
        ]
    ),
    "tensors": v2.Compose([v2.ToImage(), v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), FLOAT, NORMALIZE_2]),
    "windows on tensors": v2.Compose(
        [v2.ToImage(), v2.RandomCrop(24, padding=3, pad_if_needed=True), v2.RandomVerticalFlip(), FLOAT, NORMALIZE_2]
    ),
    "bytes": v2.Compose([v2.RandomCrop((20, 32), padding=2), v2.PILToTensor()]),
}


def keep(samples: list[Any]) -> list[Any]:
    return samples


def run(kind: Any, dataset: Any, **options: Any) -> list[Any]:
    seed()
    loader = kind(dataset, batch_size=5, shuffle=True, **options)
    batches = [batch for _ in range(2) for batch in loader]
    return [batches, torch.get_rng_state(), random.getstate()]


def check(dataset: Any, **options: Any) -> list[Any]:
    assert str(DataLoader(dataset, **options).explain().mode) == "full"
    found = run(DataLoader, dataset, **options)
    same(found, run(TorchLoader, dataset, **options))
    return found[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return photos(tmp_path_factory.mktemp("photos"), 11)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_photographs(folder, name, workers):
    check(datasets.ImageFolder(folder, TRANSFORMS[name]), num_workers=workers)


@pytest.mark.parametrize("collate", [None, keep])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_images_in_memory(name, collate):
    check(cifar(TRANSFORMS[name], 12), collate_fn=collate)


def test_samples_keep_the_type_of_version_2():
    (first, *_) = check(cifar(TRANSFORMS["windows on tensors"]), collate_fn=keep)
    assert type(first[0][0]) is import_torchvision("torchvision.tv_tensors").Image


@pytest.mark.parametrize("name", ["windows on tensors", "bytes"])
def test_whole_batches_at_once(name, monkeypatch):
    monkeypatch.delattr(Fetcher, "_fetch_each")
    check(cifar(TRANSFORMS[name]))


@pytest.mark.parametrize(("name", "workers", "mode"), [("automatic", 4, "full"), ("automatic", 5, "hybrid")])
def test_many_threads_do_not_wait_for_each_other(name, workers, mode):
    report = DataLoader(cifar(TRANSFORMS[name]), num_workers=workers).explain()
    assert str(report.mode) == mode
    assert (mode == "full") == ("torchvision's Python" not in report.reason)


def test_kernels_and_tensors_take_any_number_of_threads():
    for name in ("contrastive", "tensors", "bytes"):
        assert str(DataLoader(cifar(TRANSFORMS[name]), num_workers=64).explain().mode) == "full"


@pytest.mark.parametrize("persistent", [False, True])
def test_a_program_ends_while_batches_are_computed(persistent):
    program = f"""
    from dalify.plugin.pytorch import DataLoader
    from tests.plugin.dropin.torch_reference import cifar, transforms

    steps = [transforms.Resize(300), transforms.RandomRotation(20), transforms.ToTensor(), transforms.RandomErasing(1)]
    dataset = cifar(transforms.Compose(steps), 1000)
    loader = DataLoader(dataset, batch_size=8, num_workers=2, prefetch_factor=9, persistent_workers={persistent})
    batches = iter(loader)
    next(batches)
    """
    assert finished(program) == (0, "", "")


@pytest.mark.parametrize("is_persistent", [False, True])
def test_a_thread_that_fails_between_batches(is_persistent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batches are errors, those of other threads are not, and the next epoch has new threads."""
    original = _Worker._run
    failures = [MemoryError("no memory")]

    def fails_once(worker: _Worker) -> None:
        if worker.number == 1 and failures:
            raise failures.pop()
        original(worker)

    monkeypatch.setattr(_Worker, "_run", fails_once)
    data = cifar(v1.ToTensor())
    loader = DataLoader(data, 4, num_workers=2, persistent_workers=is_persistent)
    batches = iter(loader)
    found: list[Any] = []
    for _ in range(4):
        try:
            found.append(next(batches)[1].tolist())
        except RuntimeError as error:
            found.append(str(error))
    failed = "a thread of the DataLoader failed: MemoryError('no memory')"
    labels = [data.targets[4 * number : 4 * number + 4] for number in range(4)]
    assert found == [labels[0], failed, labels[2], failed]
    del batches
    assert [batch[1].tolist() for batch in loader][:4] == labels
