"""Formats other than JPEG, as stored, compared with the arrays that were written."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from dalify.base.errors import DecodeError
from dalify.codecs.image_format import as_bytes_array, image_format
from dalify.codecs.raster import decode_raster, read_raster_header
from tests.helpers.photos import encode_image

RANDOM = np.random.default_rng(0)
RGBA = RANDOM.integers(0, 256, (40, 35, 4), np.uint8)
DEEP = RANDOM.integers(0, 65536, (40, 35, 4)).astype(np.uint16)


def written(pixels: np.ndarray, kind: str, **options: Any) -> np.ndarray:
    return as_bytes_array(encode_image(pixels, kind, **options))


def decoded(data: np.ndarray) -> np.ndarray:
    kind = image_format(data)
    header, strips = decode_raster(data, kind)
    assert header == read_raster_header(data, kind)
    pixels = np.concatenate([rows for _, rows in strips(0, header.height)])
    assert pixels.shape == (header.height, header.width, header.channels)
    return pixels


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG2000", "BMP", "PPM", "WEBP", "GIF"])
def test_bytes_are_restored(kind: str, channels: int) -> None:
    if channels in (2, 4) and kind in ("BMP", "PPM", "GIF"):
        pytest.skip("no alpha in this format")
    if channels < 3 and kind == "WEBP":
        pytest.skip("no gray in this format")
    pixels = RGBA[..., :channels] if channels != 2 else RGBA[..., 2:]
    pixels = np.ascontiguousarray(pixels)
    data = written(
        pixels[..., 0] if channels == 1 else pixels,
        kind,
        **({"lossless": True, "exact": True} if kind == "WEBP" else {}),
    )
    if kind == "GIF":
        expected = np.asarray(Image.open(io.BytesIO(data.tobytes())).convert("RGB"))
        result = decoded(data)
        np.testing.assert_array_equal(result if result.shape[2] == 3 else result.repeat(3, 2), expected)
    else:
        np.testing.assert_array_equal(decoded(data), pixels)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("kind", ["png", "tiff", "ppm", "jp2"])
def test_images_of_16_bits_keep_them(kind: str, channels: int) -> None:
    if channels == 4 and kind == "ppm":
        pytest.skip("no alpha in this format")
    pixels = DEEP[..., :channels]
    bgr = pixels[..., [2, 1, 0, 3][:channels]] if channels > 1 else pixels
    options = [cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, 1000] if kind == "jp2" else []
    is_written, data = cv2.imencode(
        ".pgm" if (kind, channels) == ("ppm", 1) else "." + kind, np.ascontiguousarray(bgr), options
    )
    assert is_written
    result = decoded(data.reshape(-1))
    assert result.dtype == np.uint16
    np.testing.assert_array_equal(result, pixels)


def test_bits_and_palettes() -> None:
    bits = RGBA[..., 0] > 127
    for kind in ("PNG", "TIFF", "BMP", "PPM"):
        np.testing.assert_array_equal(decoded(written(bits, kind))[..., 0], np.where(bits, 255, 0))
    palette = Image.fromarray(RGBA[..., :3]).quantize(16)
    np.testing.assert_array_equal(
        decoded(as_bytes_array(encode_image(palette, "PNG", transparency=3))), np.asarray(palette.convert("RGB"))
    )


def test_floats() -> None:
    pixels = RANDOM.random((12, 13, 3)).astype(np.float32)
    is_written, data = cv2.imencode(".tiff", pixels[..., ::-1])
    assert is_written
    np.testing.assert_array_equal(decoded(data.reshape(-1)), pixels)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP", "PPM", "WEBP", "JPEG2000", "GIF"])
@pytest.mark.parametrize("kept", [0.02, 0.5])
def test_truncated_data_are_refused(kind: str, kept: float) -> None:
    data = written(RGBA[..., :3], kind)
    data = data[: max(16, int(data.size * kept))]
    with pytest.raises(DecodeError, match=image_format(data)):
        list(decode_raster(data, image_format(data))[1](0, 40))
