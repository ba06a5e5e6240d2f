"""Pastes regions of images onto canvases: all of a batch in one compiled loop, or in a fixed number of launches."""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.base.small_arrays import zeros
from dalify.data.device_samples import DeviceSamples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.grid_torch import Grid, common_unit


def paste_regions(canvases: np.ndarray, images: np.ndarray, sources: np.ndarray, boxes: np.ndarray) -> None:
    """Copy regions onto empty canvases; later regions overwrite earlier ones. Regions must be inside image and canvas.

    Args:
        canvases: [N, H, W, C], C-contiguous, output.
        images: [M, h, w, C], C-contiguous, same dtype.
        sources: int64 [R], the image of each region.
        boxes: int64 [R, 7]: canvas, row and column in it, row and column in the image, height, width.
    """
    pixel_bytes = canvases.shape[-1] * canvases.itemsize
    _paste(_rows(canvases), read_only(_rows(images)), sources, boxes, pixel_bytes)


def _rows(images: np.ndarray) -> np.ndarray:
    """Return the bytes of the rows, uint8 [N, H, bytes]."""
    row_bytes = images.shape[2] * images.shape[3] * images.itemsize
    return images.reshape(-1).view(np.uint8).reshape(*images.shape[:2], row_bytes)


@njit(nogil=True, cache=True)
def _paste(canvases, images, sources, boxes, pixel_bytes):
    canvases[:] = 0
    for region in range(len(boxes)):
        canvas, y, x, top, left, height, width = boxes[region]
        x, left, width = x * pixel_bytes, left * pixel_bytes, width * pixel_bytes
        source = images[sources[region]].ctypes.data
        target = canvases[canvas].ctypes.data
        for row in range(height):
            to = target + (y + row) * canvases.shape[2] + x
            copy_bytes(to, source + (top + row) * images.shape[2] + left, width)


def paste_regions_torch(canvases: DeviceSamples, images: DeviceSamples, sources: np.ndarray, boxes: np.ndarray) -> None:
    """`paste_regions` for samples of any shapes on the device.

    Args:
        canvases: N samples [H, W, C] or [F, H, W, C], output.
        images: M samples [h, w, C] or [F, h, w, C]; other dtypes are rounded half away from zero and saturated.
        sources: as in `paste_regions`.
        boxes: as in `paste_regions`; the regions of each canvas are adjacent.
    """
    drawn = np.flatnonzero(boxes[:, 5:].all(1) & images.shapes[sources].all(1))
    boxes, sources = boxes[drawn], sources[drawn]
    if not len(drawn):
        canvases.block.zero_()
        return
    axes = images.ndim - 1
    shapes = images.shapes[sources]
    shapes[:, axes - 2 : axes] = boxes[:, 5:]
    to, at = (zeros((len(boxes), images.ndim), np.int64) for _ in range(2))
    to[:, axes - 2 : axes], at[:, axes - 2 : axes] = boxes[:, 1:3], boxes[:, 3:5]
    unit = common_unit(images, axes)
    coordinates = axes if unit else images.ndim  # otherwise units are elements
    unit = unit or 1
    copied = DeviceSamples.empty(shapes, canvases.dtype, canvases.device)
    grid = Grid(copied, max(images, canvases, copied, key=lambda samples: samples.block.numel()), coordinates, unit)
    source, target = images.take(sources), canvases.take(boxes[:, 0])
    from_index, to_index = (
        grid.sources(samples, [place + grid.of_sample(start[:, axis]) for axis, place in enumerate(grid.coordinates)])
        for samples, start in ((source, at), (target, to))
    )
    saturate_cast_torch(copied.block, grid.whole(grid.read(source, from_index)))
    pixels, values = (movable_torch(samples.block).view(-1, unit) for samples in (canvases, copied))
    to_index = grid.whole(to_index).to(torch.int64)
    if not _overlap(boxes):
        pixels.zero_()
        pixels.index_copy_(0, to_index, values)
        return
    # Parallel copies to the same pixel have no order, so the last source of each pixel is determined first.
    numbers = torch.arange(len(values), dtype=grid.kind, device=canvases.device)
    last = torch.full((len(pixels),), -1, dtype=grid.kind, device=canvases.device)
    last.scatter_reduce_(0, to_index, numbers, "amax")
    pixels.copy_(torch.where(last[:, None] >= 0, values.index_select(0, last.clamp(min=0)), 0))


@njit(cache=True)
def _overlap(boxes):
    """Return whether regions of a canvas overlap."""
    for region in range(len(boxes)):
        canvas, y, x, _, _, height, width = boxes[region]
        for other in range(region - 1, -1, -1):
            other_canvas, top, left, _, _, other_height, other_width = boxes[other]
            if other_canvas != canvas:
                break
            if top < y + height and y < top + other_height and left < x + width and x < left + other_width:
                return True
    return False
