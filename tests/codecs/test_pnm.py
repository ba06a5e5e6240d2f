"""PNM compared with Pillow and the arrays that were written."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dalify.base.errors import DecodeError
from dalify.codecs.image import decode_image, image_shape
from dalify.data.dtypes import DALIDataType, DALIImageType


def stored(data: bytes, dtype: DALIDataType = DALIDataType.UINT8) -> np.ndarray:
    return decode_image(data, DALIImageType.ANY_DATA, dtype)


def by_pillow(data: bytes) -> np.ndarray:
    image = Image.open(io.BytesIO(data))
    pixels = np.asarray(image.convert("L") if image.mode == "1" else image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


@given(
    kind=st.sampled_from("12356"),
    height=st.integers(1, 9),
    width=st.integers(1, 20),
    max_value=st.integers(1, 255),
    seed=st.integers(0, 9),
)
def test_bytes_are_scaled_as_by_pillow(kind: str, height: int, width: int, max_value: int, seed: int) -> None:
    channels = 3 if kind in "36" else 1
    max_value = 1 if kind == "1" else max_value
    values = np.random.default_rng(seed).integers(0, max_value + 1, (height, width * channels))
    head = f"P{kind}\n# a comment\n{width} {height}\n" + (f"{max_value}\n" if kind != "1" else "")
    if kind in "56":
        data = head.encode() + values.astype(np.uint8).tobytes()
    else:
        lines = [" ".join(map(str, row)) + " # another\n" for row in values.tolist()]
        data = head.encode() + "".join(lines).encode()
    np.testing.assert_array_equal(stored(data), by_pillow(data))


@given(height=st.integers(1, 9), width=st.integers(1, 20))
def test_bitmaps(height: int, width: int) -> None:
    bits = np.random.default_rng(width).integers(0, 2, (height, width), np.uint8)
    raw = b"P4 %d %d\n" % (width, height) + np.packbits(bits, axis=1).tobytes()
    plain = b"P1 %d %d\n" % (width, height) + "".join(map(str, bits.ravel())).encode()
    for data in (raw, plain):
        np.testing.assert_array_equal(stored(data)[..., 0], np.where(bits, 0, 255))


@pytest.mark.parametrize("max_value", [256, 1000, 65535])
@pytest.mark.parametrize("channels", [1, 3])
def test_more_than_8_bits_are_as_stored(channels: int, max_value: int) -> None:
    values = np.random.default_rng(0).integers(0, max_value + 1, (5, 6, channels)).astype(np.uint16)
    raw = b"P%d 6 5 %d\n" % (5 if channels == 1 else 6, max_value) + values.astype(">u2").tobytes()
    plain = b"P%d 6 5 %d\n" % (2 if channels == 1 else 3, max_value) + " ".join(map(str, values.ravel())).encode()
    for data in (raw, plain):
        np.testing.assert_array_equal(stored(data, DALIDataType.UINT16), values)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"P5 4 4 255\n" + bytes(15), "truncated PNM"),
        (b"P6 4 4 65535\n" + bytes(95), "truncated PNM"),
        (b"P4 9 2\n" + bytes(3), "truncated PNM"),
        (b"P2 4 1 255\n1 2 3", "truncated PNM"),
        (b"P2 2 1 255\n1 256\n", r"expected a number in \[0, 255\]"),
        (b"P2 2 1 255\n1 -5\n", r"expected a number in \[0, 255\]"),
        (b"P1 2 1\n02", r"expected a number in \[0, 1\]"),
        (b"P5 0 4 255\n", "0x4 pixels"),
        (b"P5 4 4 65536\n" + bytes(99), "values up to 65536"),
        (b"P5 99999999999 4 255\n", "header"),
        (b"P5 4", "header"),
    ],
)
def test_damage_is_found(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_image(data)


def test_the_size_of_a_truncated_image_is_known() -> None:
    assert image_shape(b"P5 6 4 255\n" + bytes(15)) == (4, 6, 3)
