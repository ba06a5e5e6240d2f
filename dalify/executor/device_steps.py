"""Copies between the CPU and the device, and which device that is.

``device="gpu"`` means the accelerator that torch finds. With ``DALIFY_DEVICE=cpu`` in the environment GPU plans run
on torch's CPU device: the whole GPU path then works, and is tested, on machines without an accelerator.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dalify.base.errors import DeviceError
from dalify.base.optional import torch
from dalify.data import Array, Batch
from dalify.executor.frame import Frame
from dalify.graph import Node

__all__ = ["TransferStep", "device_stream", "emulated", "find_device"]

_VARIABLE = "DALIFY_DEVICE"


def emulated() -> bool:
    """Tell whether GPU plans run on torch's CPU device, by the environment variable ``DALIFY_DEVICE=cpu``."""
    return os.environ.get(_VARIABLE, "").lower() == "cpu"


def find_device(device_id: int | None, node: Node) -> str:
    """Return the torch device on which ``device="gpu"`` runs.

    Args:
        device_id: number of the accelerator; None for the current one.
        node: the first node that needs it, for the message.

    Raises:
        DeviceError: there is no accelerator, or none of that number.
    """
    if emulated():
        return "cpu"
    wanted = os.environ.get(_VARIABLE)
    if wanted is None:
        found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        if found is None:
            raise DeviceError(
                "the GPU was asked for, but torch finds no accelerator on this machine.",
                line=node.line,
                operator=".gpu()" if node.operator.name == "_transfer" else node.operator.public_name,
                hint=f"Use device='cpu', or set the environment variable {_VARIABLE}=cpu to run GPU pipelines on "
                "the CPU.",
            )
        wanted = found.type
        count = torch.accelerator.device_count()
        if device_id is not None and device_id >= count:
            raise DeviceError(
                f"device_id={device_id} does not exist: torch finds {count} device{'s' if count > 1 else ''} of "
                f"type {wanted}.",
                line=node.line,
            )
    return wanted if device_id is None or ":" in wanted else f"{wanted}:{device_id}"


@contextmanager
def device_stream(stream: Any) -> Iterator[None]:
    """Run what follows on the pipeline's own stream, where the device has streams."""
    if stream is None:
        yield
    else:
        with torch.cuda.stream(stream):
            yield


class TransferStep:
    """Copies a batch to the device or back."""

    def __init__(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> None:
        self.node = node
        self.inputs = inputs
        self.outputs = outputs

    def run(self, frame: Frame) -> None:
        """Copy; to the device without waiting, to the CPU with."""
        batch = frame.values[self.inputs[0] or 0]
        result = None
        if batch is not None:
            to_gpu = self.node.output_device == "gpu"
            if batch.dense is not None:
                dense, samples = _copied(batch.dense, to_gpu, frame.torch_device), None
            else:
                dense, samples = None, [_copied(sample, to_gpu, frame.torch_device) for sample in batch.samples]
            result = Batch(dense, samples, batch.layout, self.node.output_device, batch.origins, batch.dtype)
        frame.values[self.outputs[0]] = result


def _copied(array: Array, to_gpu: bool, device: str) -> Array:
    if not to_gpu:
        return array.detach().cpu().numpy().copy() if array.device.type == "cpu" else array.cpu().numpy()
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = np.array(array, order="C")  # torch warns of memory that must not be written
    tensor = torch.from_numpy(array)
    return tensor.clone() if device == "cpu" else tensor.to(device, non_blocking=True)
