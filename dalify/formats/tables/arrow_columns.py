"""Columns of Arrow data as arrays, one row at a time.

Implements Arrow's layouts: offsets, bit masks, nested lists, structs. Reading a row copies only its own bytes. Buffers
are not trusted: every offset and size in them is checked before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import le
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DTypeError, ReaderError
from dalify.base.optional import LazyModule
from dalify.formats.files.data_root import DataRoot
from dalify.formats.files.whole_file import read_file
from dalify.formats.tables.arrow_memory import FileMemory, Places, Values, ValuesInFile

pyarrow = LazyModule("pyarrow", "reading Arrow and Parquet", "dalify[arrow]")

_SHORT_BYTES = 12
_TYPES = (
    "numbers, booleans, binary, strings, lists of numbers (nested and of fixed size too), tensors of fixed shape, and "
    "structs with the field 'bytes'"
)

_WORKING_FOLDER = DataRoot(None, allow_outside_root=False)


class Column:
    """A column of values.

    Args:
        count: number of values.
        valid: mask of values that are not null, ``[n]``; None if no value is null.

    Attributes:
        strings: location of byte strings for ``find_strings``, int64 ``[1, 8]``; None for other values.
        scalars: location of numbers for ``gather_numbers``, int64 ``[1, 2]``; None for other values and with nulls.
        values: the bytes of the strings, or the numbers.
    """

    # Whether ``part`` returns views of shared memory.
    returns_views = True

    def __init__(self, count: int, valid: NDArray[np.bool_] | None) -> None:
        self._count = count
        self._valid = valid
        self.strings: NDArray[np.int64] | None = None
        self.scalars: NDArray[np.int64] | None = None
        self.values: Values | None = None

    def __len__(self) -> int:
        return self._count

    def row(self, number: int) -> NDArray[Any]:
        """Return a copy of one value as an array.

        Raises:
            ReaderError: the value is null or contains a null, has nested lists of different lengths, or is damaged.
        """
        self._check(number, number + 1)
        return self._row(number)

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return several values, ``[stop - start, ...]``, possibly as a view.

        Raises:
            ReaderError: a null, lists of different lengths, or damaged data.
        """
        self._check(start, stop)
        return self._part(start, stop)

    def places(self, rows: NDArray[np.int64]) -> Places | None:
        """Return the places of byte strings; None for other types, and if a value is null or damaged."""
        return None

    def numbers(self, rows: NDArray[np.int64]) -> NDArray[Any] | None:
        """Return scalar values, ``[N]``; None for other types and if a value is null."""
        return None

    def is_valid(self, number: int) -> bool:
        """Return whether a value is not null."""
        return self._valid is None or bool(self._valid[number])

    def _check(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self._count:
            raise _out_of_bounds()
        if self._valid is not None and not self._valid[start:stop].all():
            raise ReaderError(
                "the value is null or contains a null.",
                hint="Fill or drop such rows, or use on_error='skip' to replace them by other rows.",
            )

    def _are_valid(self, rows: NDArray[np.int64]) -> bool:
        return self._valid is None or bool(self._valid[rows].all())

    if TYPE_CHECKING:  # subclasses define them

        def _row(self, number: int) -> NDArray[Any]: ...

        def _part(self, start: int, stop: int) -> NDArray[Any]: ...


def _out_of_bounds() -> ReaderError:
    return ReaderError("the data is damaged: a value is out of bounds.")


class _Numbers(Column):
    def __init__(self, valid: NDArray[np.bool_] | None, values: Values) -> None:
        super().__init__(len(values), valid)
        self._values = self.values = values
        self.returns_views = not isinstance(values, ValuesInFile)
        if valid is None and self.returns_views:
            self.scalars = np.array([[values.place[2], len(values)]], np.int64)

    def numbers(self, rows: NDArray[np.int64]) -> NDArray[Any] | None:
        return None if self._valid is not None or not self.returns_views else self._values.part(0, self._count)[rows]

    def _row(self, number: int) -> NDArray[Any]:
        return np.array(self._values.part(number, number + 1)[0])

    def _part(self, start: int, stop: int) -> NDArray[Any]:
        return self._values.part(start, stop)


class _Bytes(Column):
    def __init__(self, valid: NDArray[np.bool_] | None, offsets: NDArray[Any], values: Values) -> None:
        super().__init__(len(offsets) - 1, valid)
        self._offsets = np.require(offsets, None, ["C", "A"])  # compiled code reads them
        self._values = self.values = values
        address = 0 if valid is None else valid.ctypes.data
        place = self._offsets.ctypes.data, offsets.itemsize, len(offsets), address, *values.place, len(values)
        self.strings = np.array([place], np.int64)

    def places(self, rows: NDArray[np.int64]) -> Places | None:
        starts, stops = self._offsets[rows].astype(np.int64), self._offsets[rows + 1].astype(np.int64)
        bounds = starts.tolist(), stops.tolist()  # not trusted
        is_within = min(bounds[0]) >= 0 and max(bounds[1]) <= len(self._values) and all(map(le, *bounds))
        return Places(self._values, starts, stops) if is_within and self._are_valid(rows) else None

    def _row(self, number: int) -> NDArray[np.uint8]:
        start, stop = int(self._offsets[number]), int(self._offsets[number + 1])
        if not 0 <= start <= stop <= len(self._values):
            raise _out_of_bounds()
        return self._values.copy(start, stop)


class _Views(Column):
    """Byte strings in one of several buffers, or inline in the column if they have at most 12 bytes.

    Args:
        valid: see ``Column``.
        views: int32 ``[n, 4]``: the size, then either the bytes, or their first four, the index of a buffer, and the
            offset in it.
        buffers: the buffers of bytes.
    """

    def __init__(self, valid: NDArray[np.bool_] | None, views: NDArray[np.int32], buffers: Sequence[Values]) -> None:
        super().__init__(len(views), valid)
        self._views = views
        self._buffers = list(buffers)

    def places(self, rows: NDArray[np.int64]) -> Places | None:
        views = self._views[rows]
        is_long = views[:, 0] > _SHORT_BYTES
        if not is_long.all() or len(set(views[:, 2].tolist())) != 1 or not self._are_valid(rows):
            return None
        buffer, starts = int(views[0, 2]), views[:, 3].astype(np.int64)
        stops = starts + views[:, 0]
        if not 0 <= buffer < len(self._buffers) or starts.min() < 0 or stops.max() > len(self._buffers[buffer]):
            return None
        return Places(self._buffers[buffer], starts, stops)

    def _row(self, number: int) -> NDArray[np.uint8]:
        size, _, buffer, start = self._views[number].tolist()
        if 0 <= size <= _SHORT_BYTES:
            return self._views[number].view(np.uint8)[4 : 4 + size].copy()
        if size < 0 or not 0 <= buffer < len(self._buffers) or not 0 <= start <= len(self._buffers[buffer]) - size:
            raise _out_of_bounds()
        return self._buffers[buffer].copy(start, start + size)


class _Categories(Column):
    """Dictionary-encoded values: indices into another column."""

    def __init__(self, valid: NDArray[np.bool_] | None, numbers: NDArray[Any], values: Column) -> None:
        super().__init__(len(numbers), valid)
        self._numbers = numbers
        self._values = values

    def places(self, rows: NDArray[np.int64]) -> Places | None:
        chosen = self._chosen(rows)
        return None if chosen is None else self._values.places(chosen)

    def numbers(self, rows: NDArray[np.int64]) -> NDArray[Any] | None:
        chosen = self._chosen(rows)
        return None if chosen is None else self._values.numbers(chosen)

    def _chosen(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        numbers = self._numbers[rows].astype(np.int64)
        is_within = (numbers >= 0) & (numbers < len(self._values))
        return numbers if is_within.all() and self._are_valid(rows) else None

    def _row(self, number: int) -> NDArray[Any]:
        return self._values.row(int(self._numbers[number]))


class _Files(Column):
    """Contents or paths of files: images and audio of Hugging Face."""

    def __init__(self, valid: NDArray[np.bool_] | None, contents: Column, paths: Column | None, root: DataRoot) -> None:
        super().__init__(len(contents), valid)
        self._contents = contents
        self._paths = paths
        self._root = root
        if valid is None:
            self.strings, self.values = contents.strings, contents.values

    def places(self, rows: NDArray[np.int64]) -> Places | None:
        return self._contents.places(rows) if self._are_valid(rows) else None

    def _row(self, number: int) -> NDArray[Any]:
        if self._paths is None or self._contents.is_valid(number):
            return self._contents.row(number)
        path = self._paths.row(number).tobytes().decode("utf-8", "surrogateescape")
        return read_file(self._root.path(path, "its field 'path'"))


class _Lists(Column):
    def __init__(self, valid: NDArray[np.bool_] | None, offsets: NDArray[Any], items: Column) -> None:
        super().__init__(len(offsets) - 1, valid)
        self._offsets = offsets
        self._items = items
        self.returns_views = items.returns_views

    def _row(self, number: int) -> NDArray[Any]:
        return _copied(self._items, self._items.part(int(self._offsets[number]), int(self._offsets[number + 1])))

    def _part(self, start: int, stop: int) -> NDArray[Any]:
        bounds = self._offsets[start : stop + 1]
        sizes = np.diff(bounds)
        if len(sizes) and (sizes != sizes[0]).any():
            odd = int(np.flatnonzero(sizes != sizes[0])[0])
            raise ReaderError(
                f"the value is not an array: its nested lists have different lengths ({sizes[0]} and {sizes[odd]}).",
                hint="Store such data as one flat list, and the lengths in another column.",
            )
        items = self._items.part(int(bounds[0]), int(bounds[-1]))
        return items.reshape(len(sizes), int(sizes[0]) if len(sizes) else 0, *items.shape[1:])


class _FixedLists(Column):
    def __init__(
        self, count: int, valid: NDArray[np.bool_] | None, shape: tuple[int, ...], first: int, items: Column
    ) -> None:
        super().__init__(count, valid)
        self._shape = shape
        self._size = math.prod(shape)
        self._first = first
        self._items = items
        self.returns_views = items.returns_views

    def _row(self, number: int) -> NDArray[Any]:
        return _copied(self._items, self._part(number, number + 1)[0])

    def _part(self, start: int, stop: int) -> NDArray[Any]:
        items = self._items.part(*((self._first + number) * self._size for number in (start, stop)))
        return items.reshape(stop - start, *self._shape, *items.shape[1:])


def _copied(column: Column, part: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of a part of a column."""
    return part.copy() if column.returns_views else part


def _storage(kind: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Return the storage type of a type, and the shape if it is a tensor."""
    shape = None
    while isinstance(kind, pyarrow.BaseExtensionType):
        shape = tuple(getattr(kind, "shape", None) or ()) or shape
        kind = kind.storage_type
    return kind, shape if pyarrow.types.is_fixed_size_list(kind) else None


def check_type(kind: Any, name: str, where: str) -> None:
    """Check that the values of a column can be converted to arrays.

    Raises:
        DTypeError: the type cannot be converted to arrays.
    """
    if not _is_array(kind):
        raise DTypeError(
            f"the column {name!r} of {where} has the type {str(kind)[:80]}, which cannot be converted to an array.",
            hint=f"Supported types: {_TYPES}. Cast the column to one of them.",
        )


def _is_array(kind: Any) -> bool:
    types = pyarrow.types
    axes = list(getattr(kind, "permutation", None) or ())
    if axes != sorted(axes):  # the axes are stored in another order
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


def column_of(array: Any, root: DataRoot = _WORKING_FOLDER, memory: FileMemory | None = None) -> Column:
    """Return the column for an Arrow array.

    Args:
        array: a pyarrow Array of a type that ``check_type`` accepts.
        root: the folder that paths in the array are relative to.
        memory: memory that contains the array, if it is filled from a file on demand.

    Raises:
        ReaderError: the array is damaged, or the file cannot be read.
    """
    try:
        array.validate()  # checks lengths and sizes; offsets of elements are checked when they are read
    except pyarrow.ArrowInvalid as error:
        raise ReaderError(f"the data is damaged: {str(error)[:200]}.") from None
    return _column_of(array, root, memory or _NO_FILE, is_within=False)


class _NoFile:
    """Replaces ``FileMemory`` if all data is in memory."""

    def load(self, buffer: Any) -> None:
        """Do nothing."""

    def values(self, buffer: Any, dtype: np.dtype[Any]) -> Values | None:
        """Return None."""
        return None


_NO_FILE = _NoFile()


def _column_of(array: Any, root: DataRoot, memory: FileMemory | _NoFile, *, is_within: bool) -> Column:
    """Return the column for an array whose sizes were checked.

    Args:
        array: see ``column_of``.
        root: see ``column_of``.
        memory: see ``column_of``.
        is_within: whether the array contains the values of lists, and may be very long.
    """
    types = pyarrow.types
    kind, shape = _storage(array.type)
    while isinstance(array.type, pyarrow.BaseExtensionType):
        array = array.storage
    valid = _valid_of(array, memory)
    if types.is_dictionary(kind):
        numbers = array.indices
        values = _column_of(array.dictionary, root, _NO_FILE, is_within=False)
        return _Categories(valid, _numbers_of(numbers, kind.index_type, memory), values)
    if types.is_struct(kind):
        place = kind.get_field_index("path")
        has_paths = place >= 0 and _is_bytes(kind.field(place).type)
        paths = _column_of(array.field(place), root, memory, is_within=False) if has_paths else None
        contents = array.field(kind.get_field_index("bytes"))
        return _Files(valid, _column_of(contents, root, memory, is_within=False), paths, root)
    if types.is_fixed_size_binary(kind):
        offsets = np.arange(array.offset, array.offset + len(array) + 1) * kind.byte_width
        return _Bytes(valid, offsets, _values_of(array.buffers()[1], np.dtype(np.uint8), memory))
    if types.is_binary_view(kind) or types.is_string_view(kind):
        _, views, *buffers = array.buffers()
        chosen = _loaded(views, np.dtype(np.int32), memory).reshape(-1, 4)[array.offset : array.offset + len(array)]
        return _Views(valid, chosen, [_values_of(buffer, np.dtype(np.uint8), memory) for buffer in buffers])
    if _is_bytes(kind):
        is_wide = types.is_large_binary(kind) or types.is_large_string(kind)
        values = _values_of(array.buffers()[2], np.dtype(np.uint8), memory)
        return _Bytes(valid, _offsets_of(array, np.dtype(np.int64 if is_wide else np.int32), memory), values)
    if types.is_fixed_size_list(kind):
        shape = shape or (kind.list_size,)
        items = _column_of(array.values, root, memory, is_within=True)
        return _FixedLists(len(array), valid, shape, array.offset, items)
    if types.is_list(kind) or types.is_large_list(kind):
        width = np.dtype(np.int64 if types.is_large_list(kind) else np.int32)
        return _Lists(valid, _offsets_of(array, width, memory), _column_of(array.values, root, memory, is_within=True))
    if is_within and not types.is_boolean(kind):
        return _Numbers(valid, _items_of(array, kind, memory))
    return _Numbers(valid, Values(_numbers_of(array, kind, memory)))


def _valid_of(array: Any, memory: FileMemory | _NoFile) -> NDArray[np.bool_] | None:
    """Return the mask of elements that are not null; None if no element is null."""
    bits = array.buffers()[0]
    if bits is None or not len(array):
        return None
    memory.load(bits)
    valid = _bits_of(bits, array.offset, len(array))
    return None if valid.all() else valid


def _bits_of(buffer: Any, start: int, count: int) -> NDArray[np.bool_]:
    packed = np.frombuffer(buffer, np.uint8)[start // 8 : -(-(start + count) // 8)]
    return np.unpackbits(packed, bitorder="little")[start % 8 : start % 8 + count].view(np.bool_)


def _loaded(buffer: Any, dtype: np.dtype[Any], memory: FileMemory | _NoFile) -> NDArray[Any]:
    """Return the elements of a buffer, loaded into memory."""
    if buffer is None or not buffer.size:
        return np.empty(0, dtype)
    memory.load(buffer)
    return np.frombuffer(buffer, dtype, buffer.size // dtype.itemsize)


def _values_of(buffer: Any, dtype: np.dtype[Any], memory: FileMemory | _NoFile) -> Values:
    """Return the elements of a buffer, in memory or in a file."""
    found = None if buffer is None else memory.values(buffer, dtype)
    return Values(_loaded(buffer, dtype, memory)) if found is None else found


def _items_of(array: Any, kind: Any, memory: FileMemory | _NoFile) -> Values:
    """Return the numbers of an array, in memory or in a file."""
    dtype = np.dtype(kind.to_pandas_dtype())
    buffer = array.buffers()[1]
    if buffer is None:
        return Values(np.empty(0, dtype))
    return _values_of(buffer.slice(array.offset * dtype.itemsize, len(array) * dtype.itemsize), dtype, memory)


def _numbers_of(array: Any, kind: Any, memory: FileMemory | _NoFile) -> NDArray[Any]:
    """Return the numbers of an array, loaded into memory; null elements have arbitrary values."""
    buffer = array.buffers()[1]
    if pyarrow.types.is_boolean(kind):
        if buffer is None or not len(array):
            return np.empty(0, np.bool_)
        memory.load(buffer)
        return _bits_of(buffer, array.offset, len(array))
    return _loaded(buffer, np.dtype(kind.to_pandas_dtype()), memory)[array.offset : array.offset + len(array)]


def _offsets_of(array: Any, dtype: np.dtype[Any], memory: FileMemory | _NoFile) -> NDArray[Any]:
    if not len(array):
        return np.zeros(1, dtype)
    return _loaded(array.buffers()[1], dtype, memory)[array.offset : array.offset + len(array) + 1]
