"""Operators on the colors of images.

MediaPipe's contrast differs from the contrast of DALI and torchvision.
"""

from __future__ import annotations

from typing import Any

from dalify import fn as dali
from dalify.base.errors import ArgumentValueError, LayoutError, option_error_text
from dalify.data import DALIImageType
from dalify.mediapipe.node import Value, operator
from dalify.mediapipe.nodes.arithmetic import cast


def _amount(given: float, tensor: Value | None) -> Any:
    return given if tensor is None else tensor.node


@operator()
def Brightness(
    images: Value,
    amount: Value | None = None,
    /,
    *,
    brightness_scale: float = 1.0,
    dtype: str | None = None,
) -> Value:
    """Multiply by `brightness_scale`, or by the second input, one number per image."""
    factor = _amount(brightness_scale, amount)
    return cast(images.mapped(lambda image: dali.brightness(image, brightness=factor)), dtype)


@operator()
def Contrast(
    images: Value,
    amount: Value | None = None,
    /,
    *,
    contrast_scale: float = 1.0,
    dtype: str | None = None,
) -> Value:
    """Return ``image * s + (1 - s) * 128``, where s is `contrast_scale`, or the second input, one number per image.

    The center is 128 for any dtype; DALI's is half of the dtype's range, torchvision's the mean gray.
    """
    factor = _amount(contrast_scale, amount)
    return cast(images.mapped(lambda image: dali.contrast(image, contrast=factor, contrast_center=128.0)), dtype)


@operator()
def Saturation(
    images: Value,
    amount: Value | None = None,
    /,
    *,
    saturation_level: float = 1.0,
    dtype: str | None = None,
) -> Value:
    """Multiply the saturation by `saturation_level`, or by the second input; 0 gives gray.

    Computed in the linear YIQ color space, as in DALI; MediaPipe's documentation mentions HSV.
    """
    factor = _amount(saturation_level, amount)
    return cast(images.mapped(lambda image: dali.saturation(image, saturation=factor)), dtype)


@operator()
def Hue(
    images: Value,
    amount: Value | None = None,
    /,
    *,
    degree: float = 0.0,
    dtype: str | None = None,
) -> Value:
    """Rotate the hue by `degree`, or by the second input, in degrees. Computed in the YIQ color space, as in DALI."""
    angle = _amount(degree, amount)
    return cast(images.mapped(lambda image: dali.hue(image, hue=angle)), dtype)


@operator()
def ColorSpaceConversion(
    images: Value,
    /,
    *,
    colorSpaceMode: int = 1,
    dtype: str | None = None,
) -> Value:
    """Change the order of the color channels: mode 1, the only supported one, swaps red and blue."""
    if colorSpaceMode != 1:
        raise ArgumentValueError(option_error_text("colorSpaceMode", colorSpaceMode, ["1 (RGB to BGR)"]))
    if "C" not in images.layout:
        raise LayoutError("ColorSpaceConversion needs images.")
    converted = images.mapped(
        lambda image: dali.color_space_conversion(image, image_type=DALIImageType.RGB, output_type=DALIImageType.BGR)
    )
    return cast(converted, dtype)
