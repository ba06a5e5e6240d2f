"""Paths of many files, for compiled loops."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.array_at import copy_bytes
from dalify.base.bisection import last_at_most
from dalify.base.compiling import njit

_SLASH = ord("/")


class JoinedBytes:
    """Many byte strings in two arrays, which need a fraction of the memory of a list.

    Attributes:
        arrays: the joined bytes, and the end of each string, with a leading 0, int64 ``[N + 1]``.
        has_null: whether a string contains a null byte.
        longest: size of the longest string in bytes.
    """

    __slots__ = ("_ends", "_joined", "arrays", "has_null", "longest")

    def __init__(self, parts: Iterable[bytes]) -> None:
        joined, ends = bytearray(), array("q", [0])
        self.longest = 0
        for part in parts:  # one by one, because a list of a million strings would need more memory than the result
            joined += part
            ends.append(len(joined))
            self.longest = max(self.longest, len(part))
        self._begin(bytes(joined), ends)

    def _begin(self, joined: bytes, ends: array[int]) -> None:
        self._joined = joined
        self._ends = ends  # indexing takes half as long as in NumPy
        self.arrays = np.frombuffer(joined, np.uint8), np.frombuffer(ends, np.int64)
        self.has_null = b"\0" in joined

    def __getstate__(self) -> tuple[bytes, array[int], int]:
        """Return the state for pickling, without the arrays, which share the memory."""
        return self._joined, self._ends, self.longest

    def __setstate__(self, state: tuple[bytes, array[int], int]) -> None:
        """Restore the byte strings."""
        joined, ends, self.longest = state
        self._begin(joined, ends)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> bytes:
        return self._joined[self._ends[number] : self._ends[number + 1]]

    def __contains__(self, part: bytes) -> bool:
        """Return whether the joined strings contain ``part``."""
        return part in self._joined


class Paths:
    """Null-terminated paths as the C library expects them.

    Args:
        text: the paths, uint8.
        starts: index of the first byte of each path, int64 ``[N]``.
    """

    __slots__ = ("starts", "text")

    def __init__(self, text: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self.text = text
        self.starts = starts

    @classmethod
    def of(cls, paths: Sequence[bytes]) -> Paths:
        """Return the given paths."""
        ends = np.cumsum([len(path) + 1 for path in paths], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        return cls(np.frombuffer(b"".join(path + b"\0" for path in paths), np.uint8).copy(), starts)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, part: slice) -> Paths:
        """Return some of the paths."""
        return Paths(self.text, self.starts[part])


# These functions keep the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def find_folders(firsts: Any, numbers: Any, folders: Any) -> None:
    """Find the folder of each name.

    Args:
        firsts: index of the first name of each folder, int64, ascending.
        numbers: indices of names, ``[N]``.
        folders: output, index of the last folder that begins at or before each name, ``[N]``.
    """
    for n in range(numbers.size):
        folders[n] = last_at_most(firsts, numbers[n])


@njit(cache=True)
def _join(
    names: Any, name_ends: Any, prefixes: Any, prefix_ends: Any, numbers: Any, firsts: Any, text: Any, starts: Any
) -> Any:
    # `copy_bytes` compiles in half the time of loops over bytes.
    names_at, prefixes_at = np.int64(names.ctypes.data), np.int64(prefixes.ctypes.data)
    text_at, place = np.int64(text.ctypes.data), np.int64(0)
    for n in range(numbers.size):
        number, folder = numbers[n], last_at_most(firsts, numbers[n])
        start, end = name_ends[number], name_ends[number + 1]
        starts[n] = place
        is_absolute = end > start and names[start] == _SLASH
        if not is_absolute:
            prefix_start, prefix_end = prefix_ends[folder], prefix_ends[folder + 1]
            copy_bytes(text_at + place, prefixes_at + prefix_start, prefix_end - prefix_start)
            place += prefix_end - prefix_start
        copy_bytes(text_at + place, names_at + start, end - start)
        place += end - start
        text[place] = 0
        place += 1
    return place


def join_paths(
    names: JoinedBytes, prefixes: JoinedBytes, numbers: NDArray[np.int64], firsts: NDArray[np.int64]
) -> Paths:
    """Return the paths of some files: the prefix of the folder and the name, or the name if it is an absolute path.

    Args:
        names: names of all files.
        prefixes: prefixes of all folders.
        numbers: indices of the files, ``[N]``.
        firsts: index of the first file of each folder.
    """
    count = len(numbers)
    starts = np.empty(count, np.int64)
    text = np.empty(count * (names.longest + prefixes.longest + 1), np.uint8)
    size = _join(*names.arrays, *prefixes.arrays, np.ascontiguousarray(numbers, np.int64), firsts, text, starts)
    return Paths(text[:size], starts)
