"""A new loader returns the remaining batches of an epoch of the first loader."""

from __future__ import annotations

import copy
import io
import pickle
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils import data

from dalify.base.errors import CheckpointError
from dalify.plugin.pytorch import DataLoader, accelerate
from dalify.plugin.pytorch.dropin.draws import RandomStates
from tests.plugin.dropin.torch_reference import Brighten, TorchLoader, cifar, datasets, same, seed, transforms

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


class Numbers(data.Dataset):
    """Numbers, one of which cannot be read."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 6:
            raise OSError("damaged")
        return torch.tensor([index, torch.randint(1000, ())])


def remaining(batches: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            found.append(next(batches))
        except StopIteration:
            return found
        except OSError:
            found.append("damaged")


@pytest.mark.parametrize("kind", ["torch", "hybrid", "full"])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_failed_count(tmp_path, kind, workers):
    dataset: Any = Numbers()
    if kind != "torch":
        for index in range(20):
            (tmp_path / "class").mkdir(exist_ok=True)
            contents = b"damaged" if index == 6 else io.BytesIO()
            if not isinstance(contents, bytes):
                Image.new("RGB", (30, 30), (index, 0, 0)).save(contents, "PNG")
                contents = contents.getvalue()
            (tmp_path / "class" / f"{index:02}.png").write_bytes(contents)
        dataset = datasets.ImageFolder(str(tmp_path), transform=RANDOM if kind == "full" else PARTLY)

    def make() -> Any:
        loader = DataLoader(dataset, batch_size=4, num_workers=workers, on_fallback="silent")
        assert loader.explain().mode == kind
        return loader

    seed()
    loader = make()
    batches = iter(loader)
    for number in range(3):
        with pytest.raises(OSError, match=r"damaged|cannot identify") if number == 1 else nullcontext():
            next(batches)
    state = saved(loader.state_dict())
    random_states = RandomStates.current()
    expected = remaining(batches)
    assert len(expected) == 2
    torch.manual_seed(99)
    resumed = make()
    resumed.load_state_dict(state)
    rest = iter(resumed)
    random_states.restore()  # without workers, the caller restores them
    same(remaining(rest), expected)


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


@pytest.mark.parametrize("transform", [FIXED, None], ids=["threads", "processes"])
@pytest.mark.parametrize("is_new", [False, True], ids=["same loader", "new loader"])
@pytest.mark.parametrize("epochs_before", [0, 1])
def test_the_order_of_persistent_workers(transform, is_new, epochs_before):
    """Only the first epoch draws a seed for the workers before it draws its order."""
    dataset: Any = cifar(transform, 20) if transform else [torch.tensor(number) for number in range(20)]

    def make() -> Any:
        return DataLoader(
            dataset, batch_size=4, shuffle=True, num_workers=1, persistent_workers=True, on_fallback="silent"
        )

    seed()
    loader = make()
    for _ in range(epochs_before):
        list(loader)
    batches = iter(loader)
    next(batches), next(batches)
    state = saved(loader.state_dict())
    rest = list(batches)
    torch.manual_seed(99)
    resumed = make() if is_new else loader
    resumed.load_state_dict(state)
    same(list(resumed), rest)


def test_states_of_other_objects():
    loader = DataLoader(cifar(RANDOM, 8), batch_size=4, shuffle=True, generator=torch.Generator())
    for other in ({"epoch": 3}, None, 3):
        with pytest.raises(CheckpointError, match="not a state of a DataLoader"):
            loader.load_state_dict(other)
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
