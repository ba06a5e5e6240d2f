"""Fills regions of samples on a device; elsewhere, `dalify.operators.erase` assigns slices."""

from __future__ import annotations

import numpy as np

from dalify.data.samples import NoDeviceKernelError, Samples
from dalify.kernels.dispatch import also_on_device

__all__ = ["erase_regions"]


@also_on_device("erasing")
def erase_regions(out: Samples, x: Samples, regions: np.ndarray, fill: np.ndarray, channel_axis: int) -> None:
    """Copy samples on a device and fill regions of them.

    Args:
        out: N samples of the shapes and dtype of `x`, output.
        x: N samples with at most four axes.
        regions: int [N, k, 2, axes]: starts and ends; empty where an end is not above the start.
        fill: float [N, C], or [N, 1] for all channels.
        channel_axis: of the samples.

    Raises:
        NoDeviceKernelError: they are not on a device, or of a kind that the kernel does not support.
    """
    raise NoDeviceKernelError
