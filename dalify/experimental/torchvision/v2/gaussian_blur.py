"""The transform ``GaussianBlur``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.experimental.torchvision.v2.checks import interval
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator


class GaussianBlur(Operator):
    """Blur images.

    Args:
        kernel_size: an odd number of pixels, or ``(width, height)``.
        sigma: the standard deviation, or the minimum and maximum of a random one.
        device: ``cpu`` or ``gpu``.
        seed: random seed; -1: the seed of the pipeline.

    Raises:
        ArgumentTypeError: a list contains other values than numbers.
        ArgumentValueError: a window size is even or not positive, a deviation is not positive, or the minimum is
            greater than the maximum.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        sigma: int | float | Sequence[float] = (0.1, 2.0),
        device: Device = "cpu",
        seed: int = -1,
    ) -> None:
        super().__init__(device)
        sizes: Any = [kernel_size] if isinstance(kernel_size, int) else kernel_size
        is_list = isinstance(sizes, Sequence) and not isinstance(sizes, str) and len(sizes) in (1, 2)
        if not is_list or any(not isinstance(size, int) or size < 1 or size % 2 == 0 for size in sizes):
            raise ArgumentValueError(
                f"kernel_size must be an odd number, or two for width and height; got {kernel_size!r}."
            )
        bounds: Any = (sigma, sigma) if isinstance(sigma, int | float) else sigma
        if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
            raise ArgumentValueError(f"sigma must be a number, or two (min, max); got {sigma!r}.")
        self._window = [int(sizes[-1]), int(sizes[0])]  # height and width, unlike in the argument
        self.sigma = interval(tuple(bounds), "sigma", is_positive=True)
        self.kernel_size = kernel_size
        self.seed = seed

    def _apply(self, images: Images) -> Images:
        sigma = images.uniform(*self.sigma, seed=self.seed)
        return images.call("gaussian_blur", window_size=self._window, sigma=sigma)
