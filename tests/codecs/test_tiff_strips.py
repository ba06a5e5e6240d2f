"""TIFF files in strips that are decoded without a library, compared with the pixels that tifffile wrote."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pytest
import tifffile

from dalify.base.errors import DecodeError
from dalify.codecs.image import decode_image
from dalify.codecs.image_format import as_bytes_array
from dalify.codecs.tiff import read_tiff
from dalify.data.dtypes import DALIImageType, from_numpy
from tests.helpers.compressed_strips import tiff_of


def pixels_of(height: int, width: int, channels: int, dtype: type) -> np.ndarray:
    return np.random.default_rng(width).integers(0, np.iinfo(dtype).max, (height, width, channels), dtype, True)


def written(pixels: np.ndarray, **options: Any) -> bytes:
    if options.get("compression") in ("lzw", "packbits"):
        return tiff_of(pixels, **options)
    file = io.BytesIO()
    kind = "minisblack" if pixels.shape[2] == 1 else "rgb"
    tifffile.imwrite(file, pixels[..., 0] if kind == "minisblack" else pixels, photometric=kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("is_big", [False, True])
@pytest.mark.parametrize(
    ("compression", "predictor"),
    [(None, False), ("deflate", False), ("deflate", True), ("lzw", False), ("lzw", True), ("packbits", False)],
)
def test_pixels(compression: str | None, predictor: bool, is_big: bool, channels: int, dtype: type) -> None:
    sizes, rows = [(1, 1), (5, 7), (64, 48), (33, 500), (500, 3)], [None, 1, 16]
    for (height, width), rows_per_strip, order in itertools.product(sizes, rows, "<>"):
        pixels = pixels_of(height, width, channels, dtype)
        data = written(
            pixels,
            compression=compression,
            predictor=predictor,
            bigtiff=is_big,
            byteorder=order,
            rowsperstrip=rows_per_strip,
        )
        assert read_tiff(as_bytes_array(data)).strips is not None
        found = decode_image(data, DALIImageType.ANY_DATA, from_numpy(np.dtype(dtype)))
        np.testing.assert_array_equal(found, pixels)
        window = (height // 2, width // 3, height - height // 2, width - width // 3)
        part = decode_image(data, DALIImageType.ANY_DATA, from_numpy(np.dtype(dtype)), window=window)
        np.testing.assert_array_equal(part, pixels[height // 2 :, width // 3 :])


def test_files_that_libraries_decode() -> None:
    pixels = pixels_of(32, 48, 3, np.uint8)
    for data in (written(pixels, tile=(16, 16)), separate(pixels)):
        assert read_tiff(as_bytes_array(data)).strips is None
        np.testing.assert_array_equal(decode_image(data), pixels)


def separate(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, np.moveaxis(pixels, 2, 0), photometric="rgb", planarconfig="separate")
    return file.getvalue()


@pytest.mark.parametrize(
    ("compression", "contents", "message"),
    [
        ("lzw", b"\x80" + b"\x7f" * 99, "damaged TIFF: the strip at row 16 contains an undefined LZW code"),
        ("lzw", b"\x80\x00\x60\x20" + bytes(99), r"truncated TIFF: the strip at row 16 has 1 of 1,152 bytes"),
        ("packbits", b"\x80" * 99, r"truncated TIFF: the strip at row 16 has 0 of 1,152 bytes"),
    ],
)
def test_damaged_strips(compression: str, contents: bytes, message: str) -> None:
    pixels = pixels_of(40, 48, 3, np.uint8)
    data = written(pixels, compression=compression, rowsperstrip=8)
    strips = read_tiff(as_bytes_array(data)).strips
    assert strips is not None
    start, size = strips.offsets[2], strips.sizes[2]
    damaged = data[:start] + contents.ljust(size, contents[-1:])[:size] + data[start + size :]
    for window in (None, (20, 0, 1, 1)):
        with pytest.raises(DecodeError, match=message):
            decode_image(damaged, window=window)
    np.testing.assert_array_equal(decode_image(damaged, window=(0, 0, 16, 48)), pixels[:16])
    np.testing.assert_array_equal(decode_image(damaged, window=(24, 0, 16, 48)), pixels[24:])


def test_damage_is_found() -> None:
    pixels = pixels_of(40, 48, 3, np.uint8)
    data = bytearray(written(pixels, compression="deflate", rowsperstrip=8))
    strips = read_tiff(as_bytes_array(bytes(data))).strips
    assert strips is not None
    third = strips.offsets[2]
    damaged = bytes(data[: third + 2]) + b"\xff" * 20 + bytes(data[third + 22 :])
    with pytest.raises(DecodeError, match="damaged TIFF: the strip at row 16 cannot be read"):
        decode_image(damaged)
    np.testing.assert_array_equal(decode_image(damaged, window=(0, 0, 16, 48)), pixels[:16])
    np.testing.assert_array_equal(decode_image(damaged, window=(24, 0, 16, 48)), pixels[24:])
    short = bytearray(written(pixels[:4], compression="deflate", rowsperstrip=8))
    with tifffile.TiffFile(io.BytesIO(short)) as file:
        places = [file.pages[0].tags[name].valueoffset for name in ("ImageLength", "RowsPerStrip")]
    for place in places:
        short[place] = 8
    with pytest.raises(DecodeError, match=r"truncated TIFF: the strip at row 0 has 576 of 1,152 bytes"):
        decode_image(bytes(short))
