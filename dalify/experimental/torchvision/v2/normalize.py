"""Normalize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedModeError
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator

__all__ = ["Normalize", "normalized", "statistics"]


def _values(given: Any, name: str) -> np.ndarray[Any, Any]:
    if not isinstance(given, Sequence | torch.Tensor | np.ndarray) or isinstance(given, str):
        raise ArgumentTypeError(f"{name} must be a list of numbers, one per channel; got {type(given).__name__}.")
    try:
        return np.asarray(given, np.float32).reshape(-1)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{name} must be a list of numbers, one per channel: {error}.") from None


def statistics(mean: Any, std: Any, inplace: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return means and standard deviations by channel.

    Raises:
        ArgumentTypeError: not lists of numbers.
        ArgumentValueError: a standard deviation is 0.
        UnsupportedModeError: ``inplace`` is true.
    """
    deviations = _values(std, "std")
    if not deviations.all():
        raise ArgumentValueError(f"std must not be 0; got {std!r}.")
    means = _values(mean, "mean")
    if inplace:
        raise UnsupportedModeError("inplace=True is not supported.", hint="Use the tensor that it returns.")
    return means, deviations


def normalized(images: Images, mean: np.ndarray[Any, Any], std: np.ndarray[Any, Any]) -> Images:
    """Return the images minus the means, divided by the standard deviations, as float32."""
    shape = (1, 1, -1) if images.layout == "HWC" else (-1, 1, 1)
    return images.call("normalize", mean=mean.reshape(shape), stddev=std.reshape(shape), is_float=True)


class Normalize(Operator):
    """Subtract a mean from each channel and divide by a standard deviation.

    Args:
        mean: means, one per channel.
        std: standard deviations, one per channel.
        inplace: not supported.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: not lists of numbers.
        ArgumentValueError: a standard deviation is 0.
        UnsupportedModeError: ``inplace`` is true.
    """

    def __init__(self, mean: Any, std: Any, inplace: bool = False, device: Device = "cpu") -> None:
        super().__init__(device)
        self._statistics = statistics(mean, std, inplace)
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def _apply(self, images: Images) -> Images:
        return normalized(images, *self._statistics)
