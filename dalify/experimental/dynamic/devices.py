"""Devices of dynamic mode: ``ndd.device("gpu:0")``."""

from __future__ import annotations

from typing import Any

from dalify.base.context_stack import ContextStack
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, option_error_text
from dalify.base.optional import is_loaded, torch

_KINDS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}
_DLPACK = {1: "cpu", 2: "gpu"}
_blocks: ContextStack[Device] = ContextStack()


class Device:
    """The CPU or an accelerator. A ``with`` block makes it the target of ``gpu()``.

    Args:
        name: ``cpu``, ``gpu``, ``gpu:1``; ``cuda`` is the same as ``gpu``.
        device_id: index of the accelerator; by default the current one.

    Raises:
        ArgumentTypeError: ``name`` is not a string.
        ArgumentValueError: the name is not the name of a device, or an index was specified for the CPU or twice.
    """

    __slots__ = ("device_id", "device_type")
    CPU: Device

    def __init__(self, name: str, device_id: int | None = None) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError.here(f"{name!r} is not the name of a device.", hint="Use 'cpu', 'gpu' or 'gpu:0'.")
        kind, _, number = name.partition(":")
        if kind not in _KINDS:
            raise ArgumentValueError.here(option_error_text("device", kind, ("cpu", "gpu")))
        if number:
            if device_id is not None:
                raise ArgumentValueError.here(f"{name!r} already contains the number of the device.")
            if not number.isdecimal():
                raise ArgumentValueError.here(f"{number!r} is not the number of a device.", hint="Use 'gpu:0'.")
            device_id = int(number)
        if _KINDS[kind] == "cpu":
            if device_id is not None:
                raise ArgumentValueError.here("the CPU has no device number.", hint="Use 'cpu'.")
        elif device_id is None:
            device_id = Device.default_device_id("gpu")
        self.device_type = _KINDS[kind]
        self.device_id = device_id

    @staticmethod
    def current() -> Device:
        """Return the device of the innermost ``with`` block of this thread; otherwise the accelerator, or the CPU."""
        if _blocks.innermost is not None:
            return _blocks.innermost
        return Device("gpu") if torch.accelerator.is_available() else Device.CPU

    @staticmethod
    def default_device_id(device_type: str) -> int | None:
        """Return the index of the current device of a type; None for the CPU."""
        if device_type == "cpu":
            return None
        inner = next((item.device_id for item in reversed(_blocks.chosen) if item.device_type == "gpu"), None)
        if inner is not None:
            return inner
        return torch.accelerator.current_device_index() if torch.accelerator.is_available() else 0

    @staticmethod
    def type_from_dlpack(dev_type: Any) -> str:
        """Return ``cpu`` or ``gpu`` for a device type of DLPack.

        Raises:
            ArgumentValueError: the device type is not supported.
        """
        kind = _DLPACK.get(int(dev_type))
        if kind is None:
            raise ArgumentValueError.here(f"the DLPack device {dev_type} is not supported.")
        return kind

    @staticmethod
    def from_dlpack(dlpack_device: Any) -> Device:
        """Return the device of an object that supports DLPack."""
        kind, number = dlpack_device.__dlpack_device__()
        name = Device.type_from_dlpack(kind)
        return Device(name, None if name == "cpu" else int(number))

    def __enter__(self) -> Device:
        """Make the device the current one of this thread."""
        _blocks.chosen.append(self)
        return self

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        """Restore the previous device."""
        _blocks.chosen.pop()

    def __eq__(self, other: object) -> bool:
        """Compare with another device, or with its name."""
        if isinstance(other, str):
            try:
                other = Device(other)
            except ArgumentValueError:
                return False
        if not isinstance(other, Device):
            return NotImplemented
        return (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __str__(self) -> str:
        """Return the name, ``gpu:0``, from which an equal device can be created."""
        return self.device_type if self.device_id is None else f"{self.device_type}:{self.device_id}"

    def __repr__(self) -> str:
        number = "" if self.device_id is None else f", device_id={self.device_id}"
        return f"Device(device_type={self.device_type!r}{number})"


Device.CPU = Device("cpu")


def device(obj: Any, id: int | None = None) -> Device | None:
    """Convert a value to a device; None for None.

    Args:
        obj: a Device, a name, or a torch device.
        id: index of the accelerator, for a name without an index.

    Raises:
        ArgumentTypeError: the value does not describe a device.
        ArgumentValueError: the name is not the name of a device, or an index was specified twice or without a name.
    """
    if obj is None:
        return None
    if isinstance(obj, str):
        return Device(obj, id)
    if id is not None:
        raise ArgumentValueError.here("id= is only valid with the name of a device.")
    if isinstance(obj, Device):
        return obj
    if is_loaded("torch") and isinstance(obj, torch.device):
        return Device.CPU if obj.type == "cpu" else Device("gpu", obj.index)
    raise ArgumentTypeError.here(f"{obj!r} is not a device.", hint="Use 'cpu', 'gpu' or 'gpu:0'.")
