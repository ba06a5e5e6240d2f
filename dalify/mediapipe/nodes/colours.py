"""Operators on the colours of images.

Alone because there are several operations of one name: MediaPipe's contrast is neither DALI's nor torchvision's.
"""

from __future__ import annotations

from typing import Any

from dalify import fn as dali
from dalify.base.errors import ArgumentValueError, LayoutError, option_error_text
from dalify.data import DALIImageType
from dalify.mediapipe.node import Lowering, Value, operator
from dalify.mediapipe.nodes.arithmetic import cast

__all__ = ["Brightness", "ColorSpaceConversion", "Contrast", "Hue", "Saturation"]


def _amount(given: float, tensor: Value | None) -> Any:
    return given if tensor is None else tensor.node


@operator()
def Brightness(
    context: Lowering,
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
    context: Lowering,
    images: Value,
    amount: Value | None = None,
    /,
    *,
    contrast_scale: float = 1.0,
    dtype: str | None = None,
) -> Value:
    """Return ``image * s + (1 - s) * 128``, where s is `contrast_scale`, or the second input, one number per image.

    The centre is 128 whatever the element type; DALI's is half of the type's range, torchvision's the mean grey.
    """
    factor = _amount(contrast_scale, amount)
    return cast(images.mapped(lambda image: dali.contrast(image, contrast=factor, contrast_center=128.0)), dtype)


@operator()
def Saturation(
    context: Lowering,
    images: Value,
    amount: Value | None = None,
    /,
    *,
    saturation_level: float = 1.0,
    dtype: str | None = None,
) -> Value:
    """Multiply the saturation by `saturation_level`, or by the second input; 0 gives grey.

    As DALI does, in the YIQ space of colours, which is linear; MediaPipe's documents speak of HSV.
    """
    factor = _amount(saturation_level, amount)
    return cast(images.mapped(lambda image: dali.saturation(image, saturation=factor)), dtype)


@operator()
def Hue(
    context: Lowering,
    images: Value,
    amount: Value | None = None,
    /,
    *,
    degree: float = 0.0,
    dtype: str | None = None,
) -> Value:
    """Turn the hue by `degree`, or by the second input, in degrees. As DALI does, in the YIQ space of colours."""
    angle = _amount(degree, amount)
    return cast(images.mapped(lambda image: dali.hue(image, hue=angle)), dtype)


@operator()
def ColorSpaceConversion(
    context: Lowering,
    images: Value,
    /,
    *,
    colorSpaceMode: int = 1,  # noqa: N803 -- the name that programs use
    dtype: str | None = None,
) -> Value:
    """Change the order of the colours: mode 1, the only one offered, exchanges red and blue."""
    if colorSpaceMode != 1:
        raise ArgumentValueError(option_error_text("colorSpaceMode", colorSpaceMode, ["1 (RGB to BGR)"]))
    if "C" not in images.layout:
        raise LayoutError("ColorSpaceConversion needs images.")
    converted = images.mapped(
        lambda image: dali.color_space_conversion(image, image_type=DALIImageType.RGB, output_type=DALIImageType.BGR)
    )
    return cast(converted, dtype)
