"""The functions crop and resized_crop."""

from __future__ import annotations

import operator
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.wording import counted
from dalify.experimental.torchvision.v2.functional.images import computed
from dalify.experimental.torchvision.v2.interpolation import InterpolationMode
from dalify.experimental.torchvision.v2.operator import Images
from dalify.experimental.torchvision.v2.resize import Resize

Window = tuple[int, int, int, int]


def crop(
    inpt: Any, top: int | float, left: int | float, height: int | float, width: int | float, device: Any = "cpu"
) -> Any:
    """Crop a window; pixels outside the image are 0.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        top: first row; for Pillow images, numbers may be fractional, and the edges are rounded.
        left: first column.
        height: number of rows.
        width: number of columns.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: not numbers, or fractional numbers for tensors.
        ArgumentValueError: the window is empty.
    """
    return computed(inpt, device, lambda images: _cropped(images, (top, left, height, width)))


def resized_crop(
    inpt: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | list[int],
    interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
    antialias: bool = True,
    device: Any = "cpu",
) -> Any:
    """Crop a window like `crop`, and resize it like ``resize``.

    Args:
        inpt: a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        top: first row.
        left: first column.
        height: number of rows.
        width: number of columns.
        size: an integer for the shorter side, or ``[height, width]``.
        interpolation: a member of ``InterpolationMode``, or Pillow's number.
        antialias: whether to apply an antialiasing filter when downscaling.
        device: ``cpu`` or ``gpu``.
    """
    resize = Resize(size, interpolation, None, antialias)
    return computed(inpt, device, lambda images: resize._apply(_cropped(images, (top, left, height, width))))


def _cropped(images: Images, window: tuple[Any, Any, Any, Any]) -> Images:
    top, left, height, width = _rounded(*window) if images.layout == "HWC" else _integers(window)
    if height < 1 or width < 1:
        raise ArgumentValueError(f"a window of {counted(height, 'row')} and {counted(width, 'column')} is empty.")
    return images.window(top, left, height, width, "pad", [0.0])


def _rounded(top: Any, left: Any, height: Any, width: Any) -> Window:
    """Round the edges as Pillow does."""
    try:
        first_row, first_column = round(top), round(left)
        return first_row, first_column, round(top + height) - first_row, round(left + width) - first_column
    except TypeError as error:
        raise ArgumentTypeError(f"top, left, height and width must be numbers: {error}.") from None


def _integers(window: tuple[Any, Any, Any, Any]) -> Window:
    try:
        top, left, height, width = map(operator.index, window)
    except TypeError:
        raise ArgumentTypeError(f"top, left, height and width must be integers for tensors; got {window!r}.") from None
    return top, left, height, width
