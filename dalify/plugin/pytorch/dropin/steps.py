"""torchvision's geometric transforms as steps on a `LazyImage` or on `Windows`.

Each step has the rules of its transform: rounding of sizes, position of the center, and order of random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from dalify.base.torchvision_rules import centered, resized
from dalify.plugin.pytorch.dropin.draws import Draws, TorchDraws, resized_crop_window
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage, Margins, Windows

__all__ = ["CenterCrop", "Flip", "Gray", "Pad", "RandomCrop", "RandomResizedCrop", "Resize", "Step"]

Target = LazyImage | Windows


class Step(Protocol):
    """One transform."""

    def apply(self, target: Any, draws: Any, /) -> None:
        """Change the target, with the errors of torchvision."""
        ...


@dataclass(frozen=True)
class Resize:
    """Resize the shorter side to `size`, with at most `longest` pixels for the longer side; or resize both sides."""

    size: tuple[int, ...]
    name: str
    longest: int | None = None

    def apply(self, target: Target, draws: Draws) -> None:
        """Resize; the longer side is rounded down."""
        target.resize(resized(target.height, target.width, self.size, self.longest), self.name)


@dataclass(frozen=True)
class CenterCrop:
    """Crop the center; add black margins if the image is smaller."""

    height: int
    width: int
    channels: int
    is_tensor: bool = False

    def apply(self, target: Target, draws: Draws) -> None:
        """Crop; halves are rounded to the even neighbor."""
        wide, high = max(0, self.width - target.width), max(0, self.height - target.height)
        if wide or high:
            margins = wide // 2, high // 2, (wide + 1) // 2, (high + 1) // 2
            target.pad(margins, (0,) * self.channels, "constant", self.is_tensor)
            if (target.height, target.width) == (self.height, self.width):
                return
        top, left = centered(target.height, self.height), centered(target.width, self.width)
        target.crop(top, left, self.height, self.width)


@dataclass(frozen=True)
class Pad:
    """Add margins."""

    margins: Margins
    fill: tuple[int, ...]
    mode: str
    is_tensor: bool = False

    def apply(self, target: Target, draws: Draws) -> None:
        """Pad."""
        target.pad(self.margins, self.fill, self.mode, self.is_tensor)


@dataclass(frozen=True)
class RandomCrop:
    """Crop a window at a random position, after padding."""

    height: int
    width: int
    padding: Pad | None
    pads_if_needed: bool
    fill: tuple[int, ...]
    mode: str
    draws_always: bool
    is_tensor: bool = False

    def apply(self, target: Target, draws: Draws) -> None:
        """Draw the row, then the column; nothing if the image has the requested size.

        If only one extent is equal, version 1 of torchvision draws a zero for it (`draws_always`), version 2 nothing.
        """
        if self.padding is not None:
            self.padding.apply(target, draws)
        if self.pads_if_needed and target.width < self.width:
            margin = self.width - target.width
            target.pad((margin, 0, margin, 0), self.fill, self.mode, self.is_tensor)
        if self.pads_if_needed and target.height < self.height:
            margin = self.height - target.height
            target.pad((0, margin, 0, margin), self.fill, self.mode, self.is_tensor)
        height, width = target.height, target.width
        if height < self.height or width < self.width:
            raise ValueError(
                f"Required crop size {(self.height, self.width)} is larger than input image size {(height, width)}"
            )
        if (height, width) == (self.height, self.width):
            return
        top = draws.integer(height - self.height + 1) if self.draws_always or height > self.height else 0
        left = draws.integer(width - self.width + 1) if self.draws_always or width > self.width else 0
        target.crop(top, left, self.height, self.width)


@dataclass(frozen=True)
class RandomResizedCrop:
    """Crop a window of random area and aspect ratio, and resize it."""

    scale: tuple[float, float]
    ratio: tuple[float, float]
    resize: Step

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Draw, crop and resize."""
        image.crop(*resized_crop_window(draws, image.height, image.width, self.scale, self.ratio))
        self.resize.apply(image, draws)


@dataclass(frozen=True)
class Flip:
    """Mirror with a probability: along y (0) or x (1)."""

    axis: int
    probability: float

    def apply(self, target: Target, draws: Draws) -> None:
        """Draw and mirror."""
        target.flip(self.axis, draws.is_below(self.probability))


@dataclass(frozen=True)
class Gray:
    """Convert to luma, in one or three channels."""

    channels: int

    def apply(self, target: Target, draws: Draws) -> None:
        """Convert."""
        target.gray(self.channels)
