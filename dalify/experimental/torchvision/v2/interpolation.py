"""torchvision's interpolation modes, and the corresponding types of dalify."""

from __future__ import annotations

from enum import Enum
from typing import Any

from dalify.base.errors import UnsupportedModeError
from dalify.base.torchvision_rules import filter_name
from dalify.data import DALIInterpType


class InterpolationMode(Enum):
    """Interpolation modes; members and values are the same as in torchvision."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_TYPES = {
    "nearest": DALIInterpType.INTERP_NN,
    "bilinear": DALIInterpType.INTERP_LINEAR,
    "bicubic": DALIInterpType.INTERP_CUBIC,
    "lanczos": DALIInterpType.INTERP_LANCZOS3,
}


def interp_type(interpolation: Any) -> DALIInterpType:
    """Return the interpolation type for operators.

    Args:
        interpolation: a member of this enumeration or of torchvision's, or Pillow's number.

    Raises:
        ArgumentValueError: the mode does not exist.
        UnsupportedModeError: dalify does not support the mode.
    """
    name = filter_name(interpolation)
    if name not in _TYPES:
        hint = "NEAREST takes the pixel whose center is nearest." if name == "nearest-exact" else ""
        raise UnsupportedModeError(f"the interpolation {name!r} is not supported.", hint=hint)
    return _TYPES[name]
