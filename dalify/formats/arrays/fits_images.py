"""Reads images of FITS files by the number of their header-data unit.

``astropy`` reads them in a helper process, because its decompressors do not check damaged files, and a header may
declare a billion axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.errors import IntegerRangeError
from dalify.base.optional import LazyModule
from dalify.formats.files import helper_process

astropy = LazyModule("astropy", "reading FITS files", "dalify[fits]")


def read_images(path: str, hdu_indices: tuple[int, ...], dtypes: list[np.dtype[Any]]) -> tuple[NDArray[Any], ...]:
    """Return images of a file, C-contiguous, in native byte order, scaled as the file specifies.

    Args:
        path: path of the file.
        hdu_indices: numbers of the header-data units, from 1.
        dtypes: dtypes of the results.

    Raises:
        ReaderError: the file is absent or damaged, or a unit has no image.
        LimitError: an image declares more than the limits allow.
        IntegerRangeError: a value does not fit into the requested dtype.
        MissingPackageError: ``astropy`` is not installed.
    """
    largest = limits.current()
    images = helper_process.call(
        "read_fits",
        path,
        hdu_indices,
        largest.max_sample_bytes,
        largest.max_dimensions,
        library=astropy,
        what="FITS",
    )
    return tuple(
        _converted(image, dtype, f"{path!r}, unit {number}")
        for image, number, dtype in zip(images, hdu_indices, dtypes, strict=True)
    )


def _converted(data: NDArray[Any], dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    """Convert data to a dtype; fractions are truncated as in CFITSIO, values out of range are an error."""
    data = np.ascontiguousarray(data, data.dtype.newbyteorder("="))
    if data.dtype == dtype:
        return data
    if dtype.kind in "iu" and data.size and not np.can_cast(data.dtype, dtype):
        limits = np.iinfo(dtype)
        whole = np.trunc(data) if data.dtype.kind == "f" else data
        minimum, maximum = whole.min().item(), whole.max().item()
        if not (limits.min <= minimum and maximum <= limits.max):
            raise IntegerRangeError(
                f"{where}: its values are from {minimum} to {maximum}, which {dtype} cannot represent.",
                hint=f"The data type of the file is {data.dtype}: set it in dtypes.",
            )
    return data.astype(dtype)
