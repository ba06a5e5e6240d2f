"""Files without labels: in a folder and its subfolders, in a list file, or specified individually."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.formats.files.data_root import DataRoot
from dalify.formats.files.file_list import FileList, in_byte_order
from dalify.formats.files.storage import folder_of, joined, list_folder, prefix_of, read_text


def plain_files(
    file_root: str | None,
    file_list: str | None,
    files: Sequence[str] | None,
    file_filter: str,
    *,
    allow_outside_root: bool = False,
) -> FileList:
    """Find files.

    Args:
        file_root: folder; its files come first, then the files of its subfolders (not deeper), both in byte order.
            With ``file_list`` or ``files``: the folder that paths are relative to.
        file_list: a text file with one path per line, relative to ``file_root`` or to the folder of the list.
        files: paths.
        file_filter: pattern for the names of files in folders.
        allow_outside_root: whether paths in a list may be URLs or point outside that folder.

    Raises:
        ReaderError: a folder or list is absent, a path in a list points outside its folder, or no file was found.
        ArgumentValueError: ``files`` and ``file_list`` are both given, or no argument is given.
    """
    if files is not None and file_list is not None:
        raise ArgumentValueError("files and file_list cannot be used together.")
    if files is not None:
        if not files:
            raise ReaderError("files is an empty list.")
        return _paths(files, file_root)
    if file_list is not None:
        text = read_text(file_list, "the file list")
        folder = folder_of(file_list) if file_root is None else file_root
        root = DataRoot(folder, allow_outside_root=allow_outside_root)
        lines = enumerate(map(str.strip, text.split("\n")), 1)
        names = [root.relative(line, file_list, "line", number) for number, line in lines if line]
        if not names:
            raise ReaderError(f"the file list {file_list!r} is empty.")
        return _paths(names, folder)
    if file_root is None:
        raise ArgumentValueError("specify one of file_root, file_list and files.")
    return _in_folders(file_root, file_filter)


def _paths(names: Sequence[str], root: str | None) -> FileList:
    return FileList([joined(root, "")], [len(names)], names, root=joined(root, ""))


def _in_folders(file_root: str, file_filter: str) -> FileList:
    folders, files = _list_sorted(file_root)
    prefixes = [prefix_of(file_root)]
    groups = [fnmatch.filter(files, file_filter)]
    for name in folders:
        prefixes.append(prefix_of(joined(file_root, name)))
        groups.append(fnmatch.filter(_list_sorted(prefixes[-1])[1], file_filter))
    if not any(groups):
        raise ReaderError(
            f"no file in {file_root!r} and its subfolders matches file_filter={file_filter!r}.",
            hint=f"Files there: {', '.join(files[:8])}." if files else "",
        )
    names = [name for group in groups for name in group]
    # DALI lists the folder as a subfolder "." of itself.
    return FileList(prefixes, list(map(len, groups)), names, root=prefixes[0], root_name="./")


def _list_sorted(folder: str) -> tuple[list[str], list[str]]:
    folders, files = list_folder(folder)
    return in_byte_order(folders), in_byte_order(files)
