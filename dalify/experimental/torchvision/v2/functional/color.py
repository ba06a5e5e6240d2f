"""to_grayscale and rgb_to_grayscale."""

from __future__ import annotations

from typing import Any

from dalify.experimental.torchvision.v2.color import check_channels, gray
from dalify.experimental.torchvision.v2.functional.images import computed

__all__ = ["rgb_to_grayscale", "to_grayscale"]


def to_grayscale(inpt: Any, num_output_channels: int = 1, device: Any = "cpu") -> Any:
    """Convert images to gray, see ``Grayscale``.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        num_output_channels: 1, or 3 equal channels.
        device: ``cpu`` or ``gpu``.
    """
    channels = check_channels(num_output_channels)
    return computed(inpt, device, lambda images: gray(images, channels))


rgb_to_grayscale = to_grayscale
