"""torchvision's color transforms as steps on a `LazyImage`, with Pillow's arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.kernels.pillow_color import blend_with_constant, blend_with_luma, luma_sum, rotate_hue
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage
from dalify.plugin.pytorch.dropin.steps import Step

__all__ = ["ColorJitter", "RandomApply"]

_Array = np.ndarray[Any, Any]
Range = tuple[float, float] | None
_BRIGHTNESS, _CONTRAST, _SATURATION, _HUE = range(4)  # torchvision's numbers


@dataclass(frozen=True)
class ColorJitter:
    """Change brightness, contrast, saturation and hue in random order.

    Attributes:
        ranges: minimum and maximum of the four factors; None for a property that is not changed.
    """

    ranges: tuple[Range, Range, Range, Range]

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Draw the order, then the factors, and change the colors."""
        order = draws.permutation(4)
        factors = [None if limits is None else draws.uniform(*limits) for limits in self.ranges]
        pixels = np.array(image.materialize(), order="C")
        for number in order:
            factor = factors[number]
            if factor is not None:
                _change(pixels.reshape(-1, pixels.shape[2]), number, factor)
        image.replace(pixels)
        if image.info is not None and any(factors[number] is not None for number in (_BRIGHTNESS, _CONTRAST, _HUE)):
            image.info = {}


def _change(pixels: _Array, number: int, factor: float) -> None:
    """Change one property of uint8 ``[pixels, channels]`` in place."""
    count, channels = pixels.shape
    single = np.float32(factor)
    if number == _BRIGHTNESS:
        blend_with_constant(pixels.reshape(-1), 0, single)
    elif number == _CONTRAST:
        total = luma_sum(pixels) if channels > 1 else int(pixels.sum(dtype=np.int64))
        blend_with_constant(pixels.reshape(-1), int(total / count + 0.5), single)
    elif channels == 1:
        return  # gray images have no saturation and no hue
    elif number == _SATURATION:
        blend_with_luma(pixels, single)
    else:
        rotate_hue(pixels, int(factor * 255) & 255)


@dataclass(frozen=True)
class RandomApply:
    """Apply all of some steps with a probability."""

    steps: tuple[Step, ...]
    probability: float

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Draw and apply them."""
        if draws.is_below(self.probability):
            for step in self.steps:
                step.apply(image, draws)
