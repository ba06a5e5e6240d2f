"""Batches of worker processes in reused shared memory, compared with those of torch's own loader."""

from __future__ import annotations

import gc
import multiprocessing
import threading
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import psutil
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

from dalify.base.errors import WorkerError
from dalify.data.shared_memory import REGION_BYTES, SlotMemory
from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin import worker_batches
from tests.helpers.platforms import needs_posix
from tests.helpers.processes import wait_until
from tests.helpers.programs import LIMIT_S
from tests.plugin.dropin.torch_reference import TorchLoader, same, seed, until_the_end

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]
COUNT = 23
SHARED = torch.arange(60.0).reshape(3, 20).share_memory_()


class Point(NamedTuple):
    x: torch.Tensor
    y: int


@dataclass
class Record:
    image: torch.Tensor
    name: str


class Subclass(torch.Tensor):
    """A tensor type of a user."""


def image(index: int) -> torch.Tensor:
    return torch.rand(3, 8, 9) + index


SAMPLES: dict[str, Any] = {
    "image and label": lambda index: (image(index), index),
    "large": lambda index: (torch.rand(3, 200, 200), index),
    "another order of memory": lambda index: torch.from_numpy(np.random.rand(8, 9, 3)).permute(2, 0, 1),
    "dictionary": lambda index: {"a": image(index), "b": {"c": [index, str(index)]}, "d": np.full(7, index)},
    "named": lambda index: Point(image(index), index),
    "numbers": lambda index: (index, float(index), index % 2 == 0, f"{index}"),
    "types": lambda index: tuple(
        torch.full((2, 5), index % 2).to(dtype)
        for dtype in (torch.bool, torch.int16, torch.bfloat16, torch.complex64, torch.float64, torch.uint8)
    ),
    "no elements": lambda index: (torch.empty(0, 4), torch.tensor(index)),
    "a tensor type": lambda index: image(index).as_subclass(Subclass),
    "shapes that differ": lambda index: torch.zeros(1 + index % 5),
    "types that differ": lambda index: torch.zeros(3, dtype=torch.int32 if index % 5 else torch.float32),
    "objects": lambda index: Record(image(index), "x"),
    "gradients": lambda index: image(index).requires_grad_(),
    "sparse": lambda index: torch.eye(3).to_sparse(),
}


class Samples(Dataset[Any]):
    """Samples of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return SAMPLES[self.kind](index)


class Stream(IterableDataset[Any]):
    """Samples without an index, divided among the workers."""

    def __iter__(self) -> Any:
        info = get_worker_info()
        assert info is not None
        return (SAMPLES["dictionary"](index) for index in range(info.id, COUNT, info.num_workers))


def as_list(samples: list[Any]) -> Any:
    return samples


def shared_memory(samples: list[Any]) -> Any:
    """Return tensors that share memory, and a tensor twice."""
    images = torch.stack([image for image, _ in samples])
    return {"whole": images, "flat": images.view(-1), "again": images, "row": images[1], "shared": SHARED[1]}


def own_arrays(samples: list[Any]) -> Any:
    images = np.stack([image.numpy() for image, _ in samples])
    return images, images[:, ::2], np.array([label for _, label in samples]), np.array(["a", None], object)


class Keeps:
    """A collate function that keeps what torch's function returned for the first batch."""

    def __call__(self, samples: list[Any]) -> Any:
        batch = torch.utils.data.default_collate(samples)
        if not hasattr(self, "first"):
            self.first = batch
        return [batch, self.first]


def quietly(kind: Any) -> Any:
    return partial(DataLoader, on_fallback="silent") if kind is DataLoader else kind


def check(dataset: Any, epochs: int = 2, **options: Any) -> None:
    """Assert that batches, errors and states of the generators equal torch's, also when all batches are kept."""
    found: list[Any] = []
    for kind in (DataLoader, TorchLoader):
        seed()
        loader = quietly(kind)(dataset, **options)
        batches = [until_the_end(loader) for _ in range(epochs)]
        found.append([batches, torch.rand(2), np.random.rand()])
    same(*found)


@pytest.mark.parametrize("kind", SAMPLES)
def test_samples(kind):
    check(Samples(kind), batch_size=3, shuffle=True, num_workers=2)


@pytest.mark.parametrize("kind", ["dictionary", "numbers", "a tensor type"])
def test_single_samples(kind):
    check(Samples(kind), batch_size=None, num_workers=2)


def test_single_sparse_tensors():
    found = list(DataLoader(Samples("sparse"), batch_size=None, num_workers=2, on_fallback="silent"))
    assert len(found) == COUNT
    for tensor in found:
        assert tensor.is_sparse
        assert torch.equal(tensor.to_dense(), torch.eye(3))


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_start_methods(context):
    check(Samples("image and label"), 1, batch_size=2, num_workers=1, multiprocessing_context=context)


@pytest.mark.parametrize("in_order", [True, False])
def test_persistent_workers(in_order):
    options = {"batch_size": 3, "num_workers": 1 if not in_order else 2, "persistent_workers": True}
    check(Samples("large"), 3, shuffle=True, in_order=in_order, prefetch_factor=3, **options)


def test_iterable_datasets():
    check(Stream(), batch_size=4, num_workers=3)


@pytest.mark.parametrize("collate", [as_list, shared_memory, Keeps()])
def test_collate_functions(collate):
    check(Samples("image and label"), batch_size=3, drop_last=True, num_workers=2, collate_fn=collate)


def test_arrays():
    loader = DataLoader(Samples("image and label"), 4, num_workers=1, collate_fn=own_arrays, on_fallback="silent")
    for number, (images, part, labels, objects) in enumerate(loader):
        expected = np.arange(4 * number, min(4 * number + 4, COUNT))
        assert (labels == expected).all()
        assert (images.astype(int)[:, 0, 0, 0] == expected).all()
        assert (part == images[:, ::2]).all()
        assert objects.tolist() == ["a", None]
        images[...] = part[...] = 0  # they can be written to


def test_tensors_that_share_memory_still_do():
    seed()
    loader = DataLoader(
        Samples("image and label"), 3, num_workers=1, collate_fn=shared_memory, drop_last=True, on_fallback="silent"
    )
    for batch in loader:
        assert batch["again"] is batch["whole"]
        batch["flat"][:] = 7
        assert (batch["whole"] == 7).all()
        assert batch["shared"].is_shared()
        assert torch.equal(batch["shared"], torch.arange(20.0, 40.0))


def test_memory_is_used_again_when_a_batch_is_released():
    loader = DataLoader(Samples("large"), 1, num_workers=1, prefetch_factor=1, on_fallback="silent")
    addresses, kept, flat = set(), [], None
    for images, label in loader:
        assert not images.is_shared()
        if label < 2:
            kept.append((images, images.clone()))
        flat = images.view(-1)
        del images
        addresses.add(flat.data_ptr())
        if label >= 2:
            flat.fill_(-1)  # does not affect later batches
    assert len(addresses) <= 1 + worker_batches.HELD_BATCHES
    del loader, flat
    for images, copy in kept:
        assert torch.equal(images, copy)


def test_batches_outlive_their_loader():
    loader = DataLoader(Samples("large"), 4, num_workers=2, on_fallback="silent")
    batches = list(loader)
    copies = [images.clone() for images, _ in batches]
    del loader
    gc.collect()
    other = [images for images, _ in DataLoader(Samples("large"), 4, num_workers=2, on_fallback="silent")]
    assert len(other) == len(copies)
    for (images, _), copy in zip(batches, copies, strict=True):
        assert torch.equal(images, copy)


def test_released_in_another_thread():
    loader = DataLoader(Samples("large"), 2, num_workers=1, on_fallback="silent", shuffle=False)
    sums = []

    def consume(images: list[torch.Tensor]) -> None:
        sums.append(images.pop().sum().item())

    seed()
    for images, _ in loader:
        thread = threading.Thread(target=consume, args=([images],))
        del images
        thread.start()
        thread.join()
    seed()
    assert sums == [images.sum().item() for images, _ in TorchLoader(Samples("large"), 2, num_workers=1)]


@needs_posix
@pytest.mark.parametrize("persistent", [True, False])
def test_processes_that_are_forked_while_batches_are_held(persistent):
    """They read the same values afterwards, and the loader still reuses memory."""
    context = multiprocessing.get_context("fork")
    loader = DataLoader(Samples("large"), 1, num_workers=2, persistent_workers=persistent, on_fallback="silent")
    processes, is_over = [], context.Event()

    def compare(images: Any, total: float) -> None:
        is_over.wait(LIMIT_S)
        assert images.sum() == total

    addresses = set()
    for _ in range(2):
        for images, label in loader:
            addresses.add(images.data_ptr())
            assert not images.is_shared()
            if label % 4 == 0:
                array = images.numpy()  # torch's threads do not exist in a forked process
                processes.append(context.Process(target=compare, args=(array, array.sum())))
                processes[-1].start()
    is_over.set()
    for process in processes:
        process.join(LIMIT_S)
    assert [process.exitcode for process in processes] == [0] * len(processes)
    assert len(addresses) < COUNT


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_slots_of_a_worker_that_are_created_later(context):
    loader = DataLoader(
        Samples("large"), 1, num_workers=1, multiprocessing_context=context, prefetch_factor=1, on_fallback="silent"
    )
    seed()
    found, processes, is_over = [], [], multiprocessing.get_context("fork").Event()
    for images, _ in loader:
        processes.append(multiprocessing.get_context("fork").Process(target=is_over.wait, args=(LIMIT_S,)))
        processes[-1].start()
        found.append(images.sum())
        assert not images.is_shared()
    is_over.set()
    for process in processes:
        process.join(LIMIT_S)
    seed()
    same(found, [images.sum() for images, _ in TorchLoader(Samples("large"), 1, num_workers=1)])


def test_files_are_closed():
    def count() -> int:
        gc.collect()
        return psutil.Process().num_fds()

    list(DataLoader(Samples("large"), 4, num_workers=2, on_fallback="silent"))
    before = count()
    for _ in range(3):
        list(DataLoader(Samples("large"), 4, num_workers=2, on_fallback="silent"))
        iterator = iter(DataLoader(Samples("large"), 4, num_workers=2, on_fallback="silent"))
        next(iterator)
        del iterator
    assert wait_until(lambda: count() <= before)


def test_batches_that_cannot_be_pickled_raise():
    # torch's loader prints the error in the worker, and waits forever.
    loader = DataLoader(Samples("image and label"), 2, num_workers=1, collate_fn=lambda _: lambda: 1)
    loader.on_fallback = "silent"
    with pytest.raises(Exception, match=r"(?s)DataLoader worker process 0.*(pickle|local object)"):
        next(iter(loader))


def test_without_slots(monkeypatch):
    def refuse(*_: Any) -> Any:
        raise WorkerError("no more files.")

    monkeypatch.setattr(worker_batches, "Slot", refuse)
    check(Samples("image and label"), 1, batch_size=3, num_workers=2)


def test_batches_that_are_larger_than_a_slot(monkeypatch):
    monkeypatch.setattr(worker_batches, "SlotMemory", partial(SlotMemory, end=REGION_BYTES + 5000))
    check(Samples("large"), 1, batch_size=3, num_workers=2)
    check(Samples("large"), 1, batch_size=3, num_workers=2, collate_fn=as_list)


def describe(samples: Any, *, collate_fn_map: Any = None) -> Any:
    return [type(samples[0]).__name__, len(samples)]


@pytest.mark.parametrize("kind", [int, torch.Tensor, tuple])
def test_functions_that_users_add_to_the_table_of_torch(kind, monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, kind, describe)
    for workers in (0, 2):
        check(Samples("image and label"), 1, batch_size=3, num_workers=workers)


def test_default_devices():
    iterator = iter(DataLoader(Samples("numbers"), 3, num_workers=1, collate_fn=as_array, on_fallback="silent"))
    torch.set_default_device("meta")
    try:
        for number, batch in enumerate(iterator):
            assert batch.device.type == "cpu"
            assert batch[0] == 3 * number
    finally:
        torch.set_default_device(None)


def as_array(samples: list[Any]) -> Any:
    return torch.from_numpy(np.array([sample[0] for sample in samples]))


def test_backend_of_torch():
    """Its batches are in torch's own shared memory."""
    for backend, is_shared in (("torch", True), ("auto", False)):
        loader = DataLoader(Samples("large"), 4, num_workers=1, backend=backend, on_fallback="silent")
        assert next(iter(loader))[0].is_shared() == is_shared
