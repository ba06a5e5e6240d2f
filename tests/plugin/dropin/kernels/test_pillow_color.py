"""Color changes compared with Pillow, for every color."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from dalify.plugin.pytorch.dropin.kernels.pillow_color import (
    blend_with_constant,
    blend_with_luma,
    luma_sum,
    matches_pillow,
    rotate_hue,
)

FACTORS = [0, 0.3, 0.61234, 0.999, 1, 1.2, 1.777, 2.5]


def colors(red: int) -> np.ndarray:
    ramp = np.arange(256, dtype=np.uint8)
    pixels = np.empty((256, 256, 3), np.uint8)
    pixels[..., 0], pixels[..., 1], pixels[..., 2] = red, ramp[:, None], ramp
    return pixels


@pytest.mark.parametrize("shift", [0, 7, 131, 250])
def test_hue_of_all_colors(shift):
    for red in range(0, 256, 1 if shift == 0 else 17):
        pixels = colors(red)
        hue, saturation, value = Image.fromarray(pixels).convert("HSV").split()
        turned = Image.fromarray(np.asarray(hue) + np.uint8(shift))
        expected = Image.merge("HSV", (turned, saturation, value)).convert("RGB")
        rotate_hue(pixels.reshape(-1, 3), shift)
        np.testing.assert_array_equal(pixels, np.asarray(expected))


@pytest.mark.parametrize("factor", FACTORS)
def test_blends(factor):
    pixels = colors(90)[:, :250].copy()
    image, single = Image.fromarray(pixels), np.float32(factor)
    brighter, more, stronger = pixels.copy(), pixels.copy(), pixels.copy()
    blend_with_constant(brighter.reshape(-1), 0, single)
    np.testing.assert_array_equal(brighter, np.asarray(ImageEnhance.Brightness(image).enhance(factor)))
    mean = luma_sum(pixels.reshape(-1, 3)) / (pixels.size // 3)
    blend_with_constant(more.reshape(-1), int(mean + 0.5), single)
    np.testing.assert_array_equal(more, np.asarray(ImageEnhance.Contrast(image).enhance(factor)))
    blend_with_luma(stronger.reshape(-1, 3), single)
    np.testing.assert_array_equal(stronger, np.asarray(ImageEnhance.Color(image).enhance(factor)))


def test_this_pillow_gives_the_same_colors():
    assert matches_pillow()
