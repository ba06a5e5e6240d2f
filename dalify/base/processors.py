"""The processors and the accelerator that this process may use."""

from __future__ import annotations

import os
import sys
import time
from contextlib import AbstractContextManager
from contextvars import ContextVar

from dalify.base.context_stack import Assigned
from dalify.base.optional import torch

_VARIABLE = "DALIFY_DEVICE"
VIDEO_VARIABLE = "DALIFY_VIDEO_DECODER"
HOST_DECODER = "host"
_device_id: ContextVar[int | None] = ContextVar("_device_id", default=None)


def available_processors() -> int:
    """Return the number of processors on which this process may run, which may be fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def thread_seconds() -> float:
    """Return the CPU time of this thread, in seconds.

    On Windows, it is the elapsed time, because the CPU time has a resolution of 1/64 s and would be 0 for most chunks.
    """
    return time.perf_counter() if sys.platform == "win32" else time.thread_time()


def emulated() -> bool:
    """Return whether GPU plans run on torch's CPU device: the environment variable is ``DALIFY_DEVICE=cpu``."""
    return _device_of_variable() == "cpu"


def has_accelerator() -> bool:
    """Return whether GPU plans can run: torch finds an accelerator, or its CPU device emulates one."""
    return emulated() or torch.accelerator.is_available()


def default_device() -> str | None:
    """Return the torch device of GPU plans without a ``device_id``; None if there is none.

    It is the device in the environment variable ``DALIFY_DEVICE``, otherwise torch's accelerator.
    """
    device = _device_of_variable()
    if device:
        return device
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return None if found is None else found.type


def using_device(device_id: int | None) -> AbstractContextManager[None]:
    """Build or run a pipeline for an accelerator inside a ``with`` block.

    Args:
        device_id: index of the accelerator; None for the current one.
    """
    return Assigned(_device_id, device_id)


def device_of_build() -> str | None:
    """Return `default_device` with the index of the pipeline that is being built.

    Trials on another device would allocate memory there.
    """
    device, number = default_device(), _device_id.get()
    if device != "cuda" or number is None or number >= torch.cuda.device_count():
        return device
    return f"{device}:{number}"


def video_hardware() -> str | None:
    """Return the hardware that decodes videos, with the device index if known; None for the host.

    NVDEC is on the pipeline's GPU, unless the environment variable names another GPU.
    """
    value = os.environ.get(VIDEO_VARIABLE, "").lower()
    if value in ("", HOST_DECODER):
        return None
    number = _device_id.get()
    return f"{value}:{number}" if value == "cuda" and number is not None else value


def _device_of_variable() -> str:
    return os.environ.get(_VARIABLE, "").lower()
