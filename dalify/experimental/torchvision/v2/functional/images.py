"""Apply a function of `Images` to a Pillow image or a tensor, and return the result as the same type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from PIL import Image

from dalify import eager
from dalify.base.errors import ArgumentTypeError
from dalify.data import TensorCPU, TensorGPU
from dalify.experimental.torchvision.v2.conversion import from_pixels, pixels_of, tensor_of
from dalify.experimental.torchvision.v2.operator import Images, check_dimensions


def computed(inpt: Any, device: Any, change: Callable[[Images], Images]) -> Any:
    """Apply a function to a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``.

    Args:
        inpt: the image or images.
        device: ``cpu`` or ``gpu``, for the operators.
        change: function of `Images`.

    Returns:
        A Pillow image for a Pillow image; a tensor on the device for a tensor.

    Raises:
        ArgumentTypeError: neither a Pillow image nor a tensor.
        ArgumentValueError: a Pillow image with another mode than L, RGB and RGBA.
        ShapeError: a tensor with fewer than three dimensions.
    """
    kind = "cpu" if "cpu" in str(getattr(device, "device_type", getattr(device, "type", device))) else "gpu"
    if isinstance(inpt, Image.Image):
        pixels = pixels_of(inpt)
        found = change(Images(eager.tensor(pixels, "HWC"), "HWC", pixels.shape[2], False, False, kind))
        return from_pixels(_single(found).cpu().numpy())
    if not isinstance(inpt, torch.Tensor):
        raise ArgumentTypeError(
            f"an image must be a Pillow image or a torch tensor; got {type(inpt).__name__}.",
            hint="Write torch.from_numpy(array).permute(2, 0, 1) for an array [H, W, C].",
        )
    check_dimensions(inpt)
    inpt = inpt if inpt.device.type == "cpu" or kind == "gpu" else inpt.cpu()
    if inpt.ndim == 3:
        data: Any = eager.tensor(inpt, "CHW")
        return _single(change(Images(data, "CHW", inpt.shape[0], inpt.is_floating_point(), False, kind)))
    data = eager.batch(inpt.reshape(-1, *inpt.shape[-3:]), "CHW")
    found = change(Images(data, "CHW", inpt.shape[-3], inpt.is_floating_point(), False, kind))
    result = tensor_of(found.data.as_tensor())
    return result.reshape(*inpt.shape[:-3], *result.shape[1:])


def _single(images: Images) -> torch.Tensor:
    data = images.data
    assert isinstance(data, TensorCPU | TensorGPU), "dalify bug: a batch where one image was given"
    return tensor_of(data)
