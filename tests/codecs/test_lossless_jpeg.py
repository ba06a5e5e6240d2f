"""Lossless JPEG: files of an encoder that follows the standard, real files, and damage."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import DecodeError
from dalify.codecs.image import decode_image, image_shape
from dalify.data.dtypes import DALIDataType, DALIImageType
from tests.helpers.lossless_jpeg import encoded


def noise(height: int = 9, width: int = 13, components: int = 1, bits: int = 16) -> np.ndarray:
    random = np.random.default_rng(bits)
    pixels = random.integers(0, 1 << bits, (height, width, components))
    pixels[: height // 2] = (1 << bits) // 3  # also differences of 0
    pixels[0, :2] = [[0], [(1 << bits) - 1]]
    return pixels.astype(np.uint16)


@pytest.mark.parametrize("predictor", range(1, 8))
@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("restart_rows", [0, 1, 4])
def test_encoding_and_decoding_gives_the_input(predictor: int, components: int, restart_rows: int) -> None:
    pixels = noise(components=components)
    data = encoded(pixels, predictor=predictor, restart_rows=restart_rows)
    assert image_shape(data, DALIImageType.ANY_DATA) == pixels.shape
    np.testing.assert_array_equal(decode_image(data, DALIImageType.ANY_DATA, DALIDataType.UINT16), pixels)


@pytest.mark.parametrize("bits", [2, 7, 8, 10, 12, 15, 16])
def test_any_number_of_bits_fills_the_range(bits: int) -> None:
    pixels = noise(bits=bits)
    found = decode_image(encoded(pixels, bits=bits, predictor=4), DALIImageType.ANY_DATA, DALIDataType.FLOAT)
    np.testing.assert_allclose(found, pixels / ((1 << bits) - 1), atol=0.51 / (255 if bits <= 8 else 65535))


def test_omitted_bits() -> None:
    pixels = noise()
    found = decode_image(encoded(pixels, shift=3, predictor=2), DALIImageType.ANY_DATA, DALIDataType.UINT16)
    np.testing.assert_array_equal(found, pixels >> 3 << 3)


def test_types_colors_and_windows() -> None:
    pixels = noise(20, 30, 3, bits=8)
    data = encoded(pixels, bits=8, predictor=7)
    np.testing.assert_array_equal(decode_image(data), pixels)
    np.testing.assert_array_equal(decode_image(data, DALIImageType.BGR), pixels[..., ::-1])
    np.testing.assert_array_equal(decode_image(data, window=(3, 5, 7, 11)), pixels[3:10, 5:16])
    gray = encoded(noise(bits=8), bits=8)
    np.testing.assert_array_equal(decode_image(gray), np.repeat(noise(bits=8), 3, axis=2))


def test_in_a_pipeline() -> None:
    pixels = noise(12, 8, 1)
    data = np.frombuffer(encoded(pixels, predictor=5), np.uint8)

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe() -> Any:
        files = fn.external_source(source=lambda: [data, data])
        image = fn.decoders.image(files, output_type=types.ANY_DATA, dtype=types.UINT16)
        part = fn.decoders.image_crop(files, crop=(4, 4), output_type=types.GRAY, dtype=types.UINT16)
        return image, part

    image, part = pipe().run()
    np.testing.assert_array_equal(image.as_array(), [pixels, pixels])
    np.testing.assert_array_equal(part.at(1), pixels[4:8, 2:6])


def test_a_real_file(sample_data: Path) -> None:
    data = (sample_data / "formats" / "jpeg_special" / "lossless_16bit_gray.jpg").read_bytes()
    found = decode_image(data, DALIImageType.ANY_DATA, DALIDataType.UINT16)
    # What the package imagecodecs makes of it.
    assert (
        hashlib.sha256(found.tobytes()).hexdigest()
        == "02a97d0dd597b308d8577d0cd57fadd8388a4c35f5b1886de64761d4d054a1b5"
    )


def test_truncated_data_are_refused() -> None:
    data = encoded(noise(40, 40))
    for kept in (0.3, 0.7, 0.97):
        with pytest.raises(DecodeError, match="truncated JPEG"):
            decode_image(data[: int(len(data) * kept)])


@pytest.mark.parametrize("restart_rows", [0, 2])
def test_damaged_data_give_an_image_or_an_error(restart_rows: int) -> None:
    whole = np.frombuffer(encoded(noise(components=3), restart_rows=restart_rows), np.uint8)
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        damaged = whole.copy()
        damaged[random.integers(2, damaged.size, 3)] = random.integers(0, 256, 3)
        try:
            height, width, channels = image_shape(damaged, DALIImageType.ANY_DATA)
            if height * width < 1_000_000:
                assert decode_image(damaged, DALIImageType.ANY_DATA).shape == (height, width, channels)
        except DecodeError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda data: data.replace(b"\x01\x00\x01\x00\x00", b"\x01\x00\x09\x00\x00"), "no predictor"),
        (lambda data: data.replace(b"\xff\xdd\x00\x04\x00\x1a", b"\xff\xdd\x00\x04\x00\x1b"), "restarts within a row"),
        (lambda data: data.replace(b"\xff\xd0", b"\xff\xe0"), "a missing restart marker|truncated"),
        (lambda data: data.replace(bytes([0, 0, 0, 0, 0, 17]), bytes([0, 17, 0, 0, 0, 0])), "too many Huffman codes"),
        (lambda data: data.replace(b"\xff\xc3\x00\x0b\x10", b"\xff\xc3\x00\x0b\x11"), "17 bits per sample"),
    ],
)
def test_damaged_headers(damage: Any, text: str) -> None:
    data = encoded(noise(), restart_rows=2)
    assert damage(data) != data
    with pytest.raises(DecodeError, match=text):
        decode_image(damage(data))
