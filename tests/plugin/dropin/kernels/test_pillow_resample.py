"""Resizing compared with Pillow, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from dalify.plugin.pytorch.dropin.kernels.pillow_resample import FILTERS, Window, resample

NAMES = ["nearest", *FILTERS]
sizes = st.integers(1, 70)


def pillow(pixels: np.ndarray, size: tuple[int, int], name: str) -> np.ndarray:
    image = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[..., 0])
    found = image.resize((size[1], size[0]), getattr(Image.Resampling, name.upper()))
    return np.asarray(found).reshape(*size, pixels.shape[2])


def noise(height: int, width: int, channels: int, seed: int, is_harsh: bool) -> np.ndarray:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
    return (pixels > 127).astype(np.uint8) * 255 if is_harsh else pixels


@settings(max_examples=300, deadline=None)
@given(sizes, sizes, sizes, sizes, st.sampled_from([1, 3]), st.sampled_from(NAMES), st.integers(0, 99), st.booleans())
def test_equals_pillow(height, width, new_height, new_width, channels, name, seed, is_harsh):
    pixels = noise(height, width, channels, seed, is_harsh)
    expected = pillow(pixels, (new_height, new_width), name)
    np.testing.assert_array_equal(resample(pixels, (new_height, new_width), name), expected)


@settings(max_examples=200, deadline=None)
@given(st.data(), sizes, sizes, sizes, sizes, st.sampled_from([1, 3]), st.sampled_from(NAMES))
def test_a_window_equals_that_part_of_the_whole(data, height, width, new_height, new_width, channels, name):
    pixels = noise(height, width, channels, 0, False)
    y, x = data.draw(st.integers(0, new_height - 1)), data.draw(st.integers(0, new_width - 1))
    window = Window(y, x, data.draw(st.integers(1, new_height - y)), data.draw(st.integers(1, new_width - x)))
    expected = pillow(pixels, (new_height, new_width), name)[y : y + window.height, x : x + window.width]
    np.testing.assert_array_equal(resample(pixels, (new_height, new_width), name, window), expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("view", ["crop", "upside down", "mirrored", "columns first"])
def test_views(name, view):
    whole = noise(40, 50, 3, 1, False)
    pixels = {
        "crop": whole[3:30, 5:31],
        "upside down": whole[::-1],
        "mirrored": whole[:, ::-1],
        "columns first": np.asfortranarray(whole),
    }[view]
    np.testing.assert_array_equal(
        resample(pixels, (17, 23), name), pillow(np.ascontiguousarray(pixels), (17, 23), name)
    )


@pytest.mark.parametrize("name", FILTERS)
def test_memory_is_not_read_beyond_its_end(name):
    """The image is at the end of its memory; bytes after it have no effect."""
    for filler in (0, 255):
        memory = np.full(11 * 7 * 3 + 64, filler, np.uint8)
        pixels = memory[: 11 * 7 * 3].reshape(11, 7, 3)
        pixels[...] = noise(11, 7, 3, 2, False)
        np.testing.assert_array_equal(resample(pixels, (5, 6), name), pillow(pixels, (5, 6), name))


def test_photo_sized():
    pixels = noise(375, 500, 3, 3, False)
    for name in NAMES:
        expected = pillow(pixels, (256, 341), name)[16:240, 58:282]
        np.testing.assert_array_equal(resample(pixels, (256, 341), name, Window(16, 58, 224, 224)), expected)
