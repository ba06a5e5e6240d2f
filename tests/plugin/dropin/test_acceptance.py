"""A replacement for torch's loader has to support every sampler, every collate function, interruptions, forks."""

from __future__ import annotations

import multiprocessing
import random
import signal
import threading
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import data

from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import Brighten, TorchLoader, cifar, same, seed, transforms

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]

version_2 = import_torchvision("torchvision.transforms.v2")
FIXED = transforms.Compose([transforms.CenterCrop(8), transforms.ToTensor()])
RANDOM = transforms.Compose([transforms.RandomCrop(30, padding=4), transforms.ToTensor()])
PARTLY = transforms.Compose([transforms.RandomCrop(30), Brighten(), transforms.ToTensor()])
COUNT = 23


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def distributed(dataset: Any) -> Any:
    sampler = data.DistributedSampler(dataset, num_replicas=2, rank=1, seed=3)
    sampler.set_epoch(2)
    return sampler


SAMPLERS: dict[str, Any] = {
    "sequential": lambda dataset: {},
    "shuffle": lambda dataset: {"shuffle": True},
    "generator": lambda dataset: {"shuffle": True, "generator": generator()},
    "replacement": lambda dataset: {"sampler": data.RandomSampler(dataset, replacement=True, num_samples=30)},
    "subset": lambda dataset: {"sampler": data.SubsetRandomSampler(range(3, 20))},
    "weighted": lambda dataset: {"sampler": data.WeightedRandomSampler(torch.arange(COUNT) + 1.0, 25)},
    "distributed": lambda dataset: {"sampler": distributed(dataset)},
    "list": lambda dataset: {"sampler": [3, -1, np.int64(4), torch.tensor(5), 3, 3, 0]},
    "batches": lambda dataset: {"batch_sampler": [[0, 3], [1], [2, 5, 4, 0], [22]]},
}


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("name", SAMPLERS)
def test_order(name, drop_last):
    """The order of torch does not depend on its workers, so a loader without workers returns the expected order."""
    dataset = cifar(FIXED, COUNT)
    dataset.targets = list(range(COUNT))
    options = {} if name == "batches" else {"batch_size": 4, "drop_last": drop_last}

    def run(kind: Any, workers: int) -> Any:
        seed()
        loader = kind(dataset, num_workers=workers, **options, **SAMPLERS[name](dataset))
        return [len(loader), *loader, *loader, torch.get_rng_state(), random.random(), np.random.rand()]

    expected = run(TorchLoader, 0)
    for workers in (0, 1, 4):
        same(run(DataLoader, workers), expected)


Pair = namedtuple("Pair", ["images", "labels"])
cutmix, mixup = version_2.CutMix(num_classes=10), version_2.MixUp(num_classes=10)
COLLATES: dict[str, Any] = {
    "default": data.default_collate,
    "list": list,
    "zip": lambda samples: tuple(zip(*samples, strict=True)),
    "dictionary": lambda samples: dict(zip(("images", "labels"), data.default_collate(samples), strict=True)),
    "named tuple": lambda samples: Pair(*data.default_collate(samples)),
    "CutMix": lambda samples: cutmix(*data.default_collate(samples)),
    "MixUp or CutMix": lambda samples: random.choice((cutmix, mixup))(*data.default_collate(samples)),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", COLLATES)
def test_collate(name, workers):
    def run(kind: Any) -> Any:
        seed()
        loader = kind(cifar(RANDOM, 12), batch_size=4, num_workers=workers, collate_fn=COLLATES[name], shuffle=True)
        return [*loader, torch.get_rng_state()]

    same(run(DataLoader), run(TorchLoader))


@pytest.mark.parametrize("transform", [RANDOM, PARTLY], ids=["full", "hybrid"])
def test_passes_within_passes(transform):
    """Left early, restarted and nested, without workers, so that all share the generators of the process."""

    def run(kind: Any) -> Any:
        seed()
        loader = kind(cifar(transform, 9), batch_size=4, shuffle=True)
        found = [next(iter(loader)) for _ in range(2)]
        for outer in loader:
            found += [outer, *loader]
        found += [batch for pair in zip(loader, loader, strict=True) for batch in pair]
        return [*found, torch.get_rng_state()]

    same(run(DataLoader), run(TorchLoader))


def _in_child(loader: Any, batches: Any, results: Any) -> None:
    try:
        next(batches)
    except RuntimeError as error:
        results.put(str(error))
    results.put([labels.tolist() for _, labels in loader])


@pytest.mark.parametrize("persistent", [False, True])
def test_fork_in_the_middle_of_a_pass(persistent):
    loader = DataLoader(cifar(RANDOM, 12), batch_size=4, num_workers=2, persistent_workers=persistent)
    batches = iter(loader)
    next(batches)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(loader, batches, results))
    child.start()
    assert "created in another process" in results.get()
    expected = [labels.tolist() for _, labels in batches]
    assert results.get()[1:] == expected
    child.join()
    assert len(expected) == 2


def _be_interrupted(results: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    released = threading.Event()
    fetch = Fetcher.fetch

    def fetch_late(self: Fetcher, *arguments: Any) -> Any:
        released.wait(60)
        return fetch(self, *arguments)

    Fetcher.fetch = fetch_late  # type: ignore[method-assign]
    loader = DataLoader(cifar(RANDOM, 12), batch_size=4, num_workers=2)
    batches = iter(loader)
    try:
        threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        next(batches)
    except KeyboardInterrupt:
        released.set()
        results.put([len(list(batches)), len(list(loader))])


def test_interrupted_by_the_keyboard():
    """In a separate process, because pytest would also be interrupted."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_be_interrupted, args=(results,))
    child.start()
    assert results.get() == [3, 3]
    child.join()
