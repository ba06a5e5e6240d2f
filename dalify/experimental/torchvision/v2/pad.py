"""Pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dalify.base.torchvision_rules import Margins, margins, padding_mode
from dalify.experimental.torchvision.v2.checks import fill_of
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator

__all__ = ["POLICIES", "Pad", "padded"]

PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]
POLICIES = {"constant": "pad", "edge": "clamp", "reflect": "reflect_101", "symmetric": "reflect_1001"}


def padded(images: Images, padding: Margins, fill: list[float], mode: str) -> Images:
    """Return the images with margins."""
    left, top, right, bottom = padding
    height, width = images.extents()
    return images.window(-top, -left, height + (top + bottom), width + (left + right), POLICIES[mode], fill)


class Pad(Operator):
    """Add margins.

    Args:
        padding: one margin for all sides, two for left and right, top and bottom, or four: left, top, right, bottom.
        fill: the value of constant margins, or one for each channel; None is 0. A dictionary of torchvision's gives it
            by type.
        padding_mode: ``constant``; ``edge``: the outermost pixels; ``reflect``: mirrored at their centers;
            ``symmetric``: mirrored at the border.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: margins or fill values of a type that cannot be used.
        ArgumentValueError: negative margins, another number of them, or an unknown mode.
    """

    def __init__(
        self,
        padding: int | Sequence[int],
        fill: int | float | Sequence[int] | Sequence[float] | dict[Any, Any] | None = 0,
        padding_mode: PaddingMode = "constant",
        device: Device = "cpu",
    ) -> None:
        super().__init__(device)
        self._mode = _padding_mode(padding_mode)
        self._padding = margins(padding)
        self._fill = fill_of(fill)

    def _apply(self, images: Images) -> Images:
        return padded(images, self._padding, self._fill, self._mode)


_padding_mode = padding_mode  # the argument has the same name
