"""Formats by their first bytes, and the errors for data that is not an image."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from dalify.base.errors import DecodeError
from dalify.codecs.image_format import as_bytes_array, image_format
from tests.helpers.photos import encode_image

PILLOW_NAMES = {
    "JPEG": "JPEG",
    "PNG": "PNG",
    "BMP": "BMP",
    "TIFF": "TIFF",
    "WebP": "WEBP",
    "JPEG 2000": "JPEG2000",
    "PNM": "PPM",
    "GIF": "GIF",
}


@pytest.mark.parametrize(("name", "pillow_name"), PILLOW_NAMES.items())
def test_formats_are_detected_by_their_first_bytes(name: str, pillow_name: str) -> None:
    assert image_format(as_bytes_array(encode_image(Image.new("RGB", (8, 8)), pillow_name))) == name


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"ab", "only 2 bytes"),
        (b"hello world", "starts with b'hello world'"),
        (b"<!DOCTYPE html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"),
        (bytes(4000), "zeros"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "a HEIF image"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", r"an MP4 or QuickTime file.*\n.*fn\.readers\.video"),
        (b"RIFF\0\0\0\0WAVEfmt ", "RIFF"),
        (b"\0\xff\xd8\xff\xe0", "not a known image format"),
        (b"photos/cat 1.jpg", "the string 'photos/cat 1.jpg'.*\n.*read_bytes"),
    ],
)
def test_data_that_is_not_an_image_is_described(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        image_format(as_bytes_array(data))


def test_bytes_are_taken_without_a_copy() -> None:
    array = np.arange(10, dtype=np.uint8)
    assert as_bytes_array(array) is not None
    assert np.shares_memory(as_bytes_array(array), array)
    assert np.shares_memory(as_bytes_array(array.view(np.int8)), array)
    assert as_bytes_array(memoryview(b"abc")).tolist() == [97, 98, 99]
    with pytest.raises(DecodeError, match="float32"):
        as_bytes_array(np.zeros((2, 2), np.float32))  # type: ignore[arg-type]
