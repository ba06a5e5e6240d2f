"""The function ``normalize``."""

from __future__ import annotations

from typing import Any

import torch

from dalify.base.errors import ArgumentTypeError
from dalify.experimental.torchvision.v2.functional.images import computed
from dalify.experimental.torchvision.v2.normalize import Normalize


def normalize(input_data: Any, mean: list[float], std: list[float], inplace: bool = False, device: Any = "cpu") -> Any:
    """Subtract a mean from each channel and divide by a standard deviation.

    Args:
        input_data: a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.
        mean: means, one per channel.
        std: standard deviations, one per channel.
        inplace: not supported.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: not a tensor.
    """
    transform = Normalize(mean, std, inplace)
    if not isinstance(input_data, torch.Tensor):
        raise ArgumentTypeError(
            f"normalize takes tensors, not {type(input_data).__name__}.", hint="Call to_tensor(image) first."
        )
    return computed(input_data, device, transform._apply)
