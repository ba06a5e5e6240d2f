"""The functions horizontal_flip and vertical_flip."""

from __future__ import annotations

from typing import Any

from dalify.experimental.torchvision.v2.functional.images import computed


def horizontal_flip(inpt: Any, device: Any = "cpu") -> Any:
    """Flip images horizontally.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        device: ``cpu`` or ``gpu``.
    """
    return computed(inpt, device, lambda images: images.call("flip", horizontal=1, vertical=0))


def vertical_flip(inpt: Any, device: Any = "cpu") -> Any:
    """Flip images vertically.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        device: ``cpu`` or ``gpu``.
    """
    return computed(inpt, device, lambda images: images.call("flip", horizontal=0, vertical=1))
