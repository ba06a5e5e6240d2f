"""The functions to_grayscale and rgb_to_grayscale."""

from __future__ import annotations

from typing import Any

from dalify.experimental.torchvision.v2.color import Grayscale
from dalify.experimental.torchvision.v2.functional.images import computed


def to_grayscale(inpt: Any, num_output_channels: int = 1, device: Any = "cpu") -> Any:
    """Convert images to gray, see ``Grayscale``.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        num_output_channels: 1, or 3 equal channels.
        device: ``cpu`` or ``gpu``.
    """
    return computed(inpt, device, Grayscale(num_output_channels)._apply)


rgb_to_grayscale = to_grayscale
