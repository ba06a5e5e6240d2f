"""JPEG against Pillow, which computes with the same library and settings."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from dalify.base.errors import DecodeError
from dalify.codecs.jpeg import decode_jpeg, read_jpeg_header
from tests.helpers.photos import drawn_photo


def jpeg(height: int, width: int, mode: str = "RGB", **options: Any) -> np.ndarray:
    file = io.BytesIO()
    image = Image.fromarray(drawn_photo(height, width)).convert(mode)
    image.save(file, "JPEG", **{"quality": 90, **options})
    return np.frombuffer(file.getvalue(), np.uint8)


def by_pillow(data: np.ndarray, mode: str = "RGB") -> np.ndarray:
    image = Image.open(io.BytesIO(data.tobytes()))
    image.draft(mode, image.size)
    pixels = np.asarray(image.convert(mode))
    return pixels[..., None] if pixels.ndim == 2 else pixels


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0", "4:1:1"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (33, 47), (64, 64)])
def test_pixels_are_exact(subsampling: str, progressive: bool, shape: tuple[int, int]) -> None:
    data = jpeg(*shape, subsampling=subsampling, progressive=progressive)
    header = read_jpeg_header(data)
    assert (header.height, header.width, header.components) == (*shape, 3)
    np.testing.assert_array_equal(decode_jpeg(data, header, "RGB"), by_pillow(data))
    np.testing.assert_array_equal(decode_jpeg(data, header, "BGR"), by_pillow(data)[..., ::-1])
    np.testing.assert_array_equal(decode_jpeg(data, header, "GRAY"), by_pillow(data, "L"))


@pytest.mark.parametrize("subsampling", ["444", "422", "420", "440", "411", "Gray"])
@pytest.mark.parametrize("width", [17, 64])
def test_first_rows_equal_those_of_the_whole_image(subsampling: str, width: int) -> None:
    pixels = drawn_photo(97, width)
    if subsampling == "Gray":
        data = simplejpeg.encode_jpeg(np.ascontiguousarray(pixels[..., :1]), 90, "GRAY", "Gray")
    else:
        data = simplejpeg.encode_jpeg(pixels, 90, colorsubsampling=subsampling)
    array = np.frombuffer(data, np.uint8)
    header = read_jpeg_header(array)
    for colors in ("RGB", "GRAY"):
        whole = decode_jpeg(array, header, colors)
        for rows in range(1, 98):
            np.testing.assert_array_equal(decode_jpeg(array, header, colors, rows=rows), whole[:rows])


def test_first_rows_with_restart_markers_and_of_progressive_files() -> None:
    for options in ({"restart_marker_rows": 1}, {"progressive": True}):
        data = jpeg(80, 50, **options)
        header = read_jpeg_header(data)
        np.testing.assert_array_equal(decode_jpeg(data, header, "RGB", rows=30), by_pillow(data)[:30])


def test_uncommon_samplings_are_decoded() -> None:
    data = bytearray(simplejpeg.encode_jpeg(drawn_photo(32, 32), 90, colorsubsampling="444"))
    position = read_jpeg_header(np.frombuffer(bytes(data), np.uint8)).frame_position
    # All components sampled 2x2: the same blocks in another order, which TurboJPEG's interface does not take.
    for component in range(3):
        data[position + 7 + 3 * component] = 0x22 if component < 2 else 0x12
    array = np.frombuffer(bytes(data), np.uint8)
    try:
        expected = by_pillow(array)
    except OSError:
        pytest.skip("this Pillow refuses the sampling as well")
    np.testing.assert_array_equal(decode_jpeg(array, read_jpeg_header(array), "RGB"), expected)


def mixed_inks(inks: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """DALI rounds toward zero, while Pillow rounds to the nearest number."""
    left = 255 - inks.astype(np.int32)
    colors = (left[..., :3] * left[..., 3:] // 255).astype(np.float32)
    luma = colors[..., 0] * np.float32(0.299) + colors[..., 1] * np.float32(0.587)
    gray = np.floor(luma + colors[..., 2] * np.float32(0.114))
    return colors.astype(np.uint8), gray.astype(np.uint8)[..., None]


def test_cmyk() -> None:
    data = jpeg(20, 30, "CMYK")
    header = read_jpeg_header(data)
    assert header.components == 4
    np.testing.assert_array_equal(decode_jpeg(data, header, "CMYK"), np.asarray(Image.open(io.BytesIO(data.tobytes()))))
    colors, gray = mixed_inks(decode_jpeg(data, header, "CMYK"))
    assert np.abs(colors.astype(int) - by_pillow(data)).max() <= 1
    np.testing.assert_array_equal(decode_jpeg(data, header, "RGB"), colors)
    np.testing.assert_array_equal(decode_jpeg(data, header, "BGR"), colors[..., ::-1])
    np.testing.assert_array_equal(decode_jpeg(data, header, "GRAY"), gray)


def test_results_are_written_to_the_requested_memory() -> None:
    data = jpeg(20, 30)
    out = np.zeros((20, 30, 3), np.uint8)
    result = decode_jpeg(data, read_jpeg_header(data), "RGB", out=out)
    assert np.shares_memory(result, out)
    np.testing.assert_array_equal(out, by_pillow(data))


def test_harmless_damage_is_tolerated() -> None:
    data = jpeg(40, 40)
    stray = np.frombuffer(data[:-2].tobytes() + b"\x12" * 30 + b"\xff\xd9", np.uint8)
    for junk in (stray, np.frombuffer(data.tobytes() + b"junk", np.uint8)):
        np.testing.assert_array_equal(decode_jpeg(junk, read_jpeg_header(junk), "RGB"), by_pillow(data))


@pytest.mark.parametrize("revision", [0, 2, 255])
def test_unknown_revisions_of_jfif_are_decoded(revision: int) -> None:
    """A warning of libjpeg."""
    data = jpeg(40, 40)
    place = data.tobytes().index(b"JFIF\0") + 5
    assert data[place] == 1
    other = data.copy()
    other[place] = revision
    np.testing.assert_array_equal(by_pillow(other), by_pillow(data))
    for colors in ("RGB", "GRAY"):
        wanted = decode_jpeg(data, read_jpeg_header(data), colors)
        np.testing.assert_array_equal(decode_jpeg(other, read_jpeg_header(other), colors), wanted)
    np.testing.assert_array_equal(
        decode_jpeg(other, read_jpeg_header(other), "RGB", rows=8),
        decode_jpeg(data, read_jpeg_header(data), "RGB")[:8],
    )


def test_an_unknown_revision_behind_the_frame_is_an_error() -> None:
    data = jpeg(40, 40).tobytes()
    start = data.index(b"\xff\xe0")
    segment = data[start : start + 18].replace(b"JFIF\0\x01", b"JFIF\0\x02")
    scan = data.index(b"\xff\xda")
    moved = np.frombuffer(data[:scan] + segment + data[scan:], np.uint8)
    with pytest.raises(DecodeError, match="unknown JFIF revision"):
        decode_jpeg(moved, read_jpeg_header(moved), "RGB")


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.99])
def test_truncated_data_are_refused(kept: float) -> None:
    data = jpeg(64, 64)
    data = data[: int(data.size * kept)]
    with pytest.raises(DecodeError, match=f"truncated JPEG: the data ends after {data.size} bytes"):
        decode_jpeg(data, read_jpeg_header(data), "RGB")


@pytest.mark.parametrize("size", range(3, 620, 7))
def test_headers_that_end_early_are_refused(size: int) -> None:
    data = jpeg(64, 64)
    scan = data.tobytes().index(b"\xff\xda")
    with pytest.raises(DecodeError, match="JPEG"):
        read_jpeg_header(data[: min(size, scan)])


def test_what_is_not_supported_is_named() -> None:
    data = jpeg(16, 16).copy()
    position = read_jpeg_header(data).frame_position
    data[position - 3] = 0xC3
    data[position] = 16
    with pytest.raises(DecodeError, match="lossless JPEG with 16 bits"):
        decode_jpeg(data, read_jpeg_header(data), "RGB")
