"""Contrast limited adaptive histogram equalization (CLAHE) of gray planes, by OpenCV's rules.

OpenCV supports only 256 bins and no accelerator, and splits a plane among its own threads, which spin while they wait.
On one thread, this implementation for arrays takes 1 / 2.8 of its CPU time for 512 x 512 pixels and 1 / 1.7 for
128 x 128 (`python -m benchmarks kernels`, x86-64).

The plane is divided into tiles of equal size. If an extent is not a multiple of the number of tiles, the plane is
padded at the right and bottom by reflection without the edge pixel; as in OpenCV, both axes are then padded, even if
one is a multiple. The table of a tile is the histogram of its levels, clipped at the limit, with the excess
distributed over all levels, accumulated and scaled to 0..255. The result of a pixel is interpolated between the tables
of the four tiles with the nearest centers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.data.samples import Samples
from dalify.kernels.arrays.upload_torch import uploaded_together

if TYPE_CHECKING:
    from torch import Tensor

_LEVELS = 256
_BRIGHTEST = 255
# Adding and subtracting it rounds halves to even, because floats of this size have no fraction bits. np.rint would be
# a function call for each element.
_WHOLE = np.float32(1.5 * 2**23)


class _Axis(NamedTuple):
    """The tiles along one axis of a plane.

    Attributes:
        tile: extent of a tile, pixels.
        mirrored: for each pixel of the tiles, the source pixel of the plane, int64.
        before: for each pixel of the plane, the last tile with its center before the pixel, int64.
        after: the tile with the next center; at the ends of the axis, the same tile.
        weights: weight of `after`, float32.
    """

    tile: int
    mirrored: np.ndarray
    before: np.ndarray
    after: np.ndarray
    weights: np.ndarray


@lru_cache(maxsize=256)
def _axis(extent: int, tiles: int, tile: int) -> _Axis:
    return _Axis(tile, *_axis_tables(extent, tiles, tile))


@njit(cache=True)
def _axis_tables(extent: int, tiles: int, tile: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the tables of `_Axis`."""
    mirrored = np.empty(tiles * tile, np.int64)
    period = max(2 * (extent - 1), 1)
    for i in range(mirrored.size):
        at = i % period
        mirrored[i] = i if i < extent else min(at, period - at) if extent > 1 else 0
    before, after = np.empty(extent, np.int64), np.empty(extent, np.int64)
    weights = np.empty(extent, np.float32)
    per_pixel, half = np.float32(1.0 / tile), np.float32(0.5)
    for i in range(extent):
        place = np.float32(i) * per_pixel - half
        first = np.int64(math.floor(place))
        weights[i] = place - np.float32(first)
        before[i], after[i] = max(first, 0), min(first + 1, tiles - 1)
    return mirrored, before, after, weights


@njit(cache=True)
def _tile_sizes(height: int, width: int, tiles_x: int, tiles_y: int) -> Any:
    """Return the height and width of a tile."""
    more = 1 if height % tiles_y != 0 or width % tiles_x != 0 else 0
    return height // tiles_y + more, width // tiles_x + more


@njit(cache=True)
def _clip(clip_limit: float, area: int, bins: int) -> Any:
    """Return the maximum count of a level in a tile."""
    return max(int(min(clip_limit * area / bins, float(area))), 1)


def equalize_planes(out: Samples, x: Samples, *, tiles_x: int, tiles_y: int, clip_limit: float, bins: int) -> None:
    """Equalize planes on the CPU.

    Args:
        out: uint8 [H, W], output.
        x: uint8 [H, W].
        tiles_x: number of tiles along the width.
        tiles_y: number of tiles along the height.
        clip_limit: maximum count of a level as a multiple of the mean count, > 0.
        bins: number of histogram bins, a power of two up to 256.
    """
    _equalize(out.addresses, x.addresses, x.shapes, x.like, tiles_x, tiles_y, float(clip_limit), bins)


@njit(nogil=True, cache=True)
def _equalize(out_at, x_at, shapes, like, tiles_x, tiles_y, clip_limit, bins):
    tables = np.empty((tiles_y, tiles_x, bins), np.uint8)
    shift = 0
    while bins << shift < _LEVELS:
        shift += 1
    for n in range(len(x_at)):
        height, width = shapes[n]
        x, out = array_at(x_at[n], (height, width), like), array_at(out_at[n], (height, width), like)
        tile_y, tile_x = _tile_sizes(height, width, tiles_x, tiles_y)
        rows, up, down, weights_y = _axis_tables(height, tiles_y, tile_y)
        columns, left, right, weights_x = _axis_tables(width, tiles_x, tile_x)
        area = tile_y * tile_x
        scale = np.float32(_BRIGHTEST) / np.float32(area)
        _fill_tables(tables, x, rows, columns, shift, _clip(clip_limit, area, bins), scale)
        _blend(out, x, tables, shift, up, down, weights_y, left, right, weights_x)


@njit(nogil=True, inline="always")
def _fill_tables(tables, x, rows, columns, shift, limit, scale):
    tiles_y, tiles_x, bins = tables.shape
    tile_height, tile_width = len(rows) // tiles_y, len(columns) // tiles_x
    # Two histograms: neighbors are often equal, and an increment of the same count waits for the previous one.
    counts = np.empty((2, bins), np.int32)
    for i in range(tiles_y):
        for j in range(tiles_x):
            counts[:] = 0
            start, stop = j * tile_width, (j + 1) * tile_width
            inside = max(min(stop, x.shape[1]), start)
            for y in range(i * tile_height, (i + 1) * tile_height):
                row = x[rows[y]]
                for k in range(start, inside):
                    counts[k & 1, row[k] >> shift] += 1
                for k in range(inside, stop):
                    counts[k & 1, row[columns[k]] >> shift] += 1
            excess = 0
            for level in range(bins):
                count = counts[0, level] + counts[1, level]
                counts[0, level] = min(count, limit)
                excess += max(count - limit, 0)
            share, rest = divmod(excess, bins)
            step = bins // max(rest, 1)
            for number in range(rest):
                counts[0, number * step] += 1
            total = 0
            for level in range(bins):
                total += counts[0, level] + share
                counts[0, level] = total
            for level in range(bins):
                tables[i, j, level] = np.uint8(np.int32(np.float32(counts[0, level]) * scale + _WHOLE - _WHOLE))


@njit(nogil=True, inline="always")
def _blend(out, x, tables, shift, up, down, weights_y, left, right, weights_x):
    one, byte = np.float32(1), np.uint32(255)
    # The four values of a level are packed and looked up together; the interpolation is a separate, vectorized loop.
    fours = np.empty(tables.shape[2], np.uint32)
    found = np.empty(x.shape[1], np.uint32)
    bottom = 0
    while bottom < x.shape[0]:
        top = bottom  # rows and columns with the same two tiles
        while bottom < x.shape[0] and up[bottom] == up[top] and down[bottom] == down[top]:
            bottom += 1
        above, below = tables[up[top]], tables[down[top]]
        stop = 0
        while stop < x.shape[1]:
            start = stop
            while stop < x.shape[1] and left[stop] == left[start] and right[stop] == right[start]:
                stop += 1
            first, second = left[start], right[start]
            for level in range(tables.shape[2]):
                upper = np.uint32(above[first, level]) | np.uint32(above[second, level]) << np.uint32(8)
                lower = np.uint32(below[first, level]) | np.uint32(below[second, level]) << np.uint32(8)
                fours[level] = upper | lower << np.uint32(16)
            weights = weights_x[start:stop]
            for y in range(top, bottom):
                weight_y = weights_y[y]
                source, target = x[y, start:stop], out[y, start:stop]
                for k in range(stop - start):
                    found[k] = fours[source[k] >> shift]
                for k in range(stop - start):
                    four, weight_x = found[k], weights[k]
                    a, b = np.float32(np.int32(four & byte)), np.float32(np.int32(four >> np.uint32(8) & byte))
                    c = np.float32(np.int32(four >> np.uint32(16) & byte))
                    d = np.float32(np.int32(four >> np.uint32(24)))
                    blend = (a * (one - weight_x) + b * weight_x) * (one - weight_y)
                    blend += (c * (one - weight_x) + d * weight_x) * weight_y
                    target[k] = np.uint8(np.int32(blend + _WHOLE - _WHOLE))


def _joined(axes: Sequence[_Axis], tiles: int, extent: int) -> list[np.ndarray]:
    """Return tables of one axis of N planes, each padded at the end.

    Args:
        axes: tables of each plane.
        tiles: number of tiles.
        extent: extent of the padded planes.

    Returns:
        source and tile of each pixel of the tiles, int64 [N, longest]; after the tiles, the tile is `tiles`. For each
        pixel of the planes, the tiles before and after it, int64 [N, extent], and the weights of the latter, float32
        [N, extent].
    """
    longest = max(axis.mirrored.size for axis in axes)
    source, tile = np.zeros((2, len(axes), longest), np.int64)
    before, after = np.zeros((2, len(axes), extent), np.int64)
    weights = np.zeros((len(axes), extent), np.float32)
    for n, axis in enumerate(axes):
        source[n, : axis.mirrored.size] = axis.mirrored
        tile[n] = np.minimum(np.arange(longest) // axis.tile, tiles)
        before[n, : axis.before.size] = axis.before
        after[n, : axis.before.size] = axis.after
        weights[n, : axis.before.size] = axis.weights
    return [source, tile, before, after, weights]


def equalize_planes_torch(
    x: Tensor, extents: np.ndarray, *, tiles_x: int, tiles_y: int, clip_limit: float, bins: int
) -> Tensor:
    """Equalize planes that are padded to one shape; see `equalize_planes`.

    Args:
        x: uint8 [N, H, W].
        extents: height and width without padding, int64 [N, 2].
        tiles_x: as in `equalize_planes`.
        tiles_y: as in `equalize_planes`.
        clip_limit: as in `equalize_planes`.
        bins: as in `equalize_planes`.

    Returns:
        uint8 [N, H, W].
    """
    count, height, width = x.shape
    axes: list[tuple[_Axis, _Axis]] = []
    for rows, columns in extents.tolist():
        tile_y, tile_x = _tile_sizes(rows, columns, tiles_x, tiles_y)
        axes.append((_axis(rows, tiles_y, tile_y), _axis(columns, tiles_x, tile_x)))
    areas = np.array([rows.tile * columns.tile for rows, columns in axes])
    limits = np.array([_clip(clip_limit, area, bins) for area in areas.tolist()])
    tables = uploaded_together(
        x.device,
        *_joined([rows for rows, _ in axes], tiles_y, height),
        *_joined([columns for _, columns in axes], tiles_x, width),
        limits,
        np.float32(_BRIGHTEST) / areas.astype(np.float32),
    )
    source_y, tile_y, up, down, weights_y = (table.reshape(count, -1, 1) for table in tables[:5])
    source_x, tile_x, left, right, weights_x = (table.reshape(count, 1, -1) for table in tables[5:10])
    limit, scale = (table.reshape(count, 1, 1) for table in tables[10:])

    levels = x.long() >> (_LEVELS // bins).bit_length() - 1
    plane = torch.arange(count, device=x.device)[:, None, None]
    # Pixels after the tiles of a plane are counted in an additional row and column of tiles, which are not read.
    tile = (plane * (tiles_y + 1) + tile_y) * (tiles_x + 1) + tile_x
    index = (tile * bins + levels[plane, source_y, source_x]).reshape(-1)
    counts = torch.zeros(count * (tiles_y + 1) * (tiles_x + 1) * bins, dtype=torch.long, device=x.device)
    counts.scatter_add_(0, index, torch.ones_like(index))
    counts = counts.reshape(count, tiles_y + 1, tiles_x + 1, bins)[:, :-1, :-1].reshape(count, -1, bins)
    excess = (counts - limit).clamp(min=0).sum(2, keepdim=True)
    rest = excess % bins
    step = (bins // rest.clamp(min=1)).clamp(min=1)
    level = torch.arange(bins, device=x.device)
    counts = torch.minimum(counts, limit) + excess // bins + ((level % step == 0) & (level // step < rest))
    table = (counts.cumsum(2).float() * scale).round().clamp(max=_BRIGHTEST).reshape(count, -1)

    def looked_up(row: Tensor, column: Tensor) -> Tensor:
        index = (row * tiles_x + column) * bins + levels
        return table.gather(1, index.reshape(count, -1)).reshape(x.shape)

    upper = looked_up(up, left) * (1 - weights_x) + looked_up(up, right) * weights_x
    lower = looked_up(down, left) * (1 - weights_x) + looked_up(down, right) * weights_x
    return (upper * (1 - weights_y) + lower * weights_y).round().clamp(0, _BRIGHTEST).to(torch.uint8)
