"""Simulated CUDA devices: torch's CPU computes, and operations that a real device does not support are errors.

Tensors of a device have its number. An operation raises if it mixes devices, or host and device, or runs on another
stream than the one that the test allows on that device. Calls are those of torch, so whole pipelines run.

torch's hook for functions belongs to a thread; `on_all_threads` installs it where pipelines call torch.
"""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from dalify.data.tensors import batch_of
from dalify.executor.engine import Engine
from dalify.executor.feeds import ExternalFeed
from dalify.executor.stage_runner import StageRunner
from dalify.immediate.lazy import compiled_graph

# They may read both the host and a device, or two devices.
_COPIES = ("copy_", "to", "cpu", "cuda")
_PROPERTIES = ("__get__", "size", "stride", "dim", "numel", "element_size", "data_ptr", "storage_offset", "__len__",
               "is_contiguous", "untyped_storage", "__hash__", "is_floating_point", "is_pinned")  # fmt: skip
_numbers = itertools.count(100)


def _number_of(device: Any) -> int | None:
    """Return the number of a CUDA device; None of other devices."""
    if device is None:
        return None
    found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    if found.type != "cuda":
        return None
    return torch.cuda.current_device() if found.index is None else found.index


class CudaTensor(torch.Tensor):
    """A tensor of the CPU with the number of a device."""

    number: int

    @staticmethod
    def of(tensor: torch.Tensor, number: int) -> CudaTensor:
        made = tensor.as_subclass(CudaTensor)
        made.number = number
        return made

    @property
    def device(self) -> torch.device:  # pyright: ignore[reportIncompatibleVariableOverride]
        return torch.device("cuda", self.number)

    @property
    def is_cuda(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return True

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert a tensor of a device to an array of NumPy")

    def record_stream(self, s: Any) -> None:
        if s.number != self.number:
            raise AssertionError(f"memory of device {self.number} is used by a stream of device {s.number}")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _called(func, args, kwargs or {})


def _plain(value: Any) -> Any:
    return value.as_subclass(torch.Tensor) if isinstance(value, CudaTensor) else value


def _called(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of torch on the CPU, and check the devices of its arguments."""
    name = getattr(func, "__name__", str(func))
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    given = {tensor.number if isinstance(tensor, CudaTensor) else None for tensor in tensors if _counts(tensor)}
    target = _target(name, args, kwargs)
    numbers = given - {None}
    if name not in _COPIES and len(given) > 1:
        raise AssertionError(f"{name} mixes the devices {given}")
    if name in ("tolist", "item", "__bool__", "__int__", "__float__") and numbers:
        active().waits.append(name)
    wanted = target if target is not _SAME else (numbers.pop() if len(numbers) == 1 else None)
    for number in {*numbers, *({wanted} - {None})} if name not in _PROPERTIES else ():
        active().note(name, number)
    is_pinned = kwargs.pop("pin_memory", False)
    if target is not _SAME:
        args, kwargs = _on_cpu(args, kwargs)
    if name == "to" and isinstance(args[0], torch.Tensor) and not given - {target}:
        target = _SAME  # no copy
    with torch._C.DisableTorchFunctionSubclass():
        result = func(*tree_map(_plain, args), **tree_map(_plain, kwargs))
    if name == "copy_":
        active().copied(*args[:2], non_blocking=kwargs.get("non_blocking", False))
        return args[0]
    if name == "to" and target is not _SAME:
        active().copied(wanted, args[0], non_blocking=kwargs.get("non_blocking", False))
        result = result.clone()
    if is_pinned:
        active().pinned.append((result.data_ptr(), result.data_ptr() + result.nbytes, result))
    if name == "is_pinned":
        return active().is_pinned(args[0].data_ptr())
    if wanted is None:
        return result
    out = kwargs.get("out")
    if out is not None:
        return out
    return tree_map(lambda item: CudaTensor.of(item, wanted) if isinstance(item, torch.Tensor) else item, result)


_SAME: Any = object()


def _counts(tensor: torch.Tensor) -> bool:
    """Return whether a tensor cannot be on any device: numbers of the host may be mixed with tensors of a device."""
    return isinstance(tensor, CudaTensor) or tensor.dim() > 0


def _target(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the number of the device that a call names, None for the host; `_SAME` if it names none."""
    if name == "cpu":
        return None
    named = [kwargs["device"]] if kwargs.get("device") is not None else []
    if name == "to":
        named += [item for item in args[1:] if isinstance(item, (str, torch.device))]
    return _number_of(named[0]) if named else _SAME


def _on_cpu(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    cpu = torch.device("cpu")
    args = tuple(cpu if isinstance(item, (str, torch.device)) else item for item in args)
    return args, {name: cpu if name == "device" else value for name, value in kwargs.items()}


class Event:
    """An event that happens immediately."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        active().awaited_events += 1


class Stream:
    """A stream of a device.

    Attributes:
        number: number of the device.
        cuda_stream: number of the stream; 0 for the default one.
        waits: the streams of the events for which it waits.
    """

    def __init__(self, device: Any = None, cuda_stream: int | None = None) -> None:
        number = torch.cuda.current_device() if device is None else _number_of(device)
        assert number is not None, f"a stream of {device}"
        self.number = number
        self.device = torch.device("cuda", number)
        self.cuda_stream = next(_numbers) if cuda_stream is None else cuda_stream
        self.waits: list[Stream] = []

    def wait_event(self, event: Event) -> None:
        self.waits.append(event.stream)

    def wait_stream(self, stream: Stream) -> None:
        self.waits.append(stream)

    def record_event(self) -> Event:
        return Event(self)

    def synchronize(self) -> None: ...


class _Current(threading.local):
    """The current device of a thread, and its current streams."""

    def __init__(self) -> None:
        self.number = 0
        self.streams: dict[int, Stream] = {}


class _Entered:
    """A ``with`` block on a device, or on a stream and its device."""

    def __init__(self, current: _Current, number: int, stream: Stream | None) -> None:
        self._current, self._number, self._stream = current, number, stream

    def __enter__(self) -> None:
        self._before = self._current.number, dict(self._current.streams)
        self._current.number = self._number
        if self._stream is not None:
            self._current.streams[self._number] = self._stream

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._current.number, self._current.streams = self._before


class Devices:
    """Records of the operations on the devices.

    Attributes:
        calls: name of a function, number of the device, and the stream on which it ran.
        copies: for each copy from the host to a device, whether it was asynchronous and read page-locked memory.
        waits: functions for which the host waited.
        awaited_events: number of events for which the host waited.
        pinned: page-locked memory: first address, address after the last, and its tensor.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.current = _Current()
        self.defaults = {number: Stream(number, 0) for number in range(count)}
        self.calls: list[tuple[str, int, Stream]] = []
        self.copies: list[tuple[bool, bool]] = []
        self.waits: list[str] = []
        self.awaited_events = 0
        self.pinned: list[tuple[int, int, torch.Tensor]] = []

    def stream_of(self, number: int) -> Stream:
        return self.current.streams.get(number, self.defaults[number])

    def note(self, name: str, number: int) -> None:
        self.calls.append((name, number, self.stream_of(number)))

    def is_pinned(self, address: int) -> bool:
        return any(first <= address < last for first, last, _ in self.pinned)

    def copied(self, target: Any, source: torch.Tensor, *, non_blocking: bool) -> None:
        is_device = target.number if isinstance(target, CudaTensor) else target
        if isinstance(is_device, int) and not isinstance(source, CudaTensor) and source.numel():
            self.copies.append((non_blocking, self.is_pinned(source.data_ptr())))


_active: list[Devices] = []


def active() -> Devices:
    return _active[-1]


class _Calls(TorchFunctionMode):
    """Calls that create tensors on a device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _called(func, args, kwargs or {})


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*arguments: Any, **options: Any) -> Any:
        with _Calls():
            return function(*arguments, **options)

    return called


@contextmanager
def devices(count: int) -> Iterator[Devices]:
    """Simulate CUDA devices in torch, for pipelines and the caller's thread; the variable DALIFY_DEVICE is set.

    Args:
        count: number of devices; device 0 is the current one of each thread.
    """
    made = Devices.__new__(Devices)
    current = _Current()

    def current_stream(device: Any = None) -> Stream:
        number = current.number if device is None else _number_of(device)
        assert number is not None, f"the stream of {device}"
        return made.stream_of(number)

    def entered(device: Any) -> _Entered:
        number = _number_of(device)
        assert number is not None, f"the device {device}"
        return _Entered(current, number, None)

    replaced: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: count,
        "current_device": lambda: current.number,
        "set_device": lambda number: setattr(current, "number", number),
        "device": entered,
        "Stream": Stream,
        "stream": lambda stream: _Entered(current, stream.number, stream),
        "current_stream": current_stream,
        "synchronize": lambda *_: None,
    }
    with (
        mock.patch.multiple(torch.cuda, **replaced),
        mock.patch.object(torch.accelerator, "device_count", return_value=count),
        mock.patch.dict("os.environ", DALIFY_DEVICE="cuda"),
        mock.patch.object(StageRunner, "compute", _watched(StageRunner.compute)),
        mock.patch.object(ExternalFeed, "_converted", _watched(ExternalFeed._converted)),
        mock.patch.object(Engine, "collect", _watched(Engine.collect)),
        _Calls(),
    ):
        Devices.__init__(made, count)
        made.current = current
        _active.append(made)
        try:
            yield made
        finally:
            # Lazy mode keeps its engines, which would wait for events of these devices when the program ends.
            compiled_graph.PLANS.clear()
            gc.collect()
            _active.pop()


def values_of(batch: Any) -> list[np.ndarray[Any, Any]]:
    """Return the samples of an output of a pipeline."""
    with torch._C.DisableTorchFunction():
        return [np.array(torch.Tensor.numpy(item) if isinstance(item, torch.Tensor) else item)
                for item in batch_of(batch).samples]  # fmt: skip
