"""The rows of Arrow data as entries of a reader, for files, tables and datasets, with a cache of decoded blocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, DTypeError, ReaderError
from dalify.base.optional import LazyModule
from dalify.data import Batch
from dalify.data.entries import Blocks, Entries
from dalify.formats.files.block_cache import BlockCache
from dalify.formats.files.data_root import DataRoot
from dalify.formats.files.storage import is_remote
from dalify.formats.tables.arrow_columns import Column, column_of
from dalify.formats.tables.arrow_gather import IN_FILES, IN_MEMORY, find_blocks, find_strings, gather_numbers
from dalify.formats.tables.arrow_memory import ValuesInFile, samples_at, samples_in_files, samples_in_memory
from dalify.formats.tables.arrow_tables import ArrowSource

pyarrow = LazyModule("pyarrow", "reading Arrow and Parquet", "dalify[arrow]")

_LABELS = ("label", "labels")
_MAX_BLOCKS = 4


class ArrowRow(NamedTuple):
    """One row.

    Attributes:
        rows: the collection that contains this row.
        number: index of the row in its source.
        block: index of the block of the row.
        offset: index of the row in its block.
    """

    rows: ArrowRows
    number: int
    block: int
    offset: int

    def read(self) -> tuple[NDArray[Any], ...]:
        """Return the values of the requested columns.

        Raises:
            ReaderError: a value is null or has nested lists of different lengths, or the file cannot be read.
        """
        columns = self.rows.block(self.block)
        try:
            return tuple([column.row(self.offset) for column in columns])
        except ReaderError:
            return self._read_one_by_one(columns)

    def _read_one_by_one(self, columns: Sequence[Column]) -> tuple[NDArray[Any], ...]:
        found = []
        for name, column in zip(self.rows.columns, columns, strict=True):
            try:
                found.append(column.row(self.offset))
            except ReaderError as error:
                message = f"the column {name!r} in {self.origin}: {error.message}"
                raise ReaderError(message, hint=error.hint) from None
        return tuple(found)

    def substitute(self) -> tuple[NDArray[Any] | None, ...]:
        """Return the values of readable columns; None for the others."""
        return tuple(map(self._value_or_none, range(len(self.rows.columns))))

    def _value_or_none(self, column: int) -> NDArray[Any] | None:
        try:
            return self.rows.block(self.block)[column].row(self.offset)
        except Exception:  # any library may raise here
            return None

    @property
    def origin(self) -> str:
        """Row number and source, for error messages."""
        return f"row {self.number} of {self.rows.source_name(self.block)}"


class ArrowRows(Entries[ArrowRow]):
    """Rows of several sources, concatenated in order.

    Args:
        sources: files, tables or datasets.
        columns: names of the requested columns.
        cache_bytes: size of the cache for decoded blocks.
        order: row numbers of the entries, int64 ``[n]``; None for all rows in order.
        allow_outside_root: whether paths in the data may be URLs or point outside the folder of their file.

    Raises:
        DTypeError: a column has different types in two sources.
    """

    def __init__(
        self,
        sources: Sequence[ArrowSource],
        columns: Sequence[str],
        cache_bytes: int,
        order: NDArray[np.int64] | None = None,
        *,
        allow_outside_root: bool = False,
    ) -> None:
        if cache_bytes < 1:
            raise ArgumentValueError(f"cache_bytes must be at least 1; got {cache_bytes}.")
        self.columns = list(columns)
        self._sources = list(sources)
        self._cache_bytes = cache_bytes
        self._order = order
        self._allow_outside_root = allow_outside_root
        for source in sources[1:]:
            for name in columns:
                first, found = (each.schema.field(name).type for each in (sources[0], source))
                if first != found:
                    raise DTypeError(
                        f"the column {name!r} has the type {first} in {sources[0].name} and {found} in {source.name}.",
                        hint="A column must have the same type in all files: cast it in one of them.",
                    )
        self._block_sources = np.repeat(np.arange(len(sources)), [len(source.entries) for source in sources])
        self._first_blocks = [0, *np.cumsum([len(source.entries) for source in sources]).tolist()]
        entries = np.array([count for source in sources for count in source.entries], np.int64)
        self._entries = entries
        self._ends = np.cumsum(entries)
        self._firsts = [0, *self._ends.tolist()]
        # First row of the source of each block; a list, because indexing a list is faster than indexing an array.
        self._first_rows = [self._firsts[self._first_blocks[source]] for source in self._block_sources.tolist()]
        self._has_blocks = any(size for source in sources for size in source.size_bytes)  # decoded as a whole
        self._cache = BlockCache(self._load, cache_bytes)

    def __len__(self) -> int:
        return self._firsts[-1] if self._order is None else len(self._order)

    def _entry(self, number: int) -> ArrowRow:
        if self._order is not None:
            number = int(self._order[number])
        block = bisect_right(self._firsts, number) - 1
        return ArrowRow(self, number - self._first_rows[block], block, number - self._firsts[block])

    def read_many(self, numbers: NDArray[np.int64]) -> tuple[Any, ...] | None:
        """Return the columns of rows, each ``[N]``, a `Batch` or a list of arrays; None if each must be read alone."""
        rows = numbers if self._order is None else self._order[numbers]
        wanted, members, offsets = np.empty((3, len(rows)), np.int64)
        count = find_blocks(self._ends, rows, wanted, members, offsets)
        if count > _MAX_BLOCKS and self._has_blocks:  # all blocks would be in memory at the same time
            return None
        try:
            blocks = [self.block(block) for block in wanted[:count].tolist()]
            columns = list(zip(*blocks, strict=True))
            # Numbers first, because copying the bytes of a chunk removes code from the CPU cache.
            found: list[Any] = [_read_numbers(own, members, offsets) for own in columns]
            for place, own in enumerate(columns):
                if found[place] is None:
                    found[place] = _read_column(own, members, offsets)
                if found[place] is None:
                    pairs = zip(members.tolist(), offsets.tolist(), strict=True)
                    found[place] = [own[block].row(offset) for block, offset in pairs]
        except ReaderError:
            return None
        return tuple(found)

    def block(self, number: int) -> list[Column]:
        """Return the requested columns of a block."""
        return self._cache.get(number)

    def source_name(self, block: int) -> str:
        """Return the name of the source of a block."""
        return self._sources[self._block_sources[block]].name

    def _load(self, number: int) -> tuple[list[Column], int]:
        place = int(self._block_sources[number])
        source = self._sources[place]
        block = number - self._first_blocks[place]
        found, memory = source.load(block)
        root = DataRoot(source.folder, allow_outside_root=self._allow_outside_root)
        columns = [column_of(_single_chunk(found.column(name)), root, memory) for name in self.columns]
        if memory is not None:
            return columns, memory.held_bytes
        return columns, found.nbytes if source.size_bytes[block] else 0

    @property
    def is_remote(self) -> bool:
        """Whether rows are on another machine."""
        return any(is_remote(source.name) for source in self._sources)

    @property
    def blocks(self) -> Blocks | None:
        """The blocks, for ``BlockOrder``; None if rows can be read separately."""
        sizes = np.array([size for source in self._sources for size in source.size_bytes], np.int64)
        if self._order is not None or not sizes.any():
            return None
        # Half of the cache, because one window is still in use when the next one starts.
        return Blocks(self._entries[self._entries > 0], sizes[self._entries > 0], self._cache_bytes // 2)

    @property
    def sources(self) -> NDArray[np.int64]:
        """The source index of each row, ``[N]``."""
        found = np.repeat(self._block_sources, self._entries)
        return found if self._order is None else found[self._order]

    @property
    def labels(self) -> NDArray[np.int64] | None:
        """The class of each row, ``[N]``, if there is a column ``label`` or ``labels``; else None."""
        schemas = [source.schema for source in self._sources]
        for name in _LABELS:
            if all(name in each.names and pyarrow.types.is_integer(each.field(name).type) for each in schemas):
                columns = [source.whole_column(name) for source in self._sources]
                if any(column.null_count for column in columns):
                    return None
                found = np.concatenate([column.to_numpy() for column in columns]).astype(np.int64)
                return found if self._order is None else found[self._order]
        return None


def _read_column(columns: Sequence[Column], members: NDArray[np.int64], offsets: NDArray[np.int64]) -> Any:
    """Return rows of a column from several blocks, read in one call; None if that is not possible.

    Args:
        columns: the column in each block.
        members: index into ``columns`` for each row.
        offsets: row index in its block, for each row.
    """
    found = _read_strings(columns, members, offsets)
    if found is not None:
        return found
    chosen = [members == block for block in range(len(columns))]
    own = [offsets[rows] for rows in chosen]
    numbers = [column.numbers(rows) for column, rows in zip(columns, own, strict=True)]
    if all(values is not None for values in numbers):
        return _joined(chosen, numbers)
    places = [column.places(rows) for column, rows in zip(columns, own, strict=True)]
    known = [place for place in places if place is not None]
    return samples_at(known, members) if len(known) == len(columns) else None


def _read_strings(columns: Sequence[Column], members: NDArray[np.int64], offsets: NDArray[np.int64]) -> Batch | None:
    """Return byte strings; None if there are other, null or damaged values."""
    tables = [column.strings for column in columns if column.strings is not None]
    if len(tables) < len(columns):
        return None
    places = np.empty((3, len(offsets)), np.int64)
    kind = find_strings(tables[0] if len(tables) == 1 else np.concatenate(tables), members, offsets, places)
    if kind == IN_MEMORY:
        return samples_in_memory(places[1], places[2])
    values = columns[0].values
    return samples_in_files(values.files, *places) if kind == IN_FILES and isinstance(values, ValuesInFile) else None


def _read_numbers(
    columns: Sequence[Column], members: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[Any] | None:
    """Return numbers; None for other values, and if there are nulls."""
    values = columns[0].values
    tables = [column.scalars for column in columns if column.scalars is not None]
    if values is None or len(tables) < len(columns):
        return None
    dtype = values.part(0, 0).dtype
    found = np.empty((len(offsets), dtype.itemsize), np.uint8)
    table = tables[0] if len(tables) == 1 else np.concatenate(tables)
    return found.view(dtype)[:, 0] if gather_numbers(table, members, offsets, found) else None


def _joined(chosen: Sequence[NDArray[np.bool_]], parts: Sequence[Any]) -> NDArray[Any]:
    found = np.empty(len(chosen[0]), parts[0].dtype)
    for rows, part in zip(chosen, parts, strict=True):
        found[rows] = part
    return found


def _single_chunk(column: Any) -> Any:
    """Return a column as a single chunk."""
    if not isinstance(column, pyarrow.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    types = pyarrow.types
    if types.is_dictionary(column.type):
        column.validate(full=True)  # concatenation trusts offsets in the data
    # With more bytes than 32-bit offsets can address, several chunks would remain.
    if types.is_binary(column.type) or types.is_string(column.type):
        column = column.cast(pyarrow.large_binary())
    return pyarrow.concat_arrays(column.chunks) if column.num_chunks else pyarrow.array([], column.type)
