"""Batches in shared memory, written by one process and viewed by another one.

A slot contains one batch: the request in its lower half, the result of the worker in its upper half. Kernels write
outputs there directly; only data in other memory are copied.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import WorkerError
from dalify.base.narrow import is_tuple
from dalify.data import Batch
from dalify.data.dtypes import DALIDataType
from dalify.data.shared_memory import REGION_BYTES, Slot, SlotMemory
from dalify.executor.batch_source import Reply, Request
from dalify.executor.origins import Origins

_HEADER_BYTES = 1 << 24

# Returns origins for the slot of a reader's first output, numbers of entries, and the index of an output.
OriginsOf = Callable[[int, NDArray[Any], int], Origins]


class _Arrays(NamedTuple):
    """The arrays of a batch in a slot: one array, or one per sample.

    Attributes:
        starts: offset of each array in bytes.
        shapes: shape of each array.
        is_dense: True if one array contains all samples.
        dtype: name of the dtype.
        layout: layout of the samples.
        origins: None, strings, or the slot of a reader, numbers of entries and the index of an output.
    """

    starts: list[int]
    shapes: list[tuple[int, ...]]
    is_dense: bool
    dtype: str
    layout: str
    origins: Any


def _store(memory: SlotMemory, batch: Batch | None, indices: Mapping[int, int]) -> _Arrays | None:
    """Store a batch in a slot, and return the positions of its arrays.

    Args:
        memory: memory of the slot.
        batch: a batch on the CPU; None for no samples.
        indices: slots of readers by the id of their index.
    """
    if batch is None:
        return None
    arrays = batch.arrays
    return _Arrays(
        [memory.start_of(array) for array in arrays],
        [array.shape for array in arrays],
        batch.dense is not None,
        batch.dtype.name,
        batch.layout,
        _sent_origins(batch.origins, indices),
    )


def _sent_origins(origins: Sequence[str | None] | None, indices: Mapping[int, int]) -> Any:
    if isinstance(origins, Origins) and id(origins.entries) in indices:
        return indices[id(origins.entries)], origins.numbers, origins.output
    return None if origins is None else list(origins)


def _batch_at(memory: NDArray[np.uint8], stored: _Arrays | None, origins_of: OriginsOf | None) -> Batch | None:
    if stored is None:
        return None
    dtype = DALIDataType[stored.dtype]
    arrays = [_view(memory, start, shape, dtype) for start, shape in zip(stored.starts, stored.shapes, strict=True)]
    origins = stored.origins
    if is_tuple(origins):
        origins = None if origins_of is None else origins_of(*origins)
    if stored.is_dense:
        return Batch(arrays[0], None, stored.layout, "cpu", origins, dtype)
    return Batch(None, arrays, stored.layout, "cpu", origins, dtype)


def _view(memory: NDArray[np.uint8], start: int, shape: tuple[int, ...], dtype: DALIDataType) -> NDArray[Any]:
    size_bytes = math.prod(shape) * dtype.numpy.itemsize
    if not size_bytes:
        return np.empty(shape, dtype.numpy)
    return memory[start : start + size_bytes].view(dtype.numpy).reshape(shape)


def write_request(slot: Slot, request: Request) -> None:
    """Write a request for a worker to a slot."""
    memory = SlotMemory(slot.memory, _HEADER_BYTES, REGION_BYTES)
    inputs = {number: _store(memory, batch, {}) for number, batch in request.inputs.items()}
    content = pickle.dumps(request._replace(inputs=inputs), pickle.HIGHEST_PROTOCOL)
    if len(content) > _HEADER_BYTES - 8:
        raise WorkerError(
            f"the description of a batch is larger than {_HEADER_BYTES >> 20} MiB, the limit between processes.",
            hint="Use smaller batches.",
        )
    slot.write_header(content)


def read_request(slot: Slot) -> Request:
    """Return the request in a slot; inputs are views of the slot."""
    request: Request = pickle.loads(slot.read_header())
    inputs: Mapping[int, Any] = request.inputs
    return request._replace(inputs={number: _batch_at(slot.memory, stored, None) for number, stored in inputs.items()})


def write_reply(memory: SlotMemory, reply: Reply, indices: Mapping[int, int]) -> Reply:
    """Store the values of a reply in its slot, and return the reply with positions instead of values.

    Args:
        memory: memory of the slot.
        reply: the reply.
        indices: slots of readers by the id of their index.
    """
    values: Any = {slot: _store(memory, batch, indices) for slot, batch in reply.values.items()}
    return reply._replace(values=values)


def read_reply(memory: NDArray[np.uint8], reply: Reply, origins_of: OriginsOf) -> Reply:
    """Return a reply of a worker with its values as views of the slot.

    Args:
        memory: all bytes of the slot.
        reply: the reply of the worker, the result of `write_reply`.
        origins_of: returns the origins of samples.
    """
    values: Mapping[int, Any] = reply.values
    return reply._replace(values={slot: _batch_at(memory, stored, origins_of) for slot, stored in values.items()})
