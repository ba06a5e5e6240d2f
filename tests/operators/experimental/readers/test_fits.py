"""experimental.readers.fits compared with astropy's writer and with handwritten files."""

from __future__ import annotations

import contextlib
import gc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import ArgumentValueError, DalifyError, DTypeError, IntegerRangeError, ReaderError
from dalify.formats.arrays.fits_images import read_images
from tests.operators.readers.datasets import run_reader, write_fits

astropy = pytest.importorskip("astropy.io.fits", reason="the extra dalify[fits]")
IMAGE = np.arange(24, dtype=np.int16).reshape(4, 6)


def read(*files: Path, **options: Any) -> list[list[np.ndarray]]:
    return run_reader(dalify, "experimental.readers.fits", 1, len(files), files=list(map(str, files)), **options)[1][0]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    units = astropy.HDUList(
        [
            astropy.PrimaryHDU(),
            astropy.ImageHDU(IMAGE),
            astropy.ImageHDU(IMAGE.astype(np.float32) / 3),
            astropy.CompImageHDU(IMAGE.astype(np.int32) + 5),
            astropy.BinTableHDU.from_columns([astropy.Column(name="a", format="J", array=np.arange(3))]),
            astropy.ImageHDU(IMAGE.astype(np.uint16) + 40000),
        ]
    )
    units.writeto(tmp_path / "a.fits")
    return tmp_path / "a.fits"


def test_units_and_types(file: Path):
    """Plain, compressed and scaled images; types are converted as CFITSIO does, fractions cut off."""
    wanted = [types.INT16, types.FLOAT, types.INT32, types.UINT16, types.INT32, types.FLOAT64]
    found = read(file, hdu_indices=[2, 3, 4, 6, 3, 2], dtypes=wanted)
    expected = [
        IMAGE,
        IMAGE.astype(np.float32) / 3,
        IMAGE.astype(np.int32) + 5,
        IMAGE.astype(np.uint16) + 40000,
        np.trunc(IMAGE / 3).astype(np.int32),
        IMAGE.astype(np.float64),
    ]
    for (one,), other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.flags.c_contiguous
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(read(file)[0][0], IMAGE.astype(np.uint8))


def test_files_written_by_hand(tmp_path: Path):
    arrays = [None, IMAGE, np.linspace(0, 1, 30).reshape(2, 3, 5)]
    write_fits(tmp_path / "a.fits", arrays)
    integers, floats = read(tmp_path / "a.fits", hdu_indices=[2, 3], dtypes=[types.INT16, types.FLOAT64])
    np.testing.assert_array_equal(integers[0], IMAGE)
    np.testing.assert_array_equal(floats[0], arrays[2])
    write_fits(tmp_path / "b.fits", [IMAGE], BSCALE=2.0, BZERO=0.5)
    ((scaled,),) = read(tmp_path / "b.fits", hdu_indices=1, dtypes=types.FLOAT)
    np.testing.assert_array_equal(scaled, IMAGE * np.float32(2) + np.float32(0.5))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"hdu_indices": [1]}, ReaderError, "has no data"),
        ({"hdu_indices": [5]}, ReaderError, "is not an image"),
        ({"hdu_indices": [9]}, ReaderError, "unit 9 does not exist"),
        ({"hdu_indices": [0]}, ArgumentValueError, "must be at least 1"),
        ({"hdu_indices": []}, ArgumentValueError, "empty"),
        ({"hdu_indices": [2, 3], "dtypes": [types.INT16]}, ArgumentValueError, "got 1 for 2"),
        ({"dtypes": [types.BOOL]}, DTypeError, "must be numeric types"),
        ({"hdu_indices": [6]}, IntegerRangeError, "from 40000 to 40023, which uint8 cannot represent"),
    ],
)
def test_mistakes(file: Path, options: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        read(file, **options)


def test_damaged_files(file: Path):
    good = file.read_bytes()
    for contents in (b"", b"garbage" * 1000, good[:2880], good[:5800], good[:5760], good[:100]):
        file.write_bytes(contents)
        with pytest.raises(DalifyError, match=r"a\.fits"):
            read(file)
    with pytest.raises(ReaderError, match="cannot open"):
        read(file.with_name("none.fits"))


def test_damaged_file_is_closed(tmp_path: Path) -> None:
    """A handle that the package forgets would be warned of in whichever test runs next."""
    path = tmp_path / "a.fits"
    path.write_bytes(b"SIMPLE  =                    T".ljust(330))
    with warnings.catch_warnings(record=True) as reported, contextlib.suppress(ReaderError):
        warnings.simplefilter("always", ResourceWarning)
        read_images(str(path), (1,), [np.dtype(np.uint8)])
    gc.collect()
    assert not [warning for warning in reported if issubclass(warning.category, ResourceWarning)]
