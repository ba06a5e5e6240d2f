"""Read images from FITS files, an astronomy format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data import DALIDataType
from dalify.formats.arrays.fits_images import astropy, read_images
from dalify.formats.files.file_list import FileEntry, FileList
from dalify.formats.files.identity import file_identity
from dalify.formats.files.plain_files import plain_files
from dalify.registry import Spec, reader, types_of_outputs


def _count(given: Mapping[str, Any]) -> int:
    if not given["hdu_indices"]:
        raise ArgumentValueError("hdu_indices must not be empty.")
    return len(given["hdu_indices"])


@reader(outputs=_count, needs=(astropy,))
def fits(
    *,
    allow_outside_root: bool = False,
    dtypes: list[DALIDataType] | None = None,
    file_filter: str = "*.fits",
    file_list: str | None = None,
    file_root: str | None = None,
    files: list[str] | None = None,
    hdu_indices: list[int] = [2],  # noqa: B006 -- the signature is the schema; the list is never mutated
) -> tuple[Spec, ...]:
    """Read images from FITS files.

    Compressed images are decompressed, and scaled values (BSCALE, BZERO) are converted to physical values. Needs
    ``pip install dalify[fits]``.

    Args:
        allow_outside_root: allow paths in the list that leave the folder to which they are relative, and URLs.
            Only for trusted lists.
        dtypes: element types of the outputs, one each; by default UINT8. Fractions are truncated for integers; values
            out of range raise an error.
        file_filter: pattern (``*``, ``?``, ``[abc]``) for the names of files in folders.
        file_list: a text file with a path per line, relative to `file_root` or to the folder of the list.
        file_root: folder; its files come first, then the files of its subfolders (not deeper), both in byte order.
            With `file_list` or `files`: base folder of relative paths.
        files: list of paths.
        hdu_indices: numbers of the header-data units to read; 1 is the primary one.

    Returns:
        one image per number, with extents from the slowest to the fastest varying, without a layout; on the CPU.

    Raises:
        ReaderError: a file is missing or damaged, or has no image in the unit.
        IntegerRangeError: values out of the range of the type.
        ArgumentValueError: the number of types is not the number of outputs, or an HDU number is below 1.
        DTypeError: a type that is not numeric.

    Example:
        >>> sky = fn.experimental.readers.fits(file_root="sky", dtypes=[types.FLOAT])  # doctest: +SKIP
    """
    if min(hdu_indices) < 1:
        raise ArgumentValueError(f"hdu_indices must be at least 1; got {list(hdu_indices)}.")
    return tuple(Spec(dtype, None, "") for dtype in types_of_outputs(dtypes, len(hdu_indices), DTypeError))


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
    found = types_of_outputs(dtypes, len(hdu_indices), DTypeError)
    return read_images(file.path, hdu_indices, [dtype.numpy for dtype in found])


@fits.identity()
def _(file: FileEntry) -> tuple[str, str]:
    return file_identity(file.path)
