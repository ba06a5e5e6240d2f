"""Which videos a reader reads, and which part of each: given one by one, in class folders, or in a list file.

Alone because a line of a list may name a part of a video, in frames or seconds, which only the video can explain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.formats.data_root import DataRoot
from dalify.formats.file_list import files_in_class_folders
from dalify.formats.storage import folder_of, joined

__all__ = ["VideoPart", "videos_given", "videos_in_class_folders", "videos_of", "videos_of_list"]

_MOST_FIELDS = 4
# A fraction has all digits of a number: 1e999999999 would fill the memory.
_LONGEST_BOUND = 64
_LARGE_EXPONENT = re.compile(r"[eE][+-]?[0_]*[1-9][\d_]{2}")


class VideoPart(NamedTuple):
    """A video, or a part of one.

    Attributes:
        path: of the file.
        label: of all its sequences.
        start: where the part begins, as written; None for the beginning.
        end: where it ends, as written; None for the end.
        place: where this was told, for messages; "" if in no list.
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
    """Find the videos of a reader, of which exactly one source must be given; see the functions below.

    Raises:
        ArgumentValueError: no source, several, or labels for one that has its own.
        ReaderError: a folder or list that cannot be used.
    """
    sources = {"filenames": filenames, "file_root": file_root, "file_list": file_list}
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise ArgumentValueError(
            f"exactly one of filenames, file_root and file_list is needed; got {' and '.join(given) or 'none'}."
        )
    if labels is not None and not filenames:
        raise ArgumentValueError(f"labels belong to filenames; {given[0]} has its own.")
    if filenames:
        return videos_given(filenames, labels)
    return (
        videos_of_list(file_list, allow_outside_root=allow_outside_root)
        if file_list
        else videos_in_class_folders(file_root)
    )


def videos_given(filenames: Sequence[str], labels: Sequence[int] | None) -> list[VideoPart]:
    """Take videos one by one.

    Args:
        filenames: paths.
        labels: one per path; 0, 1, 2 … where empty; 0 where None.

    Raises:
        ArgumentValueError: another number of labels than of files, or one that does not fit into 32 bits.
    """
    if labels and len(labels) != len(filenames):
        raise ArgumentValueError(
            f"got {len(labels)} labels for {len(filenames)} filenames; there must be one for each."
        )
    for label in labels or ():
        if not -(1 << 31) <= label < 1 << 31:
            raise ArgumentValueError(f"the label {label} does not fit into 32 bits.")
    numbers = range(len(filenames)) if labels is not None else [0] * len(filenames)
    return [VideoPart(path, label) for path, label in zip(filenames, labels or numbers, strict=True)]


def videos_in_class_folders(file_root: str) -> list[VideoPart]:
    """Find the files of ``file_root/<class>/``, of whatever name; classes are numbered as by ``fn.readers.file``.

    Raises:
        ReaderError: a folder that cannot be read, or nothing in it.
    """
    return [VideoPart(file.path, file.label) for file in files_in_class_folders(file_root, file_filters=("*",))]


def videos_of_list(file_list: str, *, allow_outside_root: bool) -> list[VideoPart]:
    """Read a list file: on each line a path, an integer label, and where the part begins and ends, if it is one.

    Args:
        file_list: path of the list; UTF-8. Paths in it are relative to its folder and have no spaces.
        allow_outside_root: paths are taken as DALI takes them: relative to the working folder, or anywhere else.

    Raises:
        ReaderError: no such list, an empty one, or a line that is not of this form, or whose path leads out of the
            folder (with its number).
    """
    folder = None if allow_outside_root else folder_of(file_list)
    root = DataRoot(folder, allow_outside=allow_outside_root)
    try:
        text = Path(file_list).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ReaderError(f"cannot read the file_list {file_list!r}: {error.strerror}.") from None
    parts = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        if not fields:
            continue
        place = f"{file_list}, line {number}"
        if not 2 <= len(fields) <= _MOST_FIELDS:
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
        raise ReaderError(f"{place}: expected an integer label behind the path; got {text!r}.") from None
    if not 0 <= label < 1 << 31:
        raise ReaderError(f"{place}: a label is from 0 to 2**31 - 1; got {label}.")
    return label


def _bound(text: str, place: str) -> Fraction:
    try:
        if len(text) > _LONGEST_BOUND or _LARGE_EXPONENT.search(text):
            raise ValueError
        # As written, not as the nearest float: 0.12 seconds are frame 3 of 25 per second, no more and no less.
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ReaderError(f"{place}: start and end are numbers; got {text[:_LONGEST_BOUND]!r}.") from None
