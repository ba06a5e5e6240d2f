"""Reads from web servers, with checks that fsspec does not make.

fsspec accepts a response for another range, an endless body, and a truncated body if its length was not declared.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from dalify.base.optional import LazyModule

aiohttp = LazyModule("aiohttp", "reading from URLs", "dalify[remote]")

_CHUNK_BYTES = 1 << 18
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_PAGES = (".html", ".htm", ".xhtml", "/")
_OK, _PARTIAL, _RANGE_OUTSIDE = 200, 206, 416
_ABSENT, _REFUSED = (404, 410), (401, 403, 407, 451)
_FIRST_ERROR = 400


class BadResponseError(OSError):
    """A response that cannot be used; a retry may succeed.

    Attributes:
        retry_after_s: delay requested by the server; 0 if it does not specify one.
    """

    retry_after_s = 0.0


class FinalResponseError(OSError):
    """A response for which a retry does not help."""


class TooLongError(Exception):
    """A body is larger than allowed.

    Attributes:
        size_bytes: declared size, or the size received so far.
    """

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"a body of {size_bytes} bytes")
        self.size_bytes = size_bytes


@dataclass(frozen=True, slots=True)
class Response:
    """A response with bytes of a file.

    Attributes:
        contents: the bytes.
        is_reliable: whether the length was declared and the response is not a web page instead of a file. Unreliable
            responses are used but not cached.
        tag: version tag of the file, "" if the storage provides none.
    """

    contents: bytes
    is_reliable: bool = True
    tag: str = ""


def is_web(system: Any) -> bool:
    """Return whether an fsspec file system is the HTTP file system."""
    protocol = system.protocol
    return "http" in ((protocol,) if isinstance(protocol, str) else protocol)


async def fetch(system: Any, url: str, start: int, stop: int | None, max_bytes: int) -> Response:
    """Return bytes of a file on a web server.

    Args:
        system: the fsspec file system, with session, headers and credentials.
        url: URL of the file.
        start: first byte.
        stop: one past the last byte; None for all.
        max_bytes: maximum size of the body, also after decompression.

    Returns:
        the bytes; fewer if the file ends before `stop`.

    Raises:
        FileNotFoundError: the file does not exist.
        PermissionError: the server denies access.
        TooLongError: the body is larger than `max_bytes`.
        FinalResponseError: too many redirects.
        BadResponseError: any other response, for example that the server is busy.
        Exception: an exception of aiohttp, for example for a body that is shorter than declared.
    """
    is_part = start > 0 or stop is not None
    arguments = dict(system.kwargs)
    headers = {"Accept-Encoding": "identity", **arguments.pop("headers", {})}
    if is_part:
        headers["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
    session = await system.set_session()
    try:
        async with session.get(system.encode_url(url), headers=headers, **arguments) as response:
            return await _read_response(response, url, start, stop, max_bytes)
    except aiohttp.TooManyRedirects as error:
        raise FinalResponseError(f"too many redirects ({len(error.history)})") from None


async def _read_response(response: Any, url: str, start: int, stop: int | None, max_bytes: int) -> Response:
    is_part = start > 0 or stop is not None
    if response.status == _RANGE_OUTSIDE and is_part:
        return Response(b"")
    _check_status(response, url)
    is_encoded = response.headers.get("Content-Encoding", "identity").lower() not in ("identity", "")
    skipped, wanted = 0, None if stop is None else stop - start
    if response.status == _PARTIAL:
        if not is_part or is_encoded:
            raise BadResponseError("the server sent a range of the file that was not requested")
        wanted = _part_bytes(response.headers.get("Content-Range", ""), start, stop)
    elif is_part:  # the server does not support ranges, and sends the whole file
        skipped = start
    declared = None if is_encoded else response.content_length
    if declared is not None and declared - skipped > max_bytes and (wanted is None or wanted > max_bytes):
        raise TooLongError(declared)
    contents = bytearray()
    is_complete = False
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        if skipped >= len(chunk):
            skipped -= len(chunk)
            continue
        contents += memoryview(chunk)[skipped:]
        skipped = 0
        if wanted is not None and len(contents) >= wanted:
            is_complete = len(contents) == wanted or response.status == _OK
            del contents[wanted:]
            break
        if len(contents) > max_bytes:
            raise TooLongError(len(contents))
    if response.status == _PARTIAL and len(contents) != wanted:
        raise BadResponseError(f"the server sent {len(contents)} bytes instead of {wanted}")
    # aiohttp has verified a declared length or the last chunk.
    is_complete = is_complete or response.content_length is not None or "Transfer-Encoding" in response.headers
    is_page = response.content_type == "text/html" and not response.url.path.lower().endswith(_PAGES)
    tag = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
    return Response(bytes(contents), is_complete and not is_page, tag)


def _part_bytes(text: str, start: int, stop: int | None) -> int:
    """Return the number of bytes declared by the header of a range.

    Raises:
        BadResponseError: the header does not describe the requested range.
    """
    found = _CONTENT_RANGE.fullmatch(text.strip())
    if found is None:
        raise BadResponseError(f"the server sent an unspecified range of the file: {text!r}")
    first, end = int(found[1]), int(found[2]) + 1
    total = None if found[3] == "*" else int(found[3])
    expected = total if stop is None else stop if total is None else min(stop, total)
    if first != start or end <= first or (expected is not None and end != expected):
        requested = f"bytes {start}-{'' if stop is None else stop - 1}"
        raise BadResponseError(f"the server sent {text!r} instead of {requested}")
    return end - first


def _check_status(response: Any, url: str) -> None:
    status = response.status
    if status in (_OK, _PARTIAL):
        return
    text = f"{status} {response.reason or ''}".strip()
    if status in _ABSENT:
        raise FileNotFoundError(url)
    if status in _REFUSED:
        raise PermissionError(f"the server responded {text}")
    error = BadResponseError(f"the server responded {text}")
    error.retry_after_s = _seconds(response.headers.get("Retry-After", "")) if status >= _FIRST_ERROR else 0.0
    raise error


def _seconds(text: str) -> float:
    """Return the seconds of a header with a number of seconds or a date; 0 for other headers."""
    if re.fullmatch(r"\d{1,9}", text.strip()):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0
