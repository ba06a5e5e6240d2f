"""torchvision's changes of color as steps on a `Picture`, by Pillow's arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.kernels.pillow_color import blend_with_constant, blend_with_luma, luma_sum, turn_hue
from dalify.plugin.pytorch.dropin.picture import NoWindowError, Picture, Windows
from dalify.plugin.pytorch.dropin.steps import Step

__all__ = ["ColorJitter", "MaybeGray", "Sometimes"]

_Array = np.ndarray[Any, Any]
Range = tuple[float, float] | None
_BRIGHTNESS, _CONTRAST, _SATURATION, _HUE = range(4)  # torchvision's numbers


@dataclass(frozen=True)
class ColorJitter:
    """Change brightness, contrast, saturation and hue in random order.

    Attributes:
        ranges: of the four factors; None for what stays.
    """

    ranges: tuple[Range, Range, Range, Range]

    def apply(self, canvas: Picture | Windows, draws: TorchDraws) -> None:
        """Draw the order, then the factors; change."""
        if isinstance(canvas, Windows):
            raise NoWindowError
        order = draws.permutation(4)
        factors = [None if limits is None else draws.uniform(*limits) for limits in self.ranges]
        pixels = np.array(canvas.settle(), order="C")
        for number in order:
            factor = factors[number]
            if factor is not None:
                _change(pixels.reshape(-1, pixels.shape[2]), number, factor)
        canvas.replace(pixels)
        if canvas.info is not None and any(factors[number] is not None for number in (_BRIGHTNESS, _CONTRAST, _HUE)):
            canvas.info = {}


def _change(pixels: _Array, number: int, factor: float) -> None:
    """Change uint8 ``[pixels, channels]`` in place."""
    count, channels = pixels.shape
    single = np.float32(factor)
    if number == _BRIGHTNESS:
        blend_with_constant(pixels.reshape(-1), 0, single)
    elif number == _CONTRAST:
        total = luma_sum(pixels) if channels > 1 else int(pixels.sum(dtype=np.int64))
        blend_with_constant(pixels.reshape(-1), int(total / count + 0.5), single)
    elif channels == 1:
        return  # gray has neither saturation nor hue
    elif number == _SATURATION:
        blend_with_luma(pixels, single)
    else:
        turn_hue(pixels, int(factor * 255) & 255)


@dataclass(frozen=True)
class MaybeGray:
    """Turn into luma with a probability, with as many channels as before."""

    channels: int
    probability: float

    def apply(self, canvas: Picture | Windows, draws: TorchDraws) -> None:
        """Draw and convert."""
        if isinstance(canvas, Windows):
            raise NoWindowError
        if draws.is_below(self.probability):
            canvas.gray(self.channels)


@dataclass(frozen=True)
class Sometimes:
    """Take all of some steps, or none."""

    steps: tuple[Step, ...]
    probability: float

    def apply(self, canvas: Picture | Windows, draws: TorchDraws) -> None:
        """Draw and take them."""
        if isinstance(canvas, Windows):
            raise NoWindowError
        if draws.is_below(self.probability):
            for step in self.steps:
                step.apply(canvas, draws)
