"""Crop, mirror, normalize and transpose for torch tensors on any device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalify.base.optional import torch
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.upload_torch import uploaded

if TYPE_CHECKING:
    from torch import Tensor


def crop_mirror_normalize_torch(
    out: Tensor,
    x: Tensor,
    start: np.ndarray,
    *,
    mirror: np.ndarray,
    mean: np.ndarray,
    multiplier: np.ndarray,
    shift: float = 0.0,
    fill_values: np.ndarray,
    is_planar: bool = True,
) -> None:
    """`dalify.kernels.images.crop_mirror_normalize.crop_mirror_normalize` for torch tensors.

    `out` is [N, C', d, h, w] or [N, d, h, w, C'], `x` is [N, D, H, W, C] on the same device.
    """
    samples, channels = x.shape[0], x.shape[-1]
    target = out.movedim(1, -1) if is_planar else out
    places = [np.asarray(start)[:, axis, None] + np.arange(target.shape[1 + axis]) for axis in range(3)]
    places[2] = np.where(np.asarray(mirror, bool)[:, None], places[2][:, ::-1], places[2])
    inside = [(place >= 0) & (place < x.shape[1 + axis]) for axis, place in enumerate(places)]
    index = [uploaded(place.clip(0, x.shape[1 + axis] - 1), x.device) for axis, place in enumerate(places)]
    rows = torch.arange(samples, device=x.device)[:, None, None, None]
    window = x[rows, index[0][:, :, None, None], index[1][:, None, :, None], index[2][:, None, None, :]]

    def parameter(values: np.ndarray) -> Tensor:
        full = np.broadcast_to(np.asarray(values, np.float32), (samples, channels))
        return uploaded(full, x.device)[:, None, None, None, :]

    result = (window.to(torch.float32) - parameter(mean)) * parameter(multiplier) + shift
    border = uploaded(fill_values, x.device, np.float32)
    if not all(part.all() for part in inside):
        masks = [uploaded(part, x.device) for part in inside]
        is_inside = masks[0][:, :, None, None] & masks[1][:, None, :, None] & masks[2][:, None, None, :]
        result = torch.where(is_inside[..., None], result, border[:channels])
    if target.shape[-1] > channels:
        extra = border[channels:].expand(*result.shape[:-1], -1)
        result = torch.cat([result, extra], -1)
    saturate_cast_torch(out, result.movedim(-1, 1) if is_planar else result)
