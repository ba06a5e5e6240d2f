"""The indexes of readers: sequences that create entries on access, and blocks of entries that are read together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from dalify.base.wording import counted

T_co = TypeVar("T_co", covariant=True)


class Entries(Sequence[T_co]):
    """The index of a reader, which creates an entry when it is accessed; subclasses define the length and `_entry`."""

    __slots__ = ()

    @property
    def is_remote(self) -> bool:
        """Whether some of the data are on another machine."""
        return False

    @property
    def processes(self) -> int:
        """Number of worker processes that read."""
        return 0

    @property
    def file_sizes(self) -> NDArray[np.int64] | None:
        """The number of entries in each file, for ``shuffle_after_epoch``, which shuffles files; None: entries."""
        return None

    @property
    def blocks(self) -> Blocks | None:
        """Blocks of entries that are read together; None if entries are read separately."""
        return None

    @property
    def labels(self) -> NDArray[Any] | None:
        """The class of each entry, ``[N]``; None if it is not known before an entry is read."""
        return None

    @property
    def sources(self) -> NDArray[Any] | None:
        """The index of the file or path of each entry, ``[N]``; None if there is one for all, or one for each."""
        return None

    @property
    def first_error(self) -> Exception | None:
        """The first error of a file whose entries could not be counted; None without one.

        Such a file has one entry, and reading it fails. With ``on_error="raise"``, the error is raised when the
        pipeline is built.
        """
        return None

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> list[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | list[T_co]:
        """Return one entry, or a list of several.

        Raises:
            IndexError: there is no such entry.
        """
        if isinstance(index, slice):
            return [self._entry(number) for number in range(*index.indices(len(self)))]
        number = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= number < len(self):
            raise IndexError(f"entry {index} is out of range for an index of {len(self)} entries")
        return self._entry(number)

    @abstractmethod
    def _entry(self, number: int) -> T_co: ...

    def __repr__(self) -> str:
        """Return the number of entries."""
        return f"{type(self).__name__}({counted(len(self), 'entry')})"


class Blocks(NamedTuple):
    """Blocks of entries that are read together, such as row groups and chunks, in order. Samplers use them.

    Attributes:
        entries: number of entries of each block, int64 ``[B]``.
        size_bytes: memory of each block, int64 ``[B]``.
        max_bytes: maximum memory of blocks in use at a time.
    """

    entries: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    max_bytes: int
