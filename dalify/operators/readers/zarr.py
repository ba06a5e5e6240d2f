"""Read rows of arrays in Zarr stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.formats.array_rows import ArrayRow, ArrayRows
from dalify.formats.zarr_file import ZarrStore
from dalify.formats.zarr_file import zarr as zarr_package
from dalify.registry import Spec, operator


def _count(arguments: Mapping[str, Any]) -> int:
    if not arguments["arrays"]:
        raise ArgumentValueError("arrays is empty: there is nothing to read.", hint="Write arrays=['images'].")
    return len(arguments["arrays"])


@operator(outputs=_count, reader=True, needs=(zarr_package,))
def zarr(
    *,
    paths: list[str],
    arrays: list[str],
    cache_bytes: int = 1 << 30,
) -> tuple[Spec, ...]:
    """Read rows of arrays in Zarr stores: a sample is the same row of each; DALI has no such reader.

    Chunks are read as a whole, and those used last are kept; where they have several rows, ``random_shuffle`` shuffles
    chunks, and then all rows within windows of at least `initial_fill` rows, or of `cache_bytes` / 2.

    Args:
        paths: the stores: folders or archives on this machine, or URLs.
        arrays: names of the arrays, in groups with slashes: ``train/images``; ``""`` for a store that is one array.
            All of a store have as many rows.
        cache_bytes: most memory for chunks, in each process. Two are kept in any case.

    Returns:
        one output per array, of its own type, on the CPU: what ``array[row]`` is. Rows of one number: an array without
        dimensions; texts and bytes: uint8 ``[n]``.

    Raises:
        ReaderError: a store that is missing or damaged; arrays with different numbers of rows.
        ArgumentValueError: an array that is not there.
        DTypeError: elements that are no numbers, texts or bytes, or of different types in two stores.

    Example:
        >>> tiles = fn.readers.zarr(paths=["map.zarr"], arrays=["tiles"], random_shuffle=True)  # doctest: +SKIP
    """
    return (Spec(None, None, ""),) * len(arrays)


@zarr.index
def _(paths: Sequence[str], arrays: Sequence[str], cache_bytes: int) -> ArrayRows:
    if not paths:
        raise ReaderError("there are no paths.")
    return ArrayRows([ZarrStore(path, arrays) for path in paths], arrays, cache_bytes)


@zarr.read
def _(row: ArrayRow) -> tuple[np.ndarray[Any, Any], ...]:
    return row.read()


@zarr.read_many
def _(rows: ArrayRows, numbers: np.ndarray[Any, Any]) -> tuple[Any, ...] | None:
    return rows.read_many(numbers)


@zarr.stand_in
def _(row: ArrayRow) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return row.stand_in()


@zarr.origin
def _(row: ArrayRow) -> str:
    return row.origin
