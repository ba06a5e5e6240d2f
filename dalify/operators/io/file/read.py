"""Read files whose paths are inputs."""

from __future__ import annotations

import os
from typing import Any

from dalify.base.errors import DTypeError, ReaderError
from dalify.data import Batch, DALIDataType
from dalify.formats.files.paths import Paths
from dalify.formats.files.storage import is_remote
from dalify.formats.files.whole_file import read_file, read_files
from dalify.registry import Spec, operator

_MIN_FILES = 2  # a single file is read without the compiled call


@operator
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
            f"a path must be one-dimensional data of type uint8; got {filepaths!r}.",
            hint="Convert a string with np.frombuffer(path.encode(), np.uint8).",
        )
    return Spec(DALIDataType.UINT8, 1, "", None, filepaths.device)


def _read_together(paths: list[bytes]) -> Batch | None:
    """Read local files in one compiled call; None if each must be read separately."""
    if len(paths) < _MIN_FILES:
        return None
    joined = b"\0".join(paths)
    # Other paths are read one by one: URLs, and those that raise an error.
    if b"://" in joined or joined.count(b"\0") >= len(paths) or not all(paths):
        return None
    return read_files(Paths.of(paths), 0)


@read.cpu_chunk
def _(filepaths: Batch, *, allow_outside_root: bool) -> Any:
    paths = [characters.tobytes().rstrip(b"\0").removeprefix(b"file://") for characters in filepaths.samples]
    together = _read_together(paths)
    if together is not None:
        together.is_lasting = not together.is_uniform  # a uniform one becomes an array
        return together
    contents = []
    for index, encoded in enumerate(paths):
        path = os.fsdecode(encoded)
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
