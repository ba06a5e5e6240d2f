"""Images in FITS files, by the number of their header-data unit.

Alone because ``astropy`` reads them, and says in many ways that a file is damaged.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import IntegerRangeError, ReaderError
from dalify.base.optional import LazyModule

__all__ = ["fits", "read_images"]

fits: Any = LazyModule("astropy.io.fits", "reading FITS files", "dalify[fits]")


def read_images(path: str, numbers: tuple[int, ...], dtypes: list[np.dtype[Any]]) -> tuple[NDArray[Any], ...]:
    """Return images of a file, C-contiguous, in the byte order of the machine, scaled as the file says.

    Args:
        path: of the file.
        numbers: of the header-data units, from 1.
        dtypes: of the results.

    Raises:
        ReaderError: the file is absent or damaged, or has no image there.
        IntegerRangeError: a value that the wanted type cannot hold.
        MissingPackageError: ``astropy`` is not installed.
    """
    try:
        # The package leaves a file that it opened itself open where the file turns out to be damaged.
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            with fits.open(file, mode="readonly", memmap=False, lazy_load_hdus=True) as units:
                return tuple(
                    _image(units, path, number, dtype, size) for number, dtype in zip(numbers, dtypes, strict=True)
                )
    except (ReaderError, IntegerRangeError):
        raise
    except OSError as error:
        raise ReaderError(f"cannot read the FITS file {path!r}: {error.strerror or error}.") from None
    except Exception as error:  # of many kinds, for damaged files
        raise ReaderError(f"the FITS file {path!r} is damaged: {type(error).__name__}: {error}.") from None


def _image(units: Any, path: str, number: int, dtype: np.dtype[Any], size: int) -> NDArray[Any]:
    try:
        unit = units[number - 1]
    except IndexError:
        raise ReaderError(f"{path!r} has {len(units)} header-data units; there is no number {number}.") from None
    if not getattr(unit, "is_image", False):
        raise ReaderError(f"{path!r}, unit {number}: it is no image.")
    place = unit.fileinfo() or {}
    if place.get("datLoc", 0) + place.get("datSpan", 0) > size:
        raise ReaderError(f"the FITS file {path!r} was cut off: unit {number} has no end.")
    data = unit.data
    if data is None or data.ndim == 0:
        raise ReaderError(f"{path!r}, unit {number}: it has no data.")
    return _converted(np.asarray(data), dtype, f"{path!r}, unit {number}")


def _converted(data: NDArray[Any], dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    """Return data of a type; fractions are cut off, as CFITSIO does, and what does not fit is told."""
    data = np.ascontiguousarray(data, data.dtype.newbyteorder("="))
    if data.dtype == dtype:
        return data
    if dtype.kind in "iu" and data.size and not np.can_cast(data.dtype, dtype):
        limits = np.iinfo(dtype)
        whole = np.trunc(data) if data.dtype.kind == "f" else data
        least, most = whole.min().item(), whole.max().item()
        if not (limits.min <= least and most <= limits.max):
            raise IntegerRangeError(
                f"{where}: its values are from {least} to {most}, which {dtype} cannot hold.",
                hint=f"Its own type is {data.dtype}: give it in dtypes.",
            )
    return data.astype(dtype)
