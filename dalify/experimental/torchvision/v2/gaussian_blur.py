"""GaussianBlur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.experimental.torchvision.v2.checks import interval
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator

__all__ = ["GaussianBlur", "blur_of", "blurred"]


def blur_of(kernel_size: Any, sigma: Any) -> tuple[list[int], tuple[float, float]]:
    """Return the window's width and height, and the minimum and maximum of the standard deviation.

    Raises:
        ArgumentTypeError: a list contains other values than numbers.
        ArgumentValueError: a window size is even or not positive, a deviation is not positive, or the minimum is
            greater than the maximum.
    """
    sizes: Any = [kernel_size] if isinstance(kernel_size, int) else kernel_size
    is_list = isinstance(sizes, Sequence) and not isinstance(sizes, str) and len(sizes) in (1, 2)
    if not is_list or any(not isinstance(size, int) or size < 1 or size % 2 == 0 for size in sizes):
        raise ArgumentValueError(
            f"kernel_size must be an odd number, or two for width and height; got {kernel_size!r}."
        )
    if isinstance(sigma, int | float):
        sigma = (sigma, sigma)
    if not isinstance(sigma, Sequence) or isinstance(sigma, str) or len(sigma) != 2:
        raise ArgumentValueError(f"sigma must be a number, or two (min, max); got {sigma!r}.")
    return [int(sizes[0]), int(sizes[-1])], interval(tuple(sigma), "sigma", is_positive=True)


def blurred(images: Images, window: list[int], sigma: Any) -> Images:
    """Return blurred images; the window is ``[width, height]``, as in torchvision."""
    return images.call("gaussian_blur", window_size=window[::-1], sigma=sigma)


class GaussianBlur(Operator):
    """Blur images.

    Args:
        kernel_size: an odd number of pixels, or ``(width, height)``.
        sigma: the standard deviation, or the minimum and maximum of a random one.
        device: ``cpu`` or ``gpu``.
        seed: random seed; -1: that of the pipeline.

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
