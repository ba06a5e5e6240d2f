"""The function ``resize``."""

from __future__ import annotations

from typing import Any

from dalify.experimental.torchvision.v2.functional.images import computed
from dalify.experimental.torchvision.v2.interpolation import InterpolationMode
from dalify.experimental.torchvision.v2.resize import Resize


def resize(
    inpt: Any,
    size: list[int],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
    device: Any = "cpu",
) -> Any:
    """Resize images, see ``Resize``.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        size: an integer for the shorter side, ``[height, width]``, or None.
        interpolation: a member of ``InterpolationMode``, or Pillow's number.
        max_size: maximum of the longer side.
        antialias: whether to apply an antialiasing filter when downscaling.
        device: ``cpu`` or ``gpu``.
    """
    return computed(inpt, device, Resize(size, interpolation, max_size, antialias)._apply)
