"""Read files and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data import DALIDataType
from dalify.formats.files.file_list import (
    KNOWN_EXTENSIONS,
    FileEntry,
    FileList,
    files_given,
    files_in_class_folders,
    files_of_list,
)
from dalify.formats.files.identity import file_identity
from dalify.formats.files.whole_file import read_file
from dalify.registry import Spec, reader


@reader(outputs=2)
def file(
    *,
    file_root: str | None = None,
    file_list: str | None = None,
    files: list[str] | None = None,
    labels: list[int] | None = None,
    dir_filters: list[str] | None = None,
    file_filters: list[str] = list(KNOWN_EXTENSIONS),  # noqa: B006 - the signature is the schema; the list is never mutated
    case_sensitive_filter: bool = False,
    allow_outside_root: bool = False,
) -> tuple[Spec, Spec]:
    """Read the contents of files, with a label each.

    The files are specified in one of three ways: class folders in ``file_root``, a list file, or a list of paths.

    Args:
        file_root: folder with one subfolder per class. The label is the index of the subfolder in byte order of the
            names (capitals first), including empty ones; files are in byte order ("10.jpg" before "2.jpg"). Deeper
            folders are not searched. With ``file_list`` or ``files``: base folder of relative paths.
        file_list: path of a text file: each line has a path, a space, and an integer label. Paths are relative to
            ``file_root``, or to the folder of the list.
        files: list of paths.
        labels: one per path of ``files``; by default 0, 1, 2 ….
        dir_filters: patterns (``*``, ``?``, ``[abc]``) for the names of class folders. Folders that match none are
            not numbered.
        file_filters: patterns for the names of files in class folders.
        case_sensitive_filter: whether the patterns are case-sensitive.
        allow_outside_root: allow paths in the list that leave the folder to which they are relative, and URLs.
            Only for trusted lists.

    Returns:
        contents: uint8 ``[bytes]``, on the CPU.
        label: int32 ``[1]``, on the CPU.

    Raises:
        ReaderError: a missing folder, list or file; an invalid line of a list, or one whose path leaves its
            folder; no matching files.
        ArgumentValueError: mutually exclusive arguments.

    Example:
        >>> encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True, name="train")  # doctest: +SKIP
        >>> images = fn.decoders.image(encoded)  # doctest: +SKIP
    """
    return Spec(DALIDataType.UINT8, 1, ""), Spec(DALIDataType.INT32, 1, "")


@file.index
def _(
    file_root: str | None,
    file_list: str | None,
    files: Sequence[str] | None,
    labels: Sequence[int] | None,
    dir_filters: Sequence[str] | None,
    file_filters: Sequence[str],
    case_sensitive_filter: bool,
    allow_outside_root: bool,
) -> FileList:
    if files is not None and file_list is not None:
        raise ArgumentValueError("files and file_list are mutually exclusive.")
    if labels is not None and files is None:
        raise ArgumentValueError("labels requires files=[...].", hint="The labels of a file_list are in the list.")
    if files is not None:
        return files_given(files, labels, file_root)
    if file_list is not None:
        return files_of_list(file_list, file_root, allow_outside_root=allow_outside_root)
    if not file_root:  # an empty variable is not the working directory
        raise ArgumentValueError("specify one of file_root, file_list and files.")
    return files_in_class_folders(
        file_root,
        dir_filters=dir_filters,
        file_filters=file_filters,
        case_sensitive_filter=case_sensitive_filter,
    )


@file.read
def _(entry: FileEntry) -> tuple[np.ndarray[Any, Any], ...]:
    return read_file(entry.path), np.array([entry.label], np.int32)


@file.read_many
def _(files: FileList, numbers: np.ndarray[Any, Any]) -> tuple[Any, ...] | None:
    contents = files.read_many(numbers)
    return None if contents is None else (contents, files.labels_of(numbers))


@file.identity()
def _(entry: FileEntry) -> tuple[str, str]:
    return file_identity(entry.path, entry.label)


@file.source_info
def _(entry: FileEntry, output: int) -> str:
    return "" if output else entry.origin.name  # labels have none


@file.substitute
def _(entry: FileEntry) -> tuple[np.ndarray[Any, Any], ...]:
    return np.empty(0, np.uint8), np.array([entry.label], np.int32)
