"""CUDA streams: ``ndd.stream()``.

They exist only on NVIDIA accelerators. By default, work is submitted to torch's current stream.
"""

from __future__ import annotations

import threading
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DeviceError
from dalify.base.optional import torch

_CUDA_PROTOCOL_VERSION = 0
_local = threading.local()
_defaults: dict[int, Stream] = {}


class Stream:
    """A stream; ``ndd.stream`` creates one.

    Args:
        stream: a torch stream, an object with ``__cuda_stream__``, an address, or ``Stream.create_new``.
        device_id: index of the accelerator for a new stream.

    Raises:
        DeviceError: CUDA is not available.
        ArgumentTypeError: the value is not a stream.
    """

    create_new = object()
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, *, stream: Any = create_new, device_id: int | None = None) -> None:
        if not torch.cuda.is_available():
            raise DeviceError.here("streams are not available: torch finds no CUDA device.")
        if stream is Stream.create_new:
            stream = torch.cuda.Stream(device_id)
        elif isinstance(stream, Stream):
            stream = stream.torch_stream
        elif isinstance(stream, int):
            stream = torch.cuda.ExternalStream(stream, device_id)
        elif not isinstance(stream, torch.cuda.Stream):
            if not hasattr(stream, "__cuda_stream__"):
                raise ArgumentTypeError.here(f"{stream!r} is not a stream.")
            stream = torch.cuda.ExternalStream(stream.__cuda_stream__()[1], device_id)
        if device_id is not None and stream.device_index != device_id:
            raise ArgumentValueError.here(f"this stream is on the device {stream.device_index}, not on {device_id}.")
        self.torch_stream = stream

    @property
    def handle(self) -> int:
        """Address of the stream."""
        return self.torch_stream.cuda_stream

    @property
    def device_id(self) -> int:
        """Index of the accelerator."""
        return self.torch_stream.device_index

    def synchronize(self) -> None:
        """Wait until all work on the stream has finished."""
        self.torch_stream.synchronize()

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the version of this protocol, and the address."""
        return _CUDA_PROTOCOL_VERSION, self.handle

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same stream of the same device."""
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.handle, self.device_id) == (other.handle, other.device_id)

    def __repr__(self) -> str:
        return f"Stream(handle={self.handle:#x}, device_id={self.device_id})"


def stream(*, stream: Any = Stream.create_new, device_id: int | None = None) -> Stream | None:
    """Return a new stream, or a wrapper of an existing one; None for None.

    Args:
        stream: see ``Stream``.
        device_id: index of the accelerator.
    """
    if stream is None:
        return None
    return stream if isinstance(stream, Stream) else Stream(stream=stream, device_id=device_id)


def get_current_stream() -> Stream | None:
    """Return the stream of this thread's calls; None for torch's current one."""
    return getattr(_local, "stream", None) or get_default_stream()


def get_default_stream(device_id: int | None = None) -> Stream | None:
    """Return the stream that ``set_default_stream`` has set for a device; None if it has not set one."""
    return _defaults.get(device_id or 0)


def set_current_stream(cuda_stream: Any) -> None:
    """Set the stream of this thread's calls; None for the default one."""
    _local.stream = stream(stream=cuda_stream)


def set_default_stream(cuda_stream: Any, device_id: int | None = None) -> None:
    """Set the stream of all threads without their own one; None for torch's current one."""
    chosen = stream(stream=cuda_stream, device_id=device_id)
    if chosen is None:
        _defaults.pop(device_id or 0, None)
    else:
        _defaults[chosen.device_id] = chosen
