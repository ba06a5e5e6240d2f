"""Interpretation of the arguments of torchvision's transforms: filters, sizes, padding, and rounding of extents.

The drop-in loader, ``lower`` (`plugin/pytorch/dropin`) and ``dalify.experimental.torchvision`` use these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dalify.base.errors import ArgumentTypeError, ArgumentValueError

FILTERS = ("nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos")
PADDING_MODES = ("constant", "edge", "reflect", "symmetric")
_PILLOW_NUMBERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}

Margins = tuple[int, int, int, int]


def filter_name(interpolation: Any) -> str:
    """Return the value of torchvision's ``InterpolationMode``.

    Args:
        interpolation: a member of it, or of any enumeration with the same names or values, its value, or Pillow's
            number.

    Raises:
        ArgumentValueError: the filter is unknown.
    """
    if isinstance(interpolation, int) and not hasattr(interpolation, "name"):
        name = _PILLOW_NUMBERS.get(interpolation)
    else:
        name = getattr(interpolation, "value", interpolation)
        if name not in FILTERS:
            name = str(getattr(interpolation, "name", "")).lower().replace("_", "-")
    if name not in FILTERS:
        raise ArgumentValueError(
            f"interpolation {interpolation!r} is unknown.",
            hint="Pass a member of InterpolationMode, or Pillow's number from 0 to 5.",
        )
    return str(name)


def integers(values: Any, *counts: int, name: str = "size") -> tuple[int, ...]:
    """Return an integer or a sequence of integers as a tuple.

    Raises:
        ArgumentTypeError: the value is neither an integer nor a sequence.
        ArgumentValueError: the number of values is not one of `counts`, or values are not integers.
    """
    if not isinstance(values, int | Sequence) or isinstance(values, str):
        raise ArgumentTypeError(f"{name} must be an integer or a list of integers; got {type(values).__name__}.")
    found: tuple[Any, ...] = (values,) if isinstance(values, int) else tuple(cast("Sequence[Any]", values))
    if len(found) not in counts or not all(type(value) is int for value in found):
        raise ArgumentValueError(f"{name} must have {' or '.join(map(str, counts))} integers; got {values!r}.")
    return found


def margins(padding: Any) -> Margins:
    """Return the padding left, top, right and bottom, from one integer, two (horizontal, vertical) or four.

    Raises:
        ArgumentTypeError: the value is neither an integer nor a sequence.
        ArgumentValueError: the number of values is wrong, or a value is negative.
    """
    found = integers(padding, 1, 2, 4, name="padding")
    if min(found) < 0:
        raise ArgumentValueError(f"padding must not be negative; got {padding!r}.")
    left, top, right, bottom = found * (4 // len(found))
    return left, top, right, bottom


def padding_mode(mode: Any) -> str:
    """Return the name of a padding mode.

    Raises:
        ArgumentValueError: the mode is unknown.
    """
    if mode not in PADDING_MODES:
        raise ArgumentValueError(
            f"padding_mode {mode!r} is unknown.", hint=f"Supported values are {', '.join(map(repr, PADDING_MODES))}."
        )
    return str(mode)


def resized(height: Any, width: Any, size: tuple[int, ...] | None, longest: int | None = None) -> tuple[Any, Any]:
    """Return height and width of the result of a Resize; computed extents are rounded down.

    Extents are integers or integer graph values, so conditions are expressed as arithmetic.

    Args:
        height: height of the input.
        width: width of the input.
        size: extent of the shorter side, or height and width; None to specify only `longest`.
        longest: maximum extent of the longer side.
    """
    if size is not None and len(size) == 2:
        return size
    is_wide = height <= width
    is_high = 1 - is_wide
    short, long = height * is_wide + width * is_high, width * is_wide + height * is_high
    if size is None:
        assert longest is not None, "dalify bug: neither size nor longest"
        new_short, new_long = longest * short // long, longest
    else:
        new_short, new_long = size[0], size[0] * long // short
        if longest is not None:
            is_over = new_long > longest
            fits = 1 - is_over
            new_short = (longest * new_short // new_long) * is_over + new_short * fits
            new_long = longest * is_over + new_long * fits
    return new_short * is_wide + new_long * is_high, new_long * is_wide + new_short * is_high


def centered(extent: Any, wanted: int) -> Any:
    """Return the start of a centered window, rounded half to even; negative if the window is larger than the image.

    Args:
        extent: extent of the image, an integer or an integer graph value.
        wanted: extent of the window.
    """
    is_inside = extent >= wanted
    # Both are at least 0, because graphs and Python round integer divisions of negative numbers differently.
    rest, missing = (extent - wanted) * is_inside, (wanted - extent) * (1 - is_inside)
    half = rest // 2
    is_odd, is_half_odd = rest - 2 * half, half - 2 * (half // 2)
    return half + is_odd * is_half_odd - missing // 2
