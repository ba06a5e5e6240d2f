"""The first directory of TIFF files, before a library sees it."""

from __future__ import annotations

import io
import struct
import warnings

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image

from dalify.base.errors import DecodeError, LimitError
from dalify.base.limits import Limits, applied
from dalify.codecs.image import decode_image, image_shape
from dalify.codecs.image_format import as_bytes_array
from dalify.codecs.tiff import read_tiff
from dalify.data.dtypes import DALIDataType, DALIImageType
from tests.helpers.photos import encode_image

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 48, 3), np.uint8)
COMPRESSIONS = [None, "packbits", "tiff_lzw", "tiff_adobe_deflate", "lzma"]


def written(**options: object) -> bytes:
    return encode_image(PIXELS, "TIFF", **options)


def entries(data: bytes) -> dict[int, tuple[int, int, int]]:
    """Return type, count and value of each entry of a classic little-endian directory."""
    (start,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, start)
    rows = [struct.unpack_from("<HHII", data, start + 2 + 12 * number) for number in range(count)]
    assert struct.unpack_from("<I", data, start + 2 + 12 * count) == (0,)
    return {tag: (kind, length, value) for tag, kind, length, value in rows}


@pytest.mark.parametrize("is_big", [False, True])
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_pixels_and_orientation(compression: str | None, is_big: bool, orientation: int) -> None:
    data = written(compression=compression, big_tiff=is_big, tiffinfo={274: orientation})
    expected = {1: PIXELS, 3: PIXELS[::-1, ::-1], 6: np.rot90(PIXELS, -1)}[orientation]
    assert image_shape(data) == expected.shape
    np.testing.assert_array_equal(decode_image(data), expected)
    np.testing.assert_array_equal(decode_image(data, adjust_orientation=False), PIXELS)


def test_only_the_pixels_of_the_first_page_are_kept() -> None:
    file = io.BytesIO()
    image = Image.fromarray(PIXELS)
    image.save(
        file, "TIFF", save_all=True, append_images=[image] * 3, tiffinfo={270: "a note", 274: 6, 34675: b"x" * 99}
    )
    found = read_tiff(as_bytes_array(file.getvalue()))
    kept = entries(found.rewritten())
    assert not {270, 274, 282, 283, 34675} & set(kept)
    assert {256, 257, 258, 273, 279} <= set(kept)
    assert list(kept) == sorted(kept)
    assert (found.height, found.width, found.bits, found.orientation) == (40, 48, 8, 6)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(found.rewritten()))), PIXELS)


def test_values_outside_of_the_file_are_left_out_without_a_warning() -> None:
    data = written(compression="tiff_lzw", tiffinfo={270: "a note that lies elsewhere"})
    (start,) = struct.unpack_from("<I", data, 4)
    place = data.index(struct.pack("<HH", 270, 2), start)
    data = data[: place + 8] + struct.pack("<I", 0xFFFFFFF0) + data[place + 12 :]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(decode_image(data), PIXELS)


def test_a_truncated_directory_is_read_up_to_its_end() -> None:
    data = written()
    (start,) = struct.unpack_from("<I", data, 4)
    moved = data[:4] + struct.pack("<I", len(data)) + data[8:] + data[start : start + 2 + 12 * 9]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            assert decode_image(moved).shape == PIXELS.shape
        except DecodeError as error:
            assert "TIFF" in str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"II*\0\xff\xff\xff\x7f" + bytes(20), "its directory is at byte 2147483647"),
        (b"II*\0\x08\0\0\0", "within the header"),
        (b"II*\0\x08\0\0\0" + bytes(20), "size of the image"),
        (b"MM\0+\0\x08\0\0" + b"\xff" * 8 + bytes(20), "its directory is at byte"),
    ],
)
def test_directories_that_describe_nothing(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_image(data)


def test_samples_of_many_bytes_are_limited() -> None:
    is_written, data = cv2.imencode(".tiff", np.zeros((40, 48, 3), np.float32))
    assert is_written
    with applied(Limits(max_sample_bytes=4 * 3 * 40 * 48 - 1)), pytest.raises(LimitError, match="max_sample_bytes"):
        decode_image(data.reshape(-1))


@pytest.mark.parametrize("options", [{}, {"tile": (16, 32)}, {"compression": "zlib"}, {"byteorder": ">"}], ids=str)
@pytest.mark.parametrize("predictor", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    ("photometric", "channels"), [*(("minisblack", n) for n in (2, 3, 4, 6, 13)), *(("rgb", n) for n in (4, 5, 6, 8))]
)
def test_any_number_of_channels(photometric: str, channels: int, dtype: type, predictor: bool, options: dict) -> None:
    """All samples are read; the first three count as colors."""
    if predictor:
        options = {**options, "compression": "zlib", "predictor": True}
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max + 1, (37, 41, channels), dtype)
    file = io.BytesIO()
    extra = ["unspecified"] * (channels - (3 if photometric == "rgb" else 1))
    tifffile.imwrite(file, pixels, photometric=photometric, planarconfig="contig", extrasamples=extra, **options)
    kind = {np.uint8: DALIDataType.UINT8, np.uint16: DALIDataType.UINT16}[dtype]
    found = decode_image(file.getvalue(), DALIImageType.ANY_DATA, kind)
    np.testing.assert_array_equal(found, pixels)
    assert image_shape(file.getvalue()) == (37, 41, 3)
    if channels > 2:
        np.testing.assert_array_equal(decode_image(file.getvalue(), DALIImageType.RGB, kind), pixels[..., :3])
    part = decode_image(file.getvalue(), DALIImageType.ANY_DATA, kind, window=(5, 20, 7, 9))
    np.testing.assert_array_equal(part, pixels[5:12, 20:29])


@pytest.mark.parametrize("change", [{"planarconfig": "separate"}, {"dtype": np.float32}], ids=str)
def test_channels_that_cannot_be_read(change: dict) -> None:
    pixels = np.zeros((6, 12, 10), change.pop("dtype", np.uint8))
    file = io.BytesIO()
    tifffile.imwrite(file, pixels, photometric="minisblack", **{"planarconfig": "contig", **change})
    with pytest.raises(DecodeError, match="TIFF"):
        decode_image(file.getvalue(), DALIImageType.ANY_DATA)
