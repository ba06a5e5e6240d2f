"""The rest of a pass in a new loader is that of the first loader."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch.utils import data

from dalify.base.errors import CheckpointError
from dalify.plugin.pytorch import DataLoader, accelerate
from tests.plugin.dropin.torch_reference import Brighten, TorchLoader, cifar, same, seed, transforms

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

FIXED = transforms.Compose([transforms.CenterCrop(20), transforms.ToTensor()])
RANDOM = transforms.Compose([transforms.RandomCrop(20), transforms.ToTensor()])
PARTLY = transforms.Compose([transforms.RandomCrop(20), Brighten(), transforms.ToTensor()])

ORDERS: dict[str, Any] = {
    "sequential": lambda dataset: {},
    "shuffle": lambda dataset: {"shuffle": True},
    "generator": lambda dataset: {"shuffle": True, "generator": torch.Generator().manual_seed(4)},
    "sampler": lambda dataset: {"sampler": data.RandomSampler(dataset, generator=torch.Generator().manual_seed(4))},
    "weighted": lambda dataset: {"sampler": data.WeightedRandomSampler([1.0] * len(dataset), 20)},
}


def saved(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    return torch.load(io.BytesIO(file.getvalue()))


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(
    ("transform", "workers"), [(FIXED, 0), (RANDOM, 2), (PARTLY, 1)], ids=["no workers", "threads", "processes"]
)
def test_the_rest_of_a_pass(name, transform, workers):
    dataset = cifar(transform, 20)

    def make(kind: Any) -> Any:
        return kind(dataset, batch_size=4, num_workers=workers, **ORDERS[name](dataset))

    seed()
    expected = list(make(TorchLoader))
    seed()
    loader = make(DataLoader)
    batches = iter(loader)
    same([next(batches), next(batches)], expected[:2])
    state = saved(loader.state_dict())
    torch.manual_seed(99)
    resumed = make(DataLoader)
    resumed.load_state_dict(state)
    before = torch.get_rng_state()
    rest = iter(resumed)
    same(torch.get_rng_state(), before)
    same(next(rest), expected[2])
    assert resumed.state_dict()["batches"] == 3
    same(list(rest), expected[3:])
    assert len(list(resumed)) == 5


@pytest.mark.parametrize("persistent", [False, True])
def test_between_passes(persistent):
    loader = DataLoader(cifar(RANDOM, 8), batch_size=4, num_workers=1, persistent_workers=persistent)
    assert loader.state_dict()["batches"] is None
    batches = iter(loader)
    list(batches)
    state = loader.state_dict()
    assert state["batches"] is None
    loader.load_state_dict(state)
    assert len(list(loader)) == 2


@pytest.mark.parametrize("transform", [RANDOM, PARTLY], ids=["full", "hybrid"])
def test_loaders_are_copied_without_their_pass(transform):
    loader = DataLoader(cifar(transform, 8), batch_size=4, on_fallback="silent")
    batches = iter(loader)
    next(batches)
    for twin in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader), copy.copy(loader)):
        assert twin.state_dict()["batches"] is None
        assert twin.on_fallback == "silent"
        seed()
        found = list(twin)
        seed()
        same(found, list(loader))


def test_states_of_others():
    loader = DataLoader(cifar(RANDOM, 8), batch_size=4, shuffle=True, generator=torch.Generator())
    with pytest.raises(CheckpointError, match="not a state of a DataLoader"):
        loader.load_state_dict({"epoch": 3})
    batches = iter(loader)
    next(batches)
    with pytest.raises(CheckpointError, match="a loader with 2 random number generators, but this one has 1"):
        DataLoader(cifar(RANDOM, 8)).load_state_dict(loader.state_dict())


def test_an_accelerated_loader_can_be_resumed():
    loader = accelerate(TorchLoader(cifar(FIXED, 12), batch_size=4, shuffle=True))
    batches = iter(loader)
    expected = [next(batches), loader.state_dict(), *batches]
    loader.load_state_dict(expected[1])
    same(list(loader), expected[2:])
