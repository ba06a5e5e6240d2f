"""Converts CMYK to RGB and gray, with the same rounding as the libraries that DALI uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.compiling import njit


@njit(nogil=True, cache=True)
def mix_inks(inks: Any, is_bgr: bool, out: Any) -> None:
    """Convert CMYK (0 is no ink) to colors, ``(255 - ink) * (255 - black) // 255``.

    Args:
        inks: uint8 ``[height, width, 4]``.
        is_bgr: whether colors are in the order BGR.
        out: output, uint8 ``[height, width, 3]``, or ``[height, width, 1]`` for BT.601 luma, rounded toward zero.
    """
    height, width, channels = out.shape
    for y in range(height):
        for x in range(width):
            black = np.int32(255) - np.int32(inks[y, x, 3])
            red = (np.int32(255) - np.int32(inks[y, x, 0])) * black // 255
            green = (np.int32(255) - np.int32(inks[y, x, 1])) * black // 255
            blue = (np.int32(255) - np.int32(inks[y, x, 2])) * black // 255
            if channels == 1:
                luma = np.float32(0.299) * np.float32(red) + np.float32(0.587) * np.float32(green)
                out[y, x, 0] = np.int32(luma + np.float32(0.114) * np.float32(blue))
            else:
                out[y, x, 0] = blue if is_bgr else red
                out[y, x, 1] = green
                out[y, x, 2] = red if is_bgr else blue
