"""GaussianBlur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.experimental.torchvision.v2.checks import interval
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator

__all__ = ["GaussianBlur", "blur_of", "blurred"]


def blur_of(kernel_size: Any, sigma: Any) -> tuple[list[int], tuple[float, float]]:
    """Return the window's width and height, and the bounds of the standard deviation.

    Raises:
        ArgumentTypeError: a list of something else than numbers.
        ArgumentValueError: windows that are even or not positive; deviations that are not positive or in the wrong
            order.
    """
    sizes: Any = [kernel_size] if isinstance(kernel_size, int) else kernel_size
    is_list = isinstance(sizes, Sequence) and not isinstance(sizes, str) and len(sizes) in (1, 2)
    if not is_list or any(not isinstance(size, int) or size < 1 or size % 2 == 0 for size in sizes):
        raise ArgumentValueError(f"kernel_size is an odd number, or two for width and height, not {kernel_size!r}.")
    if isinstance(sigma, int | float):
        sigma = (sigma, sigma)
    if not isinstance(sigma, Sequence) or isinstance(sigma, str) or len(sigma) != 2:
        raise ArgumentValueError(f"sigma is a number, or two (min, max), not {sigma!r}.")
    return [int(sizes[0]), int(sizes[-1])], interval(tuple(sigma), "sigma", is_positive=True)


def blurred(images: Images, window: list[int], sigma: Any) -> Images:
    """Return the images blurred; a window is width and height, as torchvision has it."""
    return images.call("gaussian_blur", window_size=window[::-1], sigma=sigma)


class GaussianBlur(Operator):
    """Blur images.

    Args:
        kernel_size: an odd number of pixels, or ``(width, height)``.
        sigma: the standard deviation, or bounds between which it is drawn.
        device: ``cpu`` or ``gpu``.
        seed: of the drawing; -1: that of the pipeline.

    Raises:
        ArgumentTypeError: see `blur_of`.
        ArgumentValueError: see `blur_of`.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        sigma: int | float | Sequence[float] = (0.1, 2.0),
        device: Device = "cpu",
        seed: int = -1,
    ) -> None:
        super().__init__(device)
        self._window, self.sigma = blur_of(kernel_size, sigma)
        self.kernel_size = kernel_size
        self.seed = seed

    def _apply(self, images: Images) -> Images:
        return blurred(images, self._window, images.uniform(*self.sigma, seed=self.seed))
