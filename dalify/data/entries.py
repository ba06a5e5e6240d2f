"""The indexes of readers: sequences that create entries on access, and blocks of entries that are read together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["Blocks", "Entries"]

T_co = TypeVar("T_co", covariant=True)


class Entries(Sequence[T_co]):
    """A sequence that creates an entry when it is accessed. Subclasses define the length and ``_entry``."""

    __slots__ = ()

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
            raise IndexError(f"entry {index} of {len(self)}")
        return self._entry(number)

    @abstractmethod
    def _entry(self, number: int) -> T_co: ...


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
