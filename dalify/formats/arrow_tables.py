"""Where Arrow data are: Parquet and Arrow files, tables in memory, data sets of Hugging Face.

Alone because each kind is opened, counted and read in its own way; from here on they are blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError, suggestion
from dalify.base.optional import LazyModule
from dalify.formats import storage
from dalify.formats.arrow_columns import check_type
from dalify.formats.remote_file import RemoteFile

pyarrow = LazyModule("pyarrow", "reading Arrow and Parquet", "dalify[arrow]")
pyarrow_ipc = LazyModule("pyarrow.ipc", "reading Arrow files", "dalify[arrow]")
pyarrow_parquet = LazyModule("pyarrow.parquet", "reading Parquet", "dalify[arrow]")

__all__ = [
    "ArrowFileSource",
    "ArrowSource",
    "ParquetSource",
    "TableSource",
    "check_columns",
    "opened",
    "source_of_file",
]

_OPENED_AT_ONCE = 16
_PARQUET, _ARROW, _FEATHER = b"PAR1", b"ARROW1", b"FEA1"


class ArrowSource(Protocol):
    """Rows in blocks.

    Attributes:
        name: path or kind, for messages.
        folder: to which paths in the rows are relative.
        entries: rows of each block.
        size_bytes: memory that each block takes; 0 where it is only looked at.
        schema: names and types of all columns.
    """

    name: str
    folder: str
    entries: list[int]
    size_bytes: list[int]
    schema: Any

    def load(self, block: int) -> Any:
        """Return the wanted columns of a block, a table or record batch."""
        ...

    def whole_column(self, name: str) -> Any:
        """Return all values of one column, a pyarrow ChunkedArray."""
        ...


class ParquetSource:
    """A Parquet file; its row groups are the blocks.

    Args:
        path: on this machine, or a URL, of which only the wanted columns of the wanted row groups are read.
        columns: names of the wanted columns.

    Raises:
        ReaderError: the file is absent, damaged, or no Parquet file.
        ArgumentValueError: a column that is not there.
        DTypeError: a column of which no arrays can be made.
    """

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        self.name = path
        self.folder = storage.folder_of(path)
        self._columns = list(columns)
        file = self._opened()
        self.schema = file.schema_arrow
        check_columns(self.schema, columns, repr(path))
        self._metadata: Any = file.metadata
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        self.entries = [group.num_rows for group in groups]
        wanted = [
            number
            for number in range(file.metadata.num_columns)
            if any(_is_within(file.metadata.schema.column(number).path, name) for name in columns)
        ]
        self.size_bytes = [sum(group.column(each).total_uncompressed_size for each in wanted) for group in groups]

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: not what the file says of itself, which may be long."""
        return {**self.__dict__, "_metadata": None}

    def load(self, block: int) -> Any:
        """Return the wanted columns of a row group."""
        # A file object has a position, so each thread that reads has its own; what it says of itself is kept.
        file = self._opened(self._metadata)
        self._metadata = file.metadata
        with _told(self.name, "read"):
            return file.read_row_group(block, columns=self._columns, use_threads=False)

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        file = self._opened(self._metadata)
        with _told(self.name, "read"):
            return file.read(columns=[name], use_threads=False).column(0)

    def _opened(self, metadata: Any = None) -> Any:
        is_remote = storage.is_remote(self.name)
        with _told(self.name, "open"):
            start = _beginning(self.name)
            if start[:4] != _PARQUET and start:
                is_arrow = start.startswith((_ARROW, _FEATHER))
                raise ReaderError(
                    f"{self.name!r} is no Parquet file.",
                    hint="It is an Arrow file: use fn.readers.arrow(source=...)." if is_arrow else "",
                )
            file = RemoteFile(self.name) if is_remote else self.name
            return pyarrow_parquet.ParquetFile(
                file,
                metadata=metadata,
                memory_map=not is_remote,
                pre_buffer=is_remote,
                page_checksum_verification=True,  # of files that have them
            )


class ArrowFileSource:
    """An Arrow file or stream (Feather too); its record batches are the blocks.

    What is not compressed is looked at where it lies, in memory that the system maps and may share and drop. Batches of
    compressed files are taken apart when they are needed, those of compressed streams all at once.

    Args:
        path: on this machine, or a URL, which is copied once.
        columns: names of the wanted columns.

    Raises:
        ReaderError: the file is absent, damaged, or no Arrow file.
        ArgumentValueError: a column that is not there.
        DTypeError: a column of which no arrays can be made.
    """

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        self.name = path
        self.folder = storage.folder_of(path)
        self._columns = list(columns)
        with _told(path, "read"):
            self._is_stream = _beginning(storage.local_copy(path))[:6] != _ARROW
            reader, mapped = self._opened(None)
            self.schema = reader.schema
            check_columns(self.schema, columns, repr(path))
            self._fields = [self.schema.get_field_index(name) for name in columns]
            reader, mapped = self._opened(self._fields)
            self._is_mapped = self._is_stream or not reader.num_record_batches or _lies_in(reader.get_batch(0), mapped)
            self._batches = self._all_batches()
            if self._batches is not None:
                self.entries = [batch.num_rows for batch in self._batches]
                self.size_bytes = [0] * len(self.entries)
            else:
                first = reader.get_batch(0)
                # One column is enough to count rows; a narrow one is soonest taken apart.
                narrow = next((n for n, field in enumerate(self.schema) if _is_narrow(field.type)), 0)
                counting, _ = self._opened([narrow])
                self.entries = [counting.get_batch(n).num_rows for n in range(reader.num_record_batches)]
                row_bytes = first.nbytes / max(first.num_rows, 1)
                self.size_bytes = [int(count * row_bytes) for count in self.entries]

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: nothing that is open."""
        return {**self.__dict__, "_batches": None}

    def load(self, block: int) -> Any:
        """Return the wanted columns of a record batch."""
        with _told(self.name, "read"):
            if self._batches is None:
                self._batches = self._all_batches()
            if self._batches is None:
                return self._opened(self._fields)[0].get_batch(block)
            return self._batches[block]

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        with _told(self.name, "read"):
            reader, _ = self._opened([self.schema.get_field_index(name)])
            return reader.read_all().column(0)

    def _opened(self, fields: list[int] | None) -> tuple[Any, Any]:
        """Return a reader of some columns, and the memory in which the file lies."""
        mapped = pyarrow.memory_map(storage.local_copy(self.name)).read_buffer()
        options = pyarrow_ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        opened = pyarrow_ipc.open_stream if self._is_stream else pyarrow_ipc.open_file
        return opened(mapped, options=options), mapped

    def _all_batches(self) -> list[Any] | None:
        """Return the batches where that costs no memory, or there is no other way."""
        if not self._is_mapped:
            return None
        reader, _ = self._opened(self._fields)
        if self._is_stream:
            return list(reader)
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]


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

    def load(self, block: int) -> Any:
        """Return the wanted columns of a record batch."""
        if self._batches is None:
            self._batches = self._all_batches()
        return self._batches[block]

    def whole_column(self, name: str) -> Any:
        """Return all values of one column."""
        return self._table.column(name)


def source_of_file(path: str, columns: Sequence[str]) -> ArrowSource:
    """Return the source for a file, whatever its name says.

    Raises:
        ReaderError: the file is absent, damaged, or of another kind.
        ArgumentValueError: a column that is not there.
        DTypeError: a column of which no arrays can be made.
    """
    with _told(path, "open"):
        start = _beginning(path)
    if start[:4] == _PARQUET:
        return ParquetSource(path, columns)
    if start[:4] == _FEATHER:
        raise ReaderError(
            f"{path!r} is a Feather file of version 1, which is not supported.",
            hint="Write it anew: pyarrow.feather.write_feather(table, path).",
        )
    return ArrowFileSource(path, columns)


def opened(paths: Sequence[str], columns: Sequence[str], kind: Callable[..., ArrowSource]) -> list[ArrowSource]:
    """Return the sources for files; those on other machines are asked at once what they hold.

    Args:
        paths: of the files.
        columns: names of the wanted columns.
        kind: ``ParquetSource``, or ``source_of_file`` where the files tell.

    Raises:
        ReaderError, ArgumentValueError, DTypeError: see there.
    """
    if not any(map(storage.is_remote, paths)):
        return [kind(path, columns) for path in paths]
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        return list(pool.map(kind, paths, [columns] * len(paths)))


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


def _is_narrow(kind: Any) -> bool:
    return pyarrow.types.is_primitive(kind)


def _lies_in(batch: Any, mapped: Any) -> bool:
    """Tell whether all data of a batch are parts of a piece of memory."""
    start, stop = mapped.address, mapped.address + mapped.size
    buffers = [each for column in batch.columns for each in column.buffers() if each is not None and each.size]
    return all(start <= each.address < stop for each in buffers)


def _beginning(path: str) -> bytes:
    if storage.is_remote(path):
        return storage.read(path, 0, min(6, storage.size_of(path))).tobytes()
    with Path(path).open("rb") as file:
        return file.read(6)


@contextmanager
def _told(path: str, what: str) -> Iterator[None]:
    """Say which file it was when reading it fails."""
    try:
        yield
    except DalifyError:
        raise
    except FileNotFoundError:
        raise ReaderError(f"cannot {what} the file {path!r}: there is no such file.") from None
    except IsADirectoryError:
        raise ReaderError(f"{path!r} is a folder.", hint="Give the files in it.") from None
    except OSError as error:
        raise ReaderError(f"cannot {what} the file {path!r}: {str(error)[:300]}.") from None
    except pyarrow.ArrowException as error:
        raise ReaderError(f"the file {path!r} is damaged, or of another kind: {str(error)[:300]}") from None
