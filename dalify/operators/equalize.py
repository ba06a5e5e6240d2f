"""Equalise the histogram of each channel."""

from __future__ import annotations

import math

import cv2

from dalify.base.errors import DTypeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.frames import visual_layout
from dalify.registry import Spec, operator

_LAYOUTS = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")


@operator
def equalize(x: Spec, /) -> Spec:
    """Equalise the histogram of each channel of each image, so that all grey levels become about equally frequent.

    A level goes to ``255 * (values up to it, less those of the lowest level) / (all values, less those of the lowest
    level)``, as in OpenCV's equalizeHist; an image of one level stays as it is.

    Args:
        x: uint8 images HW, HWC, CHW or sequences of them.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: another layout.
        DTypeError: elements are not uint8.

    Example:
        >>> images = fn.equalize(images)  # doctest: +SKIP
    """
    visual_layout(x, _LAYOUTS)
    if x.dtype != DALIDataType.UINT8:
        raise DTypeError(f"histograms are equalised in uint8; the input has elements of type {x.dtype!s}.")
    return x


@equalize.cpu
def _(out, x, *, spec):
    layout = visual_layout(spec, _LAYOUTS)
    planes = math.prod(x.shape[:-2]) if layout[-1] != "C" else math.prod(x.shape[:-3])
    height, width, channels = (*x.shape[-2:], 1) if layout[-1] != "C" else x.shape[-3:]
    source, target = (array.reshape(planes, height, width, channels) for array in (x, out))
    for one, result in zip(source, target, strict=True):
        if channels == 1:
            cv2.equalizeHist(one[..., 0], dst=result[..., 0])
        else:
            cv2.merge([cv2.equalizeHist(channel) for channel in cv2.split(one)], dst=result)


@equalize.gpu
def _(out, x, *, spec):
    layout = visual_layout(spec, _LAYOUTS)
    # Channels in front, then one row per image and channel.
    planar = x.movedim(-1, -3) if layout[-1] == "C" else x
    rows = planar.reshape(-1, planar.shape[-2] * planar.shape[-1]).long()
    counts = torch.zeros((rows.shape[0], 256), dtype=torch.long, device=x.device)
    counts.scatter_add_(1, rows, torch.ones_like(rows))
    lowest = rows.amin(1, keepdim=True)
    first = counts.gather(1, lowest)
    scale = 255.0 / (rows.shape[1] - first).clamp(min=1).float()
    table = ((counts.cumsum(1) - first).float() * scale).round().clamp(0, 255)
    table = torch.where(first == rows.shape[1], torch.arange(256, device=x.device), table)
    result = table.gather(1, rows).reshape(planar.shape).to(torch.uint8)
    out.copy_(result.movedim(-3, -1) if layout[-1] == "C" else result)
