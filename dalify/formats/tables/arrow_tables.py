"""Sources of Arrow data: Parquet and Arrow files, tables in memory, datasets of Hugging Face.

Each source provides blocks of rows. By default, files are not mapped, because truncation of a mapped file would end the
process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError, suggestion
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule
from dalify.base.threads import in_parallel
from dalify.base.wording import counted
from dalify.formats.files import storage
from dalify.formats.files.file_object import FileObject
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.positions import opened
from dalify.formats.tables.arrow_columns import check_type
from dalify.formats.tables.arrow_memory import FileMemory, reserved
from dalify.formats.tables.arrow_messages import Message, messages_of, uncompressed_bytes
from dalify.formats.tables.parquet_footer import RowGroups, row_groups
from dalify.formats.tables.parquet_pages import Chunk, byte_strings, chunks_of

pyarrow = LazyModule("pyarrow", "reading Arrow and Parquet", "dalify[arrow]")
pyarrow_ipc = LazyModule("pyarrow.ipc", "reading Arrow files", "dalify[arrow]")
pyarrow_parquet = LazyModule("pyarrow.parquet", "reading Parquet", "dalify[arrow]")

_PARQUET, _ARROW, _FEATHER = b"PAR1", b"ARROW1", b"FEA1"
_PARQUET_TAIL_BYTES = 8  # size of the metadata, and the magic PAR1
# Data that declares more than a limit is rejected if its declared compression ratio is also above this.
_MAX_COMPRESSION_RATIO = 1000
_VALUE_BYTES = 8
_MAX_IDLE = 8


class _IdleReaders:
    """Pool of open file readers, because reusing their buffers is faster than allocating new ones."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._readers: list[tuple[int, Any]] = []

    def take(self, number: int) -> Any:
        """Remove and return an idle reader of a file, or None."""
        with self._lock:
            for place, (file, reader) in enumerate(self._readers):
                if file == number:
                    del self._readers[place]
                    return reader
        return None

    def give(self, number: int, reader: Any) -> None:
        """Return a reader to the pool; the least recently used reader is dropped if the pool is full."""
        with self._lock:
            self._readers.append((number, reader))
            del self._readers[:-_MAX_IDLE]

    def clear(self) -> None:
        """Drop all readers."""
        with self._lock:
            self._readers.clear()


class TableFiles(OpenFiles):
    """Open Parquet and Arrow files.

    Attributes:
        idle: pool of idle readers of these files.
    """

    def __init__(self, paths: Sequence[str], memory_map: bool = False) -> None:
        self.idle = _IdleReaders()
        super().__init__(paths)
        self._memory_map = memory_map
        self._maps: dict[int, NDArray[np.uint8]] = {}

    def close_idle(self) -> None:
        """Close all files that no thread is reading."""
        super().close_idle()
        self.idle.clear()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without open files."""
        return {**super().__getstate__(), "memory_map": self._memory_map}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the paths."""
        self.__init__(state["paths"], state["memory_map"])

    def mapped(self, number: int) -> NDArray[np.uint8] | None:
        """Return a memory map of a file, uint8; None if memory maps are disabled."""
        if not self._memory_map:
            return None
        found = self._maps.get(number)
        if found is None:
            path = storage.local_copy(self.paths[number])
            self.check_unchanged(number)
            # Unlike Python's memory maps, pyarrow's do not keep a descriptor.
            with opened(lambda: pyarrow.memory_map(path)) as file:
                found = np.frombuffer(file.read_buffer(), np.uint8)
            found = self._maps.setdefault(number, found)
        return found


class ArrowSource(Protocol):
    """A source of rows in blocks.

    Attributes:
        name: path or kind, for error messages.
        folder: the folder that paths in the rows are relative to.
        entries: number of rows of each block.
        size_bytes: memory of each block; 0 if its rows can be read separately.
        schema: names and types of all columns.
    """

    name: str
    folder: str
    entries: list[int]
    size_bytes: list[int]
    schema: Any

    def load(self, block: int) -> tuple[Any, FileMemory | None]:
        """Return the requested columns of a block, and its ``FileMemory`` if it is loaded on demand."""
        ...

    def whole_column(self, name: str) -> Any:
        """Return all values of one column, a pyarrow ChunkedArray."""
        ...


class ParquetSource:
    """A Parquet file; its row groups are the blocks.

    Args:
        files: local files or URLs; only the requested columns of the row groups in use are read.
        number: index of the file.
        columns: names of the requested columns.

    Raises:
        ReaderError: the file is absent, damaged, or not a Parquet file.
        LimitError: the file declares more than the limits allow.
        ArgumentValueError: a column does not exist.
        DTypeError: a column cannot be converted to arrays.
    """

    def __init__(self, files: TableFiles, number: int, columns: Sequence[str]) -> None:
        self.name = path = files.paths[number]
        self.folder = storage.folder_of(path)
        self._columns = list(columns)
        self._files = files
        self._number = number
        self._metadata: Any = None
        with _reader_errors(path):
            _check_kind(_first_bytes(files, number), path)
            file = self._opened()
            self.schema = file.schema_arrow
            check_columns(self.schema, columns, repr(path))
            # Only the bytes of files; if some are null, the other fields are also read.
            self._leaves = [_leaf(self.schema.field(name).type, name) for name in columns]
            groups = self._groups(file, columns)
            self._chunks = {} if self._files.is_remote else self._byte_strings(file, groups)
        self.entries = groups.rows.tolist()
        self.size_bytes = groups.uncompressed_bytes.tolist()
        values = np.maximum(groups.rows, groups.values)
        self._decoded_bytes = np.maximum(groups.uncompressed_bytes, _VALUE_BYTES * values).tolist()
        self._stored_bytes = groups.compressed_bytes.tolist()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the metadata of the file, which may be large."""
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
        self._wanted = wanted
        found = row_groups(footer, file.metadata.num_row_groups, wanted)
        if found is None:
            raise _damaged(self.name, "the row groups in its footer are inconsistent")
        rows = int(found.rows.sum())
        limits.check_count(rows, f"the Parquet file {self.name!r} declares {counted(rows, 'row')}")
        return found

    def _byte_strings(self, file: Any, groups: RowGroups) -> dict[str, list[Chunk]]:
        """Return the chunks of each column of byte strings, one for each row group."""
        schema, found = file.metadata.schema, {}
        for name, leaf in zip(self._columns, self._leaves, strict=True):
            for column, fields in zip(self._wanted, groups.fields, strict=True):
                described = schema.column(column)
                is_plain = described.physical_type == "BYTE_ARRAY" and not described.max_repetition_level
                if described.path == leaf and is_plain and _is_byte_string(self.schema.field(name).type):
                    found[name] = chunks_of(fields, described.max_definition_level)
        return found

    def _read_byte_strings(self, block: int) -> dict[str, Any]:
        """Return the columns of a row group that need not be read by pyarrow."""
        found: dict[str, Any] = {}
        for name, chunks in list(self._chunks.items()):
            values = None
            if chunks[block].value_count == self.entries[block]:
                values = byte_strings(chunks[block], partial(self._files.read, self._number, is_sample=False))
            if values is None:
                self._chunks.pop(name, None)  # other row groups are probably like this one
            elif pyarrow.types.is_struct(self.schema.field(name).type):
                found[name] = pyarrow.StructArray.from_arrays([values], ["bytes"])
            else:
                found[name] = values
        return found

    def load(self, block: int) -> tuple[Any, None]:
        """Return the requested columns of a row group."""
        _check_expansion(self._decoded_bytes[block], self._stored_bytes[block], f"a row group of {self.name!r}")
        with suppress(Exception):  # pyarrow then reads the row group, or reports the error
            found = self._read_byte_strings(block)
            if found:
                return self._completed(block, found), None
        return self._load(block, self._columns, self._leaves), None

    def _completed(self, block: int, found: Mapping[str, Any]) -> Any:
        """Return a table of a row group from some of its columns."""
        others = [number for number, name in enumerate(self._columns) if name not in found]
        if not others:
            return pyarrow.table(found)
        table = self._load(block, [self._columns[n] for n in others], [self._leaves[n] for n in others])
        return pyarrow.table({**found, **dict(zip(table.column_names, table.columns, strict=True))})

    def _load(self, block: int, columns: Sequence[str], leaves: Sequence[str]) -> Any:
        """Return columns of a row group, read by pyarrow."""
        with _reader_errors(self.name):
            # A reader has a position, so each thread needs its own.
            file = self._files.idle.take(self._number) or self._opened(self._metadata)
            self._metadata = file.metadata
            table = file.read_row_group(block, columns=leaves, use_threads=False)
            if leaves != columns and any(map(_has_null_bytes, table.columns)):
                table = file.read_row_group(block, columns=columns, use_threads=False)
            if table.num_rows != self.entries[block]:
                raise _damaged(
                    self.name, f"a row group has {counted(table.num_rows, 'row')}, not {self.entries[block]}"
                )
        self._files.idle.give(self._number, file)
        return table

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        with _reader_errors(self.name):
            return self._opened(self._metadata).read(columns=[name], use_threads=False).column(0)

    def _opened(self, metadata: Any = None) -> Any:
        path = storage.copy_or_path(self.name)
        is_remote = storage.is_remote(path)
        if not is_remote:
            self._files.check_unchanged(self._number)
        # Local files are read by pyarrow itself, without the GIL.
        file = (
            pyarrow.PythonFile(FileObject(self._files, self._number), mode="r")
            if is_remote
            else opened(lambda: pyarrow.OSFile(path))
        )
        return pyarrow_parquet.ParquetFile(
            file,
            metadata=metadata,
            pre_buffer=self._files.is_remote,
            page_checksum_verification=True,  # if the file has checksums
        )


class ArrowFileSource:
    """An Arrow file or stream, or a Feather file; its record batches are the blocks.

    Values of uncompressed batches are read from the file one by one. Compressed batches are decompressed when they
    are needed; compressed batches of streams stay in memory.

    Args:
        files: local files or URLs; the latter are copied once.
        number: index of the file.
        columns: names of the requested columns.

    Raises:
        ReaderError: the file is absent, damaged, or not an Arrow file.
        LimitError: the file declares more than the limits allow.
        ArgumentValueError: a column does not exist.
        DTypeError: a column cannot be converted to arrays.
    """

    def __init__(self, files: TableFiles, number: int, columns: Sequence[str]) -> None:
        self.name = path = files.paths[number]
        self.folder = storage.folder_of(path)
        self._files = files
        self._number = number
        with _reader_errors(path):
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
            if not self._messages.is_stream and any(map(self._needs_decoding, batches)):
                row_bytes = self._row_bytes()
                self.size_bytes = [int(count * row_bytes) for count in self.entries]

    def _row_bytes(self) -> float:
        """Return an estimate of the memory of a decompressed row."""
        first = self._messages.batches[0]
        try:
            return self.load(0)[0].nbytes / max(first.rows, 1)
        except DalifyError:  # raised again when the rows are read
            return first.body_bytes / max(first.rows, 1)

    def _needs_decoding(self, message: Message) -> bool:
        return message.is_compressed or self._messages.is_little != (sys.byteorder == "little")

    def load(self, block: int) -> tuple[Any, FileMemory | None]:
        """Return the requested columns of a record batch."""
        with _reader_errors(self.name):
            return self._batch(block, self._fields)

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        found = []
        with _reader_errors(self.name):
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
        """Return columns of a record batch, and its memory if that is loaded on demand.

        The memory has the layout of a stream: schema, dictionaries, and the batch.
        """
        batch = self._messages.batches[number]
        before = [self._messages.schema, *self._messages.dictionaries[: batch.dictionaries]]
        body = sum(each.metadata_bytes + each.body_bytes for each in before) + batch.metadata_bytes
        memory = reserved(body + batch.body_bytes)
        place = 0
        for message in before:
            place = self._copy(message, memory, place, is_dictionary=place > 0)
        if self._needs_decoding(batch):
            self._copy(batch, memory, place, is_dictionary=False)
            part = None
        else:
            self._files.read(self._number, batch.offset, batch.metadata_bytes, memory[place:body])
            part = FileMemory(self._files, self._number, memory[body:], batch.body, self._files.mapped(self._number))
        options = pyarrow_ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        found = pyarrow_ipc.open_stream(pyarrow.py_buffer(memory), options=options).read_next_batch()
        if found.num_rows != batch.rows:
            raise _damaged(self.name, f"a record batch has {counted(found.num_rows, 'row')}, not {batch.rows}")
        if part is None:
            found.validate()
        return found, part

    def _copy(self, message: Message, memory: NDArray[np.uint8], place: int, *, is_dictionary: bool) -> int:
        """Read a message into memory; return the offset after it."""
        body, end = place + message.metadata_bytes, place + message.metadata_bytes + message.body_bytes
        self._files.read(self._number, message.offset, message.metadata_bytes, memory[place:body])
        self._files.read(self._number, message.body, message.body_bytes, memory[body:end])
        if message.is_compressed:
            decoded = uncompressed_bytes(memory[place:body].tobytes(), memory[body:end], is_dictionary)
            _check_expansion(decoded, message.body_bytes, f"a record batch of {self.name!r}")
        return end


class TableSource:
    """A table in memory or of a Hugging Face dataset.

    Args:
        holder: a pyarrow Table, or a picklable object with an attribute ``table``.
        columns: names of the requested columns.
        name: name for error messages.

    Raises:
        ArgumentValueError: a column does not exist.
        DTypeError: a column cannot be converted to arrays.
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
        """Return the state for pickling: the holder, which may contain only paths."""
        return {**self.__dict__, "_batches": None, "schema": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the holder."""
        self.__dict__.update(state)
        self.schema = self._table.schema

    @property
    def _table(self) -> Any:
        return getattr(self._holder, "table", self._holder)

    def _all_batches(self) -> list[Any]:
        return self._table.select(self._columns).to_batches()

    def load(self, block: int) -> tuple[Any, None]:
        """Return the requested columns of a record batch."""
        if self._batches is None:
            self._batches = self._all_batches()
        return self._batches[block], None

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        return self._table.column(name)


def source_of_file(files: TableFiles, number: int, columns: Sequence[str]) -> ArrowSource:
    """Return the source for a file; the contents determine the format.

    Raises:
        ReaderError: the file is absent, damaged, or of another format.
        ArgumentValueError: a column does not exist.
        DTypeError: a column cannot be converted to arrays.
    """
    path = files.paths[number]
    with _reader_errors(path):
        start = _first_bytes(files, number)
    if start[:4] == _PARQUET:
        return ParquetSource(files, number, columns)
    if start[:4] == _FEATHER:
        raise ReaderError(
            f"{path!r} is a Feather version 1 file, which is not supported.",
            hint="Convert it: pyarrow.feather.write_feather(table, path).",
        )
    return ArrowFileSource(files, number, columns)


def open_sources(
    paths: Sequence[str], columns: Sequence[str], kind: Callable[..., ArrowSource], *, memory_map: bool = False
) -> list[ArrowSource]:
    """Return the sources for files; remote files are opened concurrently.

    Args:
        paths: paths of the files.
        columns: names of the requested columns.
        kind: ``ParquetSource``, or ``source_of_file`` to detect the format.
        memory_map: whether values of Arrow files are views of memory maps.

    Raises:
        ReaderError, ArgumentValueError, DTypeError: see ``kind``.
    """
    if not paths:
        raise ReaderError("the list of paths is empty.")
    files = TableFiles(paths, memory_map)
    openings = [partial(kind, files, number, columns) for number in range(len(paths))]
    return in_parallel(openings) if files.is_remote else [opening() for opening in openings]


def check_columns(schema: Any, columns: Sequence[str], where: str) -> None:
    """Check that each column exists exactly once and can be converted to arrays.

    Raises:
        ArgumentValueError: a column does not exist, or several have this name.
        DTypeError: a column cannot be converted to arrays.
    """
    for name in columns:
        found = schema.names.count(name)
        if found != 1:
            what = f"no column {name!r}" if not found else f"{counted(found, 'column')} {name!r}"
            raise ArgumentValueError(
                f"{where} has {what}.{suggestion(name, schema.names)}",
                hint=f"Available: {', '.join(schema.names[:30])}.",
            )
        check_type(schema.field(name).type, name, where)


def _is_byte_string(kind: Any) -> bool:
    """Return whether values, or the fields ``bytes`` of structs, are byte strings or text."""
    types = pyarrow.types
    if types.is_struct(kind):
        kind = kind.field("bytes").type
    checks = (types.is_binary, types.is_large_binary, types.is_string, types.is_large_string)
    return any(check(kind) for check in checks)


def _leaf(kind: Any, name: str) -> str:
    """Return the name of the field ``bytes`` of a column that is a struct, otherwise the name of the column."""
    return f"{name}.bytes" if pyarrow.types.is_struct(kind) else name


def _has_null_bytes(column: Any) -> bool:
    """Return whether a column is a struct with a null in its fields."""
    if not pyarrow.types.is_struct(column.type):
        return False
    return any(field.null_count for chunk in column.chunks for field in chunk.flatten())


def _is_within(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _first_bytes(files: OpenFiles, number: int) -> bytes:
    return files.read(number, 0, min(len(_ARROW), files.size(number))).tobytes()


def _check_kind(start: bytes, path: str) -> None:
    """Check by its first bytes that a file is a Parquet file."""
    if start[:4] != _PARQUET and start:
        is_arrow = start.startswith((_ARROW, _FEATHER))
        raise ReaderError(
            f"{path!r} is not a Parquet file.",
            hint="It is an Arrow file: use fn.readers.arrow(source=...)." if is_arrow else "",
        )


def _check_expansion(decoded_bytes: int, stored_bytes: int, what: str) -> None:
    """Reject data above the size limit whose declared compression ratio is above the maximum."""
    if decoded_bytes > _MAX_COMPRESSION_RATIO * max(stored_bytes, 1):
        limits.check_sample_bytes(decoded_bytes, what)


def _damaged(path: str, reason: str) -> ReaderError:
    return ReaderError(f"the file {path!r} is damaged or of another format: {reason.rstrip('.')}.")


@contextmanager
def _reader_errors(path: str) -> Iterator[None]:
    """Add the path of the file to errors raised while reading it."""
    try:
        yield
    except DalifyError:
        raise
    except Exception as error:  # from pyarrow or Python, for example names that are not UTF-8
        raise _damaged(path, str(error)[:300] or type(error).__name__) from error
