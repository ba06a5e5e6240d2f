"""Selection of the device, and copies between the CPU and the device.

``device="gpu"`` means the accelerator that torch finds. With the environment variable ``DALIFY_DEVICE=cpu``, GPU plans
run on torch's CPU device, so that they can be tested on machines without an accelerator.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

from dalify.base.errors import DeviceError
from dalify.base.optional import torch
from dalify.base.processors import default_device, emulated
from dalify.base.wording import counted
from dalify.data import Batch, BufferPool
from dalify.data.batch import (
    Ragged,
    array_of,
    block_offsets,
    joined_on_device,
    packed,
    stack_samples,
    tensor_of,
    tensor_of_bytes,
    torch_dtype,
)
from dalify.data.pool import pinned
from dalify.executor.frame import Frame
from dalify.executor.steps import Step, device_error
from dalify.graph import Node
from dalify.kernels.arrays.upload_torch import uploaded_bytes
from dalify.registry import Role


def find_device(device_id: int | None, node: Node) -> str:
    """Return the torch device for ``device="gpu"``.

    Args:
        device_id: index of the accelerator; None for the current one.
        node: the first node that needs it, for the message.

    Returns:
        The name with the index, so that a later ``torch.cuda.set_device`` has no effect.

    Raises:
        DeviceError: there is no such accelerator, or it cannot be used.
    """
    if emulated():
        return "cpu"
    operator = ".gpu()" if node.role is Role.TRANSFER else node.operator.public_name
    hint = "Use device='cpu', or set the environment variable DALIFY_DEVICE=cpu to run GPU pipelines on the CPU."
    device = default_device()
    if device is None:
        reason = _reason_for_no_device()
        raise DeviceError(
            f"device='gpu' was requested, but torch finds no accelerator on this machine{reason}.",
            line=node.line,
            operator=operator,
            hint=f"Update the driver, or install a torch that is built for it. {hint}" if "too old" in reason else hint,
        )
    if device_id is not None and ":" not in device:
        count = _device_count()
        if 0 < count <= device_id:
            raise DeviceError(
                f"device_id={device_id} does not exist: torch finds {counted(count, 'device')} of type {device}.",
                line=node.line,
            )
        device = f"{device}:{device_id}"
    try:
        return str(torch.empty(1, device=device).device)
    except Exception as error:  # for example an unknown name, an old driver, a device reserved by another process
        text = str(error).strip().split("\n", 1)[0].rstrip(".")
        variable = os.environ.get("DALIFY_DEVICE", "")
        chosen = f" (DALIFY_DEVICE={variable})" if variable else ""
        raise DeviceError(
            f"the device {device!r}{chosen} cannot be used: {text}.",
            line=node.line,
            operator=operator,
            hint=hint,
        ) from error


def _device_count() -> int:
    """Return the number of accelerators; 0 if torch cannot count them."""
    try:
        return torch.accelerator.device_count()
    except RuntimeError:  # torch 2.7 for CUDA without a driver
        return 0


def _reason_for_no_device() -> str:
    """Return the reason why torch finds no accelerator, as the end of a sentence; "" if unknown."""
    if torch.version.cuda is None and torch.version.hip is None:
        return " (this torch is built without CUDA and ROCm)"
    try:
        torch.cuda.init()
    except Exception as error:  # no driver, or a driver that is too old for this torch
        return f" ({str(error).strip().split('. ', 1)[0].rstrip('.')})"
    return ""


def device_stream(stream: Any, event: Any) -> AbstractContextManager[None]:
    """Run a ``with`` block on a stream of the device.

    Args:
        stream: the stream; None if the device has no streams.
        event: event that the stream waits for first; None for no event.
    """
    return nullcontext() if stream is None else _on_stream(stream, event)


@contextmanager
def _on_stream(stream: Any, event: Any) -> Generator[None, None, None]:
    if event is not None:
        stream.wait_event(event)
    with torch.cuda.stream(stream):
        yield


def share_fed(batches: list[Batch], stream: Any) -> Any:
    """Return the event after which the pipeline's stream may read data fed on the device; None without such data.

    The caller's stream may still be writing them.
    """
    if all(batch.device != "gpu" for batch in batches):
        return None
    _mark_use(batches, stream)
    return torch.cuda.current_stream(stream.device).record_event()


def synchronize_consumer(batches: list[Batch | None], event: Any, device: str | None) -> None:
    """Make the caller's stream wait for results, and record that it uses their memory.

    Otherwise torch would reuse the memory of a released tensor for the next batch while the caller's kernels read it.
    """
    stream = torch.cuda.current_stream(device)
    stream.wait_event(event)
    _mark_use(batches, stream)


def _mark_use(batches: Sequence[Batch | None], stream: Any) -> None:
    for batch in batches:
        if batch is not None and batch.device == "gpu":
            for tensor in batch.arrays if batch.ragged is None else [batch.ragged[0]]:
                tensor.record_stream(stream)


def has_page_locked_memory(device: str) -> bool:
    """Return whether copies from page-locked memory to a torch device are asynchronous."""
    return device.startswith("cuda")


def is_page_locked(batch: Batch) -> bool:
    """Return whether the samples of a batch on the CPU are one contiguous array in page-locked memory."""
    dense = batch.dense
    return dense is not None and _can_be_shared(dense) and tensor_of(dense).is_pinned()


def uploaded_batch(batch: Batch, device: str) -> Batch:
    """Return a copy of a batch on a torch device, by one asynchronous transfer on torch's current stream.

    The samples may be modified afterwards. Samples of equal shape become one tensor.
    """
    dtype, numpy_dtype = torch_dtype(batch.dtype), batch.dtype.numpy
    if batch.dense is not None or batch.is_uniform:
        shape = (len(batch), *batch.shapes()[0])

        def fill(block: np.ndarray[Any, Any]) -> None:
            target = block.view(numpy_dtype).reshape(shape)
            if batch.dense is None:
                stack_samples(batch.samples, target)
            else:
                np.copyto(target, batch.dense)

        dense = uploaded_bytes(math.prod(shape) * numpy_dtype.itemsize, device, fill).view(dtype).view(shape)
        return Batch(dense, None, batch.layout, "gpu", batch.origins, batch.dtype)
    offsets, size_bytes = block_offsets(batch.shape_array(), numpy_dtype.itemsize)
    block = uploaded_bytes(size_bytes, device, lambda block: packed(batch, lambda _: block))
    return Batch(None, None, batch.layout, "gpu", batch.origins, batch.dtype, (block, offsets, batch.shape_array()))


class PendingCopies:
    """Keeps the sources of asynchronous copies to the device alive until the copies are done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[Any, list[Batch | None]]] = []

    def keep(self, batches: list[Batch | None], event: Any) -> None:
        """Keep batches until an event has happened; release batches whose event has happened."""
        with self._lock:
            self._kept = [item for item in self._kept if not item[0].query()]
            self._kept.append((event, batches))

    def wait(self) -> None:
        """Wait for all copies, and release their sources."""
        with self._lock:
            kept, self._kept = self._kept, []
        with suppress(RuntimeError):  # a device that has failed does not copy
            for event, _ in kept:
                event.synchronize()


class TransferStep(Step):
    """Copies a batch to the device or back."""

    def __init__(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> None:
        super().__init__(node, inputs, outputs)
        self._staging = BufferPool(pinned)

    def run(self, frame: Frame) -> None:
        """Copy the batch; copies to a device with streams are asynchronous."""
        batch = frame.values[self.inputs[0] or 0]
        result = None
        if batch is not None:
            try:
                result = self._send(batch, frame) if self.node.output_device == "gpu" else self._to_host(batch)
            except Exception as error:
                refusal = device_error(error, self.node)
                if refusal is None:
                    raise
                raise refusal from error
        frame.values[self.outputs[0]] = result

    def _send(self, batch: Batch, frame: Frame) -> Batch:
        """Return a copy on the device, made on the stream for copies; only the stream of the kernels waits for it."""
        stream = frame.copy_stream
        if stream is None:
            return self._to_device(batch, frame)
        with device_stream(stream, None):
            result = self._to_device(batch, frame)
            event = stream.record_event()
        kernels = torch.cuda.current_stream(stream.device)
        kernels.wait_event(event)
        _mark_use([result], kernels)
        return result

    def _to_device(self, batch: Batch, frame: Frame) -> Batch:
        # Without a stream for copies, nothing keeps the host memory until the copy has ended, so it must end here.
        is_kept = frame.copy_stream is not None
        device = frame.torch_device
        if batch.dense is not None:
            dense = self._copied(batch.dense) if device == "cpu" else self._upload(batch, frame, is_kept)
            return Batch(dense, None, batch.layout, "gpu", batch.origins, batch.dtype)
        parts = (batch,) if batch.ragged is not None else batch.parts
        if not parts:
            staged = packed(batch, self._bytes)
            if device == "cpu":  # the staging memory is device memory
                host, starts, shapes = _ragged_of(staged)
                ragged = tensor_of_bytes(host), starts, shapes
                return Batch(None, None, batch.layout, "gpu", batch.origins, batch.dtype, ragged)
            frame.staged.append(staged)
            parts = (staged,)
        size_bytes = sum(len(_ragged_of(part)[0]) for part in parts)
        if device == "cpu":
            block = tensor_of_bytes(self._bytes(size_bytes))
        else:
            block = torch.empty(size_bytes, dtype=torch.uint8, device=device)
        offsets: list[np.ndarray[Any, Any]] = []
        start = 0
        for part in parts:  # one copy per chunk
            host, starts, _ = _ragged_of(part)
            block[start : start + len(host)].copy_(tensor_of(host), non_blocking=is_kept)
            offsets.append(starts + start)
            start += len(host)
        ragged = block, np.concatenate(offsets), batch.shape_array()
        return Batch(None, None, batch.layout, "gpu", batch.origins, batch.dtype, ragged)

    def _upload(self, batch: Batch, frame: Frame, is_kept: bool) -> Any:
        """Return a copy of an array on the device; data in pageable memory are staged in page-locked memory."""
        array = batch.dense
        assert array is not None, "dalify bug: not one array"
        device = frame.torch_device
        if not array.size:
            return torch.empty(array.shape, dtype=torch_dtype(batch.dtype), device=device)
        if not (is_page_locked(batch) if has_page_locked_memory(device) else _can_be_shared(array)):
            # For example constants. Data of users and of other processes are staged already; see `StagingStep`.
            staged = self._staging.empty(array.shape, array.dtype)
            np.copyto(staged, array)
            frame.staged.append(Batch(staged, dtype=batch.dtype))
            array = staged
        return tensor_of(array).to(device, non_blocking=is_kept)

    def _bytes(self, size_bytes: int) -> np.ndarray[Any, Any]:
        return self._staging.empty((size_bytes,), np.dtype(np.uint8))

    def _copied(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy as a tensor of torch's CPU device, in reused memory, because new memory causes page faults."""
        if not array.size:
            return tensor_of(array).clone()
        target = self._staging.empty(array.shape, array.dtype)
        np.copyto(target, array)
        return tensor_of(target)

    def _to_host(self, batch: Batch) -> Batch:
        if batch.dense is not None:
            dense = array_of(self._download(batch.dense), batch.dtype)
            return Batch(dense, None, batch.layout, "cpu", batch.origins, batch.dtype)
        block, offsets, shapes = joined_on_device(batch) if batch.ragged is None else batch.ragged
        ragged = self._download(block).numpy(), offsets, shapes
        return Batch(None, None, batch.layout, "cpu", batch.origins, batch.dtype, ragged)

    def _download(self, tensor: Any) -> Any:
        """Return a copy on the CPU, in page-locked memory; waits only for the pipeline's stream."""
        tensor = tensor.detach()
        if tensor.device.type == "cpu":
            return tensor.clone()
        if tensor.device.type != "cuda":
            return tensor.cpu()
        size_bytes = tensor.numel() * tensor.element_size()
        host = tensor_of(self._staging.empty((size_bytes,), np.dtype(np.uint8)))
        host = host.view(tensor.dtype).view(tensor.shape)
        host.copy_(tensor, non_blocking=True)
        torch.cuda.current_stream(tensor.device).synchronize()
        return host


def _can_be_shared(array: np.ndarray[Any, Any]) -> bool:
    return array.flags.c_contiguous and array.flags.writeable  # torch warns about read-only memory


def _ragged_of(batch: Batch) -> Ragged:
    assert batch.ragged is not None, "dalify bug: a part that is not a block"
    return batch.ragged
