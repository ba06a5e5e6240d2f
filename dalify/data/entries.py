"""Base class of the indexes of readers: sequences that create their entries on access."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

__all__ = ["Entries"]

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
