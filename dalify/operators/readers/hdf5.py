"""Read rows of datasets in HDF5 files."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.formats.arrays.array_rows import ArrayRow, ArrayRows
from dalify.formats.arrays.hdf5_file import Hdf5File, h5py
from dalify.registry import Spec, one_per_entry, reader

_count = one_per_entry("datasets", "['images']")


@reader(outputs=_count, needs=(h5py,))
def hdf5(*, paths: list[str], datasets: list[str], cache_bytes: int = 1 << 30) -> tuple[Spec, ...]:
    """Read rows of datasets in HDF5 files: a sample is the same row of each dataset. DALI has no such reader.

    Contiguous datasets, and datasets with unfiltered (uncompressed) chunks of whole rows of at least 16 KiB, are read
    row by row, in parallel on all threads. Other chunks are read as a whole, one thread at a time, and kept in an LRU
    cache. If they have several rows, ``random_shuffle`` shuffles chunks, and then all rows within windows of at least
    `initial_fill` rows or `cache_bytes` / 2.

    Args:
        paths: local files, or URLs, which are copied once.
        datasets: names of the datasets, with slashes for groups: ``train/images``. All in a file must have the same
            number of rows.
        cache_bytes: maximum memory for chunks, per process. At least two chunks are kept.

    Returns:
        one output per dataset, of the type of the dataset, on the CPU: ``dataset[row]``. A row with one number is a 0-D
        array; strings and bytes are uint8 ``[n]``.

    Raises:
        ReaderError: a missing or damaged file; datasets with different numbers of rows.
        ArgumentValueError: a dataset does not exist.
        DTypeError: elements are not numbers, strings or bytes, or have different types in two files.

    Example:
        >>> volumes, labels = fn.readers.hdf5(
        ...     paths=["scans.h5"], datasets=["train/volumes", "train/labels"], random_shuffle=True, name="Reader"
        ... )  # doctest: +SKIP
    """
    return (Spec(None, None, ""),) * len(datasets)


@hdf5.index
def _(paths: Sequence[str], datasets: Sequence[str], cache_bytes: int) -> ArrayRows:
    return ArrayRows([Hdf5File(path, datasets) for path in paths], datasets, cache_bytes)


hdf5.read(ArrayRow.read)
hdf5.read_many(ArrayRows.read_many)
hdf5.substitute(ArrayRow.substitute)
