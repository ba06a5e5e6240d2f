"""The origins of the samples of a batch, computed only when an error or the user needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dalify.data import Batch


class Origins(Sequence[str | None]):
    """The origins of entries of a reader.

    Args:
        entries: the index of the reader.
        origin: function from an entry and the index of an output to the origin.
        numbers: numbers of the entries.
        output: index of the reader's output.
    """

    __slots__ = ("entries", "numbers", "origin", "output")

    def __init__(
        self, entries: Sequence[Any], origin: Callable[[Any, int], str], numbers: NDArray[Any], output: int
    ) -> None:
        self.entries = entries
        self.origin = origin
        self.numbers = numbers
        self.output = output

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.numbers)

    @overload
    def __getitem__(self, position: int) -> str | None: ...
    @overload
    def __getitem__(self, position: slice) -> Origins: ...
    def __getitem__(self, position: int | slice) -> str | Origins | None:
        """Return one origin, or the origins of a slice."""
        if isinstance(position, slice):
            return Origins(self.entries, self.origin, self.numbers[position], self.output)
        return self.origin(self.entries[int(self.numbers[position])], self.output)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a list of strings, without the index."""
        return list, (list(self),)


def joined_origins(parts: Sequence[tuple[int, Sequence[str | None] | None]]) -> Sequence[str | None] | None:
    """Return the concatenated origins of chunks.

    Args:
        parts: number of samples and origins of each chunk; the first one determines whether there are origins.
    """
    first = parts[0][1]
    if first is None or len(parts) == 1:
        return first
    alike = [
        origins.numbers
        for _, origins in parts
        if isinstance(origins, Origins) and isinstance(first, Origins) and origins.entries is first.entries
    ]
    if isinstance(first, Origins) and len(alike) == len(parts):
        return Origins(first.entries, first.origin, np.concatenate(alike), first.output)
    return [origin for count, origins in parts for origin in (origins or [None] * count)]


def origins_of(inputs: Sequence[Batch | None]) -> Any:
    """Return the origins of the samples from the first input that has them; None without origins."""
    for batch in inputs:
        if batch is not None and batch.origins is not None:
            return batch.origins
    return None
