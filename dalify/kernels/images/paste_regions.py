"""Pastes regions of images onto canvases, all of a batch in one compiled loop.

Regions are small and numerous: a NumPy call for each costs more than the copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from dalify.base.compiling import njit
from dalify.kernels.arrays.frozen import read_only

__all__ = ["paste_regions"]

_memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))


def paste_regions(canvases: np.ndarray, images: np.ndarray, sources: np.ndarray, boxes: np.ndarray) -> None:
    """Copy regions onto empty canvases; later ones overwrite earlier ones. They must be inside image and canvas.

    Args:
        canvases: [N, H, W, C], C-contiguous, output.
        images: [M, h, w, C], C-contiguous, same dtype.
        sources: int64 [R], the image of each region.
        boxes: int64 [R, 7]: canvas, row and column there, row and column in the image, height, width.
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
        source = np.uintp(images[sources[region]].ctypes.data)
        target = np.uintp(canvases[canvas].ctypes.data)
        for row in range(height):
            to = np.uintp((y + row) * canvases.shape[2] + x)
            at = np.uintp((top + row) * images.shape[2] + left)
            _memcpy(target + to, source + at, np.uintp(width))
