"""Data sets in HDF5 files.

Alone because HDF5 lets one thread in at a time: what lies in a file as it is in memory, in one piece or in chunks, is
read past it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DTypeError, ReaderError
from dalify.base.optional import LazyModule
from dalify.formats.array_rows import Stored, checked_arrays, told
from dalify.formats.memory import file_memory
from dalify.formats.open_files import OpenFiles
from dalify.formats.storage import local_copy

h5py = LazyModule("h5py", "reading HDF5", "dalify[hdf5]")

__all__ = ["Hdf5File", "h5py"]

_GUESSED_BYTES = 1 << 16  # of a text or list of any length
_LEAST_ROW_BYTES = 1 << 14
_MOST_PARTS = 1 << 18


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
            self._places = [_places(dataset, self._files.size(0)) for dataset in datasets]
            self.arrays = [
                _stored(dataset, places is not None) for dataset, places in zip(datasets, self._places, strict=True)
            ]

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
        places = self._places[array]
        if places is None:
            return self._read_chunks(array, start, stop, out)
        stored = self.arrays[array]
        shape, size, part_rows = (stop - start, *stored.row_shape), stored.row_bytes, places.part_rows
        is_direct = out is not None and stored.dtype.isnative
        memory = out.reshape(-1).view(np.uint8) if out is not None and is_direct else file_memory(shape[0] * size)
        for part in range(start // part_rows, -(-stop // part_rows)):
            first, last = max(start, part * part_rows), min(stop, (part + 1) * part_rows)
            offset = places.offsets[part] + (first - part * part_rows) * size
            target = memory[(first - start) * size : (last - start) * size]
            self._files.read(0, offset, len(target), target)
        rows = memory.view(stored.dtype).reshape(shape)
        return rows if out is None or is_direct else _filled(out, rows)

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


class _Places(NamedTuple):
    """Where a data set lies in its file as in memory.

    Attributes:
        offsets: first byte of each part.
        part_rows: rows of a part.
    """

    offsets: list[int]
    part_rows: int


def _places(dataset: Any, size_of_file: int) -> _Places | None:
    """Return where the rows of a data set lie, if they do so as in memory; None where HDF5 has to read them."""
    found = _parts(dataset)
    if found is None:
        return None
    part_bytes = found.part_rows * math.prod(dataset.shape[1:]) * dataset.dtype.itemsize
    # A file may say anything: what cannot be there is not asked for, nor is memory for it.
    is_there = min(found.offsets) >= 0 and max(found.offsets) + part_bytes <= size_of_file
    return found if is_there else None


def _parts(dataset: Any) -> _Places | None:
    is_plain = dataset.dtype.kind in "biuf" and dataset.external is None and not dataset.is_virtual
    if not is_plain or dataset.file.userblock_size or not dataset.size:
        return None
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        return None if offset is None else _Places([offset], dataset.shape[0])
    row_bytes = math.prod(dataset.shape[1:]) * dataset.dtype.itemsize
    part_rows, *others = dataset.chunks
    count = -(-dataset.shape[0] // part_rows)
    # Of small rows, a chunk at hand is sooner looked up than a file is read.
    is_large = row_bytes >= _LEAST_ROW_BYTES and count <= _MOST_PARTS and hasattr(dataset.id, "chunk_iter")
    if not is_large or tuple(others) != dataset.shape[1:] or dataset.id.get_create_plist().get_nfilters():
        return None
    offsets = [-1] * count  # of those that were never written, and are no more than a value to fill them with

    def note(chunk: Any) -> None:
        if chunk.size == part_rows * row_bytes and chunk.chunk_offset[0] < dataset.shape[0]:
            offsets[chunk.chunk_offset[0] // part_rows] = chunk.byte_offset

    dataset.id.chunk_iter(note)
    return _Places(offsets, part_rows)


def _stored(dataset: Any, has_places: bool) -> Stored:
    has_any_length = dataset.dtype.kind == "O"
    row_bytes = _GUESSED_BYTES if has_any_length else int(np.prod(dataset.shape[1:])) * dataset.dtype.itemsize
    chunk_rows = 1 if has_places or not dataset.chunks else dataset.chunks[0]
    return Stored(dataset.shape[0], dataset.shape[1:], dataset.dtype, row_bytes, chunk_rows)
