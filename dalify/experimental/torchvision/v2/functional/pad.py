"""The function ``pad``."""

from __future__ import annotations

from typing import Any

from dalify.experimental.torchvision.v2.functional.images import computed
from dalify.experimental.torchvision.v2.pad import Pad, PaddingMode


def pad(
    inpt: Any,
    padding: list[int],
    fill: int | float = 0,
    padding_mode: PaddingMode = "constant",
    device: Any = "cpu",
) -> Any:
    """Pad images, see ``Pad``.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        padding: one number for all sides, two for left and right, top and bottom, or four: left, top, right, bottom.
        fill: value of constant padding, or one per channel.
        padding_mode: ``constant``, ``edge``, ``reflect`` or ``symmetric``.
        device: ``cpu`` or ``gpu``.
    """
    return computed(inpt, device, Pad(padding, fill, padding_mode)._apply)
