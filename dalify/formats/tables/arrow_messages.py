"""Finds the messages of an Arrow file or stream: schema, dictionaries, record batches.

Only the metadata of messages is read. All numbers are checked against the size of the file. Source: the specification
of Arrow's IPC format, its Message.fbs and File.fbs, and the internals of FlatBuffers.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base import limits
from dalify.base.errors import ReaderError
from dalify.base.wording import counted
from dalify.formats.files.open_files import OpenFiles

_MAGIC, _MAGIC_BYTES = b"ARROW1", 8  # including padding to a multiple of eight
_CONTINUATION = 0xFFFFFFFF
_MAX_METADATA_BYTES = 1 << 28
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_BLOCK = struct.Struct("<qi4xq")  # of a message: offset, size of the metadata, size of the body
_BUFFER = struct.Struct("<qq")  # offset and size


class Message(NamedTuple):
    """Position and size of a message.

    Attributes:
        offset: offset of the first byte in the file.
        metadata_bytes: size of the metadata, including its size prefix.
        body: offset of the body in the file.
        body_bytes: size of the body.
        rows: number of rows of a record batch.
        is_compressed: whether the buffers of the body are compressed.
        dictionaries: number of dictionaries before the message, or of all dictionaries of the file.
    """

    offset: int
    metadata_bytes: int
    body: int
    body_bytes: int
    rows: int = 0
    is_compressed: bool = False
    dictionaries: int = 0


class Messages(NamedTuple):
    """The messages of a file.

    Attributes:
        schema: the message with the names and types of columns.
        is_little: whether numbers are little-endian.
        is_stream: whether the file is a stream, without a footer that lists the messages.
        dictionaries: dictionary messages, in file order.
        batches: record batch messages, in file order.
    """

    schema: Message
    is_little: bool
    is_stream: bool
    dictionaries: list[Message]
    batches: list[Message]


class _DamagedError(Exception):
    """An offset or size is out of bounds."""


class _Table:
    """A FlatBuffers table: numbered, optional fields."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data = data
        self._place = place
        self._fields = place - self._at("<i", place)
        self._fields_end = self._fields + self._at("<H", self._fields)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """Return the root table of a message."""
        return cls(data, _Table._of(data, "<I", 0))

    @staticmethod
    def _of(data: bytes, kind: str, place: int) -> int:
        if not 0 <= place <= len(data) - struct.calcsize(kind):
            raise _DamagedError
        return struct.unpack_from(kind, data, place)[0]

    def _at(self, kind: str, place: int) -> int:
        return self._of(self._data, kind, place)

    def _field(self, number: int) -> int:
        """Return the offset of a field, or 0 if it is absent."""
        entry = self._fields + 4 + 2 * number
        offset = self._at("<H", entry) if entry + 2 <= self._fields_end else 0
        return self._place + offset if offset else 0

    def integer(self, number: int, kind: str) -> int:
        """Return an integer, or 0 if it is absent."""
        place = self._field(number)
        return self._at(kind, place) if place else 0

    def has(self, number: int) -> bool:
        """Return whether a field is present."""
        return self._field(number) != 0

    def table(self, number: int) -> _Table:
        """Return a nested table."""
        place = self._field(number)
        if not place:
            raise _DamagedError
        return _Table(self._data, place + self._at("<I", place))

    def records(self, number: int, kind: struct.Struct) -> list[tuple[int, ...]]:
        """Return a list of numbers, such as offset and size of buffers; empty if it is absent."""
        place = self._field(number)
        if not place:
            return []
        start = place + self._at("<I", place)
        end = start + 4 + self._at("<I", start) * kind.size
        if end > len(self._data):
            raise _DamagedError
        return list(kind.iter_unpack(self._data[start + 4 : end]))


class _File:
    """An Arrow file, read message by message."""

    def __init__(self, files: OpenFiles, number: int) -> None:
        self._files = files
        self._number = number
        self.size = files.size(number)

    def bytes(self, start: int, size: int) -> bytes:
        if not 0 <= start <= start + size <= self.size or size > _MAX_METADATA_BYTES:
            raise _DamagedError
        return self._files.read(self._number, start, size, is_sample=False).tobytes()

    def message(self, offset: int) -> tuple[int, Message, _Table] | None:
        """Return kind and position of the message at an offset, and its contents; None at the end of a stream.

        Messages of old files have no continuation marker before their size.
        """
        if offset == self.size:
            return None
        head = self.bytes(offset, min(8, self.size - offset)).ljust(8, b"\0")
        first, second = struct.unpack("<Ii", head)
        size, prefix = (second, 8) if first == _CONTINUATION else (first, 4)
        if size == 0:
            return None
        data = self.bytes(offset + prefix, size)
        table = _Table.root(data)
        kind, body_bytes = table.integer(1, "<B"), table.integer(3, "<q")
        found = Message(offset, prefix + size, offset + prefix + size, body_bytes)
        if kind in (_DICTIONARY, _BATCH):
            contents = table.table(2) if kind == _BATCH else table.table(2).table(1)
            rows = contents.integer(0, "<q")
            if rows < 0:
                raise _DamagedError
            found = found._replace(rows=rows, is_compressed=contents.has(3))
        self._check_body(found)
        return kind, found, table

    def _check_body(self, message: Message) -> None:
        if not 0 <= message.body_bytes <= self.size - message.body:
            raise _DamagedError

    def messages(self) -> Messages:
        is_file = self.bytes(0, min(len(_MAGIC), self.size)) == _MAGIC
        start = self.message(_MAGIC_BYTES if is_file else 0)
        if start is None or start[0] != _SCHEMA:
            raise _DamagedError
        _, schema, table = start
        is_little = table.table(2).integer(0, "<h") == 0
        found = self._by_footer() if is_file else self._one_by_one(schema.body + schema.body_bytes)
        return Messages(schema, is_little, not is_file, *found)

    def _by_footer(self) -> tuple[list[Message], list[Message]]:
        tail = self.bytes(self.size - 10, 10)
        size = struct.unpack_from("<i", tail)[0]
        if tail[4:] != _MAGIC or size <= 0:
            raise _DamagedError
        footer = _Table.root(self.bytes(self.size - 10 - size, size))
        lists: list[list[Message]] = []
        for number, wanted in ((2, _DICTIONARY), (3, _BATCH)):
            places = footer.records(number, _BLOCK)
            limits.check_count(len(places), f"the Arrow file declares {len(places):,} messages")
            # Messages do not overlap. Without this check, many entries could refer to the same large message.
            if sum(max(metadata_bytes, 0) + max(body_bytes, 0) for _, metadata_bytes, body_bytes in places) > self.size:
                raise _DamagedError
            lists.append([self._at_block(block, wanted) for block in places])
        dictionaries, batches = lists
        return dictionaries, [batch._replace(dictionaries=len(dictionaries)) for batch in batches]

    def _at_block(self, block: tuple[int, ...], wanted: int) -> Message:
        offset, metadata_bytes, body_bytes = block
        found = self.message(offset)
        if found is None or found[0] != wanted or found[1].metadata_bytes > metadata_bytes:
            raise _DamagedError
        # The footer has the start of the body, because there may be padding before it.
        message = found[1]._replace(body=offset + metadata_bytes)
        if message.body_bytes > body_bytes:
            raise _DamagedError
        self._check_body(message)
        return message

    def _one_by_one(self, place: int) -> tuple[list[Message], list[Message]]:
        dictionaries: list[Message] = []
        batches: list[Message] = []
        while (found := self.message(place)) is not None:
            kind, message, _ = found
            if kind == _BATCH:
                batches.append(message._replace(dictionaries=len(dictionaries)))
            elif kind == _DICTIONARY:
                dictionaries.append(message)
            else:
                raise _DamagedError
            place = message.body + message.body_bytes
        return dictionaries, batches


def uncompressed_bytes(metadata: bytes, body: NDArray[np.uint8], is_dictionary: bool) -> int:
    """Return the uncompressed size that the buffers of a message declare.

    Args:
        metadata: metadata of the message, including its size prefix.
        body: body of the message, uint8 ``[n]``.
        is_dictionary: whether the message is a dictionary; otherwise it is a record batch.

    Raises:
        ReaderError: the message is damaged.
    """
    try:
        prefix = 8 if metadata.startswith(b"\xff\xff\xff\xff") else 4
        table = _Table.root(metadata[prefix:]).table(2)
        total = 0
        for offset, size in (table.table(1) if is_dictionary else table).records(2, _BUFFER):
            if size <= 0:
                continue
            if offset < 0 or size < 8 or offset + size > len(body):
                raise _DamagedError
            declared = struct.unpack_from("<q", body.data, offset)[0]
            total += size if declared < 0 else declared
    except _DamagedError:
        raise ReaderError("the data is damaged: a buffer is outside its message.") from None
    return total


def messages_of(files: OpenFiles, number: int) -> Messages:
    """Return the messages of a file.

    Raises:
        ReaderError: the file cannot be read, is not an Arrow file, or is damaged.
        LimitError: the file declares more rows or messages than ``max_declared_samples``.
    """
    try:
        found = _File(files, number).messages()
    except _DamagedError:
        raise ReaderError(
            f"the file {files.paths[number]!r} is not a valid Arrow file: it is damaged, truncated or of another "
            "format.",
        ) from None
    rows = sum(batch.rows for batch in found.batches)
    limits.check_count(rows, f"the Arrow file {files.paths[number]!r} declares {counted(rows, 'row')}")
    return found
