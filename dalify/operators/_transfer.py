"""The copy of a batch between the CPU and the GPU. The executor performs it, with streams and pinned memory."""

from __future__ import annotations

from dalify.registry import Spec, structural


@structural(mixed=True)
def _transfer(x: Spec, /) -> Spec:
    """Copy samples to the other device.

    Args:
        x: any data.

    Returns:
        the same data on the device of the node.
    """
    return x
