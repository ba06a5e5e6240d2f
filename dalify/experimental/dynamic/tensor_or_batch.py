"""The base class of tensors and batches of dynamic mode."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from dalify.data import Batch, moved
from dalify.experimental.dynamic.devices import Device, device
from dalify.experimental.dynamic.dtypes import DType
from dalify.immediate import Deferred, Source


class TensorOrBatch(Deferred):
    """A tensor or a batch."""

    __slots__ = ()
    _kinds: ClassVar[dict[bool, type[TensorOrBatch]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in cls.__dict__:
            TensorOrBatch._kinds[cls.is_batch] = cls

    @classmethod
    def from_data(cls, data: Batch, is_exposed: bool = False) -> Self:
        """Return an object with existing data: a batch, or for a tensor a batch of one sample."""
        made = cls.__new__(cls)
        made.set_data(data, is_exposed)
        return made

    @classmethod
    def from_call(cls, source: Source, output: int) -> Self:
        """Return an object whose data are an output of a deferred call."""
        made = cls.__new__(cls)
        Deferred.__init__(made, source, output)
        return made

    @staticmethod
    def class_of(is_batch: bool) -> type[TensorOrBatch]:
        """Return the class of batches or of tensors."""
        return TensorOrBatch._kinds[is_batch]

    def evaluate(self) -> Self:
        """Compute the data if necessary, and return the object itself.

        Raises:
            DalifyError: the operator does not support its data; with the line of the call.
        """
        _ = self.batch
        return self

    @property
    def dtype(self) -> DType:
        """Element type."""
        return DType.from_type_id(self.batch.dtype)

    @property
    def device(self) -> Device:
        """Device of the data."""
        data = self.batch
        if data.device == "cpu":
            return Device.CPU
        array = next(iter(data.arrays), None)
        number = None if array is None else array.device.index
        return Device("gpu", number or 0)

    @property
    def layout(self) -> str | None:
        """Letters of the dimensions of a sample; None without a layout."""
        return self.batch.layout or None

    def to_device(self, device: Any, force_copy: bool = False) -> Self:
        """Return the data on a device; the object itself if they are already there.

        Args:
            device: an argument of ``ndd.device``.
            force_copy: always copy.

        Raises:
            DeviceError: there is no accelerator.
        """
        data = on_device(self.batch, device, force_copy)
        return self if data is self.batch else type(self).from_data(data)

    def cpu(self) -> Self:
        """Return the data on the CPU; the object itself if they are already there."""
        return self.to_device("cpu")

    def gpu(self, index: int | None = None) -> Self:
        """Return the data on the accelerator; the object itself if they are already there.

        Args:
            index: index of the accelerator; None for the current one.
        """
        return self.to_device(Device("gpu", index))

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # == compares elements


def on_device(data: Batch, where: Any, force_copy: bool = False) -> Batch:
    """Return samples on a device; the same object if they are already there."""
    target = device(where)
    assert target is not None, "dalify bug: no device"
    there = _with_number(moved(data, target.device_type), target.device_id)
    return data.copied() if there is data and force_copy else there


def _with_number(data: Batch, number: int | None) -> Batch:
    """Return samples on the accelerator with an index; if torch's CPU device emulates it, there is only one."""
    where = data.samples[0].device if data.device == "gpu" and data.samples else None
    if where is None or where.type == "cpu" or (where.index or 0) == number:
        return data
    return data.map(lambda tensor: tensor.to(f"{where.type}:{number}"))
