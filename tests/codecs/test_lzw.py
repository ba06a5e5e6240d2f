"""LZW and PackBits of TIFF files, compared with the compressed data and with libtiff."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dalify.base.errors import DecodeError
from dalify.codecs import lzw
from dalify.codecs.image import decode_image
from dalify.codecs.image_format import as_bytes_array
from dalify.codecs.lzw import DAMAGED, inflate_lzw, is_lzw
from dalify.codecs.tiff import read_tiff
from dalify.data.dtypes import DALIImageType
from tests.helpers import compressed_strips
from tests.helpers.compressed_strips import CLEAR, END, packed_codes, tiff_of

# Repeated strings, runs, and noise.
PARTS = st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 300)), min_size=1, max_size=6)


def inflated(stored: bytes, size_bytes: int) -> bytes | int:
    """Return the bytes, or the number that was found instead."""
    data = np.frombuffer(b"before" + stored + b"after", np.uint8)
    values, number, found = inflate_lzw(data, [6], [len(stored)], size_bytes, size_bytes)
    return values.tobytes() if number == 1 else found


def by_libtiff(data: bytes) -> np.ndarray | None:
    """Return the pixels; None if libtiff refuses the data."""
    try:
        return np.asarray(Image.open(io.BytesIO(data)))
    except OSError:
        return None


def by_dalify(data: bytes) -> np.ndarray | None:
    assert read_tiff(as_bytes_array(data)).strips is not None
    try:
        return decode_image(data, DALIImageType.ANY_DATA)[..., 0]
    except DecodeError:
        return None


@given(PARTS, st.sampled_from([300, 511, 512, 1023, 4094]), st.booleans())
def test_data_is_restored(parts: list[tuple[bytes, int]], entries: int, has_end: bool) -> None:
    data = b"".join(part * times for part, times in parts)
    stored = compressed_strips.lzw(data, entries=entries, has_end=has_end)
    assert is_lzw(memoryview(stored))
    assert inflated(stored, len(data)) == data
    assert inflated(stored, len(data) // 2) == data[: len(data) // 2]
    if has_end:
        assert inflated(stored + b"\0" * 9, len(data) + 1) == len(data)


def test_full_tables_and_long_strings() -> None:
    for data in (np.random.default_rng(0).bytes(200_000), b"a" * 1_000_000, bytes(range(256)) * 3000):
        assert inflated(compressed_strips.lzw(data), len(data)) == data


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([CLEAR, 97, END], 1),
        ([CLEAR, END], 0),
        ([CLEAR, CLEAR, 97, CLEAR, 98, END], 2),
        ([CLEAR, 97, 98], 2),
        ([CLEAR, 97, 258, 260, 98], DAMAGED),  # 260 is defined by the code after it, 259 by its own
        ([CLEAR, 258], DAMAGED),
        ([CLEAR, 97, 259], DAMAGED),
        ([CLEAR, 97, CLEAR, 258], DAMAGED),
        ([CLEAR, 97, 511], DAMAGED),
    ],
    ids=str,
)
def test_codes(codes: list[int], expected: int) -> None:
    assert inflated(packed_codes([(code, 9) for code in codes]), 99) == expected


def test_a_code_that_is_defined_by_itself() -> None:
    codes = [(code, 9) for code in (CLEAR, 97, 258, 259, END)]
    assert inflated(packed_codes(codes), 6) == b"aaaaaa"
    assert inflated(packed_codes(codes), 5) == b"aaaaa"


def test_a_table_that_is_not_cleared() -> None:
    codes = [(CLEAR, 9), *((code % 256, max(9, min(12, (258 + code).bit_length()))) for code in range(4096 - 258))]
    assert inflated(packed_codes(codes), len(codes) - 1) == bytes(code % 256 for code in range(len(codes) - 1))
    assert inflated(packed_codes([*codes, (0, 12), (0, 12)]), 9999) == DAMAGED


@given(st.binary(max_size=60), st.integers(0, 300))
def test_never_leaves_its_arrays(stored: bytes, size_bytes: int) -> None:
    size = lzw._LITERALS + size_bytes + lzw._WIDE
    guarded = np.full(size + 64, 171, np.uint8)
    data = np.frombuffer(b"\x80" + stored, np.uint8)
    strips = np.array([0]), np.array([data.size])
    number, found = lzw._inflate_strips(data, *strips, size_bytes, guarded[32 : 32 + size])
    assert number == 1 or found < size_bytes
    assert (guarded[:32] == 171).all()
    assert (guarded[32 + size :] == 171).all()


@pytest.mark.parametrize("compression", ["lzw", "packbits"])
@given(data=st.data())
def test_damage_is_found_by_libtiff_and_dalify(compression: str, data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    walk = np.cumsum(random.integers(-1, 2, 60 * 80)).astype(np.uint8).reshape(60, 80, 1)
    file = bytearray(tiff_of(walk, compression))
    strips = read_tiff(as_bytes_array(bytes(file))).strips
    assert strips is not None
    start, end = strips.offsets[0] + 2, strips.offsets[0] + strips.sizes[0]
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(start, end - 1))] = data.draw(st.integers(0, 255))
    expected, found = by_libtiff(bytes(file)), by_dalify(bytes(file))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("options", [{}, {"predictor": True}], ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_libtiff_reads_what_the_tests_write(dtype: Any, options: dict[str, Any]) -> None:
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (40, 50, 1), dtype)
    np.testing.assert_array_equal(by_libtiff(tiff_of(pixels, "lzw", rowsperstrip=7, **options)), pixels[..., 0])


def test_older_files_have_another_order_of_bits() -> None:
    """They are left to libtiff: the clear code is 256 with the least significant bit first."""
    assert not is_lzw(memoryview(b"\0\1\2"))
    assert not is_lzw(memoryview(b"\x80"))
    assert not is_lzw(memoryview(b""))
    codes = [CLEAR, *range(1, 21), END]
    digits = "".join(f"{code:09b}"[::-1] for code in codes)
    digits += "0" * (-len(digits) % 8)
    older = bytes(int(digits[start : start + 8][::-1], 2) for start in range(0, len(digits), 8))
    pixels = np.arange(1, 21, dtype=np.uint8).reshape(4, 5, 1)
    data = tiff_of(pixels, "lzw")
    strips = read_tiff(as_bytes_array(data)).strips
    assert strips is not None
    start, stop = strips.offsets[0], strips.offsets[0] + strips.sizes[0]
    assert len(older) == strips.sizes[0]
    data = data[:start] + older + data[stop:]
    assert read_tiff(as_bytes_array(data)).strips is None
    np.testing.assert_array_equal(decode_image(data, DALIImageType.ANY_DATA), pixels)
