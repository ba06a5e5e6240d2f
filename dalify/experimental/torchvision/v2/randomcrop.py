"""The transforms RandomCrop and RandomResizedCrop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalify import fn, math, types
from dalify.base.errors import ArgumentTypeError
from dalify.base.torchvision_rules import margins
from dalify.base.torchvision_rules import padding_mode as checked_mode
from dalify.experimental.torchvision.v2.checks import fill_of, interval, pair_of
from dalify.experimental.torchvision.v2.interpolation import InterpolationMode, interp_type
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator
from dalify.experimental.torchvision.v2.pad import POLICIES, PaddingMode


class RandomCrop(Operator):
    """Crop a window at a random position.

    Args:
        size: ``[height, width]``, or one integer for both.
        padding: padding that is added first, as in `Pad`.
        pad_if_needed: pad smaller images on both sides.
        fill: value of constant padding, or one per channel.
        padding_mode: as in `Pad`.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: an argument has a wrong type.
        ArgumentValueError: a size is not positive, padding is negative, or the mode is unknown.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: int | float | Sequence[int] | Sequence[float] | None = 0,
        padding_mode: PaddingMode = "constant",
        device: Device = "cpu",
    ) -> None:
        super().__init__(device)
        if not isinstance(pad_if_needed, bool):
            raise ArgumentTypeError(f"pad_if_needed must be True or False; got {pad_if_needed!r}.")
        self.size = pair_of(size)
        self.padding = (0, 0, 0, 0) if padding is None else margins(padding)
        self.pad_if_needed = pad_if_needed
        self.fill = fill_of(fill)
        is_padding = pad_if_needed or padding is not None
        self.padding_mode = checked_mode(padding_mode) if is_padding else padding_mode
        self.needs_padding = pad_if_needed or any(self.padding)

    def _apply(self, images: Images) -> Images:
        left, top, right, bottom = self.padding
        height, width = images.extents()
        first_row = _start(height + (top + bottom), self.size[0], self.pad_if_needed) - top
        first_column = _start(width + (left + right), self.size[1], self.pad_if_needed) - left
        if not self.needs_padding:
            return images.window(first_row, first_column, *self.size)
        return images.window(first_row, first_column, *self.size, POLICIES[self.padding_mode], self.fill)


def _start(extent: Any, wanted: int, pads: bool) -> Any:
    """Draw the start of a window in an extent; negative if a smaller image is padded."""
    missing = math.max(wanted - extent, 0)
    rest = math.max(extent - wanted, 0) + (missing if pads else 0)
    drawn = math.floor(fn.random.uniform(range=[0.0, 1.0]) * (rest + 1))
    start = math.min(fn.cast(drawn, dtype=types.INT64), rest)
    return start - missing if pads else start


class RandomResizedCrop(Operator):
    """Crop a window of random area, aspect ratio and position, and resize it.

    Args:
        size: ``[height, width]`` of the result, or one integer for both.
        scale: minimum and maximum area of the window, as a fraction of the area of the image.
        ratio: minimum and maximum aspect ratio, width divided by height.
        interpolation: as in `Resize`.
        antialias: as in `Resize`.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: an argument has a wrong type.
        ArgumentValueError: a size or bound is not positive, or a minimum is greater than its maximum.
        UnsupportedModeError: dalify does not support the interpolation.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
        device: Device = "cpu",
    ) -> None:
        super().__init__(device)
        self.interpolation = interp_type(interpolation)
        self.size = pair_of(size)
        self.scale = interval(scale, "scale", is_positive=True)
        self.ratio = interval(ratio, "ratio", is_positive=True)
        self.antialias = antialias

    def _apply(self, images: Images) -> Images:
        return images.call(
            "random_resized_crop",
            size=list(self.size),
            random_area=list(self.scale),
            random_aspect_ratio=list(self.ratio),
            interp_type=self.interpolation,
            antialias=self.antialias is None or bool(self.antialias),
            num_attempts=10,
        )
