"""Converts luma and chroma planes to RGB, bit-exact with FFmpeg's linear, full-chroma, accurate-rounding converter.

FFmpeg's converter takes ten times as long, as long as the decoder. Along each subsampled axis, chroma is weighted 3 : 1
toward the nearer sample (or, if samples are sited on the left pixel, 1 : 0 and 1 : 1 along rows); the matrix is that of
ITU-R BT.601 in fixed point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.compiling import njit

# Factor and offset of luma, then red from Cr, green from Cb, green from Cr, blue from Cb; scaled by 2**13, luma 2**17.
STUDIO_RANGE = np.array([9539 * 16, 16, 13075, -3209, -6660, 16525], np.int32)
FULL_RANGE = np.array([8192 * 16, 0, 11485, -2819, -5850, 14516], np.int32)
# FFmpeg uses other weights for smaller frames.
_MIN_EXTENT = 16


@njit(nogil=True, cache=True)
def planes_to_rgb(
    out: np.ndarray, luma: np.ndarray, cb: np.ndarray, cr: np.ndarray, matrix: np.ndarray, is_left: bool
) -> None:
    """Convert a frame.

    Args:
        out: uint8 ``[height, 3 * width]``, output.
        luma: uint8 ``[height, width]``.
        cb: uint8 ``[height or height / 2, width or width / 2]``; subsampled extents must be even.
        cr: same shape as ``cb``.
        matrix: ``STUDIO_RANGE`` or ``FULL_RANGE``.
        is_left: whether chroma samples are sited on the left of two pixels, instead of between them.
    """
    height, width = luma.shape
    rows, columns = cb.shape
    u, v = np.empty(columns + 2, np.int32), np.empty(columns + 2, np.int32)
    us, vs = np.empty(width, np.int32), np.empty(width, np.int32)
    factor, offset = np.int32(matrix[0]), np.int32(matrix[1])
    red, green_u, green_v, blue = np.int32(matrix[2]), np.int32(matrix[3]), np.int32(matrix[4]), np.int32(matrix[5])
    for row in range(height):
        near = other = row
        if rows < height:
            near = row >> 1
            other = min(max(near - 1 + 2 * (row & 1), 0), rows - 1)
        for j in range(columns):
            u[j + 1] = np.int32(3) * np.int32(cb[near, j]) + np.int32(cb[other, j])
            v[j + 1] = np.int32(3) * np.int32(cr[near, j]) + np.int32(cr[other, j])
        u[0], v[0], u[columns + 1], v[columns + 1] = u[1], v[1], u[columns], v[columns]
        if columns == width:
            for j in range(width):
                us[j] = np.int32(4 * u[j + 1] - 2048)
                vs[j] = np.int32(4 * v[j + 1] - 2048)
        elif is_left:
            for j in range(columns):
                us[2 * j] = np.int32(4 * u[j + 1] - 2048)
                us[2 * j + 1] = np.int32(2 * (u[j + 1] + u[j + 2]) - 2048)
                vs[2 * j] = np.int32(4 * v[j + 1] - 2048)
                vs[2 * j + 1] = np.int32(2 * (v[j + 1] + v[j + 2]) - 2048)
        else:
            for j in range(columns):
                us[2 * j] = np.int32(3 * u[j + 1] + u[j] - 2048)
                us[2 * j + 1] = np.int32(3 * u[j + 1] + u[j + 2] - 2048)
                vs[2 * j] = np.int32(3 * v[j + 1] + v[j] - 2048)
                vs[2 * j + 1] = np.int32(3 * v[j + 1] + v[j + 2] - 2048)
        line, target = luma[row], out[row]
        for j in range(width):
            y = np.int32(factor * (np.int32(line[j]) - offset) + np.int32(65536))
            # The shift by 5 bits wraps on overflow, as FFmpeg's sums of 32 bits do.
            r = np.int32(np.int32(y + red * vs[j]) << 5) >> 22
            g = np.int32(np.int32(y + green_u * us[j] + green_v * vs[j]) << 5) >> 22
            b = np.int32(np.int32(y + blue * us[j]) << 5) >> 22
            target[3 * j] = np.uint8(min(max(r, 0), 255))
            target[3 * j + 1] = np.uint8(min(max(g, 0), 255))
            target[3 * j + 2] = np.uint8(min(max(b, 0), 255))


def is_supported(planes: list[Any], width: int, height: int) -> bool:
    """Return whether the planes of a frame have a supported layout."""
    luma, cb, _ = planes
    halves = cb.width < luma.width, cb.height < luma.height
    wanted = width // (1 + halves[0]), height // (1 + halves[1])
    return (
        min(width, height) >= _MIN_EXTENT
        and all(plane.line_size > 0 for plane in planes)
        and (cb.width, cb.height) == wanted
        and not (halves[0] and width % 2)
        and not (halves[1] and height % 2)
    )
