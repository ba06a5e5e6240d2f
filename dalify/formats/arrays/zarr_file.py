"""Arrays in Zarr stores: folders, archives, and URLs.

The metadata of an array is checked against the limits before chunks are read; ``zarr_codecs`` checks the sizes that
chunks declare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.errors import ArgumentValueError, DalifyError, DTypeError, ReaderError, suggestion
from dalify.base.fork_hook import Owner
from dalify.base.optional import LazyModule
from dalify.base.wording import counted
from dalify.formats.arrays.array_rows import StoredArray
from dalify.formats.arrays.zarr_codecs import decoding
from dalify.formats.files.storage import is_remote

zarr = LazyModule("zarr", "reading Zarr", "dalify[zarr]")
zarr_buffer = LazyModule("zarr.buffer.cpu", "reading Zarr", "dalify[zarr]")
zarr_storage = LazyModule("zarr.storage", "reading Zarr", "dalify[zarr]")

_ESTIMATED_BYTES = 1 << 16  # size of a string of variable length
_MAX_CHUNKS_PER_ROW = 1 << 15


class ZarrStore:
    """Arrays of a Zarr group, or the only array of a store, opened once per process.

    Args:
        path: path of the store, local or a URL.
        names: names of the arrays, with slashes for groups; ``""`` if the store is one array.

    Raises:
        ReaderError: the store is absent, damaged or not a Zarr store; an array has no rows.
        ArgumentValueError: an array does not exist.
        DTypeError: elements are not numbers or strings.

    Attributes:
        name: the path.
        arrays: description of each array.
    """

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self.name = path
        self._names = list(names)
        self._owner = Owner()
        self._opened: Any = None
        with _reading(path):
            self.arrays = [_stored_array(self._existing(name), name, path) for name in names]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without open stores."""
        return {**self.__dict__, "_opened": None}

    def _array(self, name: str) -> Any:
        """Return an array; None if there is no array of this name.

        Arrays are opened one by one: zarr logs errors of arrays that it opens together, and a damaged array would make
        the others unreadable.
        """
        if self._opened is None or not self._owner.is_this_process:
            if not is_remote(self.name) and not Path(self.name).exists():
                raise ReaderError(f"cannot open the file {self.name!r}: there is no such file.")
            is_archive = self.name.endswith(".zip") and not is_remote(self.name)
            store = zarr_storage.ZipStore(self.name, mode="r") if is_archive else self.name
            self._opened = zarr.open(store, mode="r"), {}
            self._owner.take_over()
        root, arrays = self._opened
        name = name.strip("/")
        if name not in arrays:
            found = root if not name else root.get(name) if isinstance(root, zarr.Group) else None
            arrays[name] = found if isinstance(found, zarr.Array) else None
        return arrays[name]

    def _existing(self, name: str) -> Any:
        found = self._array(name)
        if found is None:
            root, _ = self._opened
            members = [("", root)] if isinstance(root, zarr.Array) else root.members(max_depth=None)
            known = [member for member, item in members if isinstance(item, zarr.Array)]
            raise ArgumentValueError(
                f"{self.name!r} has no array {name!r}.{suggestion(name, known)}",
                hint=f"Available: {', '.join(map(repr, known[:30])) or 'none'}.",
            )
        return found

    def read(self, array: int, start: int, stop: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return rows of an array, ``[stop - start, ...]``: as a copy or in ``out``.

        Raises:
            ReaderError: the store cannot be read.
        """
        with _reading(self.name):
            found = self._array(self._names[array])
            if out is not None and out.size and found.dtype == out.dtype:
                found.get_basic_selection(slice(start, stop), out=zarr_buffer.NDBuffer.from_numpy_array(out))
                return out
            rows = np.asarray(found[start:stop])
            if out is None:
                return rows
            out[...] = rows
            return out

    def read_rows(self, array: int, rows: Sequence[int]) -> Sequence[Any]:
        """Return rows of an array, in any order; see ``read``."""
        return [self.read(array, row, row + 1)[0] for row in rows]

    def labels(self, names: Sequence[str]) -> NDArray[Any] | None:
        """Return the first array with one of these names that is a vector of integers, or None."""
        with _reading(self.name):
            for name in names:
                found = self._array(name)
                if found is not None and found.ndim == 1 and found.dtype.kind in "iu":
                    return np.asarray(found[:])
        return None


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Apply the limits to decoded chunks, and add the path of the store to errors.

    Raises:
        ReaderError: the store is absent, damaged, or of another kind.
    """
    try:
        with decoding():
            yield
    except DalifyError:
        raise
    except FileNotFoundError:
        raise ReaderError(f"cannot open the file {path!r}: there is no such file.") from None
    except Exception as error:  # filters and storage libraries raise their own exceptions
        raise ReaderError(f"{path!r} cannot be read or is not a valid Zarr file: {str(error)[:300]}") from None


def _stored_array(array: Any, name: str, path: str) -> StoredArray:
    if not array.ndim:
        raise ReaderError(f"the array {name!r} of {path!r} is a scalar: it has no rows.")
    kind = array.dtype.kind
    if kind not in "biuf" and not (kind in "OTSV" and array.dtype.names is None and array.ndim == 1):
        raise DTypeError(
            f"the array {name!r} of {path!r} has dtype {array.dtype} and {counted(array.ndim, 'dimension')}, which "
            "cannot be converted to arrays.",
            hint="Supported are numbers, and strings and bytes in one dimension.",
        )
    what = f"the array {name!r} of {path!r}"
    if min(array.shape) < 0 or min(array.chunks) < 1 or len(array.chunks) != array.ndim:
        raise ReaderError(f"{what} has the shape {array.shape} with chunks of {array.chunks}, which is invalid.")
    limits.check_count(array.shape[0], f"{what} declares {counted(array.shape[0], 'row')}")
    limits.check_dimensions(array.ndim - 1, what)
    limits.check_shape(array.shape[1:], array.dtype.itemsize, f"a row of {what}")
    chunks_of_row = math.prod(
        -(-extent // size) for extent, size in zip(array.shape[1:], array.chunks[1:], strict=True)
    )
    if chunks_of_row > _MAX_CHUNKS_PER_ROW:
        raise ReaderError(
            f"a row of {what} consists of {chunks_of_row:,} chunks; at most {_MAX_CHUNKS_PER_ROW:,} are supported.",
            hint="Rewrite the array with larger chunks.",
        )
    limits.check_shape(array.chunks, array.dtype.itemsize, f"a chunk of {what}")
    row_bytes = _ESTIMATED_BYTES if kind in ("O", "T") else math.prod(array.shape[1:]) * array.dtype.itemsize
    return StoredArray(array.shape[0], array.shape[1:], array.dtype, row_bytes, array.chunks[0])
