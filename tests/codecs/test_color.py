"""Colors and dtypes of decoded images."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image

from dalify.base.errors import DTypeError
from dalify.codecs.color import SUPPORTED_DTYPES, channels_of, check_dtype, convert_color, rescale
from dalify.codecs.image import decode_image
from dalify.data.dtypes import DALIDataType, DALIImageType, from_numpy

RGB = np.random.default_rng(0).integers(0, 256, (31, 29, 3), np.uint8)


def test_gray_is_luma() -> None:
    expected = np.asarray(Image.fromarray(RGB).convert("L"))[..., None]
    np.testing.assert_array_equal(convert_color(RGB, DALIImageType.GRAY), expected)
    deep = convert_color(RGB.astype(np.uint16) * 257, DALIImageType.GRAY)
    assert np.abs(deep / 257 - RGB @ np.array([0.299, 0.587, 0.114])[:, None]).max() < 0.01


@pytest.mark.parametrize(
    ("extension", "dtype"),
    [(".png", np.uint8), (".png", np.uint16), (".bmp", np.uint8), (".ppm", np.uint8), (".jp2", np.uint16)],
)
def test_gray_of_files_equals_that_of_the_libraries_of_dali(extension: str, dtype: type) -> None:
    """DALI decodes with OpenCV, which rounds by format: in a PNG, half of the noise pixels differ from Pillow."""
    pixels = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, (60, 70, 3), dtype, endpoint=True)
    pixels[:9] = pixels[:9, :, :1]
    encoded = cv2.imencode(extension, pixels[..., ::-1])[1].reshape(-1)
    expected = cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE | cv2.IMREAD_ANYDEPTH)[..., None]
    found = decode_image(encoded, DALIImageType.GRAY, dtype=from_numpy(np.dtype(dtype)))
    np.testing.assert_array_equal(found, expected)


def test_ycbcr_is_studio_range() -> None:
    pixel = np.array([[[200, 100, 50]]], np.uint8)
    assert convert_color(pixel, DALIImageType.YCbCr).tolist() == [[[123, 91, 175]]]
    corners = np.array([[[0, 0, 0], [255, 255, 255], [0, 0, 255], [255, 0, 0]]], np.uint8)
    expected = [[[16, 128, 128], [235, 128, 128], [41, 240, 110], [81, 90, 240]]]
    assert convert_color(corners, DALIImageType.YCbCr).tolist() == expected


@pytest.mark.parametrize("output_type", list(DALIImageType))
@pytest.mark.parametrize("stored", [1, 2, 3, 4])
def test_channels_are_those_that_were_announced(output_type: DALIImageType, stored: int) -> None:
    pixels = RGB.repeat(2, 2)[..., :stored]
    assert convert_color(pixels, output_type).shape == (31, 29, channels_of(output_type, stored))


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES)
@pytest.mark.parametrize("source", [np.uint8, np.uint16])
def test_full_range_becomes_full_range(dtype: DALIDataType, source: type) -> None:
    top = np.iinfo(source).max
    pixels = np.linspace(0, top, 256).round().astype(source)
    result = rescale(pixels, dtype)
    full = 1.0 if dtype.is_float else np.iinfo(dtype.numpy).max
    assert result.dtype == dtype.numpy
    assert (result[0], result[-1]) == (0, full)
    step = {DALIDataType.FLOAT16: 1e-3, DALIDataType.FLOAT: 1e-6, DALIDataType.FLOAT64: 1e-6}.get(dtype, 0.5 / full)
    np.testing.assert_allclose(result / full, pixels / top, atol=1.01 * step)
    out = np.empty(pixels.shape, dtype.numpy)
    assert rescale(pixels, dtype, out) is out
    np.testing.assert_array_equal(out, result)


def test_types_that_images_do_not_have() -> None:
    with pytest.raises(DTypeError, match=r"bool; dtype must be one of types\.UINT8, types\.UINT16"):
        check_dtype(DALIDataType.BOOL)
