"""Where Arrow data are: Parquet and Arrow files, tables in memory, data sets of Hugging Face.

Each kind is opened, counted and read in its own way; from here on they are blocks of rows. Files are read and not
mapped, whoever maps them: a mapped file that becomes shorter ends the process.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError, suggestion
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule
from dalify.formats import storage
from dalify.formats.arrow_columns import check_type
from dalify.formats.arrow_memory import FileMemory, reserved
from dalify.formats.arrow_messages import Message, messages_of, uncompressed_bytes
from dalify.formats.file_object import FileObject
from dalify.formats.open_files import OpenFiles
from dalify.formats.parquet_footer import RowGroups, row_groups

pyarrow = LazyModule("pyarrow", "reading Arrow and Parquet", "dalify[arrow]")
pyarrow_ipc = LazyModule("pyarrow.ipc", "reading Arrow files", "dalify[arrow]")
pyarrow_parquet = LazyModule("pyarrow.parquet", "reading Parquet", "dalify[arrow]")

__all__ = [
    "ArrowFileSource",
    "ArrowSource",
    "ParquetSource",
    "TableFiles",
    "TableSource",
    "check_columns",
    "opened",
    "source_of_file",
]

_OPENED_AT_ONCE = 16
_PARQUET, _ARROW, _FEATHER = b"PAR1", b"ARROW1", b"FEA1"
_PARQUET_TAIL_BYTES = 8  # size of the metadata, and the letters PAR1
# What declares that it takes more than a limit is refused where it also declares to be packed tighter than this.
_TIGHTEST = 1000
_VALUE_BYTES = 8
_MOST_IDLE = 8


class _IdleReaders:
    """What has read files and can go on reading them: its buffers are sooner filled again than made anew."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._readers: list[tuple[int, Any]] = []

    def take(self, number: int) -> Any:
        """Return a reader of a file, which nobody else has; None where there is none."""
        with self._lock:
            for place, (file, reader) in enumerate(self._readers):
                if file == number:
                    del self._readers[place]
                    return reader
        return None

    def give(self, number: int, reader: Any) -> None:
        """Keep a reader of a file; the longest unused one goes where there are too many."""
        with self._lock:
            self._readers.append((number, reader))
            del self._readers[:-_MOST_IDLE]


class TableFiles(OpenFiles):
    """Files of tables.

    Args:
        paths: of the files.
        memory_map: values of Arrow files are looked at in memory maps.

    Attributes:
        idle: readers of these files that nobody uses.
    """

    def __init__(self, paths: Sequence[str], memory_map: bool = False) -> None:
        super().__init__(paths)
        self.idle = _IdleReaders()
        self._memory_map = memory_map
        self._maps: dict[int, NDArray[np.uint8]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: nothing that is open."""
        return {**super().__getstate__(), "memory_map": self._memory_map}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over paths."""
        self.__init__(state["paths"], state["memory_map"])

    def mapped(self, number: int) -> NDArray[np.uint8] | None:
        """Return a file in a memory map, uint8; None where maps are not wanted."""
        if not self._memory_map:
            return None
        found = self._maps.get(number)
        if found is None:
            with Path(storage.local_copy(self.paths[number])).open("rb") as file:
                found = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
            found = self._maps.setdefault(number, found)
        return found


class ArrowSource(Protocol):
    """Rows in blocks.

    Attributes:
        name: path or kind, for messages.
        folder: to which paths in the rows are relative.
        entries: rows of each block.
        size_bytes: memory that each block takes; 0 where its rows can be read one by one.
        schema: names and types of all columns.
    """

    name: str
    folder: str
    entries: list[int]
    size_bytes: list[int]
    schema: Any

    def load(self, block: int) -> tuple[Any, FileMemory | None]:
        """Return the wanted columns of a block, a table or record batch, and where it is filled from a file, how."""
        ...

    def whole_column(self, name: str) -> Any:
        """Return all values of one column, a pyarrow ChunkedArray."""
        ...


class ParquetSource:
    """A Parquet file; its row groups are the blocks.

    Args:
        files: on this machine, or behind URLs, of which only the wanted columns of the wanted row groups are read.
        number: of the file.
        columns: names of the wanted columns.

    Raises:
        ReaderError: the file is absent, damaged, or no Parquet file.
        LimitError: it declares more than the limits allow.
        ArgumentValueError: a column that is not there.
        DTypeError: a column of which no arrays can be made.
    """

    def __init__(self, files: TableFiles, number: int, columns: Sequence[str]) -> None:
        self.name = path = files.paths[number]
        self.folder = storage.folder_of(path)
        self._columns = list(columns)
        self._files = files
        self._number = number
        self._metadata: Any = None
        with _named(path):
            _check_kind(_beginning(files, number), path)
            file = self._opened()
            self.schema = file.schema_arrow
            check_columns(self.schema, columns, repr(path))
            groups = self._groups(file, columns)
        self.entries = groups.rows.tolist()
        self.size_bytes = groups.uncompressed_bytes.tolist()
        values = np.maximum(groups.rows, groups.values)
        self._decoded_bytes = np.maximum(groups.uncompressed_bytes, _VALUE_BYTES * values).tolist()
        self._stored_bytes = groups.compressed_bytes.tolist()

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: not what the file says of itself, which may be long."""
        return {**self.__dict__, "_metadata": None}

    def _groups(self, file: Any, columns: Sequence[str]) -> RowGroups:
        schema = file.metadata.schema
        wanted = [
            number
            for number in range(file.metadata.num_columns)
            if any(_is_within(schema.column(number).path, name) for name in columns)
        ]
        end = self._files.size(self._number) - _PARQUET_TAIL_BYTES
        footer_bytes = int(self._files.read(self._number, end, 4).view("<u4")[0])
        footer = self._files.read(self._number, end - footer_bytes, footer_bytes, is_sample=False)
        found = row_groups(footer, file.metadata.num_row_groups, wanted)
        if found is None:
            raise _damaged(self.name, "what its footer says of row groups contradicts itself")
        rows = int(found.rows.sum())
        limits.check_count(rows, f"the Parquet file {self.name!r} declares {rows:,} rows")
        return found

    def load(self, block: int) -> tuple[Any, None]:
        """Return the wanted columns of a row group."""
        _check_expansion(self._decoded_bytes[block], self._stored_bytes[block], f"a row group of {self.name!r}")
        with _named(self.name):
            # What reads a file has a position, so each thread that reads has its own.
            file = self._files.idle.take(self._number) or self._opened(self._metadata)
            self._metadata = file.metadata
            table = file.read_row_group(block, columns=self._columns, use_threads=False)
            if table.num_rows != self.entries[block]:
                raise _damaged(self.name, f"a row group has {table.num_rows} rows, not {self.entries[block]}")
        self._files.idle.give(self._number, file)
        return table, None

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        with _named(self.name):
            return self._opened(self._metadata).read(columns=[name], use_threads=False).column(0)

    def _opened(self, metadata: Any = None) -> Any:
        return pyarrow_parquet.ParquetFile(
            pyarrow.PythonFile(FileObject(self._files, self._number), mode="r"),
            metadata=metadata,
            pre_buffer=self._files.is_remote,
            page_checksum_verification=True,  # of files that have them
        )


class ArrowFileSource:
    """An Arrow file or stream (Feather too); its record batches are the blocks.

    Of what is not compressed, values are read from the file one by one. Compressed batches are decompressed when they
    are needed; those of streams stay in memory.

    Args:
        files: on this machine, or behind URLs; those are copied once.
        number: of the file.
        columns: names of the wanted columns.

    Raises:
        ReaderError: the file is absent, damaged, or no Arrow file.
        LimitError: it declares more than the limits allow.
        ArgumentValueError: a column that is not there.
        DTypeError: a column of which no arrays can be made.
    """

    def __init__(self, files: TableFiles, number: int, columns: Sequence[str]) -> None:
        self.name = path = files.paths[number]
        self.folder = storage.folder_of(path)
        self._files = files
        self._number = number
        with _named(path):
            storage.local_copy(path)
            self._messages = messages_of(files, number)
            schema = self._messages.schema
            metadata = files.read(number, schema.offset, schema.metadata_bytes, is_sample=False)
            self.schema = pyarrow_ipc.read_schema(pyarrow.py_buffer(metadata))
            check_columns(self.schema, columns, repr(path))
            self._fields = [self.schema.get_field_index(name) for name in columns]
            batches = self._messages.batches
            self.entries = [batch.rows for batch in batches]
            self.size_bytes = [0] * len(batches)
            if not self._messages.is_stream and any(map(self._has_to_be_decoded, batches)):
                row_bytes = self._row_bytes()
                self.size_bytes = [int(count * row_bytes) for count in self.entries]

    def _row_bytes(self) -> float:
        """Return about how much memory a row takes once it is decompressed."""
        first = self._messages.batches[0]
        try:
            return self.load(0)[0].nbytes / max(first.rows, 1)
        except DalifyError:  # of its rows alone, when they are read
            return first.body_bytes / max(first.rows, 1)

    def _has_to_be_decoded(self, message: Message) -> bool:
        return message.is_compressed or self._messages.is_little != (sys.byteorder == "little")

    def load(self, block: int) -> tuple[Any, FileMemory | None]:
        """Return the wanted columns of a record batch."""
        with _named(self.name):
            return self._batch(block, self._fields)

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        found = []
        with _named(self.name):
            field = self.schema.get_field_index(name)
            for block in range(len(self.entries)):
                batch, memory = self._batch(block, [field])
                column = batch.column(0)
                column.validate()
                for buffer in column.buffers():
                    if memory is not None:
                        memory.load(buffer)
                found.append(column)
            return pyarrow.chunked_array(found, self.schema.field(field).type)

    def _batch(self, number: int, fields: list[int]) -> tuple[Any, FileMemory | None]:
        """Return columns of a record batch, and its memory where that is still to be filled.

        It is laid out as a stream of its own: schema, dictionaries, and the batch.
        """
        batch = self._messages.batches[number]
        before = [self._messages.schema, *self._messages.dictionaries[: batch.dictionaries]]
        body = sum(each.metadata_bytes + each.body_bytes for each in before) + batch.metadata_bytes
        memory = reserved(body + batch.body_bytes)
        place = 0
        for message in before:
            place = self._copy(message, memory, place, is_dictionary=place > 0)
        if self._has_to_be_decoded(batch):
            self._copy(batch, memory, place, is_dictionary=False)
            part = None
        else:
            self._files.read(self._number, batch.offset, batch.metadata_bytes, memory[place:body])
            part = FileMemory(self._files, self._number, memory[body:], batch.body, self._files.mapped(self._number))
        options = pyarrow_ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        found = pyarrow_ipc.open_stream(pyarrow.py_buffer(memory), options=options).read_next_batch()
        if found.num_rows != batch.rows:
            raise _damaged(self.name, f"a record batch has {found.num_rows} rows, not {batch.rows}")
        if part is None:
            found.validate()
        return found, part

    def _copy(self, message: Message, memory: NDArray[np.uint8], place: int, *, is_dictionary: bool) -> int:
        """Read a message into memory; return the place behind it."""
        body, end = place + message.metadata_bytes, place + message.metadata_bytes + message.body_bytes
        self._files.read(self._number, message.offset, message.metadata_bytes, memory[place:body])
        self._files.read(self._number, message.body, message.body_bytes, memory[body:end])
        if message.is_compressed:
            decoded = uncompressed_bytes(memory[place:body].tobytes(), memory[body:end], is_dictionary)
            _check_expansion(decoded, message.body_bytes, f"a record batch of {self.name!r}")
        return end


class TableSource:
    """A table in memory, or that of a data set of Hugging Face.

    Args:
        holder: a pyarrow Table, or an object that has one as ``table`` and knows how it is pickled.
        columns: names of the wanted columns.
        name: for messages.

    Raises:
        ArgumentValueError: a column that is not there.
        DTypeError: a column of which no arrays can be made.
    """

    folder = ""

    def __init__(self, holder: Any, columns: Sequence[str], name: str) -> None:
        self.name = name
        self._holder = holder
        self._columns = list(columns)
        self.schema = self._table.schema
        check_columns(self.schema, columns, name)
        self._batches: list[Any] | None = self._all_batches()
        self.entries = [batch.num_rows for batch in self._batches]
        self.size_bytes = [0] * len(self.entries)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the holder, which may be no more than paths."""
        return {**self.__dict__, "_batches": None, "schema": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the holder."""
        self.__dict__.update(state)
        self.schema = self._table.schema

    @property
    def _table(self) -> Any:
        return getattr(self._holder, "table", self._holder)

    def _all_batches(self) -> list[Any]:
        return self._table.select(self._columns).to_batches()

    def load(self, block: int) -> tuple[Any, None]:
        """Return the wanted columns of a record batch."""
        if self._batches is None:
            self._batches = self._all_batches()
        return self._batches[block], None

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        return self._table.column(name)


def source_of_file(files: TableFiles, number: int, columns: Sequence[str]) -> ArrowSource:
    """Return the source for a file, whatever its name says.

    Args:
        files: all files.
        number: of the file.
        columns: names of the wanted columns.

    Raises:
        ReaderError: the file is absent, damaged, or of another kind.
        ArgumentValueError: a column that is not there.
        DTypeError: a column of which no arrays can be made.
    """
    path = files.paths[number]
    with _named(path):
        start = _beginning(files, number)
    if start[:4] == _PARQUET:
        return ParquetSource(files, number, columns)
    if start[:4] == _FEATHER:
        raise ReaderError(
            f"{path!r} is a Feather file of version 1, which is not supported.",
            hint="Write it anew: pyarrow.feather.write_feather(table, path).",
        )
    return ArrowFileSource(files, number, columns)


def opened(
    paths: Sequence[str], columns: Sequence[str], kind: Callable[..., ArrowSource], *, memory_map: bool = False
) -> list[ArrowSource]:
    """Return the sources for files; those on other machines are asked at once what they hold.

    Args:
        paths: of the files.
        columns: names of the wanted columns.
        kind: ``ParquetSource``, or ``source_of_file`` where the files tell.
        memory_map: values of Arrow files are looked at in memory maps.

    Raises:
        ReaderError, ArgumentValueError, DTypeError: see there.
    """
    files = TableFiles(paths, memory_map)
    if not files.is_remote:
        return [kind(files, number, columns) for number in range(len(paths))]
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        return list(pool.map(lambda number: kind(files, number, columns), range(len(paths))))


def check_columns(schema: Any, columns: Sequence[str], where: str) -> None:
    """Refuse columns that are not there, there twice, or no arrays.

    Raises:
        ArgumentValueError: no such column, or several of this name.
        DTypeError: a column of which no arrays can be made.
    """
    for name in columns:
        found = schema.names.count(name)
        if found != 1:
            what = f"no column {name!r}" if not found else f"{found} columns {name!r}"
            raise ArgumentValueError(
                f"{where} has {what}.{suggestion(name, schema.names)}",
                hint=f"It has: {', '.join(schema.names[:30])}.",
            )
        check_type(schema.field(name).type, name, where)


def _is_within(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _beginning(files: OpenFiles, number: int) -> bytes:
    return files.read(number, 0, min(len(_ARROW), files.size(number))).tobytes()


def _check_kind(start: bytes, path: str) -> None:
    """Refuse a file that is no Parquet file, by its first bytes."""
    if start[:4] != _PARQUET and start:
        is_arrow = start.startswith((_ARROW, _FEATHER))
        raise ReaderError(
            f"{path!r} is no Parquet file.",
            hint="It is an Arrow file: use fn.readers.arrow(source=...)." if is_arrow else "",
        )


def _check_expansion(decoded_bytes: int, stored_bytes: int, what: str) -> None:
    """Refuse data that declare to be a thousand times as large as they are stored, where that is beyond the limit."""
    if decoded_bytes > _TIGHTEST * max(stored_bytes, 1):
        limits.check_sample_bytes(decoded_bytes, what)


def _damaged(path: str, reason: str) -> ReaderError:
    return ReaderError(f"the file {path!r} is damaged, or of another kind: {reason.rstrip('.')}.")


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Say which file it was when reading it fails."""
    try:
        yield
    except DalifyError:
        raise
    except Exception as error:  # of pyarrow, or of Python, such as names that are not UTF-8
        raise _damaged(path, str(error)[:300] or type(error).__name__) from error
