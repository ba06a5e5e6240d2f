"""The base class of tensors and batches of dynamic mode: data, or a deferred call that computes them."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import numpy as np

from dalify.base.optional import torch
from dalify.data import Batch, TensorListCPU, TensorListGPU, tensor_list
from dalify.experimental.dynamic.devices import Device, device
from dalify.experimental.dynamic.dtypes import DType
from dalify.immediate.user_data import Deferred, Kind, Value

__all__ = ["Held", "Source", "moved"]


class Source(Protocol):
    """Returns outputs on request."""

    def result(self, output: int) -> Batch:
        """Return an output."""
        ...


class Held(Deferred):
    """Data that exist, or that are computed at the first access.

    Attributes:
        is_shared: whether the memory belongs to the user, who may modify it.
    """

    __slots__ = ("__weakref__", "_batch", "_output", "_source", "is_shared")
    kind: ClassVar[Kind]
    _kinds: ClassVar[dict[bool, type[Held]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in cls.__dict__:
            Held._kinds[cls.is_batch] = cls

    @classmethod
    def holding(cls, data: Batch, is_shared: bool = False) -> Self:
        """Return an object with data; for a tensor, one sample."""
        made = cls.__new__(cls)
        made._hold(data, is_shared)
        return made

    @classmethod
    def awaiting(cls, source: Source, output: int) -> Self:
        """Return an object whose data are the result of a call."""
        made = cls.__new__(cls)
        made._batch, made._source, made._output, made.is_shared = None, source, output, False
        return made

    @staticmethod
    def class_of(is_batch: bool) -> type[Held]:
        """Return the class of batches or of tensors."""
        return Held._kinds[is_batch]

    def _hold(self, data: Batch, is_shared: bool) -> None:
        self._batch: Batch | None = data
        self._source: Source | None = None
        self._output = 0
        self.is_shared = is_shared

    @property
    def data(self) -> Batch:
        """The samples, which are computed now if necessary."""
        found = self._batch
        if found is None:
            source = self._source
            if source is not None:
                self._batch = source.result(self._output)
                self._source = None
            found = self._batch  # another thread may have computed it
            assert found is not None, "dalify bug: a value without data"
        return found

    @property
    def source(self) -> Source | None:
        """The call that will compute the data; None if they exist."""
        return self._source

    @property
    def is_computed(self) -> bool:
        """Whether the data exist."""
        return self._batch is not None

    def value(self) -> Value:
        """Return it as an input of a call."""
        return Value(self.data, self.kind)

    def get(self) -> Any:
        """Return it as a value of ``dalify.eager``: a tensor list, or a tensor for one sample."""
        result = tensor_list(self.data)
        return result if self.is_batch else result[0]

    def evaluate(self) -> Self:
        """Compute the data if necessary, and return the object itself.

        Raises:
            DalifyError: the operator does not support its data; with the line of the call.
        """
        _ = self.data
        return self

    @property
    def dtype(self) -> DType:
        """Element type."""
        return DType.from_type_id(self.data.dtype)

    @property
    def device(self) -> Device:
        """Device of the data."""
        data = self.data
        if data.device == "cpu":
            return Device.CPU
        array = next(iter(data.arrays), None)
        number = None if array is None else array.device.index
        return Device("gpu", number or 0)

    @property
    def layout(self) -> str | None:
        """Letters of the dimensions of a sample; None where they have none."""
        return self.data.layout or None

    def to_device(self, device: Any, force_copy: bool = False) -> Self:
        """Return the data on a device: the object itself if they are there.

        Args:
            device: an argument of ``ndd.device``.
            force_copy: always copy.

        Raises:
            DeviceError: there is no accelerator.
        """
        data = moved(self.data, device, force_copy)
        return self if data is self.data else type(self).holding(data)

    def cpu(self) -> Self:
        """Return the data on the CPU: the object itself if they are there."""
        return self.to_device("cpu")

    def gpu(self, index: int | None = None) -> Self:
        """Return the data on the accelerator: the object itself if they are there.

        Args:
            index: index of the accelerator; None for the current one.
        """
        return self.to_device(Device("gpu", index))

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # == compares elements


def moved(data: Batch, where: Any, force_copy: bool = False) -> Batch:
    """Return samples on a device: the same ones if they are there."""
    target = device(where)
    assert target is not None, "dalify bug: nowhere is no device"
    if target.device_type == "cpu":
        there = data if data.device == "cpu" else TensorListGPU(data).as_cpu()._batch
    else:
        there = _with_number(data if data.device == "gpu" else TensorListCPU(data)._as_gpu()._batch, target.device_id)
    return _copied(data) if there is data and force_copy else there


def _with_number(data: Batch, number: int | None) -> Batch:
    """Return samples on the accelerator of an index; if torch's CPU device simulates it, there is only one."""
    where = None if not data.samples else data.samples[0].device
    if where is None or where.type == "cpu" or (where.index or 0) == number:
        return data
    return data.map(lambda tensor: tensor.to(f"{where.type}:{number}"))


def _copied(data: Batch) -> Batch:
    return data.map(np.copy if data.device == "cpu" else torch.clone)
