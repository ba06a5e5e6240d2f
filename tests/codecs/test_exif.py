"""EXIF orientation, against Pillow's reading and turning."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from dalify.codecs.exif import orient, oriented_extents, source_window, tiff_orientation
from dalify.codecs.image import decode_image, image_shape
from tests.helpers.photos import drawn_photo, encode_image

ORIENTATIONS = range(1, 9)


def with_orientation(pixels: np.ndarray, orientation: int, kind: str) -> bytes:
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = orientation
    return encode_image(image, kind, exif=exif, **({"lossless": True, "exact": True} if kind == "WEBP" else {}))


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_images_are_turned_as_pillow_turns_them(orientation: int, kind: str) -> None:
    data = with_orientation(drawn_photo(30, 41), orientation, kind)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    np.testing.assert_array_equal(decode_image(data), expected)
    assert image_shape(data) == expected.shape
    # The array that was written, where the format keeps it; Pillow turns TIFF images whether asked or not.
    stored = np.asarray(Image.open(io.BytesIO(data))) if kind == "JPEG" else drawn_photo(30, 41)
    np.testing.assert_array_equal(decode_image(data, adjust_orientation=False), stored)


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_windows_are_given_in_the_upright_image(orientation: int) -> None:
    stored = np.arange(7 * 5).reshape(7, 5, 1)
    upright = orient(stored, orientation)
    assert oriented_extents(7, 5, orientation) == upright.shape[:2]
    y, x, rows, columns = source_window((1, 2, 3, 2), 7, 5, orientation)
    part = stored[y : y + rows, x : x + columns]
    np.testing.assert_array_equal(orient(part, orientation), upright[1:4, 2:4])


@given(st.binary(max_size=80))
def test_damaged_metadata_gives_a_valid_orientation(block: bytes) -> None:
    assert 1 <= tiff_orientation(block) <= 8
    assert 1 <= tiff_orientation(b"II*\0\x08\0\0\0" + block) <= 8
