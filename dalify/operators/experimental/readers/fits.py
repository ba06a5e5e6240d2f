"""Read images from FITS files, the format of astronomy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data import DALIDataType
from dalify.formats.file_list import FileEntry, FileList
from dalify.formats.fits_images import astropy, read_images
from dalify.formats.identity import file_identity
from dalify.formats.plain_files import plain_files
from dalify.registry import Spec, operator

_LAST_NUMBER = DALIDataType.FLOAT64


def _count(given: Mapping[str, Any]) -> int:
    if not given["hdu_indices"]:
        raise ArgumentValueError("hdu_indices is empty: there is nothing to read.")
    return len(given["hdu_indices"])


@operator(outputs=_count, reader=True, needs=(astropy,))
def fits(
    *,
    allow_outside_root: bool = False,
    dtypes: list[DALIDataType] | None = None,
    file_filter: str = "*.fits",
    file_list: str | None = None,
    file_root: str | None = None,
    files: list[str] | None = None,
    hdu_indices: list[int] = [2],  # noqa: B006 -- signatures are schemas, nobody changes this list
) -> tuple[Spec, ...]:
    """Read images from FITS files.

    Compressed images and values that the file scales (BSCALE, BZERO) come out as what they mean. Needs
    ``pip install dalify[fits]``.

    Args:
        allow_outside_root: paths in the list may lead out of the folder to which they are relative, and be URLs. Only
            for lists that can be trusted.
        dtypes: element types of the outputs, one each; UINT8 by default. Fractions are cut off for integers; values
            that a type cannot hold are an error.
        file_filter: pattern (``*``, ``?``, ``[abc]``) for the names of files in folders.
        file_list: a text with a path on each line, relative to `file_root`, or to the folder of the list.
        file_root: folder; its files come first, then those of its sub-folders (not deeper), each in byte order.
            Together with `file_list` or `files`: folder to which their paths are relative.
        files: paths.
        hdu_indices: numbers of the header-data units that are read, from 1, which is the primary one.

    Returns:
        an image per number, in the order of its extents from the slowest to the quickest, without layout; on the CPU.

    Raises:
        ReaderError: a file that is missing or damaged, or has no image there.
        IntegerRangeError: values that the type cannot hold.
        ArgumentValueError: another number of types than of outputs, or a number below 1.
        DTypeError: a type that is none of numbers.

    Example:
        >>> sky = fn.experimental.readers.fits(file_root="sky", dtypes=[types.FLOAT])  # doctest: +SKIP
    """
    if min(hdu_indices) < 1:
        raise ArgumentValueError(f"hdu_indices count from 1; got {list(hdu_indices)}.")
    return tuple(Spec(dtype, None, "") for dtype in _types(dtypes, len(hdu_indices)))


def _types(dtypes: Sequence[DALIDataType] | None, count: int) -> Sequence[DALIDataType]:
    if dtypes is None:
        return [DALIDataType.UINT8] * count
    if len(dtypes) != count:
        raise ArgumentValueError(f"dtypes has {len(dtypes)} types for {count} outputs; there must be one for each.")
    for dtype in dtypes:
        if not 0 <= dtype <= _LAST_NUMBER:
            raise DTypeError(f"an image of a FITS file cannot be of type {dtype}.")
    return dtypes


@fits.index
def _(
    allow_outside_root: bool,
    file_filter: str,
    file_list: str | None,
    file_root: str | None,
    files: Sequence[str] | None,
    **of_reading: Any,
) -> FileList:
    return plain_files(file_root, file_list, files, file_filter, allow_outside_root=allow_outside_root)


@fits.read
def _(
    file: FileEntry, *, dtypes: Sequence[DALIDataType] | None, hdu_indices: tuple[int, ...]
) -> tuple[np.ndarray[Any, Any], ...]:
    return read_images(file.path, hdu_indices, [dtype.numpy for dtype in _types(dtypes, len(hdu_indices))])


@fits.identity()
def _(file: FileEntry) -> tuple[str, str]:
    return file_identity(file.path)


@fits.origin
def _(file: FileEntry) -> str:
    return file.origin
