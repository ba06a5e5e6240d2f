"""Types of the arguments of kernels, in addition to the classes of NumPy, torch and `dalify.data`."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples

Vectors = np.ndarray | list[np.ndarray]
"""A per-sample list: ``[N, k]``, or N vectors of different lengths; with one entry per frame, ``[N, F, k]`` or N
arrays ``[F, k]``."""

AnySamples = Samples | DeviceSamples
"""All samples of a chunk, for a kernel of the CPU and the GPU."""


class Memory(Protocol):
    """Memory for samples of the only output of a batchwise kernel, which saves a copy."""

    def __call__(self, start: int, count: int, shape: tuple[int, ...], /) -> np.ndarray:
        """Return an array ``[count, *shape]`` for the samples from ``start``."""
        ...
