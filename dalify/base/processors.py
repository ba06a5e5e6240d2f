"""The processors and the accelerator that this process may use."""

from __future__ import annotations

import os

from dalify.base.optional import torch

__all__ = ["available_processors", "emulated", "has_accelerator"]


def available_processors() -> int:
    """Return the number of processors on which this process may run, which may be fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def emulated() -> bool:
    """Return whether GPU plans run on torch's CPU device: the environment variable is ``DALIFY_DEVICE=cpu``."""
    return os.environ.get("DALIFY_DEVICE", "").lower() == "cpu"


def has_accelerator() -> bool:
    """Return whether GPU plans can run: torch finds an accelerator, or its CPU device emulates one."""
    return emulated() or torch.accelerator.is_available()
