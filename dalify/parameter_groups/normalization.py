"""Mirroring and normalization of pixels; normalization by mean and standard deviation."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalify.base.errors import ShapeError
from dalify.base.small_arrays import all_of
from dalify.data import DALIDataType
from dalify.kernels.arrays.axes import chosen_axes
from dalify.registry import VARIES, Parameters, PerSample, Spec, Vectors, argument_names


@dataclass(slots=True)
class Normalization(Parameters):
    """``scale * (x - mean) / std + shift`` in float32, and the order of the axes.

    Attributes:
        mean: subtracted; one number for all channels or one each, in units of `x` (0 to 255 for uint8).
        mirror: non-zero reverses W after the crop.
        output_layout: order of the axes of the result, a permutation of the input's.
        scale: multiplier of the normalized values.
        shift: added at the end.
        std: divisor; one number for all channels or one each.
    """

    mean: PerSample[list[float]] = field(default_factory=lambda: [0.0])
    mirror: PerSample[int] = 0
    output_layout: str = "CHW"
    scale: float = 1.0
    shift: float = 0.0
    std: PerSample[list[float]] = field(default_factory=lambda: [1.0])

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of kernels, by name."""
        return self.named("mirror", "mean", "std", "scale", "shift")


@dataclass
class Standardization(Parameters):
    """``(x - mean) / sqrt(stddev**2 + epsilon) * scale + shift`` with mean and standard deviation along axes.

    Attributes:
        axes: axes over which mean and standard deviation are computed. Negative axes count from the end.
        axis_names: the axes as letters of the layout, instead of `axes`.
        ddof: delta degrees of freedom: the divisor of the variance is the number of values minus `ddof`. Ignored if
            the standard deviation is specified.
        epsilon: added to the variance.
        scale: standard deviation of the result.
        shift: mean of the result.
    """

    axes: list[int] | None = None
    axis_names: str | None = None
    ddof: int = 0
    epsilon: float = 0.0
    scale: float = 1.0
    shift: float = 0.0

    @property
    def has_axes(self) -> bool:
        """Whether the axes are specified."""
        return self.axes is not None or self.axis_names is not None

    @functools.cached_property
    def options(self) -> dict[str, Any]:
        """The arguments of kernels, by name."""
        return {"ddof": self.ddof, "epsilon": self.epsilon, "scale": self.scale, "shift": self.shift}

    def chosen_axes(self, x: Spec) -> tuple[int, ...]:
        """Return the axes over which mean and standard deviation are computed, by default all."""
        return chosen_axes(x, self.axes, self.axis_names)


def check_channel_values(mean: Vectors, std: Vectors, channels: np.ndarray) -> None:
    """Check the numbers of means and standard deviations of a chunk.

    Args:
        mean: float [N, k], or a list of N vectors.
        std: same.
        channels: int [N].

    Raises:
        ShapeError: neither one number nor one for each channel.
    """
    for name, values in (("mean", mean), ("std", std)):
        if isinstance(values, np.ndarray) and values.shape[1] == 1:
            continue
        counts: Any = np.array([len(row) for row in values]) if isinstance(values, list) else values.shape[1]
        are_right = (channels == counts) | (counts == 1)
        if not all_of(are_right, None):
            sample = int(are_right.argmin())
            raise ShapeError(
                f"{name} must be one number or one for each of the {channels[sample]} channels; got "
                f"{len(values[sample])}.",
                sample=sample,
                argument=name,
            )


AFTER_RESIZE = ("dtype", *argument_names(Normalization))
"""The arguments of ``crop_mirror_normalize`` that an operator needs to normalize what it has resized."""

_OF_WINDOW = frozenset({"crop", "crop_h", "crop_w", "crop_pos_x", "crop_pos_y", "rounding"})


def can_follow_resize(
    resize: Mapping[str, Any],
    normalize: Mapping[str, Any],
    source: Spec,
    device: str,
    size: tuple[int, int] | None,
) -> bool:
    """Return whether a resize and the ``crop_mirror_normalize`` after it can be one operator.

    On the CPU there is a kernel for planes of float32 only.

    Args:
        resize: specified arguments of the resize.
        normalize: specified arguments of the other operator.
        source: spec of the input of the resize.
        device: device of the resize.
        size: height and width after the resize; None if unknown.
    """
    is_image = source.layout == "HWC" and source.dtype is DALIDataType.UINT8
    is_planar = normalize.get("output_layout", "CHW") == "CHW"
    if device == "cpu" and not (is_planar and normalize.get("dtype", DALIDataType.FLOAT) is DALIDataType.FLOAT):
        return False
    if device not in ("cpu", "gpu") or not is_image or resize.get("dtype") not in (None, DALIDataType.UINT8):
        return False
    if set(normalize) - _OF_WINDOW - set(AFTER_RESIZE) or normalize.get("output_layout", "CHW") not in ("HWC", "CHW"):
        return False
    if not {"crop", "crop_h", "crop_w"} & set(normalize):
        return True
    # A crop that takes the whole image.
    window = normalize.get("crop") or (normalize.get("crop_h"), normalize.get("crop_w"))
    return size is not None and window is not VARIES and tuple(window) == size
