"""Contrast limited adaptive histogram equalisation (CLAHE) of grey planes, by OpenCV's rules.

Alone because OpenCV itself has neither another number of bins than 256 nor a way to run on an accelerator: the steps
are here once for arrays and once for tensors.

The plane is divided into tiles of one size; where its extents are no multiples of their numbers it is continued at the
right and at the bottom, mirrored without the edge pixel (OpenCV then adds a whole tile count along an axis that would
have fitted, and so does this). Each tile has a table: the counts of its levels, cut off at the limit, what was cut off
spread over all levels, summed up and scaled to 0..255. A pixel blends the tables of the four tiles whose middles lie
around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from dalify.base.optional import torch
from dalify.kernels.convolve import bordered_indices
from dalify.kernels.frozen import read_only

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["equalise_plane", "equalise_planes_torch"]

_LEVELS = 256
_BRIGHTEST = 255


def _grid(height: int, width: int, tiles_x: int, tiles_y: int) -> tuple[int, int]:
    """Return the extents of a tile."""
    if height % tiles_y == 0 and width % tiles_x == 0:
        return height // tiles_y, width // tiles_x
    return height // tiles_y + 1, width // tiles_x + 1


def _clip(clip_limit: float, area: int, bins: int) -> int:
    """Return the largest count of a level in a tile."""
    return max(int(min(clip_limit * area / bins, area)), 1)


def _blending(extent: int, tile: int, tiles: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each pixel of an axis the tiles before and behind it, and the weight of the latter."""
    at = np.arange(extent, dtype=np.float32) * np.float32(1.0 / tile) - np.float32(0.5)
    first = np.floor(at).astype(np.int64)
    return np.maximum(first, 0), np.minimum(first + 1, tiles - 1), at - first.astype(np.float32)


def equalise_plane(out: np.ndarray, x: np.ndarray, *, tiles_x: int, tiles_y: int, clip_limit: float, bins: int) -> None:
    """Equalise one plane on the CPU.

    Args:
        out: uint8 [H, W], to fill; may have gaps between its pixels.
        x: uint8 [H, W].
        tiles_x: along the width.
        tiles_y: along the height.
        clip_limit: largest count of a level as a multiple of the mean count, > 0.
        bins: levels that are told apart, a power of two up to 256.
    """
    height, width = x.shape
    tile_height, tile_width = _grid(height, width, tiles_x, tiles_y)
    rows, _ = bordered_indices(height, 0, tile_height * tiles_y - height, "reflect_101")
    columns, _ = bordered_indices(width, 0, tile_width * tiles_x - width, "reflect_101")
    area = tile_height * tile_width
    table = np.empty((tiles_y, tiles_x, bins), np.float32)
    shift = (_LEVELS // bins).bit_length() - 1
    scale = np.float32(_BRIGHTEST) / np.float32(area)
    whole = read_only(x)
    _fill_tables(table, whole, rows, columns, tile_height, tile_width, shift, _clip(clip_limit, area, bins), scale)
    result = np.empty(x.shape, np.uint8)
    up, down, weights_y = _blending(height, tile_height, tiles_y)
    left, right, weights_x = _blending(width, tile_width, tiles_x)
    _blend(result, whole, table, shift, up, down, weights_y, left, right, weights_x)
    out[...] = result


@njit(nogil=True, cache=True)
def _fill_tables(table, x, rows, columns, tile_height, tile_width, shift, limit, scale):
    bins = table.shape[2]
    counts = np.empty(bins, np.int64)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            counts[:] = 0
            for y in range(i * tile_height, (i + 1) * tile_height):
                for k in range(j * tile_width, (j + 1) * tile_width):
                    counts[x[rows[y], columns[k]] >> shift] += 1
            excess = 0
            for level in range(bins):
                if counts[level] > limit:
                    excess += counts[level] - limit
                    counts[level] = limit
            rest = excess % bins
            step = max(bins // rest, 1) if rest else 1
            total = 0
            for level in range(bins):
                extra = rest and level % step == 0 and level // step < rest
                total += counts[level] + excess // bins + (1 if extra else 0)
                table[i, j, level] = min(np.rint(np.float32(total) * scale), np.float32(255))


@njit(nogil=True, cache=True)
def _blend(out, x, table, shift, up, down, weights_y, left, right, weights_x):
    one = np.float32(1)
    for y in range(out.shape[0]):
        above, below, weight_y = table[up[y]], table[down[y]], weights_y[y]
        for k in range(out.shape[1]):
            level, weight_x = x[y, k] >> shift, weights_x[k]
            upper = above[left[k], level] * (one - weight_x) + above[right[k], level] * weight_x
            lower = below[left[k], level] * (one - weight_x) + below[right[k], level] * weight_x
            out[y, k] = np.uint8(min(max(np.rint(upper * (one - weight_y) + lower * weight_y), 0.0), 255.0))


def equalise_planes_torch(x: Tensor, *, tiles_x: int, tiles_y: int, clip_limit: float, bins: int) -> Tensor:
    """Equalise planes of one shape; see `equalise_plane`.

    Args:
        x: uint8 [N, H, W].
        tiles_x: as there.
        tiles_y: as there.
        clip_limit: as there.
        bins: as there.

    Returns:
        uint8 [N, H, W].
    """
    count, height, width = x.shape
    tile_height, tile_width = _grid(height, width, tiles_x, tiles_y)

    def on_device(values: Any) -> Tensor:
        return torch.as_tensor(values, device=x.device)

    shift = (_LEVELS // bins).bit_length() - 1
    levels = x.long() >> shift
    rows, _ = bordered_indices(height, 0, tile_height * tiles_y - height, "reflect_101")
    columns, _ = bordered_indices(width, 0, tile_width * tiles_x - width, "reflect_101")
    padded = levels[:, on_device(rows)[:, None], on_device(columns)]
    tiles = padded.reshape(count, tiles_y, tile_height, tiles_x, tile_width).transpose(2, 3)
    pixels = tiles.reshape(count * tiles_y * tiles_x, tile_height * tile_width)
    counts = torch.zeros((len(pixels), bins), dtype=torch.long, device=x.device)
    counts.scatter_add_(1, pixels, torch.ones_like(pixels))
    area = tile_height * tile_width
    limit = _clip(clip_limit, area, bins)
    excess = (counts - limit).clamp(min=0).sum(1, keepdim=True)
    rest = excess % bins
    step = (bins // rest.clamp(min=1)).clamp(min=1)
    level = torch.arange(bins, device=x.device)
    counts = counts.clamp(max=limit) + excess // bins + ((level % step == 0) & (level // step < rest))
    table = (counts.cumsum(1).float() * float(np.float32(_BRIGHTEST) / np.float32(area))).round().clamp(max=_BRIGHTEST)
    table = table.reshape(count, tiles_y * tiles_x, bins).reshape(count, -1)
    up, down, weights_y = (on_device(v)[:, None] for v in _blending(height, tile_height, tiles_y))
    left, right, weights_x = (on_device(v) for v in _blending(width, tile_width, tiles_x))

    def looked_up(row: Tensor, column: Tensor) -> Tensor:
        index = (row * tiles_x + column) * bins + levels
        return table.gather(1, index.reshape(count, -1)).reshape(x.shape)

    upper = looked_up(up, left) * (1 - weights_x) + looked_up(up, right) * weights_x
    lower = looked_up(down, left) * (1 - weights_x) + looked_up(down, right) * weights_x
    return (upper * (1 - weights_y) + lower * weights_y).round().clamp(0, _BRIGHTEST).to(torch.uint8)
