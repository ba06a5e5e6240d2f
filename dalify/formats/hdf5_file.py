"""Data sets in HDF5 files.

Alone because HDF5 lets one thread in at a time: what lies in a file as it is in memory is read past it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DTypeError, ReaderError
from dalify.base.optional import LazyModule
from dalify.formats.array_rows import Stored, checked_arrays, told
from dalify.formats.memory import file_memory
from dalify.formats.open_files import OpenFiles
from dalify.formats.storage import local_copy

h5py = LazyModule("h5py", "reading HDF5", "dalify[hdf5]")

__all__ = ["Hdf5File"]

_GUESSED_BYTES = 1 << 16  # of a text or list of any length


class Hdf5File:
    """Some data sets of an HDF5 file, opened once in each process.

    Args:
        path: on this machine, or a URL, which is copied once.
        names: of the data sets, those in groups with slashes.

    Raises:
        ReaderError: the file is absent, damaged, or no HDF5 file; a data set without rows.
        ArgumentValueError: a data set that is not there.
        DTypeError: elements that are no numbers, texts or bytes.

    Attributes:
        name: the path.
        arrays: how each data set is kept.
    """

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self.name = path
        self._names = list(names)
        self._files = OpenFiles([local_copy(path)])
        self._process = 0
        self._opened: Any = None
        with told(path, "HDF5"):
            file = self._file()
            checked_arrays(names, _known(file), path, "dataset")
            datasets = [file[name] for name in names]
            for dataset in datasets:
                _check(dataset, path)
            self._offsets = [_offset(dataset) for dataset in datasets]
            self.arrays = [_stored(dataset) for dataset in datasets]

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: nothing that is open."""
        return {**self.__dict__, "_process": 0, "_opened": None}

    def _file(self) -> Any:
        if self._process != os.getpid():
            self._opened = h5py.File(local_copy(self.name), "r")
            self._process = os.getpid()
        return self._opened

    def read(self, array: int, start: int, stop: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return rows of a data set, ``[stop - start, ...]``: in memory of their own, or in ``out``.

        Raises:
            ReaderError: the file cannot be read.
        """
        offset = self._offsets[array]
        if offset is None:
            return self._read_chunks(array, start, stop, out)
        stored = self.arrays[array]
        size = stored.row_bytes
        is_as_stored = out is not None and stored.dtype.isnative
        memory = out.reshape(-1).view(np.uint8) if out is not None and is_as_stored else None
        found = self._files.read(0, offset + start * size, (stop - start) * size, memory)
        rows = found.view(stored.dtype).reshape(stop - start, *stored.row_shape)
        return rows if out is None or is_as_stored else _filled(out, rows)

    def _read_chunks(self, array: int, start: int, stop: int, out: NDArray[Any] | None) -> NDArray[Any]:
        stored = self.arrays[array]
        with told(self.name, "HDF5"):
            dataset = self._file()[self._names[array]]
            if stored.dtype.kind not in "iuf" or not dataset.size:
                rows = dataset[start:stop]
                return rows if out is None else _filled(out, rows)
            if out is None:
                shape = (stop - start, *stored.row_shape)
                native = stored.dtype.newbyteorder("=")
                out = file_memory(math.prod(shape) * native.itemsize).view(native).reshape(shape)
            dataset.read_direct(out, np.s_[start:stop])
            return out

    def labels(self, names: Sequence[str]) -> NDArray[Any] | None:
        """Return the first data set of one of these names that is a row of integers; None without."""
        with told(self.name, "HDF5"):
            file = self._file()
            for name in names:
                found = file.get(name)
                if isinstance(found, h5py.Dataset) and found.ndim == 1 and found.dtype.kind in "iu":
                    return found[:]
        return None


def _filled(out: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    out[...] = rows
    return out


def _known(file: Any) -> list[str]:
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names


def _check(dataset: Any, path: str) -> None:
    name = dataset.name.strip("/")
    if not dataset.ndim:
        raise ReaderError(f"the dataset {name!r} of {path!r} is a single value: it has no rows.")
    if dataset.dtype.kind not in "biuf" and not (dataset.ndim == 1 and _is_bytes_or_list(dataset.dtype)):
        raise DTypeError(
            f"the dataset {name!r} of {path!r} has elements of type {dataset.dtype} and {dataset.ndim} dimensions, of "
            "which no arrays can be made.",
            hint="Numbers can be read, and in one dimension texts, bytes, and lists of numbers of any length.",
        )


def _is_bytes_or_list(dtype: np.dtype[Any]) -> bool:
    if h5py.check_string_dtype(dtype) is not None:
        return True
    items = h5py.check_vlen_dtype(dtype)
    return (dtype.kind == "V" and dtype.names is None) if items is None else np.dtype(items).kind in "biuf"


def _offset(dataset: Any) -> int | None:
    """Return where a data set begins in its file, if it lies there in one piece as in memory."""
    is_plain = dataset.dtype.kind in "biuf" and dataset.chunks is None and dataset.external is None
    if not is_plain or dataset.is_virtual or dataset.file.userblock_size or not dataset.size:
        return None
    return dataset.id.get_offset()


def _stored(dataset: Any) -> Stored:
    has_any_length = dataset.dtype.kind == "O"
    row_bytes = _GUESSED_BYTES if has_any_length else int(np.prod(dataset.shape[1:])) * dataset.dtype.itemsize
    chunk_rows = dataset.chunks[0] if dataset.chunks else 1
    return Stored(dataset.shape[0], dataset.shape[1:], dataset.dtype, row_bytes, chunk_rows)
