"""Datasets in HDF5 files.

Datasets stored in their in-memory layout, contiguous or in chunks, are read directly from the file, by all threads
concurrently. Other datasets are read by HDF5 in helper processes, because HDF5 runs in one thread at a time and does
not check damaged files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.optional import LazyModule
from dalify.base.wording import counted
from dalify.formats.arrays.array_rows import StoredArray
from dalify.formats.files import helper_process
from dalify.formats.files.memory import file_memory
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.storage import local_copy

h5py = LazyModule("h5py", "reading HDF5", "dalify[hdf5]")


class Hdf5File:
    """The requested datasets of an HDF5 file.

    Args:
        path: local path, or a URL, which is copied once.
        names: names of the datasets, with slashes for groups.

    Raises:
        ReaderError: the file is absent, damaged, or not an HDF5 file; a dataset has no rows or is stored in another
            folder.
        LimitError: a dataset declares more than the limits allow.
        ArgumentValueError: a dataset does not exist.
        DTypeError: elements are not numbers, strings or bytes.
    """

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self.name = path
        self._names = list(names)
        self._files = OpenFiles([local_copy(path)])
        self._layouts: list[_Layout | None] = []
        self.arrays: list[StoredArray] = []
        for name, described in zip(names, self._call("describe_hdf5", self._names, self._files.size(0)), strict=True):
            shape, dtype, row_bytes, chunk_rows, parts = described
            what = f"the dataset {name!r} of {path!r}"
            limits.check_count(shape[0], f"{what} declares {counted(shape[0], 'row')}")
            limits.check_dimensions(len(shape) - 1, what)
            limits.check_sample_bytes(row_bytes, f"a row of {what}")
            if chunk_rows > 1:
                limits.check_sample_bytes(row_bytes * min(chunk_rows, shape[0]), f"a chunk of {what}")
            self._layouts.append(None if parts is None else _Layout(*parts))
            self.arrays.append(StoredArray(shape[0], shape[1:], np.dtype(dtype), row_bytes, chunk_rows))

    def _call(self, function: str, *arguments: Any, result_bytes: int = 0, out: NDArray[Any] | None = None) -> Any:
        return helper_process.call(
            function,
            local_copy(self.name),
            *arguments,
            result_bytes=result_bytes,
            out=out,
            library=h5py,
            what="HDF5",
        )

    def read(self, array: int, start: int, stop: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return rows of a dataset, ``[stop - start, ...]``, as a copy or in ``out``.

        Raises:
            ReaderError: the file cannot be read.
        """
        layout = self._layouts[array]
        if layout is None:
            stored = self.arrays[array]
            rows = self._call(
                "read_hdf5",
                self._names[array],
                start,
                stop,
                (stored.row_count, *stored.row_shape),
                result_bytes=(stop - start) * stored.row_bytes,
                out=out,
            )
            rows = _objects(rows) if isinstance(rows, list) else rows
            return rows if out is None or rows is out else _filled(out, rows)
        stored = self.arrays[array]
        shape, size, part_rows = (stop - start, *stored.row_shape), stored.row_bytes, layout.part_rows
        is_direct = out is not None and stored.dtype.isnative
        memory = out.reshape(-1).view(np.uint8) if out is not None and is_direct else file_memory(shape[0] * size)
        for part in range(start // part_rows, -(-stop // part_rows)):
            first, last = max(start, part * part_rows), min(stop, (part + 1) * part_rows)
            offset = layout.offsets[part] + (first - part * part_rows) * size
            target = memory[(first - start) * size : (last - start) * size]
            self._files.read(0, offset, len(target), target)
        rows = memory.view(stored.dtype).reshape(shape)
        return rows if out is None or is_direct else _filled(out, rows)

    def read_rows(self, array: int, rows: Sequence[int]) -> Sequence[Any]:
        """Return rows of a dataset in any order; see ``read``."""
        stored = self.arrays[array]
        shape = stored.row_count, *stored.row_shape
        return self._call(
            "read_hdf5_rows", self._names[array], list(rows), shape, result_bytes=len(rows) * stored.row_bytes
        )

    def labels(self, names: Sequence[str]) -> NDArray[Any] | None:
        """Return the first dataset with one of these names that is a vector of integers, or None."""
        return self._call("labels_of_hdf5", list(names), result_bytes=8 * self.arrays[0].row_count)


def _objects(rows: list[Any]) -> NDArray[Any]:
    found = np.empty(len(rows), object)
    for number, row in enumerate(rows):
        found[number] = row
    return found


def _filled(out: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    out[...] = rows
    return out


class _Layout(NamedTuple):
    """Offsets in the file, and number of rows, of the parts of a dataset with its in-memory layout."""

    offsets: list[int]
    part_rows: int
