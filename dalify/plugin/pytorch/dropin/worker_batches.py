"""Batches of torch's worker processes in shared memory that is used again.

torch allocates new shared memory for each tensor of each batch, and passes its file descriptor to the process of the
loader. Both processes then access new pages, which takes several times as long as a copy. Here, each worker writes its
batches to slots. A slot is free again when the process of the loader has released all tensors and arrays in it.

If no slot is free, because the user keeps batches, the batch is passed as torch does. So are tensors that are on a
device, in shared memory of the user, or views of a part of their memory.

A process that is forked while the process of the loader holds batches may read them as long as it runs. The slots of
batches that are released meanwhile are not used again; the worker creates others.
"""

from __future__ import annotations

import io
import itertools
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch.utils.data import _utils

from dalify.base.errors import WorkerError
from dalify.base.fork_hook import at_fork
from dalify.data.shared_memory import HELD_BATCHES, ReservedSlots, Slot, SlotMemory
from dalify.plugin.pytorch.dropin.collating import collate_tensors, default_collate
from dalify.plugin.pytorch.dropin.hints import NotedCollate

_MOST_SLOTS = 256  # of a loader, because each needs a file descriptor
# Smaller arrays of NumPy own their memory, as with torch's loader.
_SMALL_BYTES = 1 << 12

_FREE, _USED, _ABANDONED, _NEW = range(4)

# The collate functions of the loaders of this process, by number; they own the slots of the workers.
_receivers: weakref.WeakValueDictionary[int, SlotCollate] = weakref.WeakValueDictionary()
_numbers = itertools.count()
_received = threading.local()  # `memory` is the slot of the batch that a thread unpickles


def slot_collate(loader: Any, collate: NotedCollate) -> Any:
    """Return a collate function for the workers of a loader that puts batches into slots.

    Args:
        loader: a ``torch.utils.data.DataLoader`` with workers.
        collate: its collate function.

    Returns:
        the function; `collate` itself if the limits of the process do not allow slots.
    """
    workers = loader.num_workers
    slots_per_worker = max(1, min((loader.prefetch_factor or 2) + HELD_BATCHES, _MOST_SLOTS // workers))
    slots: list[list[Slot]] = []
    try:
        for _ in range(workers):
            slots.append([Slot() for _ in range(slots_per_worker)])
            for slot in slots[-1]:
                _ = slot.memory  # maps it, which may exceed the limit on the address space
    except WorkerError:
        return collate
    return SlotCollate(collate, slots)


class SlotCollate:
    """A collate function that returns batches of worker processes in slots.

    Args:
        collate: the user's or torch's function.
        slots: slots of each worker. The first byte is their state: the worker sets `_USED`, and the process of the
            loader sets `_FREE`, or `_ABANDONED` if a process that was forked while it held the batch may be running.
    """

    def __init__(self, collate: NotedCollate, slots: list[list[Slot]]) -> None:
        self._collate = collate
        self._slots = slots
        self._number = next(_numbers)
        # Deleting a tensor does not free its slot at once, because a forked process deletes its own tensors.
        self._reserved = [ReservedSlots() for _ in slots]
        _receivers[self._number] = self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a worker process that is being started."""
        return {"_collate": self._collate, "_slots": self._slots, "_number": self._number, "_reserved": []}

    def __call__(self, samples: Any) -> Any:
        """Collate samples in a worker.

        Returns:
            an object that is unpickled as the batch; the batch itself if no slot is free or large enough.
        """
        info = torch.utils.data.get_worker_info()
        if info is None:
            return self._collate(samples)
        number = self._free_slot(info.id)
        if number is None:
            return self._collate(samples)
        slot = self._slots[info.id][number]
        memory = SlotMemory(slot.memory)
        if self._collate.collate is torch.utils.data.default_collate:
            try:
                content = _packed(NotedCollate(_collate_in(memory))(samples), memory)
            except WorkerError:  # the batch is larger than a slot
                return self._collate(samples)
        else:
            with _pooled_stacks():  # not in the slot: the user's function may keep what torch's function returns
                batch = self._collate(samples)
            try:
                content = _packed(batch, memory)
            except WorkerError:
                return batch
        slot.free_after(memory.end_bytes)
        is_new = slot.memory[0] == _NEW
        slot.memory[0] = _USED
        return _PackedBatch(self._number, info.id, number, slot if is_new else None, content)

    def _free_slot(self, worker: int) -> int | None:
        """Return the number of a free slot of a worker, in that worker; None if there is none."""
        slots = self._slots[worker]
        with suppress(WorkerError):  # of the limits of the process
            for number, slot in enumerate(slots):
                if slot.memory[0] == _ABANDONED:
                    slots[number] = slot = Slot()
                    slot.memory[0] = _NEW
                if slot.memory[0] in (_FREE, _NEW):
                    return number
        return None

    def receive(self, worker: int, number: int, slot: Slot | None, content: bytes) -> Any:
        """Return the batch in a slot, in the process of the loader.

        Args:
            worker: number of the worker.
            number: number of the slot.
            slot: the slot if the worker has created it for this batch.
            content: the pickled batch.
        """
        self.free_released()
        slots = self._slots[worker]
        if slot is not None:
            slots[number] = slot
        _received.memory = self._reserved[worker].reserve(slots[number], number)
        try:
            return pickle.loads(content)
        finally:
            del _received.memory

    def free_released(self) -> None:
        """Let the workers use the slots that this process has released."""
        for slots, reserved in zip(self._slots, self._reserved, strict=True):
            for release in reserved.released():
                slots[release.number].memory[0] = _ABANDONED if release.may_be_read else _FREE


at_fork(_receivers.clear)


class _PackedBatch:
    """A batch in a slot; it is unpickled as the batch.

    Args:
        receiver: number of the collate function.
        worker: number of the worker.
        number: number of the slot of the worker.
        slot: the slot if the process of the loader does not have it; otherwise None.
        content: the batch; its tensors and arrays are positions in the slot.
    """

    def __init__(self, receiver: int, worker: int, number: int, slot: Slot | None, content: bytes) -> None:
        self._state = receiver, worker, number, slot, content

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, self._state


def _unpacked(receiver: int, worker: int, number: int, slot: Slot | None, content: bytes) -> Any:
    """Return a batch; None if its iterator was deleted, so that the batch is discarded."""
    collate = _receivers.get(receiver)
    return None if collate is None else collate.receive(worker, number, slot, content)


def _collate_in(memory: SlotMemory) -> Callable[[Any], Any]:
    """Return torch's default collate function, which puts stacked tensors into a slot."""

    @wraps(torch.utils.data.default_collate)
    def collate(samples: Any) -> Any:
        return default_collate(samples, memory)

    return collate


@contextmanager
def _pooled_stacks() -> Iterator[None]:
    """Let torch's default collate function, if the user's function calls it in this thread, reuse private memory."""
    table: dict[Any, Callable[..., Any]] = _utils.collate.default_collate_fn_map
    of_torch, thread = _utils.collate.collate_tensor_fn, threading.get_ident()

    def stacked(tensors: Any, *, collate_fn_map: Any = None) -> Any:
        collate: Any = collate_tensors if threading.get_ident() == thread else of_torch
        return collate(tensors, collate_fn_map=collate_fn_map)

    if table.get(torch.Tensor) is not of_torch:  # the user has replaced it
        yield
        return
    table[torch.Tensor] = stacked
    try:
        yield
    finally:
        table[torch.Tensor] = of_torch


def _packed(batch: Any, memory: SlotMemory) -> bytes:
    """Return a pickled batch whose tensors and arrays are in a slot."""
    file = io.BytesIO()
    _Packer(file, memory).dump(batch)
    return file.getvalue()


class _Packer(ForkingPickler):
    """Pickles objects like torch's workers, and puts tensors and arrays into a slot.

    Args:
        file: receives the pickled object.
        memory: memory of the slot.
    """

    def __init__(self, file: io.BytesIO, memory: SlotMemory) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._memory = memory
        self._starts: dict[int, int] = {}  # in the slot, by address; tensors may share their memory

    def reducer_override(self, value: Any) -> Any:
        """Return how to unpickle a tensor or an array; NotImplemented to pickle it as torch does."""
        if type(value) is torch.Tensor and _is_movable(value):
            whole = torch.empty(0, dtype=torch.uint8, device="cpu").set_(value.untyped_storage()).numpy()
            address = value.data_ptr()
            if address not in self._starts:
                self._starts[address] = self._memory.start_of(whole)
            return _tensor_at, (self._starts[address], whole.size, value.dtype, tuple(value.shape), value.stride())
        if type(value) is np.ndarray and _is_large(value):
            return _array_at, (self._memory.start_of(value), value.nbytes, value.dtype, value.shape)
        return NotImplemented


def _is_large(value: np.ndarray[Any, Any]) -> bool:
    return value.nbytes >= _SMALL_BYTES and value.flags.c_contiguous and not value.dtype.hasobject


def _is_movable(value: torch.Tensor) -> bool:
    """Return whether a tensor can be copied with all of its memory, without an effect on other tensors."""
    return (
        value.device.type == "cpu"
        and value.layout is torch.strided
        and not (value.requires_grad or value.is_nested or value.is_quantized or value.is_conj() or value.is_neg())
        and value.numel() > 0
        and value.storage_offset() == 0
        and value.untyped_storage().nbytes() == value.numel() * value.element_size()
        and not value.untyped_storage().is_shared()
    )


def _tensor_at(start: int, size_bytes: int, dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    memory = torch.from_numpy(_received.memory[start : start + size_bytes])
    return torch.empty(0, dtype=dtype, device="cpu").set_(memory.untyped_storage(), 0, shape, stride)


def _array_at(start: int, size_bytes: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    return _received.memory[start : start + size_bytes].view(dtype).reshape(shape)
