"""Files with labels: from class folders, from a list file, or specified individually.

Class folders are numbered in the same order on every machine, and in DALI.
"""

from __future__ import annotations

import fnmatch
import io
import itertools
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.base.wording import counted
from dalify.data.batch import Batch
from dalify.data.entries import Entries
from dalify.data.origin import Origin
from dalify.formats.files.data_root import DataRoot
from dalify.formats.files.paths import JoinedBytes, Paths, find_folders, join_paths
from dalify.formats.files.storage import folder_of, is_remote, joined, list_folder, prefix_of, read_text
from dalify.formats.files.whole_file import read_files

KNOWN_EXTENSIONS = (
    "*.jpg",
    "*.jpeg",
    "*.png",
    "*.bmp",
    "*.tif",
    "*.tiff",
    "*.pnm",
    "*.ppm",
    "*.pgm",
    "*.pbm",
    "*.jp2",
    "*.webp",
    "*.flac",
    "*.ogg",
    "*.wav",
)
_MIN_LABEL, _MAX_LABEL = -(1 << 31), (1 << 31) - 1
_INTEGER = re.compile(r"-?[0-9]{1,4000}", re.ASCII)  # Python parses at most 4,300 digits by default
_EXTENSIONS_SHOWN = 8
_MIN_BATCH = 2  # files read in one call; a single file is read faster separately


class FileEntry(NamedTuple):
    """One file: its path, its label, the root folder of all paths or "", and its replacement in ``source_info``."""

    path: str
    label: int
    root: str = ""
    root_name: str = ""

    @property
    def origin(self) -> Origin:
        """The path; for DALI, the part relative to the root."""
        return Origin(self.path, self.root_name + self.path.removeprefix(self.root))


class FileList(Entries[FileEntry]):
    """Files and labels, stored in a few arrays: a million files need about 50 MB instead of 300 MB.

    Args:
        folders: prefixes of paths, each with its separator at the end, or "".
        counts: number of names in each folder.
        names: file names (or paths, for the folder "").
        labels: label of each file; None if the label is the index of the folder.
        root: the root folder given by the user, with its separator at the end, or "".
        root_name: replacement of the root in the ``source_info`` of files directly in it.
    """

    __slots__ = ("_firsts", "_folders", "_labels", "_names", "_prefixes", "_root", "_root_name", "_typical_bytes")

    def __init__(
        self,
        folders: Sequence[str],
        counts: Sequence[int],
        names: Iterable[str],
        labels: Sequence[int] | None = None,
        root: str = "",
        root_name: str = "",
    ) -> None:
        self._root = root
        self._root_name = root_name
        self._names = JoinedBytes(map(os.fsencode, names))
        self._folders = list(folders)
        self._prefixes = JoinedBytes(os.fsencode(joined(folder, "")) for folder in folders)
        self._firsts = np.array([0, *itertools.accumulate(counts)], np.int64)
        self._labels = None if labels is None else np.asarray(labels, np.int32)
        self._typical_bytes = 0

    def __len__(self) -> int:
        return len(self._names)

    def _entry(self, number: int) -> FileEntry:
        name = os.fsdecode(self._names[number])
        folder = bisect_right(self._firsts, number) - 1
        label = folder if self._labels is None else int(self._labels[number])
        path = joined(self._folders[folder], name)
        if path == name:
            return FileEntry(path, label)
        return FileEntry(path, label, self._root, self._root_name if self._folders[folder] == self._root else "")

    def read_many(self, numbers: NDArray[np.int64]) -> Batch | None:
        """Return the contents of files, read in one call; None if each must be read separately."""
        paths = self.paths(numbers) if len(numbers) >= _MIN_BATCH else None
        contents = None if paths is None else read_files(paths, self._typical_bytes)
        if contents is not None:
            mean_bytes = sum(contents.shape_array()[:, 0].tolist()) // len(numbers)
            self._typical_bytes = max(mean_bytes, (7 * self._typical_bytes + mean_bytes) // 8)
        return contents

    def paths(self, numbers: NDArray[np.int64]) -> Paths | None:
        """Return paths for the C library; None if a path contains a null byte."""
        if self._names.has_null or self._prefixes.has_null:
            return None
        return join_paths(self._names, self._prefixes, numbers, self._firsts)

    def labels_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the labels of some files, ``[N, 1]``."""
        if self._labels is not None:
            return self._labels[numbers][:, None]
        labels = np.empty((len(numbers), 1), np.int32)
        find_folders(self._firsts, np.ascontiguousarray(numbers, np.int64), labels[:, 0])
        return labels

    @property
    def is_remote(self) -> bool:
        """Whether files are on another machine."""
        return b"://" in self._names or any(map(is_remote, self._folders))

    @property
    def labels(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The label of each file, int32 ``[N]``."""
        if self._labels is not None:
            return self._labels
        return np.repeat(np.arange(len(self._folders), dtype=np.int32), np.diff(self._firsts))


def files_in_class_folders(
    file_root: str,
    *,
    dir_filters: Sequence[str] | None = None,
    file_filters: Sequence[str] = KNOWN_EXTENSIONS,
    case_sensitive_filter: bool = False,
) -> FileList:
    """Find the files of ``file_root/<class>/``; deeper folders are not searched.

    Class folders are numbered in byte order of their names, including empty ones. Files of a folder are in byte order:
    "B" before "a", "10.jpg" before "2.jpg".

    Args:
        file_root: folder of the class folders.
        dir_filters: patterns (``*``, ``?``, ``[abc]``); folders that match none are skipped and have no label.
        file_filters: patterns; files that match none are skipped.
        case_sensitive_filter: whether both kinds of patterns are case-sensitive.

    Raises:
        ReaderError: a folder is absent or cannot be read, or no file was found.
        ArgumentValueError: an empty list of patterns.
    """
    for name, patterns in (("dir_filters", dir_filters), ("file_filters", file_filters)):
        if patterns is not None and not patterns:
            raise ArgumentValueError(f"{name} is an empty list, which matches no name.")
    is_wanted_folder = _matcher(dir_filters, case_sensitive_filter)
    is_wanted_file = _matcher(file_filters, case_sensitive_filter)
    all_classes = list_folder(file_root)[0]
    classes = in_byte_order(filter(is_wanted_folder, all_classes))
    folders: list[str] = []
    counts: list[int] = []
    names: list[str] = []
    skipped: Counter[str] = Counter()
    for name in classes:
        folder = prefix_of(joined(file_root, name))
        present = list_folder(folder)[1]
        chosen = in_byte_order(filter(is_wanted_file, present))
        if len(chosen) < len(present) and not names:  # skipped files are reported only if none was found
            skipped.update(Path(left_out).suffix or left_out for left_out in set(present).difference(chosen))
        folders.append(folder)
        counts.append(len(chosen))
        names += chosen
    if not names:
        raise _no_files_error(file_root, all_classes, classes, dir_filters, file_filters, skipped)
    return FileList(folders, counts, names, root=prefix_of(file_root))


def files_of_list(file_list: str, file_root: str | None = None, *, allow_outside_root: bool = False) -> FileList:
    """Read a list file: on each line a path, white space, and an integer label.

    Args:
        file_list: path of the list; UTF-8.
        file_root: folder to which the paths are relative; the folder of the list if None.
        allow_outside_root: whether paths may be URLs or point outside that folder.

    Raises:
        ReaderError: the list is absent or empty, or a line does not have this form or its path points outside the
            folder (with the line number).
    """
    text = read_text(file_list, "the file list")
    folder = folder_of(file_list) if file_root is None else file_root
    root = DataRoot(folder, allow_outside_root=allow_outside_root)
    names: list[str] = []
    labels: list[int] = []
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        parts = line.rsplit(None, 1)
        if not parts:
            continue
        if len(parts) != 2 or not _INTEGER.fullmatch(parts[1]):
            raise ReaderError(
                f"{file_list}, line {number}: expected a path, a space and an integer label; got {line.strip()!r}."
            )
        label = int(parts[1])
        if not _MIN_LABEL <= label <= _MAX_LABEL:
            raise ReaderError(f"{file_list}, line {number}: the label {label} does not fit into 32 bits.")
        names.append(root.relative(parts[0], file_list, "line", number))
        labels.append(label)
    if not names:
        raise ReaderError(f"the file list {file_list!r} is empty.")
    return FileList([joined(folder, "")], [len(names)], names, labels, joined(folder, ""))


def files_given(files: Sequence[str], labels: Sequence[int] | None = None, file_root: str | None = None) -> FileList:
    """Return the given files.

    Args:
        files: paths.
        labels: one per file; None for 0, 1, 2 ….
        file_root: folder to which the paths are relative; the working directory if None.

    Raises:
        ReaderError: no files.
        ArgumentValueError: the numbers of labels and files differ, or a label does not fit into 32 bits.
    """
    if not files:
        raise ReaderError("files is an empty list.")
    if labels is not None and len(labels) != len(files):
        raise ArgumentValueError(
            f"got {counted(len(labels), 'label')} for {counted(len(files), 'file')}; there must be one label per file."
        )
    for label in labels or ():
        if not _MIN_LABEL <= label <= _MAX_LABEL:
            raise ArgumentValueError(f"the label {label} does not fit into 32 bits.")
    numbers = range(len(files)) if labels is None else labels
    return FileList([joined(file_root, "")], [len(files)], files, numbers, joined(file_root, ""))


def in_byte_order(names: Iterable[str]) -> list[str]:
    """Return names sorted by their bytes."""
    names = list(names)
    # Code points sort like UTF-8 bytes, except for bytes that are not UTF-8, which are decoded to surrogates.
    return sorted(names) if all(map(str.isascii, names)) else sorted(names, key=os.fsencode)


def _matcher(patterns: Sequence[str] | None, case_sensitive: bool) -> Callable[[str], Any]:
    """Return a function that tests whether a name matches any pattern."""
    if patterns is None:
        return lambda name: True
    endings = tuple(pattern[1:] if case_sensitive else pattern[1:].lower() for pattern in patterns)
    if all(pattern.startswith("*") and not set("*?[") & set(pattern[1:]) for pattern in patterns):
        # Common patterns such as "*.jpg": three times as fast as regular expressions.
        return lambda name: name.endswith(endings) or (not case_sensitive and name.lower().endswith(endings))
    joined = "|".join(fnmatch.translate(pattern) for pattern in patterns)
    return re.compile(joined, 0 if case_sensitive else re.IGNORECASE).match


def _no_files_error(
    file_root: str,
    all_classes: Sequence[str],
    classes: Sequence[str],
    dir_filters: Sequence[str] | None,
    file_filters: Sequence[str],
    skipped: Counter[str],
) -> ReaderError:
    if not all_classes:
        count = len(list_folder(file_root)[1])
        files = f" It directly contains {counted(count, 'file')} without a class folder." if count else " It is empty."
        return ReaderError(
            f"file_root {file_root!r} has no subfolders: files must be in file_root/<class>/.{files}",
            hint="Use files=[...] or file_list=... for files that are not in class folders.",
        )
    if not classes:
        names = ", ".join(in_byte_order(all_classes)[:_EXTENSIONS_SHOWN])
        return ReaderError(
            f"no folder in {file_root!r} matches dir_filters={list(dir_filters or ())}.",
            hint=f"Folders there: {names}.",
        )
    if not skipped:
        return ReaderError(
            f"no class folder of {file_root!r} contains a file; deeper folders are not searched.",
            hint="Set file_root to the folder that contains the class folders.",
        )
    # Equal counts are sorted by name, because the order of directory entries is arbitrary.
    most_frequent = sorted(skipped.items(), key=lambda item: (-item[1], item[0]))[:_EXTENSIONS_SHOWN]
    seen = ", ".join(f"{extension} ({count})" for extension, count in most_frequent)
    return ReaderError(
        f"no file in the class folders of {file_root!r} matches file_filters={list(file_filters)}.",
        hint=f"Extensions there: {seen}.",
    )
