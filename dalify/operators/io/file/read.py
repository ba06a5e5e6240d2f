"""Read files whose paths are inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ReaderError
from dalify.data import DALIDataType
from dalify.formats.files.storage import is_remote
from dalify.formats.files.whole_file import read_file
from dalify.registry import Spec, operator


@operator(allocating=True, listed=True)
def read(
    filepaths: Spec,
    /,
    *,
    allow_outside_root: bool = False,
    dont_use_mmap: bool = False,
    use_o_direct: bool = False,
) -> Spec:
    """Read the contents of files whose paths are an input, for instance from ``fn.external_source``.

    Args:
        filepaths: uint8 ``[characters]``: paths in UTF-8, as by ``np.frombuffer(path.encode(), np.uint8)``. Trailing
            zeros are removed, so that paths can be rows of one array, and so is a leading ``file://``.
        allow_outside_root: allow URLs, which access other machines. Only for trusted paths.
        dont_use_mmap: accepted but ignored; files are read, not mapped.
        use_o_direct: accepted but ignored.

    Returns:
        uint8 ``[bytes]``; empty for an empty file, which DALI rejects.

    Raises:
        DTypeError: not bytes, or more than one dimension.
        ReaderError: an empty path, a URL that is not allowed, or a file that does not exist or cannot be read.

    Example:
        >>> contents = fn.io.file.read(paths)  # doctest: +SKIP
    """
    if filepaths.dtype not in (None, DALIDataType.UINT8, DALIDataType.INT8) or filepaths.ndim not in (None, 1):
        raise DTypeError(
            f"a path must be one-dimensional data of type UINT8; got {filepaths!r}.",
            hint="Convert a string with np.frombuffer(path.encode(), np.uint8).",
        )
    return Spec(DALIDataType.UINT8, 1, "", None, filepaths.device)


@read.cpu
def _(filepaths: Sequence[np.ndarray], *, allow_outside_root: bool) -> Any:
    contents = []
    for index, characters in enumerate(filepaths):
        path = os.fsdecode(characters.tobytes().rstrip(b"\0")).removeprefix("file://")
        try:
            if not path or "\0" in path:
                raise ReaderError(f"{path!r} is not a valid file path.")
            if is_remote(path) and not allow_outside_root:
                raise ReaderError(
                    f"{path!r} is a URL, not a local path.",
                    hint="If the paths can be trusted, pass allow_outside_root=True.",
                )
            contents.append(read_file(path))
        except ReaderError as error:
            error.sample = index
            raise
    return contents
