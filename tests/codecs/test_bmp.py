"""BMP files that are decoded without a library, compared with the pixels that were written, Pillow and DALI."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dalify.base.errors import DecodeError, LimitError
from dalify.codecs.bmp import read_bmp
from dalify.codecs.image import decode_image, image_shape
from dalify.codecs.image_format import as_bytes_array
from dalify.data.dtypes import DALIImageType
from tests.helpers.bitmaps import HEADER_BYTES, bmp, run_length_bmp
from tests.helpers.real_dali import run_dali

BLUE_FIRST = (0xFF0000, 0xFF00, 0xFF)
# Masks of red, green, blue, and alpha in headers that have it.
MASKS_OF_32_BITS = [
    BLUE_FIRST,
    (0xFF000000, 0xFF0000, 0xFF00),
    (0xFF000000, 0xFF00, 0xFF),
    (*BLUE_FIRST, 0xFF000000),
    (0xFF000000, 0xFF0000, 0xFF00, 0xFF),
    (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
    (0xFF000000, 0xFF00, 0xFF, 0xFF0000),
]
WIDTHS = (1, 2, 3, 7, 8, 9, 33)


def stored(data: bytes, **options: Any) -> np.ndarray:
    """Decode without a conversion, and check that no library was needed."""
    assert read_bmp(as_bytes_array(data)) is not None
    found = decode_image(data, DALIImageType.ANY_DATA, **options)
    if not options:
        assert image_shape(data, DALIImageType.ANY_DATA) == found.shape
    return found


def words(height: int, width: int, bits: int) -> np.ndarray:
    return np.random.default_rng(width).integers(0, 1 << bits, (height, width), np.uint32)


def fields(pixels: np.ndarray, masks: tuple[int, ...]) -> np.ndarray:
    """Return the values of some bits of each pixel, scaled to 255 and truncated."""
    shifts = [(mask & -mask).bit_length() - 1 for mask in masks]
    values = [(pixels & mask) >> shift for mask, shift in zip(masks, shifts, strict=True)]
    scaled = [value * 255 // (mask >> shift) for value, mask, shift in zip(values, masks, shifts, strict=True)]
    return np.stack(scaled, axis=2).astype(np.uint8)


def by_pillow(data: bytes, mode: str) -> np.ndarray:
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert(mode))
    return pixels[..., None] if pixels.ndim == 2 else pixels


def check_windows(data: bytes, expected: np.ndarray) -> None:
    height, width = expected.shape[:2]
    for y, x in ((0, 0), (height // 2, width // 3), (height - 1, width - 1)):
        window = (y, x, height - y, width - x)
        np.testing.assert_array_equal(stored(data, window=window), expected[y:, x:])
    np.testing.assert_array_equal(stored(data, window=(1, 0, 1, width)), expected[1:2])


@pytest.mark.parametrize("header_bytes", HEADER_BYTES)
@pytest.mark.parametrize("is_top_first", [False, True])
@pytest.mark.parametrize("bits", [16, 24, 32])
def test_pixels_without_palette(bits: int, is_top_first: bool, header_bytes: int) -> None:
    if header_bytes == 12 and is_top_first:
        pytest.skip("these headers have no sign of the height")
    masks = (0x7C00, 0x3E0, 0x1F) if bits == 16 else BLUE_FIRST
    for width in WIDTHS:
        pixels = words(5, width, bits)
        data = bmp(pixels, bits, header_bytes=header_bytes, is_top_first=is_top_first, gap=width % 3)
        expected = fields(pixels, masks)
        np.testing.assert_array_equal(stored(data), expected)
        np.testing.assert_array_equal(by_pillow(data, "RGB"), expected)
        check_windows(data, expected)


@pytest.mark.parametrize("header_bytes", HEADER_BYTES)
@pytest.mark.parametrize("is_top_first", [False, True])
@pytest.mark.parametrize("is_gray", [False, True])
@pytest.mark.parametrize("bits", [1, 4, 8])
def test_palettes(bits: int, is_gray: bool, is_top_first: bool, header_bytes: int) -> None:
    if header_bytes == 12 and is_top_first:
        pytest.skip("these headers have no sign of the height")
    random = np.random.default_rng(bits)
    for width in WIDTHS:
        count = (1 << bits) if header_bytes == 12 else int(random.integers(1, (1 << bits) + 1))
        palette = random.integers(1, 256, (count, 3), np.uint8)
        palette = palette[:, :1].repeat(3, 1) if is_gray else palette
        pixels = words(6, width, bits)
        data = bmp(
            pixels, bits, header_bytes=header_bytes, is_top_first=is_top_first, palette=palette, gap=4 * (width % 2)
        )
        black = np.zeros((256 - count, 3), np.uint8)  # colors that are not defined
        expected = np.concatenate([palette, black])[pixels][..., : 1 if is_gray else 3]
        np.testing.assert_array_equal(stored(data), expected)
        np.testing.assert_array_equal(by_pillow(data, "L" if is_gray else "RGB"), expected)
        check_windows(data, expected)


@pytest.mark.parametrize(("bits", "count"), [(1, 2), (1, 1), (4, 16), (4, 3), (8, 256), (8, 255), (8, 2), (8, 1)])
def test_palettes_in_which_colors_are_their_indices(bits: int, count: int) -> None:
    """Pillow fails for 4 bits, and returns other pixels with fewer colors than indices."""
    levels = np.array([0, 255], np.uint8) if count == 2 else np.arange(count, dtype=np.uint8)
    pixels = words(5, 37, bits)
    data = bmp(pixels, bits, palette=levels[:, None].repeat(3, 1))
    expected = np.zeros(256, np.uint8)
    expected[:count] = levels
    np.testing.assert_array_equal(stored(data)[..., 0], expected[pixels])
    dali = run_dali("decoders.image", [as_bytes_array(data)], output_type="ANY_DATA")[0]
    np.testing.assert_array_equal(stored(data), dali)


@pytest.mark.parametrize("header_bytes", [40, 52, 56, 64, 108, 124])
@pytest.mark.parametrize("masks", MASKS_OF_32_BITS, ids=str)
def test_masks_of_32_bits(masks: tuple[int, ...], header_bytes: int) -> None:
    has_alpha = len(masks) == 4 and header_bytes >= 56
    pixels = words(5, 37, 32)
    data = bmp(pixels, 32, header_bytes=header_bytes, masks=masks[: 4 if header_bytes > 52 else 3])
    expected = fields(pixels, masks if has_alpha else masks[:3])
    np.testing.assert_array_equal(stored(data), expected)
    np.testing.assert_array_equal(decode_image(data), expected[..., :3])
    if has_alpha or masks[0] != 0xFF:  # Pillow knows this order only with alpha
        np.testing.assert_array_equal(by_pillow(data, "RGBA" if has_alpha else "RGB"), expected)


def test_masks_of_zeros() -> None:
    pixels = words(5, 37, 32)
    data = bmp(pixels, 32, header_bytes=56, masks=(0, 0, 0, 0))
    expected = fields(pixels, (*BLUE_FIRST, 0xFF000000))
    np.testing.assert_array_equal(stored(data), expected)
    np.testing.assert_array_equal(by_pillow(data, "RGBA"), expected)


@pytest.mark.parametrize("header_bytes", [40, 124])
@pytest.mark.parametrize(
    ("bits", "masks"), [(16, (0xF800, 0x7E0, 0x1F)), (16, (0x7C00, 0x3E0, 0x1F)), (24, BLUE_FIRST)], ids=str
)
def test_masks_of_fewer_bits(bits: int, masks: tuple[int, ...], header_bytes: int) -> None:
    pixels = words(5, 300, bits)
    data = bmp(pixels, bits, header_bytes=header_bytes, masks=masks)
    expected = fields(pixels, masks)
    np.testing.assert_array_equal(stored(data), expected)
    np.testing.assert_array_equal(by_pillow(data, "RGB"), expected)


@pytest.mark.parametrize("output_type", ["RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA"])
def test_dali_decodes_the_same(output_type: str) -> None:
    random = np.random.default_rng(0)
    colors, grays = random.integers(0, 256, (256, 3), np.uint8), random.integers(0, 256, (256, 1), np.uint8)
    files = [
        bmp(words(40, 37, 24), 24, header_bytes=12),
        bmp(words(40, 37, 24), 24, is_top_first=True),
        bmp(words(40, 37, 8), 8, palette=colors),
        bmp(words(40, 37, 8), 8, palette=grays.repeat(3, 1), is_top_first=True),
        bmp(words(40, 37, 4), 4, palette=colors[:16]),
        bmp(words(40, 37, 4), 4, palette=colors[:9]),
        bmp(words(40, 37, 1), 1, palette=colors[:2]),
        bmp(words(40, 37, 1), 1, palette=np.array([[255] * 3, [0] * 3], np.uint8), header_bytes=124),
    ]
    if output_type != "ANY_DATA":  # which DALI refuses for 32 bits
        files += [bmp(words(40, 37, 32), 32, header_bytes=108), bmp(words(40, 37, 32), 32, masks=BLUE_FIRST)]
    for data in files:
        expected = run_dali("decoders.image", [as_bytes_array(data)], output_type=output_type)[0]
        found = decode_image(data, DALIImageType[output_type])
        tolerance = output_type == "YCbCr"
        np.testing.assert_allclose(found.astype(int), expected, rtol=0, atol=tolerance)


def test_long_images_are_decoded_in_several_strips() -> None:
    pixels = words(1000, 300, 24)
    expected = fields(pixels, BLUE_FIRST)
    for is_top_first in (False, True):
        data = bmp(pixels, 24, is_top_first=is_top_first)
        np.testing.assert_array_equal(stored(data), expected)
        np.testing.assert_array_equal(stored(data, window=(391, 7, 400, 99)), expected[391:791, 7:106])


def patched(data: bytes, place: int, form: str, *values: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, place, *values)
    return bytes(changed)


COLORS = np.random.default_rng(0).integers(0, 256, (256, 3), np.uint8)
PLAIN, WITH_PALETTE = bmp(words(5, 37, 24), 24), bmp(words(5, 37, 8), 8, palette=COLORS)


@pytest.mark.parametrize(
    "data",
    [
        run_length_bmp(5, 37),
        patched(PLAIN, 10, "<I", 20),  # the pixels start in the header
        patched(PLAIN, 10, "<I", 0),
        patched(WITH_PALETTE, 10, "<I", 54),  # before the palette
        bmp(words(5, 37, 4), 4, palette=COLORS[:17]),
    ],
)
def test_unusual_files_are_left_to_pillow(data: bytes) -> None:
    assert read_bmp(as_bytes_array(data)) is None
    np.testing.assert_array_equal(decode_image(data), by_pillow(data, "RGB"))


@pytest.mark.parametrize(
    "data",
    [
        bmp(words(5, 37, 16), 16, masks=(0xF00, 0xF0, 0xF)),
        bmp(words(5, 37, 32), 32, masks=(0x3FF00000, 0xFFC00, 0x3FF)),
        bmp(words(5, 37, 32), 32, masks=(0xFF0000, 0xFF0000, 0xFF)),
        bmp(words(5, 37, 32), 32, header_bytes=56, masks=(*BLUE_FIRST, 0xFF)),
        bmp(words(5, 37, 8), 8, masks=(0xE0, 0x1C, 3), palette=COLORS),
        patched(PLAIN, 28, "<H", 2),
        patched(PLAIN, 28, "<H", 64),
        patched(PLAIN, 14, "<I", 41),
        patched(PLAIN, 14, "<I", 124)[:130],
        patched(PLAIN, 18, "<i", 0),
        patched(PLAIN, 22, "<i", 0),
        patched(PLAIN, 30, "<I", 4),
        patched(WITH_PALETTE, 46, "<I", 1 << 31),
        PLAIN[:30],
        PLAIN[:53],
        bmp(words(5, 37, 32), 32, masks=BLUE_FIRST)[:60],
    ],
)
def test_files_that_cannot_be_decoded(data: bytes) -> None:
    assert read_bmp(as_bytes_array(data)) is None
    with pytest.raises(DecodeError, match="BMP"):
        decode_image(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (patched(PLAIN, 14, "<I", 0), "declares a length of 0 bytes; BMP headers have 12, 40, .* or 124 bytes"),
        (patched(PLAIN, 14, "<I", 41), "declares a length of 41 bytes"),
        (PLAIN[:40], "40 bytes is truncated: it has 40 bytes, from byte 14 on"),
        (patched(PLAIN, 28, "<H", 23), "declares 23 bits per pixel; BMP images have 1, 4, 8, 16, 24 or 32 bits"),
        (patched(PLAIN, 30, "<I", 9), "declares compression type 9; supported are 0, 1, 2 or 3"),
        (patched(PLAIN, 30, "<I", 3), "declares masks of channels that are not supported"),
        (patched(WITH_PALETTE, 46, "<I", 70_000), "declares a palette of 70,000 colors, which needs 280,054 bytes"),
        (WITH_PALETTE[:100], r"declares a palette of \d+ colors, which needs [\d,]+ bytes"),
    ],
)
def test_errors_of_headers_say_what_is_wrong(data: bytes, text: str) -> None:
    with pytest.raises(DecodeError, match=f"damaged BMP: the header of the .*{text}"):
        decode_image(data)


@pytest.mark.parametrize("is_top_first", [False, True])
@pytest.mark.parametrize(("bits", "palette"), [(1, COLORS[:2]), (8, COLORS), (16, None), (24, None), (32, None)])
def test_truncated_pixels(bits: int, palette: np.ndarray | None, is_top_first: bool) -> None:
    data = bmp(words(5, 33, bits), bits, palette=palette, is_top_first=is_top_first)
    padding = -((33 * bits + 7) // 8) % 4  # of the last row, which programs may leave out
    whole = data[: len(data) - padding]
    np.testing.assert_array_equal(stored(whole), stored(data))
    for cut in (whole[:-1], whole[:-9]):
        assert image_shape(cut) == (5, 33, 3)
        for window in (None, (4, 0, 1, 33), (0, 0, 1, 33)):
            with pytest.raises(DecodeError, match="truncated BMP"):
                decode_image(cut, window=window)


@pytest.mark.parametrize("sign", [1, -1])
def test_declared_sizes(sign: int) -> None:
    for width, height in ((1 << 30, 1 << 30), ((1 << 31) - 1, 2), (1, (1 << 31) - 1)):
        with pytest.raises(LimitError, match="max_image_pixels"):
            decode_image(patched(PLAIN, 18, "<ii", width, sign * height))
    with pytest.raises(DecodeError, match="truncated BMP: 614 bytes are too few for 10000x1000 pixels"):
        decode_image(patched(PLAIN, 18, "<ii", 10_000, sign * 1000))


@given(st.data())
def test_damaged_headers(data: st.DataObject) -> None:
    file = bytearray(data.draw(st.sampled_from([PLAIN, WITH_PALETTE, bmp(words(5, 37, 32), 32, masks=BLUE_FIRST)])))
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(2, 65))] = data.draw(st.integers(0, 255))
    try:
        shape = image_shape(bytes(file), DALIImageType.ANY_DATA)
        if shape[0] * shape[1] < 1_000_000:
            assert decode_image(bytes(file), DALIImageType.ANY_DATA).shape == shape
    except (DecodeError, LimitError) as error:
        assert "BMP" in str(error)  # noqa: PT017 - either outcome is right
