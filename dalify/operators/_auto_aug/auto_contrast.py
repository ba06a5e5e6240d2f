"""Stretch the values of each channel to the whole range."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.images.channels import channel_limits, channel_lines
from dalify.kernels.images.frames import folded_frames, visual_layout
from dalify.registry import Spec, operator

_LAYOUTS = ("FHWC", "HWC")


@operator
def auto_contrast(x: Spec, /) -> Spec:
    """Stretch the values of each channel: the minimum becomes 0, the maximum 255.

    ``out = (x - low) * 255 / (high - low)``, rounded; a channel with a single value is unchanged. Frames are
    processed independently.

    Args:
        x: uint8 images HWC or sequences FHWC.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        DTypeError: elements are not uint8.
    """
    visual_layout(x, _LAYOUTS)
    x.check_dtype(DALIDataType.UINT8)
    return x


@auto_contrast.cpu_samples
def _(out: Samples, x: Samples, *, spec: Spec) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    source, target = folded_frames(x, layout), folded_frames(out, layout)
    lows, highs = (limits.astype(np.float32) for limits in channel_limits(source))
    is_flat = highs == lows
    factor = np.where(is_flat, np.float32(1), np.float32(255) / np.where(is_flat, np.float32(1), highs - lows))
    channel_lines(target, source, factor, np.where(is_flat, np.float32(0), -lows * factor))


@auto_contrast.gpu_samples
@on_padded  # repeated edges do not change the extrema
def _(out: torch.Tensor, x: torch.Tensor) -> None:
    axes = (-3, -2)
    values = x.float()
    lows, highs = values.amin(axes, keepdim=True), values.amax(axes, keepdim=True)
    is_flat = highs == lows
    factor = 255 / torch.where(is_flat, torch.ones_like(lows), highs - lows)
    stretched = ((values - lows) * factor + 0.5).floor().clamp(0, 255)
    out.copy_(torch.where(is_flat, values, stretched).to(torch.uint8))
