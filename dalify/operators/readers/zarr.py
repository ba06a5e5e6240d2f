"""Read rows of arrays in Zarr stores."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.formats.arrays.array_rows import ArrayRow, ArrayRows
from dalify.formats.arrays.zarr_file import ZarrStore
from dalify.formats.arrays.zarr_file import zarr as zarr_package
from dalify.registry import Spec, one_per_entry, reader

_count = one_per_entry("arrays", "['images']")


@reader(outputs=_count, needs=(zarr_package,))
def zarr(*, paths: list[str], arrays: list[str], cache_bytes: int = 1 << 30) -> tuple[Spec, ...]:
    """Read rows of arrays in Zarr stores: a sample is the same row of each array. DALI has no such reader.

    Chunks are read as a whole and kept in an LRU cache. If they have several rows, ``random_shuffle`` shuffles chunks,
    and then all rows within windows of at least `initial_fill` rows or `cache_bytes` / 2.

    Args:
        paths: the stores: local folders or archives, or URLs.
        arrays: names of the arrays, with slashes for groups: ``train/images``; ``""`` for a store that is a single
            array. All in a store must have the same number of rows.
        cache_bytes: maximum memory for chunks, per process. At least two chunks are kept.

    Returns:
        one output per array, of the type of the array, on the CPU: ``array[row]``. A row with one number is a 0-D
        array; strings and bytes are uint8 ``[n]``.

    Raises:
        ReaderError: a missing or damaged store; arrays with different numbers of rows.
        ArgumentValueError: an array does not exist.
        DTypeError: elements are not numbers, strings or bytes, or have different types in two stores.

    Example:
        >>> tiles = fn.readers.zarr(paths=["map.zarr"], arrays=["tiles"], random_shuffle=True)  # doctest: +SKIP
    """
    return (Spec(None, None, ""),) * len(arrays)


@zarr.index
def _(paths: Sequence[str], arrays: Sequence[str], cache_bytes: int) -> ArrayRows:
    return ArrayRows([ZarrStore(path, arrays) for path in paths], arrays, cache_bytes)


zarr.read(ArrayRow.read)
zarr.read_many(ArrayRows.read_many)
zarr.substitute(ArrayRow.substitute)
