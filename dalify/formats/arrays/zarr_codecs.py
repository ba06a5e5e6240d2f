"""Adds size checks to the codecs of ``numcodecs`` for reading Zarr.

Functions of the package are replaced, because some codecs, such as those within shards, cannot be replaced otherwise.
Checks for damaged data then apply to the whole process; limits apply only when dalify reads.
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from dalify.base import deflate, limits
from dalify.base.errors import ReaderError
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule

blosc = LazyModule("numcodecs.blosc", "reading Zarr", "dalify[zarr]")

# Versions, flags, element size, decompressed size, block size, compressed size.
_BLOSC_HEADER = struct.Struct("<BBBBIII")
_STRINGS = ("VLenUTF8", "VLenBytes", "VLenArray")
_COUNT = struct.Struct("<I")
_GZIP = 16 + zlib.MAX_WBITS
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK = 1 << 17
_LZMA_BYTES = 1 << 27  # the memory that decoding the highest preset needs
# Codecs for which trailing data after a complete stream is ignored, as in numcodecs.
_TRAILING = ("BZ2", "LZMA")

_lock = ForkLock()
_original: dict[str, Any] = {}
_limits_apply: ContextVar[bool] = ContextVar("dalify reads Zarr", default=False)


@contextmanager
def decoding() -> Iterator[None]:
    """Context manager that applies the limits to decoding in its block, on any thread of zarr."""
    _install_checks()
    token = _limits_apply.set(True)
    try:
        yield
    finally:
        _limits_apply.reset(token)


def _install_checks() -> None:
    with _lock:
        if _original or not hasattr(blosc, "decompress"):
            return
        _original["blosc"] = blosc.decompress
        module = importlib.import_module("numcodecs.blosc")
        module.decompress = _decompress_blosc  # pyright: ignore[reportAttributeAccessIssue]
        for module, name, decode in (
            *(("numcodecs.vlen", name, _decode_strings) for name in _STRINGS),
            ("numcodecs.gzip", "GZip", partial(_decode_stream, lambda codec: deflate.decompressobj(_GZIP))),
            ("numcodecs.zlib", "Zlib", partial(_decode_stream, lambda codec: deflate.decompressobj())),
            ("numcodecs.bz2", "BZ2", partial(_decode_stream, lambda codec: bz2.BZ2Decompressor())),
            ("numcodecs.lzma", "LZMA", partial(_decode_stream, _lzma)),
            ("numcodecs.zstd", "Zstd", _decode_zstd),
            ("numcodecs.lz4", "LZ4", _decode_lz4),
            ("numcodecs.pickles", "Pickle", _decode_pickle),
        ):
            with suppress(ImportError, AttributeError):  # optional codec
                _replace(getattr(importlib.import_module(module), name), decode)


def _replace(codec: type[Any], decode: Callable[..., Any]) -> None:
    original = codec.decode
    _original[codec.__name__] = original

    def checked(self: Any, buf: Any, out: Any = None) -> Any:
        return decode(self, original, buf, out)

    codec.decode = checked


def _decompress_blosc(buffer: Any, dest: Any = None) -> Any:
    """Decompress a buffer; see ``numcodecs.blosc.decompress``.

    Raises:
        ReaderError: the header of the buffer does not match its size.
        LimitError: the header declares a size above ``max_sample_bytes``.
    """
    view = memoryview(buffer).cast("B")
    if len(view) >= _BLOSC_HEADER.size:
        _, _, _, item_bytes, decompressed, block_bytes, compressed = _BLOSC_HEADER.unpack_from(view)
        is_valid = compressed == len(view) and item_bytes > 0 and 0 < block_bytes <= max(decompressed, 1)
        _check(decompressed, "Blosc")
        if is_valid or not decompressed:
            return _original["blosc"](buffer, dest)
    raise ReaderError("a chunk compressed with Blosc is damaged: its header does not match its size.")


def _decode_strings(codec: Any, original: Callable[..., Any], buf: Any, out: Any) -> Any:
    """Decode strings or lists of variable length; see ``numcodecs.vlen``.

    Raises:
        ReaderError: the chunk is too short for the declared number of strings.
    """
    view = memoryview(buf).cast("B")
    if len(view) >= _COUNT.size and _COUNT.unpack_from(view)[0] > len(view) // _COUNT.size:
        raise ReaderError("a chunk of strings is damaged: it is too short for the declared number of strings.")
    return original(codec, buf, out)


def _check(size: int, name: str) -> None:
    if _limits_apply.get():
        limits.check_sample_bytes(size, f"a chunk compressed with {name}")


def _decode_stream(make: Callable[[Any], Any], codec: Any, original: Callable[..., Any], buf: Any, out: Any) -> Any:
    """Decompress data of undeclared size, and stop at the limit.

    Raises:
        ReaderError: the data is damaged.
        LimitError: the decompressed size is above ``max_sample_bytes``.
    """
    if not _limits_apply.get():
        return original(codec, buf, out)
    name = type(codec).__name__
    max_bytes = limits.current().max_sample_bytes
    pieces: list[bytes] = []
    left: Any = memoryview(buf).cast("B")
    size = 0
    while left or not pieces:  # there may be several streams
        stream = make(codec)
        try:
            while not stream.eof:
                piece = stream.decompress(left, max_bytes - size + 1)
                left = getattr(stream, "unconsumed_tail", b"")
                pieces.append(piece)
                size += len(piece)
                _check(size, name)
                if not piece and not left and not stream.eof:
                    raise EOFError("it is truncated")
        except (EOFError, OSError, deflate.DeflateError, lzma.LZMAError) as error:
            if size and name in _TRAILING:
                break
            raise ReaderError(f"a chunk compressed with {name} is damaged: {error}.") from None
        left = b"" if name == "Zlib" else stream.unused_data.lstrip(b"\0")
    copy: Any = importlib.import_module("numcodecs.compat").ndarray_copy
    return copy(pieces[0] if len(pieces) == 1 else b"".join(pieces), out)


def _lzma(codec: Any) -> Any:
    if codec.format == lzma.FORMAT_RAW:
        return lzma.LZMADecompressor(codec.format, filters=codec.filters)
    max_bytes = max(limits.current().max_sample_bytes, _LZMA_BYTES)
    return lzma.LZMADecompressor(codec.format, memlimit=max_bytes)


def _decode_lz4(codec: Any, original: Callable[..., Any], buf: Any, out: Any) -> Any:
    view = memoryview(buf).cast("B")
    if len(view) >= _COUNT.size:
        _check(_COUNT.unpack_from(view)[0], "LZ4")
    return original(codec, buf, out)


def _decode_zstd(codec: Any, original: Callable[..., Any], buf: Any, out: Any) -> Any:
    if _limits_apply.get():
        _check(_zstd_bytes(memoryview(buf).cast("B")), "Zstd")
    return original(codec, buf, out)


def _zstd_bytes(view: memoryview) -> int:
    """Return the declared or maximum size of the first Zstandard frame; see RFC 8878."""
    if bytes(view[:4]) != _ZSTD_MAGIC or len(view) < 6:
        return 0
    flags = view[4]
    size_bytes = (int(bool(flags & 0x20)), 2, 4, 8)[flags >> 6]
    place = 5 + (not flags & 0x20) + (0, 1, 2, 4)[flags & 3]
    if size_bytes:
        return int.from_bytes(view[place : place + size_bytes], "little") + (256 if size_bytes == 2 else 0)
    total = 0
    while place + 3 <= len(view):
        header = int.from_bytes(view[place : place + 3], "little")
        kind, count = header >> 1 & 3, header >> 3
        total += _ZSTD_BLOCK if kind == 2 else count
        place += 3 + (1 if kind == 1 else count)
        if header & 1:
            break
    return total


def _decode_pickle(codec: Any, original: Callable[..., Any], buf: Any, out: Any) -> Any:
    if _limits_apply.get():
        raise ReaderError("a chunk contains pickled objects, which can run any code and are never loaded.")
    return original(codec, buf, out)
