"""The videos of a reader, and the part of each: from a list of files, class folders, or a list file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.base.wording import counted
from dalify.formats.files.data_root import DataRoot
from dalify.formats.files.file_list import files_in_class_folders
from dalify.formats.files.storage import folder_of, joined, read_text

_MAX_FIELDS = 4
# A Fraction stores all digits of a number, so 1e999999999 would need too much memory.
_MAX_BOUND_CHARS = 64
_LARGE_EXPONENT = re.compile(r"[eE][+-]?[0_]*[1-9][\d_]{2}")


class VideoPart(NamedTuple):
    """A video, or a part of one.

    Attributes:
        path: path of the file.
        label: label of all its sequences.
        start: start of the part, as written; None for the beginning of the video.
        end: end of the part, as written; None for the end of the video.
        place: line of the list file, for error messages; "" without a list file.
    """

    path: str
    label: int
    start: Fraction | None = None
    end: Fraction | None = None
    place: str = ""


def videos_of(
    filenames: Sequence[str],
    file_root: str,
    file_list: str,
    labels: Sequence[int] | None,
    *,
    allow_outside_root: bool,
) -> list[VideoPart]:
    """Find the videos of a reader in exactly one source: names, a folder of class folders, or a list file.

    Raises:
        ArgumentValueError: no source, several sources, or labels for a source that has its own.
        ReaderError: a folder or list cannot be used.
    """
    sources = {"filenames": filenames, "file_root": file_root, "file_list": file_list}
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise ArgumentValueError(
            f"specify exactly one of filenames, file_root and file_list; got {' and '.join(given) or 'none'}."
        )
    if labels is not None and not filenames:
        raise ArgumentValueError(f"labels can only be used with filenames; {given[0]} provides its own labels.")
    if filenames:
        return videos_given(filenames, labels)
    return (
        videos_of_list(file_list, allow_outside_root=allow_outside_root)
        if file_list
        else videos_in_class_folders(file_root)
    )


def videos_given(filenames: Sequence[str], labels: Sequence[int] | None) -> list[VideoPart]:
    """Return the given videos.

    Args:
        filenames: paths.
        labels: one per path; 0, 1, 2 … if empty; 0 if None.

    Raises:
        ArgumentValueError: the numbers of labels and files differ, or a label does not fit into 32 bits.
    """
    if labels and len(labels) != len(filenames):
        raise ArgumentValueError(
            f"got {counted(len(labels), 'label')} for {len(filenames)} filenames; there must be one label per file."
        )
    for label in labels or ():
        if not -(1 << 31) <= label < 1 << 31:
            raise ArgumentValueError(f"the label {label} does not fit into 32 bits.")
    numbers = range(len(filenames)) if labels is not None else [0] * len(filenames)
    return [VideoPart(path, label) for path, label in zip(filenames, labels or numbers, strict=True)]


def videos_in_class_folders(file_root: str) -> list[VideoPart]:
    """Find the files of ``file_root/<class>/``, with any name; classes are numbered as in ``fn.readers.file``.

    Raises:
        ReaderError: a folder cannot be read or is empty.
    """
    return [VideoPart(file.path, file.label) for file in files_in_class_folders(file_root, file_filters=("*",))]


def videos_of_list(file_list: str, *, allow_outside_root: bool) -> list[VideoPart]:
    """Read a list file: on each line a path, an integer label, and optionally start and end of the part.

    Args:
        file_list: path of the list; UTF-8. Paths in it are relative to its folder and have no spaces.
        allow_outside_root: whether paths are interpreted as in DALI: relative to the working directory, and anywhere.

    Raises:
        ReaderError: the list is absent or empty, or a line does not have this form or its path points outside the
            folder (with the line number).
    """
    folder = None if allow_outside_root else folder_of(file_list)
    root = DataRoot(folder, allow_outside_root=allow_outside_root)
    parts = []
    for number, line in enumerate(read_text(file_list, "the file_list").split("\n"), 1):
        fields = line.split()
        if not fields:
            continue
        place = f"{file_list}, line {number}"
        if not 2 <= len(fields) <= _MAX_FIELDS:
            raise ReaderError(
                f"{place}: expected `path label [start [end]]`, without spaces in the path; got {line!r}."
            )
        start, end = (_bound(fields[at], place) if len(fields) > at else None for at in (2, 3))
        path = joined(folder, root.relative(fields[0], file_list, "line", number))
        parts.append(VideoPart(path, _label(fields[1], place), start, end, place))
    if not parts:
        raise ReaderError(f"the file_list {file_list!r} is empty.")
    return parts


def _label(text: str, place: str) -> int:
    try:
        label = int(text)
    except ValueError:
        raise ReaderError(f"{place}: expected an integer label after the path; got {text!r}.") from None
    if not 0 <= label < 1 << 31:
        raise ReaderError(f"{place}: a label must be in [0, 2**31 - 1]; got {label}.")
    return label


def _bound(text: str, place: str) -> Fraction:
    try:
        if len(text) > _MAX_BOUND_CHARS or _LARGE_EXPONENT.search(text):
            raise ValueError
        # The exact value: at 25 frames per second, 0.12 seconds is exactly frame 3, but the nearest float is not.
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ReaderError(f"{place}: start and end must be numbers; got {text[:_MAX_BOUND_CHARS]!r}.") from None
