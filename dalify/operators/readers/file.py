"""Read whole files and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data import DALIDataType
from dalify.formats.file_list import (
    KNOWN_EXTENSIONS,
    FileEntry,
    FileList,
    files_given,
    files_in_class_folders,
    files_of_list,
)
from dalify.formats.identity import file_identity
from dalify.formats.whole_file import read_file
from dalify.registry import Spec, operator


@operator(outputs=2, reader=True)
def file(
    *,
    file_root: str | None = None,
    file_list: str | None = None,
    files: list[str] | None = None,
    labels: list[int] | None = None,
    dir_filters: list[str] | None = None,
    file_filters: list[str] = list(KNOWN_EXTENSIONS),  # noqa: B006 - the signature is the schema; nobody changes it
    case_sensitive_filter: bool = False,
    allow_outside_root: bool = False,
) -> tuple[Spec, Spec]:
    """Read the contents of files, with a label each.

    The files are told in one of three ways: by class folders below ``file_root``, by a list file, or one by one.

    Args:
        file_root: folder with one sub-folder per class. The sub-folders are numbered in byte order of their names
            (capitals first), empty ones too, and the number is the label; files follow in byte order ("10.jpg" before
            "2.jpg"). Deeper folders are not entered. Together with ``file_list`` or ``files``: folder to which their
            paths are relative.
        file_list: path of a text file: on each line a path, a space, and an integer label. Paths are relative to
            ``file_root``, or to the list's own folder.
        files: paths, one by one.
        labels: one per path of ``files``; 0, 1, 2 … where not given.
        dir_filters: patterns (``*``, ``?``, ``[abc]``) for the names of class folders. Folders that match none get no
            number.
        file_filters: patterns for the names of files in class folders.
        case_sensitive_filter: whether case counts in the patterns.
        allow_outside_root: paths in the list may lead out of the folder to which they are relative, and be URLs. Only
            for lists that can be trusted.

    Returns:
        contents: uint8 ``[bytes]``, on the CPU.
        label: int32 ``[1]``, on the CPU.

    Raises:
        ReaderError: a missing folder, list or file; a line of a list that is not as described, or whose path
            leads out of its folder; nothing that matches.
        ArgumentValueError: arguments that exclude each other.

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
        raise ArgumentValueError("files and file_list exclude each other.")
    if labels is not None and files is None:
        raise ArgumentValueError(
            "labels belong to files=[...], which is not given.", hint="Labels of a file_list stand in the list."
        )
    if files is not None:
        return files_given(files, labels, file_root)
    if file_list is not None:
        return files_of_list(file_list, file_root, allow_outside_root=allow_outside_root)
    if file_root is None:
        raise ArgumentValueError("one of file_root, file_list and files is needed.")
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


@file.origin
def _(entry: FileEntry) -> str:
    return entry.origin


@file.stand_in
def _(entry: FileEntry) -> tuple[np.ndarray[Any, Any], ...]:
    return np.empty(0, np.uint8), np.array([entry.label], np.int32)
