"""Hue, saturation, contrast and brightness of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalify.registry import Parameters, PerSampleOrFrame


@dataclass(slots=True)
class Colors(Parameters):
    """How colors change: hue, saturation, contrast and brightness, in this order.

    Attributes:
        brightness: multiplier of the result, applied last; 0 gives black; one value per sample or per frame.
        contrast: multiplier of the distance to mid-gray (128, or 0.5 for floats); 0 gives that gray; one value per
            sample or per frame.
        hue: rotation of the hue in degrees; one value per sample or per frame.
        saturation: multiplier; 0 gives gray, 1 leaves the image unchanged; one value per sample or per frame.
    """

    brightness: PerSampleOrFrame[float] = 1.0
    contrast: PerSampleOrFrame[float] = 1.0
    hue: PerSampleOrFrame[float] = 0.0
    saturation: PerSampleOrFrame[float] = 1.0

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of kernels, by name."""
        return self.named("brightness", "contrast", "hue", "saturation")
