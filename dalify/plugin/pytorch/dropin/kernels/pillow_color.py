"""Blending, saturation and hue, byte-exact with Pillow.

Pillow blends in float32 and truncates the fraction; its hue and saturation are also bytes, so conversions are lossy.
All loops support images with any strides and can work in place.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image

from dalify.base.compiling import njit

_BLOCK = 512
_BYTES = np.arange(256)
_FRACTIONS = (_BYTES / 255.0).astype(np.float32)
_ANGLES = _BYTES * 6.0 / 255.0
_SECTORS = _ANGLES.astype(np.int32)
_SECTOR_FRACTIONS = (_ANGLES - _SECTORS).astype(np.float32)


@njit(nogil=True, cache=True)
def blend_with_constant(values, first, factor):
    """Blend bytes with a constant, in place.

    Args:
        values: uint8 ``[bytes]``, contiguous.
        first: the constant, 0 to 255.
        factor: float32; 0 for the constant, 1 for the byte, above 1 to extrapolate.
    """
    start = np.float32(first)
    for index in range(len(values)):
        value = np.int32(start + factor * (np.float32(values[index]) - start))
        values[index] = min(max(value, 0), 255)


@njit(nogil=True)
def _luma(red, green, blue):
    # BT.601 with Pillow's weights, which have 16 fractional bits, rounded half up.
    return (np.int32(red) * 19595 + np.int32(green) * 38470 + np.int32(blue) * 7471 + 32768) >> 16


@njit(nogil=True, cache=True)
def fill_with_luma(target, source):
    """Compute luma.

    Args:
        target: uint8 ``[height, width, channels]``; all channels are set to the luma.
        source: uint8 ``[height, width, 3]``, any strides.
    """
    for y in range(source.shape[0]):
        for x in range(source.shape[1]):
            target[y, x, :] = _luma(source[y, x, 0], source[y, x, 1], source[y, x, 2])


@njit(nogil=True, cache=True)
def luma_sum(pixels):
    """Return the sum of BT.601 luma, rounded per pixel, of uint8 ``[pixels, 3]``."""
    total = np.int64(0)
    for index in range(len(pixels)):
        total += _luma(pixels[index, 0], pixels[index, 1], pixels[index, 2])
    return total


@njit(nogil=True, cache=True)
def blend_with_luma(pixels, factor):
    """Blend each pixel with its own luma, in place.

    Args:
        pixels: uint8 ``[pixels, 3]``, contiguous.
        factor: float32; 0 for luma, 1 for the pixel, above 1 to extrapolate.
    """
    lumas = np.empty(3 * _BLOCK, np.int32)
    for begin in range(0, len(pixels), _BLOCK):
        count = min(_BLOCK, len(pixels) - begin)
        for index in range(count):
            luma = _luma(pixels[begin + index, 0], pixels[begin + index, 1], pixels[begin + index, 2])
            lumas[3 * index] = lumas[3 * index + 1] = lumas[3 * index + 2] = luma
        values = pixels[begin : begin + count].reshape(3 * count)  # one loop over bytes is vectorized
        for index in range(3 * count):
            difference = np.int32(values[index]) - lumas[index]
            value = np.int32(np.float32(lumas[index]) + factor * np.float32(difference))
            values[index] = min(max(value, 0), 255)


@njit(nogil=True, cache=True)
def rotate_hue(pixels, shift):
    """Rotate the hue, in place.

    Args:
        pixels: uint8 ``[pixels, 3]``, contiguous.
        shift: angle in 1/256 of a full rotation, 0 to 255.
    """
    for index in range(len(pixels)):
        red, green, blue = np.int32(pixels[index, 0]), np.int32(pixels[index, 1]), np.int32(pixels[index, 2])
        highest, lowest = max(red, green, blue), min(red, green, blue)
        if highest == lowest:
            pixels[index, 0] = pixels[index, 1] = pixels[index, 2] = highest
            continue
        chroma = np.float32(highest - lowest)
        middle = np.float32(2 * highest + lowest - red - green - blue) / chroma  # position of the middle value
        if red == highest:
            hue_fraction = np.float32(1) - middle if blue == lowest else middle - np.float32(1)
        elif green == highest:
            hue_fraction = np.float32(1.0 + np.float64(middle) if blue == lowest else 3.0 - np.float64(middle))
        else:
            hue_fraction = np.float32(3.0 + np.float64(middle) if red == lowest else 5.0 - np.float64(middle))
        shifted = np.float64(hue_fraction) / 6.0 + 1.0
        hue_fraction = np.float32(shifted - 1.0 if shifted >= 1.0 else shifted)  # at most 1.83
        hue = (np.int32(np.float64(hue_fraction) * 255.0) + shift) & 255
        saturation = np.int32(np.float64(chroma / np.float32(highest)) * 255.0)
        if saturation == 0:
            pixels[index, 0] = pixels[index, 1] = pixels[index, 2] = highest
            continue
        fraction, sector, sector_fraction = _FRACTIONS[saturation], _SECTORS[hue], _SECTOR_FRACTIONS[hue]
        value = np.float64(highest)
        low = np.int32(value * (1.0 - np.float64(fraction)) + 0.5)
        falling = np.int32(value * (1.0 - np.float64(np.float32(fraction * sector_fraction))) + 0.5)
        rising = np.int32(value * (1.0 - np.float64(fraction) * (1.0 - np.float64(sector_fraction))) + 0.5)
        if sector == 0 or sector == 6:
            red, green, blue = highest, rising, low
        elif sector == 1:
            red, green, blue = falling, highest, low
        elif sector == 2:
            red, green, blue = low, highest, rising
        elif sector == 3:
            red, green, blue = low, falling, highest
        elif sector == 4:
            red, green, blue = rising, low, highest
        else:
            red, green, blue = highest, low, falling
        pixels[index, 0], pixels[index, 1], pixels[index, 2] = red, green, blue


@lru_cache(maxsize=1)
def matches_pillow() -> bool:
    """Return whether results equal those of the installed Pillow; other versions may round differently."""
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    for factor in (0.3, 1.7):
        turned, blended = pixels.copy().reshape(-1, 3), pixels.copy().reshape(-1, 3)
        hue, saturation, value = image.convert("HSV").split()
        moved = hue.point([(byte + 7) & 255 for byte in range(256)])
        rotate_hue(turned, 7)
        blend_with_luma(blended, np.float32(factor))
        blend_with_constant(blended.reshape(-1), 77, np.float32(factor))
        constant = Image.new("RGB", image.size, (77, 77, 77))
        expected = Image.blend(constant, Image.blend(image.convert("L").convert("RGB"), image, factor), factor)
        if not np.array_equal(blended.reshape(64, 64, 3), np.asarray(expected)):
            return False
        if not np.array_equal(
            turned.reshape(64, 64, 3), np.asarray(Image.merge("HSV", (moved, saturation, value)).convert("RGB"))
        ):
            return False
    return True
