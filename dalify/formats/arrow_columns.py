"""Columns of Arrow data as arrays, one row at a time.

Alone because the layouts of Arrow (offsets, bits, nested lists, structs) are one matter, and where the columns come
from another. Buffers are looked at, not converted: a row costs one copy of its own bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DTypeError, ReaderError
from dalify.base.optional import LazyModule
from dalify.formats import storage
from dalify.formats.memory import file_memory
from dalify.formats.whole_file import read_file

pyarrow = LazyModule("pyarrow", "reading Arrow and Parquet", "dalify[arrow]")

__all__ = ["Column", "check_type", "column_of"]

_TYPES = (
    "numbers, booleans, binary, text, lists of numbers (nested and of fixed size too), tensors of fixed shape, and "
    "structs with a field 'bytes'"
)


class Column:
    """Values one after the other.

    Args:
        valid: which of them are no nulls, ``[n]``; None where all are.
    """

    def __init__(self, valid: NDArray[np.bool_] | None) -> None:
        self._valid = valid

    def row(self, number: int) -> NDArray[Any]:
        """Return one value as an array of its own.

        Raises:
            ReaderError: it is null, or holds one, or is a list of lists of different lengths.
        """
        self._check(number, number + 1)
        return self._row(number)

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return several values, ``[stop - start, ...]``, perhaps as a view.

        Raises:
            ReaderError: a null, or lists of different lengths.
        """
        self._check(start, stop)
        return self._part(start, stop)

    def places(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return addresses and sizes of values that are runs of bytes; None for others, and where one is null."""
        return None

    def numbers(self, rows: NDArray[np.int64]) -> NDArray[Any] | None:
        """Return values that are single numbers, ``[N]``; None for others, and where one is null."""
        return None

    def _check(self, start: int, stop: int) -> None:
        if self._valid is not None and not self._valid[start:stop].all():
            raise ReaderError(
                "the value is null, or has a null in it.",
                hint="Fill or drop such rows, or write on_error='skip': other rows take their places.",
            )

    def _row(self, number: int) -> NDArray[Any]:
        raise AssertionError("dalify bug: a column without rows")

    def _part(self, start: int, stop: int) -> NDArray[Any]:
        raise AssertionError("dalify bug: a column that is no part of lists")


class _Numbers(Column):
    def __init__(self, valid: NDArray[np.bool_] | None, values: NDArray[Any]) -> None:
        super().__init__(valid)
        self._values = values

    def numbers(self, rows: NDArray[np.int64]) -> NDArray[Any] | None:
        return self._values[rows] if self._valid is None else None

    def _row(self, number: int) -> NDArray[Any]:
        return np.array(self._values[number])

    def _part(self, start: int, stop: int) -> NDArray[Any]:
        return self._values[start:stop]


class _Bytes(Column):
    def __init__(self, valid: NDArray[np.bool_] | None, offsets: NDArray[Any], values: NDArray[np.uint8]) -> None:
        super().__init__(valid)
        self._offsets = offsets
        self._values = values
        self._address = values.ctypes.data

    def places(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        starts, stops = self._offsets[rows].astype(np.int64), self._offsets[rows + 1].astype(np.int64)
        is_within = (starts >= 0) & (starts <= stops) & (stops <= len(self._values))  # a file may say anything
        if not is_within.all() or (self._valid is not None and not self._valid[rows].all()):
            return None
        return self._address + starts, stops - starts

    def _row(self, number: int) -> NDArray[np.uint8]:
        start, stop = int(self._offsets[number]), int(self._offsets[number + 1])
        if not 0 <= start <= stop <= len(self._values):
            raise ReaderError("the data are damaged: the value lies outside of them.")
        contents = file_memory(stop - start)
        contents[:] = self._values[start:stop]
        return contents


class _Files(Column):
    """Contents of files, or else their paths: pictures and sounds of Hugging Face."""

    def __init__(self, valid: NDArray[np.bool_] | None, contents: Column, paths: Column | None, folder: str) -> None:
        super().__init__(valid)
        self._contents = contents
        self._paths = paths
        self._folder = folder

    def places(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        return None if self._valid is not None and not self._valid[rows].all() else self._contents.places(rows)

    def _row(self, number: int) -> NDArray[Any]:
        held = self._contents._valid
        if self._paths is None or held is None or held[number]:
            return self._contents.row(number)
        path = storage.joined(self._folder, self._paths.row(number).tobytes().decode("utf-8", "surrogateescape"))
        return read_file(path)


class _Lists(Column):
    def __init__(self, valid: NDArray[np.bool_] | None, offsets: NDArray[Any], items: Column) -> None:
        super().__init__(valid)
        self._offsets = offsets
        self._items = items

    def _row(self, number: int) -> NDArray[Any]:
        return self._items.part(int(self._offsets[number]), int(self._offsets[number + 1])).copy()

    def _part(self, start: int, stop: int) -> NDArray[Any]:
        bounds = self._offsets[start : stop + 1]
        sizes = np.diff(bounds)
        if len(sizes) and (sizes != sizes[0]).any():
            odd = int(np.flatnonzero(sizes != sizes[0])[0])
            raise ReaderError(
                f"its lists have different lengths ({sizes[0]} and {sizes[odd]}), which is no array.",
                hint="Keep such data in one list each, with another column that tells the lengths.",
            )
        items = self._items.part(int(bounds[0]), int(bounds[-1]))
        return items.reshape(len(sizes), int(sizes[0]) if len(sizes) else 0, *items.shape[1:])


class _FixedLists(Column):
    def __init__(self, valid: NDArray[np.bool_] | None, shape: tuple[int, ...], first: int, items: Column) -> None:
        super().__init__(valid)
        self._shape = shape
        self._count = int(np.prod(shape))
        self._first = first
        self._items = items

    def _row(self, number: int) -> NDArray[Any]:
        return self._part(number, number + 1)[0].copy()

    def _part(self, start: int, stop: int) -> NDArray[Any]:
        items = self._items.part(*((self._first + number) * self._count for number in (start, stop)))
        return items.reshape(stop - start, *self._shape, *items.shape[1:])


def _storage(kind: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Return what a type is stored as, and the shape of a tensor."""
    shape = None
    while isinstance(kind, pyarrow.BaseExtensionType):
        shape = tuple(getattr(kind, "shape", None) or ()) or shape
        kind = kind.storage_type
    return kind, shape if pyarrow.types.is_fixed_size_list(kind) else None


def check_type(kind: Any, name: str, where: str) -> None:
    """Refuse a column whose values are no arrays.

    Args:
        kind: its pyarrow type.
        name: of the column.
        where: the file, for the message.

    Raises:
        DTypeError: no type of which arrays can be made.
    """
    if not _is_array(kind):
        raise DTypeError(
            f"the column {name!r} of {where} has the type {str(kind)[:80]}, of which no array can be made.",
            hint=f"Types that can be read: {_TYPES}. Cast the column to one of them.",
        )


def _is_array(kind: Any) -> bool:
    types = pyarrow.types
    axes = list(getattr(kind, "permutation", None) or ())
    if axes != sorted(axes):  # its axes are stored in another order
        return False
    kind, _ = _storage(kind)
    if types.is_dictionary(kind):
        return _is_array(kind.value_type)
    if types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _is_bytes(kind.field("bytes").type)
    return _is_bytes(kind) or _is_numeric(kind)


def _is_bytes(kind: Any) -> bool:
    types = pyarrow.types
    checks = (types.is_binary, types.is_large_binary, types.is_string, types.is_large_string)
    views = (types.is_binary_view, types.is_string_view, types.is_fixed_size_binary)
    return any(check(kind) for check in (*checks, *views)) and not types.is_decimal(kind)


def _is_numeric(kind: Any) -> bool:
    types = pyarrow.types
    kind, _ = _storage(kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_numeric(kind.value_type)
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def column_of(array: Any, folder: str = "") -> Column:
    """Return a column of Arrow data.

    Args:
        array: a pyarrow Array of a type that ``check_type`` takes.
        folder: to which paths in it are relative.
    """
    types = pyarrow.types
    kind, shape = _storage(array.type)
    while isinstance(array.type, pyarrow.BaseExtensionType):
        array = array.storage
    if types.is_dictionary(kind):
        return column_of(array.dictionary_decode(), folder)
    valid = None if not array.null_count else array.is_valid().to_numpy(zero_copy_only=False)
    if types.is_struct(kind):
        place = kind.get_field_index("path")
        has_paths = place >= 0 and _is_bytes(kind.field(place).type)
        paths = column_of(array.field(place), folder) if has_paths else None
        return _Files(valid, column_of(array.field("bytes"), folder), paths, folder)
    if _is_bytes(kind):
        return _Bytes(valid, *_bytes_of(array))
    if types.is_fixed_size_list(kind):
        shape = shape or (kind.list_size,)
        return _FixedLists(valid, shape, array.offset, column_of(array.values))
    if types.is_list(kind) or types.is_large_list(kind):
        width = np.int64 if types.is_large_list(kind) else np.int32
        return _Lists(valid, _offsets_of(array, width), column_of(array.values))
    # Of floats, nulls become NaN; others would all become floats.
    filled = valid is not None and not types.is_floating(kind)
    values = array.fill_null(False if types.is_boolean(kind) else 0) if filled else array
    return _Numbers(valid, values.to_numpy(zero_copy_only=False))


def _offsets_of(array: Any, width: type) -> NDArray[Any]:
    if not len(array):
        return np.zeros(1, width)
    return np.frombuffer(array.buffers()[1], width)[array.offset : array.offset + len(array) + 1]


def _bytes_of(array: Any) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Return where the values begin and end, ``[n + 1]``, and all their bytes."""
    types = pyarrow.types
    kind = array.type
    if types.is_fixed_size_binary(kind):
        width = kind.byte_width
        held = array.buffers()[1]
        values = np.empty(0, np.uint8) if held is None else np.frombuffer(held, np.uint8)
        return np.arange(array.offset, array.offset + len(array) + 1) * width, values
    if types.is_binary_view(kind) or types.is_string_view(kind):
        array = array.cast(pyarrow.large_binary())
        kind = array.type
    is_wide = types.is_large_binary(kind) or types.is_large_string(kind)
    held = array.buffers()[2]
    values = np.empty(0, np.uint8) if held is None or not held.size else np.frombuffer(held, np.uint8)
    return _offsets_of(array, np.int64 if is_wide else np.int32), values
