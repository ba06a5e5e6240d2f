"""Checks the number of samples that the tables of an MP4 or QuickTime file declare.

FFmpeg allocates an entry for each declared sample when it opens a file, and two of the tables can declare billions of
samples in a few bytes. So they are first checked against the size of the file: a sample has at least one byte.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from dalify.base.errors import DecodeError
from dalify.base.limits import check_count
from dalify.base.regular_files import open_regular
from dalify.base.wording import counted

_FIRST_BOXES = frozenset({b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"udta", b"styp", b"moof"})
_CONTAINERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf"})
_MAX_DEPTH = 8
_MAX_BOXES = 1_000_000
_MAX_HEADER_BYTES = 64 << 20  # of a compressed header


def check_declared_samples(source: str | bytes) -> None:
    """Check the number of declared samples against the size of a file. Other formats are ignored.

    Raises:
        DecodeError: the file is empty, or there are more samples than bytes.
        LimitError: there are more samples than ``max_declared_samples``.
        OSError: the file cannot be read.
    """
    # FFmpeg would wait for the writer of a pipe.
    with io.BytesIO(source) if isinstance(source, bytes) else open(open_regular(source), "rb") as file:  # noqa: PTH123
        head = file.read(8)
        if not head:
            raise DecodeError("cannot open the video: it is empty (0 bytes).")
        if head[4:] not in _FIRST_BOXES:
            return
        size_bytes = file.seek(0, io.SEEK_END)
        declared = 0
        for count, sample_bytes in _declarations(file, 0, size_bytes):
            declared += count
            if count * sample_bytes > size_bytes or declared > size_bytes:
                raise DecodeError(
                    f"the video is damaged: its {size_bytes:,} bytes declare {counted(count, 'sample')} of "
                    f"{sample_bytes:,} bytes."
                )
            check_count(declared, f"the video declares {counted(declared, 'sample')}")


def _declarations(
    file: BinaryIO, position: int, end: int, depth: int = 0, *, is_inflated: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield the number of samples declared without an entry for each, and the minimum size of a sample."""
    boxes = 0
    while position + 8 <= end:
        boxes += 1
        if boxes > _MAX_BOXES:
            raise DecodeError(f"the video is damaged: more than {_MAX_BOXES:,} boxes.")
        file.seek(position)
        head = file.read(24)
        if len(head) < 8:
            return
        length, kind = struct.unpack_from(">I4s", head)
        start = position + 8
        if length == 1 and len(head) >= 16:
            (length,) = struct.unpack_from(">Q", head, 8)
            start += 8
        following = end if length == 0 else position + length
        if following < start:
            return
        contents_end = min(following, end)
        if kind in _CONTAINERS and depth < _MAX_DEPTH:
            yield from _declarations(file, start, contents_end, depth + 1, is_inflated=is_inflated)
        elif kind == b"stsz":
            file.seek(start)
            fields = file.read(12)
            if len(fields) == 12:
                sample_bytes, count = struct.unpack_from(">II", fields, 4)
                if sample_bytes:
                    yield count, sample_bytes
        elif kind == b"trun":
            file.seek(start)
            fields = file.read(8)
            if len(fields) == 8:
                yield struct.unpack_from(">I", fields, 4)[0], 1
        elif kind == b"cmov":
            if is_inflated:  # each level may be a thousand times as large as the previous one
                raise DecodeError("the video is damaged: its compressed header contains another compressed header.")
            file.seek(start)
            header = _inflated(file.read(min(contents_end - start, _MAX_HEADER_BYTES)))
            yield from _declarations(io.BytesIO(header), 0, len(header), is_inflated=True)
        position = following


def _inflated(box: bytes) -> bytes:
    """Return the contents of a compressed header, at most 64 MiB."""
    start = box.find(b"cmvd")
    if start < 0:
        return b""
    inflater = zlib.decompressobj()
    try:
        contents = inflater.decompress(box[start + 8 :], _MAX_HEADER_BYTES)
    except zlib.error:
        return b""
    if not inflater.eof:
        raise DecodeError("the video is damaged: its compressed header is too large or incomplete.")
    return contents
