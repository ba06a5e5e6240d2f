"""Read rows of data sets in HDF5 files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.formats.array_rows import ArrayRow, ArrayRows
from dalify.formats.hdf5_file import Hdf5File, h5py
from dalify.registry import Spec, operator


def _count(arguments: Mapping[str, Any]) -> int:
    if not arguments["datasets"]:
        raise ArgumentValueError("datasets is empty: there is nothing to read.", hint="Write datasets=['images'].")
    return len(arguments["datasets"])


@operator(outputs=_count, reader=True, needs=(h5py,))
def hdf5(
    *,
    paths: list[str],
    datasets: list[str],
    cache_bytes: int = 1 << 30,
) -> tuple[Spec, ...]:
    """Read rows of data sets in HDF5 files: a sample is the same row of each; DALI has no such reader.

    Data sets that lie in their file as in memory are read row by row, by all threads at once: those that are not
    chunked, and those of plain chunks (no filters such as compression) of whole rows of 16 KiB or more. Other chunks
    are read as a whole, one thread at a time, and those used last are kept; where they have several rows,
    ``random_shuffle`` shuffles chunks, and then all rows within windows of at least `initial_fill` rows, or of
    `cache_bytes` / 2.

    Args:
        paths: the files, on this machine or URLs, which are copied once.
        datasets: names of the data sets, in groups with slashes: ``train/images``. All of a file have as many rows.
        cache_bytes: most memory for chunks, in each process. Two are kept in any case.

    Returns:
        one output per data set, of its own type, on the CPU: what ``dataset[row]`` is. Rows of one number: an array
        without dimensions; texts and bytes: uint8 ``[n]``.

    Raises:
        ReaderError: a file that is missing or damaged; data sets with different numbers of rows.
        ArgumentValueError: a data set that is not there.
        DTypeError: elements that are no numbers, texts or bytes, or of different types in two files.

    Example:
        >>> volumes, labels = fn.readers.hdf5(
        ...     paths=["scans.h5"], datasets=["train/volumes", "train/labels"], random_shuffle=True, name="Reader"
        ... )  # doctest: +SKIP
    """
    return (Spec(None, None, ""),) * len(datasets)


@hdf5.index
def _(paths: Sequence[str], datasets: Sequence[str], cache_bytes: int) -> ArrayRows:
    if not paths:
        raise ReaderError("there are no paths.")
    return ArrayRows([Hdf5File(path, datasets) for path in paths], datasets, cache_bytes)


@hdf5.read
def _(row: ArrayRow) -> tuple[np.ndarray[Any, Any], ...]:
    return row.read()


@hdf5.read_many
def _(rows: ArrayRows, numbers: np.ndarray[Any, Any]) -> tuple[Any, ...] | None:
    return rows.read_many(numbers)


@hdf5.stand_in
def _(row: ArrayRow) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return row.stand_in()


@hdf5.origin
def _(row: ArrayRow) -> str:
    return row.origin
