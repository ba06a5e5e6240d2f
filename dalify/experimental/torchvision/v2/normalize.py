"""The transform ``Normalize``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedModeError
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator


def _values(given: Any, name: str) -> np.ndarray[Any, Any]:
    if not isinstance(given, Sequence | torch.Tensor | np.ndarray) or isinstance(given, str):
        raise ArgumentTypeError(f"{name} must be a list of numbers, one per channel; got {type(given).__name__}.")
    try:
        return np.asarray(given, np.float32).reshape(-1)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{name} must be a list of numbers, one per channel: {error}.") from None


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
        self._deviations = _values(std, "std")
        if not self._deviations.all():
            raise ArgumentValueError(f"std must not be 0; got {std!r}.")
        self._means = _values(mean, "mean")
        if inplace:
            raise UnsupportedModeError("inplace=True is not supported.", hint="Use the tensor that it returns.")
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def _apply(self, images: Images) -> Images:
        shape = (1, 1, -1) if images.layout == "HWC" else (-1, 1, 1)
        mean, stddev = self._means.reshape(shape), self._deviations.reshape(shape)
        return replace(images.call("normalize", mean=mean, stddev=stddev), is_float=True)
