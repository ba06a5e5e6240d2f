"""The function ``center_crop``."""

from __future__ import annotations

from typing import Any

from dalify.experimental.torchvision.v2.centercrop import CenterCrop
from dalify.experimental.torchvision.v2.functional.images import computed


def center_crop(inpt: Any, output_size: int | list[int], device: Any = "cpu") -> Any:
    """Crop the center of images, see ``CenterCrop``.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        output_size: ``[height, width]``, or one integer for both.
        device: ``cpu`` or ``gpu``.
    """
    return computed(inpt, device, CenterCrop(output_size)._apply)
