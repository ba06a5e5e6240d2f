"""The processors and the accelerator that this process may use."""

from __future__ import annotations

import os

from dalify.base.optional import torch

__all__ = ["available_processors", "default_device", "emulated", "has_accelerator"]

_VARIABLE = "DALIFY_DEVICE"


def available_processors() -> int:
    """Return the number of processors on which this process may run, which may be fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def emulated() -> bool:
    """Return whether GPU plans run on torch's CPU device: the environment variable is ``DALIFY_DEVICE=cpu``."""
    return _device_of_variable() == "cpu"


def has_accelerator() -> bool:
    """Return whether GPU plans can run: torch finds an accelerator, or its CPU device emulates one."""
    return emulated() or torch.accelerator.is_available()


def default_device() -> str | None:
    """Return the torch device of GPU plans without a ``device_id``; None if there is none.

    It is that of the environment variable ``DALIFY_DEVICE``, or else torch's accelerator.
    """
    device = _device_of_variable()
    if device:
        return device
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return None if found is None else found.type


def _device_of_variable() -> str:
    return os.environ.get(_VARIABLE, "").lower()
