"""The front door: any bytes to an upright image, compared with DALI and Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify.base.errors import DecodeError, DTypeError, IndexingError, ShapeError
from dalify.codecs.image import decode_image, image_shape
from dalify.data.dtypes import DALIDataType, DALIImageType
from tests.helpers.photos import drawn_photo, encode_image
from tests.helpers.real_dali import run_dali

REFUSED = ("lossless_16bit_gray.jpg", "truncated.jpg")  # by DALI on a CPU


def encoded(kind: str = "JPEG", height: int = 50, width: int = 67, **options: Any) -> bytes:
    return encode_image(drawn_photo(height, width), kind, **options)


def files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*/*")) if path.name not in REFUSED]


def decoded_by_dali(data: bytes, **arguments: Any) -> np.ndarray:
    return np.asarray(run_dali("decoders.image", [np.frombuffer(data, np.uint8)], **arguments)[0])


@pytest.mark.parametrize("output_type", list(DALIImageType), ids=str)
def test_all_formats_equal_dali(sample_data: Path, output_type: DALIImageType) -> None:
    for path in files_of(sample_data / "formats"):
        if output_type == DALIImageType.ANY_DATA and path.name in ("gray.jpg", "cmyk.jpg"):
            continue  # DALI crashes on the one and refuses the other
        data = path.read_bytes()
        expected = decoded_by_dali(data, output_type=output_type.name)
        result = decode_image(data, output_type)
        assert image_shape(data, output_type) == result.shape == expected.shape, path
        # Where colors are not those stored, formats differ in DALI by how the luma is rounded.
        tolerance = 1 if output_type in (DALIImageType.GRAY, DALIImageType.YCbCr) else 0
        assert np.abs(result.astype(int) - expected).max() <= tolerance, path


@pytest.mark.parametrize("dtype", ["UINT16", "INT8", "INT16", "UINT32", "INT32", "FLOAT"])
def test_element_types_equal_dali(sample_data: Path, dtype: str) -> None:
    for name in ("jpeg_special/odd_size.jpg", "png16/4ch16bpp.png", "tiff/cat-3504008_640_gray.tiff"):
        data = (sample_data / "formats" / name).read_bytes()
        for output_type in ("RGB", "YCbCr"):
            expected = decoded_by_dali(data, output_type=output_type, dtype=dtype)
            result = decode_image(data, DALIImageType[output_type], DALIDataType[dtype])
            assert result.dtype == expected.dtype
            # DALI scales in float32, whose last digit is 320 for a UINT32.
            full_scale, whole = (1.0, 0) if dtype == "FLOAT" else (np.iinfo(expected.dtype).max, 1)
            np.testing.assert_allclose(result, expected, rtol=0, atol=whole + 2e-7 * full_scale)


def test_large_photographs_equal_dali(sample_data: Path) -> None:
    for path in sorted((sample_data / "photos_large").glob("*.jpg"))[::4]:
        np.testing.assert_array_equal(decode_image(path.read_bytes()), decoded_by_dali(path.read_bytes()))


def test_orientations_equal_dali(sample_data: Path) -> None:
    for path in sorted((sample_data / "formats" / "exif_orientation").glob("*.jpg")):
        for adjust in (True, False):
            expected = decoded_by_dali(path.read_bytes(), adjust_orientation=adjust)
            np.testing.assert_array_equal(decode_image(path.read_bytes(), adjust_orientation=adjust), expected)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("output_type", list(DALIImageType), ids=str)
def test_windows_equal_parts_of_the_whole(kind: str, output_type: DALIImageType) -> None:
    data = encoded(kind)
    whole = decode_image(data, output_type)
    for y, x, rows, columns in ((0, 0, 50, 67), (3, 5, 20, 30), (49, 66, 1, 1), (10, 0, 0, 5)):
        part = decode_image(data, output_type, window=(y, x, rows, columns))
        np.testing.assert_array_equal(part, whole[y : y + rows, x : x + columns])


def test_windows_outside_are_refused() -> None:
    with pytest.raises(IndexingError, match="50 rows and 67 columns"):
        decode_image(encoded(), window=(40, 0, 11, 5))


@pytest.mark.parametrize("output_type", list(DALIImageType), ids=str)
@pytest.mark.parametrize("dtype", [DALIDataType.UINT8, DALIDataType.FLOAT])
@pytest.mark.parametrize("window", [None, (4, 5, 20, 21)])
def test_out_is_filled(output_type: DALIImageType, dtype: DALIDataType, window: Any) -> None:
    for kind in ("JPEG", "PNG"):
        expected = decode_image(encoded(kind), output_type, dtype, window=window)
        out = np.zeros(expected.shape, dtype.numpy)
        assert decode_image(encoded(kind), output_type, dtype, window=window, out=out) is out
        np.testing.assert_array_equal(out, expected)
        strided = np.zeros((expected.shape[0], expected.shape[1] * 2, expected.shape[2]), dtype.numpy)[:, ::2]
        decode_image(encoded(kind), output_type, dtype, window=window, out=strided)
        np.testing.assert_array_equal(strided, expected)
        with pytest.raises(ShapeError, match="but out has shape"):
            decode_image(encoded(kind), output_type, dtype, window=window, out=out[:-1])


def test_names_of_files_do_not_matter_but_contents_do() -> None:
    np.testing.assert_array_equal(decode_image(encoded("PNG")), drawn_photo(50, 67))
    for data, message in ((b"", "empty"), (b"hello", "hello"), (encoded()[:700], "truncated JPEG")):
        with pytest.raises(DecodeError, match=message):
            decode_image(data)
    with pytest.raises(DTypeError, match="bool"):
        decode_image(encoded(), dtype=DALIDataType.BOOL)


def test_refused_like_dali(sample_data: Path) -> None:
    data = (sample_data / "formats" / "jpeg_special" / "truncated.jpg").read_bytes()
    with pytest.raises(DecodeError, match="JPEG"):
        decode_image(data)
    with pytest.raises(RuntimeError, match="decode"):
        decoded_by_dali(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "TIFF", "WEBP", "JPEG2000", "PPM", "GIF"])
def test_damaged_data_give_an_image_or_a_decode_error(kind: str) -> None:
    random = np.random.default_rng(0)
    data = np.frombuffer(encoded(kind), np.uint8)
    for _ in range(60):
        damaged = data.copy()
        damaged[random.integers(0, min(data.size, 400), 3)] = random.integers(0, 256, 3)
        damaged = damaged[: random.integers(1, 2 * data.size)]
        try:
            height, width, channels = image_shape(damaged, DALIImageType.ANY_DATA)
            if height * width < 1_000_000:
                assert decode_image(damaged, DALIImageType.ANY_DATA).shape == (height, width, channels)
        except DecodeError as error:
            assert str(error)  # noqa: PT017 - either outcome is right
