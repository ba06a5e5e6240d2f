"""The transform ``Pad``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dalify.base.torchvision_rules import margins
from dalify.base.torchvision_rules import padding_mode as checked_mode
from dalify.experimental.torchvision.v2.checks import fill_of
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator

PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]
POLICIES = {"constant": "pad", "edge": "clamp", "reflect": "reflect_101", "symmetric": "reflect_1001"}


class Pad(Operator):
    """Pad images.

    Args:
        padding: one number for all sides, two for left and right, top and bottom, or four: left, top, right, bottom.
        fill: value of constant padding, or one per channel; None is 0. Or torchvision's dictionary of values by type.
        padding_mode: ``constant``; ``edge``: repeat the border pixels; ``reflect``: reflect without repeating the
            border pixels; ``symmetric``: reflect and repeat them.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: padding or fill values have a wrong type.
        ArgumentValueError: padding is negative or has a wrong number of values, or the mode is unknown.
    """

    def __init__(
        self,
        padding: int | Sequence[int],
        fill: int | float | Sequence[int] | Sequence[float] | dict[Any, Any] | None = 0,
        padding_mode: PaddingMode = "constant",
        device: Device = "cpu",
    ) -> None:
        super().__init__(device)
        self._mode = checked_mode(padding_mode)
        self._padding = margins(padding)
        self._fill = fill_of(fill)

    def _apply(self, images: Images) -> Images:
        left, top, right, bottom = self._padding
        height, width = images.extents()
        extents = height + (top + bottom), width + (left + right)
        return images.window(-top, -left, *extents, POLICIES[self._mode], self._fill)
