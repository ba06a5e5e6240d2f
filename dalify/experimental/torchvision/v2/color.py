"""The transforms ColorJitter, Grayscale and RandomGrayscale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dalify import math, types
from dalify.base.errors import ArgumentValueError
from dalify.experimental.torchvision.v2.checks import fraction, interval
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator, sometimes

Limits = int | float | Sequence[int] | Sequence[float] | None


def _factors(given: Any, name: str) -> tuple[float, float]:
    if given is None:
        raise ArgumentValueError(f"{name} must be a number, or two (min, max); got None.", hint="0 changes nothing.")
    if isinstance(given, int | float):
        if given < 0:
            raise ArgumentValueError(f"{name} must not be negative; got {given!r}.")
        return max(0.0, 1.0 - given), 1.0 + given
    low, high = interval(tuple(given) if isinstance(given, Sequence) else given, name)
    if low < 0:
        raise ArgumentValueError(f"{name} must not be negative; got {given!r}.")
    return low, high


def _angles(hue: Any) -> tuple[float, float]:
    if hue is None:
        raise ArgumentValueError("hue must be a number, or two (min, max); got None.", hint="0 changes nothing.")
    if isinstance(hue, int | float):
        if hue < 0:
            raise ArgumentValueError(f"hue must not be negative; got {hue!r}.", hint="Write two numbers for a range.")
        hue = (-hue, hue)
    low, high = interval(tuple(hue) if isinstance(hue, Sequence) else hue, "hue")
    if low < -0.5 or high > 0.5:
        raise ArgumentValueError(f"hue must be between -0.5 and 0.5; got {hue!r}.")
    return low, high


class ColorJitter(Operator):
    """Change brightness, contrast, saturation and hue by random factors, as ``fn.color_twist`` does.

    The center of the contrast is the middle of the value range, and the hue is rotated in YIQ; torchvision uses the
    mean gray of the image, and HSV.

    Args:
        brightness: maximum difference of the factor from 1, or its minimum and maximum.
        contrast: like brightness.
        saturation: like brightness.
        hue: maximum rotation, or minimum and maximum, as a fraction of 360 degrees in [-0.5, 0.5].
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: a list that does not have two numbers.
        ArgumentValueError: a factor is negative, a minimum is greater than its maximum, or the hue is out of range.
    """

    def __init__(
        self,
        brightness: Limits = 0.0,
        contrast: Limits = 0.0,
        saturation: Limits = 0.0,
        hue: Limits = 0.0,
        device: Device = "cpu",
    ) -> None:
        super().__init__(device)
        self.brightness = _factors(brightness, "brightness")
        self.contrast = _factors(contrast, "contrast")
        self.saturation = _factors(saturation, "saturation")
        self.hue = _angles(hue)

    def _apply(self, images: Images) -> Images:
        brightness, contrast = images.uniform(*self.brightness), images.uniform(*self.contrast)
        saturation = images.uniform(*self.saturation)
        hue = images.uniform(self.hue[0] * 360.0, self.hue[1] * 360.0)

        def adjusted(found: Images) -> Images:
            if found.channels == 1:  # gray images have no saturation and no hue
                return found.call("brightness_contrast", brightness=brightness, contrast=contrast, dtype=images.dtype)
            return found.call(
                "color_twist",
                brightness=brightness,
                contrast=contrast,
                saturation=saturation,
                hue=hue,
                dtype=images.dtype,
            )

        result = images.interleaved(adjusted)
        return replace(result, data=math.clamp(result.data, 0.0, 1.0)) if images.is_float else result


def _gray(images: Images, channels: int) -> Images:
    """Return gray images with 1 or 3 channels."""
    if images.channels == 1:
        return images if channels == 1 else images.repeated(3)
    if channels == 3 and images.layout == "HWC":
        return _colorless(images)
    found = images.interleaved(_colorless).first_channel() if images.is_float else images.interleaved(_luma)
    return found.repeated(3) if channels == 3 else found


def _colorless(images: Images) -> Images:
    return images.call("hsv", saturation=0.0, dtype=images.dtype)


def _luma(images: Images) -> Images:
    luma = images.call("color_space_conversion", image_type=types.RGB, output_type=types.GRAY)
    return replace(luma, channels=1)


class Grayscale(Operator):
    """Convert images to gray.

    Args:
        num_output_channels: 1, or 3 equal channels.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentValueError: another number of channels.
    """

    def __init__(self, num_output_channels: int = 1, device: Device = "cpu") -> None:
        super().__init__(device)
        if num_output_channels not in (1, 3):
            raise ArgumentValueError(f"num_output_channels must be 1 or 3; got {num_output_channels!r}.")
        self.num_output_channels = int(num_output_channels)

    def _apply(self, images: Images) -> Images:
        return _gray(images, self.num_output_channels)


class RandomGrayscale(Operator):
    """Convert images to gray with a probability; the number of channels does not change.

    Args:
        p: the probability.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentValueError: the probability is not between 0 and 1.
    """

    def __init__(self, p: float = 0.1, device: Device = "cpu") -> None:
        super().__init__(device)
        self.p = fraction(p)

    def _apply(self, images: Images) -> Images:
        return images if images.channels == 1 else sometimes(images, self.p, lambda found: _gray(found, 3))
