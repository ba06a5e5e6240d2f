"""Resamples images and volumes through a window, for torch tensors of one shape: one matrix product per axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIInterpType
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.resample_filters import axis_weights
from dalify.kernels.images.resample_rounding import EVEN_PIXELS

if TYPE_CHECKING:
    from torch import Tensor

_NEAREST = int(DALIInterpType.INTERP_NN)
_LINEAR = int(DALIInterpType.INTERP_LINEAR)


def resample_torch(
    out: Tensor,
    x: Tensor,
    start: np.ndarray,
    end: np.ndarray,
    *,
    min_filter: np.ndarray | int = _LINEAR,
    mag_filter: np.ndarray | int = _LINEAR,
    antialias: bool = True,
) -> None:
    """`dalify.kernels.images.resample.resample` for torch tensors.

    `out` is [N, h, w, C] or [N, d, h, w, C], `x` is [N, H, W, C] or [N, D, H, W, C], on the same device.
    """
    if not out.numel():
        return
    if not x.numel():
        raise ShapeError(f"an empty image with shape {tuple(x.shape[1:])} cannot be resampled.")
    axes = x.ndim - 2
    samples = x.shape[0]
    minify = np.broadcast_to(np.asarray(min_filter, np.int32), (samples,))
    magnify = np.broadcast_to(np.asarray(mag_filter, np.int32), (samples,))
    is_nearest = out.dtype == x.dtype and bool((minify == _NEAREST).all() and (magnify == _NEAREST).all())
    tables = [
        [
            axis_weights(
                x.shape[1 + axis],
                out.shape[1 + axis],
                float(start[n, axis]),
                float(end[n, axis]),
                min_filter=int(minify[n]),
                mag_filter=int(magnify[n]),
                antialias=antialias,
                is_last=axis == axes - 1,
            )
            for n in range(samples)
        ]
        for axis in range(axes)
    ]
    if is_nearest:
        out.copy_(_gather(x, tables))
        return
    blended = x.to(torch.float32)
    for axis, table in enumerate(tables):
        matrix = _dense(table, x.shape[1 + axis], x.device)
        before, extent, after = _around(blended.shape, 1 + axis)
        product = matrix[:, None] @ blended.reshape(samples, before, extent, after)
        blended = product.reshape(*blended.shape[: 1 + axis], matrix.shape[1], *blended.shape[2 + axis :])
    is_even = not out.is_floating_point() and out.shape[-2] >= EVEN_PIXELS
    saturate_cast_torch(out, blended.round() if is_even else blended)


def _around(shape: torch.Size, axis: int) -> tuple[int, int, int]:
    """Return the number of elements of a sample before an axis, along it, and after it."""
    return int(np.prod(shape[1:axis])), shape[axis], int(np.prod(shape[axis + 1 :]))


def _gather(x: Tensor, tables: list[list[tuple[np.ndarray, np.ndarray]]]) -> Tensor:
    axes = len(tables)
    samples = x.shape[0]
    index = [torch.arange(samples, device=x.device).reshape(samples, *[1] * axes)]
    for axis, table in enumerate(tables):
        first = uploaded(np.stack([rows for rows, _ in table]), x.device)
        form = [1] * axes
        form[axis] = first.shape[1]
        index.append(first.reshape(samples, *form))
    return x[tuple(index)]


def _dense(table: list[tuple[np.ndarray, np.ndarray]], extent: int, device: torch.device) -> Tensor:
    """Return the weights of one axis as matrices, float32 [N, out, extent]."""
    size = len(table[0][0])
    taps = max(weights.shape[1] for _, weights in table)
    first = np.empty((len(table), size, 1), np.int64)
    weights = np.zeros((len(table), size, taps), np.float32)
    for n, (rows, row_weights) in enumerate(table):
        first[n, :, 0] = rows
        weights[n, :, : row_weights.shape[1]] = row_weights
    # Taps with weight 0 of narrower filters in the group may be outside the image.
    columns = np.minimum(first + np.arange(taps), extent - 1)
    matrix = torch.zeros(len(table), size, extent, device=device)
    return matrix.scatter_add_(2, uploaded(columns, device), uploaded(weights, device))
