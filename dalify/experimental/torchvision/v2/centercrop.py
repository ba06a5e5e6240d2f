"""The transform ``CenterCrop``."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.base.torchvision_rules import centered
from dalify.experimental.torchvision.v2.checks import pair_of
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator


class CenterCrop(Operator):
    """Crop the center; smaller images are padded with zeros on both sides.

    Args:
        size: ``[height, width]``, or one integer for both.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: the size is neither an integer nor a list.
        ArgumentValueError: the size does not have one or two values, or has values below 1.
    """

    def __init__(self, size: int | Sequence[int], device: Device = "cpu") -> None:
        super().__init__(device)
        self.size = pair_of(size)

    def _apply(self, images: Images) -> Images:
        height, width = images.extents()
        top, left = centered(height, self.size[0]), centered(width, self.size[1])
        return images.window(top, left, *self.size, "pad", [0.0])
