"""PNG of 8 and 16 bits, and what is read from the chunks, compared with OpenCV and Pillow."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dalify.base import deflate
from dalify.base.errors import DecodeError
from dalify.codecs.image import decode_image, image_shape
from dalify.codecs.image_format import as_bytes_array
from dalify.codecs.png import black_png, read_png
from dalify.codecs.png_filters import unfilter
from dalify.data.dtypes import DALIImageType, from_numpy
from tests.helpers.hostile_images import chunk, encoded, png

EXIF = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"


def pixels_of(height: int, width: int, channels: int, dtype: type = np.uint16) -> np.ndarray:
    return np.random.default_rng(height).integers(0, np.iinfo(dtype).max, (height, width, channels), dtype, True)


def as_stored(data: bytes, dtype: type = np.uint16) -> np.ndarray:
    return decode_image(data, DALIImageType.ANY_DATA, from_numpy(np.dtype(dtype)))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("is_interlaced", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@given(height=st.integers(1, 20), width=st.integers(1, 20))
def test_pixels_are_restored(channels: int, is_interlaced: bool, dtype: type, height: int, width: int) -> None:
    pixels = pixels_of(height, width, channels, dtype)
    np.testing.assert_array_equal(as_stored(png(pixels, is_interlaced=is_interlaced), dtype), pixels)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("strategy", range(5))
def test_every_filter_is_undone(channels: int, strategy: int, dtype: type) -> None:
    # Slopes and noise, in which each of the filters is the best for some rows; more than one strip.
    y, x = np.mgrid[:1300, :300].astype(np.uint32)
    slope = (37 * y + 91 * x + pixels_of(1300, 300, 1)[..., 0] % 64).astype(dtype)
    pixels = np.stack([slope >> channel for channel in range(channels)], axis=2)
    bgr = pixels[..., [2, 1, 0, 3][:channels]] if channels > 1 else pixels
    filters = [cv2.IMWRITE_PNG_FILTER, [8, 16, 32, 64, 128][strategy]]
    is_written, data = cv2.imencode(".png", np.ascontiguousarray(bgr), filters)
    assert is_written
    np.testing.assert_array_equal(as_stored(data.tobytes(), dtype), pixels)


def paeth(left: int, up: int, corner: int) -> int:
    """Return the neighbor nearest to ``left + up - corner``; the first of equally near ones."""
    return min((left, up, corner), key=lambda value: abs(left + up - corner - value))


@pytest.mark.parametrize("pixel_bytes", [1, 2, 3, 4, 6, 8])
@given(width=st.integers(1, 9), seed=st.integers(0, 1000))
def test_filters_of_narrow_rows(pixel_bytes: int, width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    size = width * pixel_bytes
    filtered = random.integers(0, 256, (12, 1 + size), np.uint8)
    filtered[:, 0] = random.integers(0, 5, 12)
    before = random.integers(0, 256, size, np.uint8)
    # Guards at the end, which must not be overwritten.
    memory = np.full(12 * size + 16, 77, np.uint8)
    rows = memory[: 12 * size].reshape(12, size)
    assert unfilter(filtered, before, pixel_bytes, rows)
    above = [0] * pixel_bytes + before.tolist()
    for y in range(12):
        row = [0] * pixel_bytes
        for x in range(size):
            left, up, corner = row[x], above[x + pixel_bytes], above[x]
            predicted = [0, left, up, (left + up) // 2, paeth(left, up, corner)][filtered[y, 0]]
            row.append((int(filtered[y, 1 + x]) + predicted) % 256)
        assert rows[y].tolist() == row[pixel_bytes:]
        above = row
    assert (memory[12 * size :] == 77).all()


def test_compressed_bytes_are_not_copied_for_each_strip(monkeypatch: pytest.MonkeyPatch) -> None:
    inflaters: list[Counting] = []
    original = deflate.decompressobj

    class Counting:
        """A decompressor that counts the bytes that it gets and copies."""

        def __init__(self) -> None:
            self.inner = original()
            self.size = 0
            inflaters.append(self)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def decompress(self, data: Any, max_bytes: int) -> bytes:
            self.size += len(data)
            return self.inner.decompress(data, max_bytes)

    monkeypatch.setattr(deflate, "decompressobj", Counting)
    data = png(pixels_of(1500, 1200, 3))  # 10 strips, one chunk
    as_stored(data)
    assert sum(inflater.size for inflater in inflaters) < 1.5 * len(data)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_damage_is_found(dtype: type) -> None:
    data = png(pixels_of(40, 48, 3, dtype))
    row = 1 + 48 * 3 * np.dtype(dtype).itemsize
    stream = zlib.compress(bytes(40 * row))
    start = data.index(b"IDAT")
    for damaged, message in (
        (data[:-100], "truncated PNG"),
        (data[: start + 4], "truncated PNG"),
        (data[: start + 40] + bytes([data[start + 40] ^ 1]) + data[start + 41 :], "checksum"),
        (data[: start - 4] + chunk(b"IDAT", zlib.compress(b"\7" * (40 * row))) + data[-12:], "unknown filter"),
        (data[: start - 4] + chunk(b"IDAT", zlib.compress(bytes(39 * row))) + data[-12:], "truncated PNG"),
        (data[: start - 4] + chunk(b"IDAT", b"no stream") + data[-12:], "compressed pixels"),
        (data[: start - 4] + chunk(b"IDAT", stream[:-1] + b"x") + data[-12:], "compressed pixels"),
        (data[: start - 4] + chunk(b"abCd", b"", 1 << 30) + data[start - 4 :], "declares 1,073,741,824 bytes"),
        (data[:16] + bytes(8) + data[24:], "0x0 pixels"),
        (data[:8], "header of the 8 bytes"),
    ):
        with pytest.raises(DecodeError, match=message):
            decode_image(damaged)


def test_a_wrong_checksum_of_intact_pixels_is_ignored_as_in_pillow() -> None:
    pixels = pixels_of(40, 48, 3, np.uint8)
    data = bytearray(png(pixels))
    data[-13] ^= 1  # the last byte before the last chunk
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))), pixels)
    np.testing.assert_array_equal(decode_image(bytes(data)), pixels)
    data[data.index(b"IDAT") + 40] ^= 1
    with pytest.raises(DecodeError, match="the checksum of the chunk at byte 33 is wrong"):
        decode_image(bytes(data))


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize(
    "note",
    [
        chunk(b"eXIf", EXIF),
        chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(b"\nexif\n 26\n" + EXIF.hex().encode())),
        chunk(b"tEXt", b"Raw profile type exif\0\nexif\n 26\n" + EXIF.hex().encode()),
        chunk(b"iTXt", b'XML:com.adobe.xmp\0\0\0\0\0<x tiff:Orientation="6"/>'),
        chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(b"<tiff:Orientation>6</tiff:Orientation>")),
    ],
    ids=["exif", "compressed profile", "profile", "xmp", "compressed xmp"],
)
def test_the_orientation_is_found_at_any_position(note: bytes, is_behind: bool) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 8, 3), np.uint8)
    data = png(pixels)[:-12] + note + chunk(b"IEND", b"") if is_behind else png(pixels, note)
    assert image_shape(data) == (8, 9, 3)
    np.testing.assert_array_equal(decode_image(data), np.rot90(pixels, -1))
    assert Image.open(io.BytesIO(data)).getexif()[0x0112] == 6


def test_animations_are_their_default_image() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 8, 3), np.uint8)
    control = struct.pack(">IIIIIHHBB", 0, 8, 9, 0, 0, 1, 10, 2, 1)
    data = png(pixels, chunk(b"acTL", struct.pack(">II", 1 << 31, 0)), chunk(b"fcTL", control))
    np.testing.assert_array_equal(decode_image(data), pixels)


def test_libraries_see_chunks_of_pixels_only() -> None:
    data = as_bytes_array(encoded("PNG", exif=b"Exif\0\0" + EXIF, dpi=(100, 100)))
    kept = read_png(data).critical_bytes(data)
    assert b"eXIf" not in kept
    assert b"pHYs" not in kept
    np.testing.assert_array_equal(
        np.asarray(Image.open(io.BytesIO(kept))), np.asarray(Image.open(io.BytesIO(data.tobytes())))
    )


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (256, 256), (1, 5000), (4000, 1)])
def test_black_png_is_read_by_pillow(shape: tuple[int, int]) -> None:
    with Image.open(io.BytesIO(black_png(*shape))) as image:
        assert (image.format, image.mode, image.size) == ("PNG", "RGB", (shape[1], shape[0]))
        assert not np.asarray(image).any()
