"""The function ``gaussian_blur``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalify.experimental.torchvision.v2.functional.images import computed
from dalify.experimental.torchvision.v2.gaussian_blur import GaussianBlur


def gaussian_blur(
    inpt: Any,
    kernel_size: int | Sequence[int],
    sigma: int | float | Sequence[float] = (0.1, 2.0),
    device: Any = "cpu",
) -> Any:
    """Blur images, see ``GaussianBlur``.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        kernel_size: an odd number of pixels, or ``[width, height]``.
        sigma: the standard deviation, or the minimum and maximum of a random one.
        device: ``cpu`` or ``gpu``.
    """
    return computed(inpt, device, GaussianBlur(kernel_size, sigma)._apply)
