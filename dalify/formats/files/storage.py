"""Reads remote files: any URL that fsspec supports, with retries and a cache on disk."""

from __future__ import annotations

import codecs
import itertools
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from dalify.base import limits
from dalify.base.bad_data import add_listener
from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError
from dalify.base.exit_hook import at_exit
from dalify.base.fork_hook import Owner
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule, fsspec
from dalify.base.regular_files import read_regular
from dalify.base.whole_files import write_whole
from dalify.data.sample_memory import check_cache_folder
from dalify.formats.files.disk_cache import DiskCache, file_name
from dalify.formats.files.positions import opening_hint
from dalify.formats.files.web import FinalResponseError, Response, TooLongError, fetch, is_web

if TYPE_CHECKING:
    import asyncio
else:  # local files do not need it
    asyncio = LazyModule("asyncio", "reading from URLs")
fsspec_asyn = LazyModule("fsspec.asyn", "reading from URLs", "dalify[remote]")

T = TypeVar("T")
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# Files that the process has inherited: pipes in the place of lists, as in ``file_list=<(ls)`` of a shell.
_OPENED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_FIRST_WAIT_S = 0.2
_MAX_WAIT_S = 10.0
_PART_BYTES = 32 << 20  # size of a request when a file is copied
# Errors for which a retry does not help.
_FINAL_ERRORS = (
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
    ImportError,
    FinalResponseError,
)
_URL = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"<>]+")


class _Requests(NamedTuple):
    """Options for requests; see `configure`."""

    timeout_s: float = 30.0
    retries: int = 4


_CACHE_BYTES = 10 << 30
_FOLDER_OF_ENVIRONMENT = os.environ.get("DALIFY_CACHE") or None
_requests = _Requests()
if _FOLDER_OF_ENVIRONMENT is not None:
    check_cache_folder("the environment variable DALIFY_CACHE", _FOLDER_OF_ENVIRONMENT)
_cache = None if _FOLDER_OF_ENVIRONMENT is None else DiskCache(_FOLDER_OF_ENVIRONMENT, _CACHE_BYTES)
_lock = ForkLock()


def configure(
    *,
    cache_folder: str | os.PathLike[str] | None = _FOLDER_OF_ENVIRONMENT,
    cache_bytes: int = _CACHE_BYTES,
    timeout_s: float = 30.0,
    retries: int = 4,
) -> None:
    """Set how remote files are read from now on, for all readers of this process.

    Server addresses, credentials and so on are settings of fsspec: ``fsspec.config.conf["s3"] = {...}``.

    Args:
        cache_folder: folder for copies of remote data; None: no cache. Default: the folder in the environment variable
            DALIFY_CACHE at process start, or no cache. Files are assumed not to change. Copies are readable only by
            this user, and verified on each use. A copy that cannot be decoded is deleted and fetched again.
        cache_bytes: maximum size of the cache; least recently used data is deleted. Containers that are copied as a
            whole count, but stay while they are in use.
        timeout_s: maximum time of one response, from the request to its last byte. A file that is copied is requested
            in parts of 32 MiB.
        retries: number of retries, after 0.2 s, 0.4 s and so on up to 10 s; later if the server asks for it
            (``Retry-After``), but after `timeout_s` at the latest.

    Raises:
        ArgumentValueError: a value out of range, or a folder that is not a local path.
    """
    global _requests, _cache
    if not cache_bytes > 0 or not timeout_s > 0 or retries < 0:
        raise ArgumentValueError(
            "cache_bytes and timeout_s must be positive, and retries must not be negative; got "
            f"cache_bytes={cache_bytes}, timeout_s={timeout_s}, retries={retries}."
        )
    if cache_folder is not None:
        check_cache_folder("cache_folder", os.fspath(cache_folder))
    _requests = _Requests(timeout_s, retries)
    _cache = None if cache_folder is None else DiskCache(os.fspath(cache_folder), cache_bytes)


def is_remote(path: str) -> bool:
    """Return whether a path is a URL: ``s3://…``, ``https://…``, ``memory://…``."""
    return "://" in path


def joined(root: str | None, name: str) -> str:
    """Append a name to a folder; absolute paths and URLs are returned unchanged."""
    if not root or is_remote(name):
        return name
    return f"{root.rstrip('/')}/{name}" if is_remote(root) else os.path.join(root, name)  # noqa: PTH118 -- called often


def prefix_of(folder: str) -> str:
    """Return the prefix of the paths of files in a folder."""
    return f"{folder.rstrip('/')}/" if is_remote(folder) else f"{Path(folder)}{os.sep}"


def folder_of(path: str) -> str:
    """Return the folder that contains a file."""
    return path.rpartition("/")[0] if is_remote(path) else str(Path(path).absolute().parent)


def read_text(path: str, what: str) -> str:
    """Return the contents of a text file, UTF-8, local or remote. A byte order mark at its start is omitted.

    Raises:
        ReaderError: the file is absent, cannot be read, or is encoded in UTF-16 or UTF-32.
    """
    contents = read(path).tobytes() if is_remote(path) else read_copy(path, what)
    text = without_mark(contents, path, what).decode("utf-8", "surrogateescape")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_mark(contents: bytes, path: str, what: str) -> bytes:
    """Return the contents of a text file without the byte order mark of UTF-8.

    Raises:
        ReaderError: the file is encoded in UTF-16 or UTF-32.
    """
    if contents.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        encoding = "UTF-32" if contents.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)) else "UTF-16"
        raise ReaderError(f"{what} {path!r} is encoded in {encoding}.", hint="Save it in UTF-8.")
    return contents.removeprefix(codecs.BOM_UTF8)


def read_copy(path: str, what: str) -> bytes:
    """Return the contents of a file, read from its local copy if it is remote.

    Raises:
        ReaderError: the file is absent or cannot be read.
    """
    try:
        if path.startswith(_OPENED):
            return Path(path).read_bytes()
        return read_regular(local_copy(path))
    except OSError as error:
        hint = opening_hint(path, error)
        raise ReaderError(f"cannot read {what} {path!r}: {error.strerror}.", hint=hint) from None


def read(url: str, start: int = 0, size: int | None = None) -> Bytes:
    """Return the bytes of a file, or of a range, as a new 1-D uint8 array.

    Args:
        url: URL of the file.
        start: first byte.
        size: number of bytes; None for all bytes from ``start`` on.

    Raises:
        ReaderError: the file is absent, is too short, or the storage does not respond.
        LimitError: a whole file is larger than ``max_sample_bytes``.
    """
    if size == 0:
        return np.empty(0, np.uint8)
    cache = _cache
    entry = None if cache is None else cache.entry_path(_key(url, start, size))
    if cache is not None and entry is not None:
        found = cache.read(entry)
        if found is not None and (size is None or len(found) == size):
            return found
    response = _fetch(url, start, None if size is None else start + size)
    if size is not None and len(response.contents) != size:
        raise ReaderError(f"the file {url!r} ends before byte {start + size}.")
    if cache is not None and entry is not None and response.is_reliable:
        cache.write_entry(entry, response.contents)
    return np.frombuffer(bytearray(response.contents), np.uint8)


def _key(url: str, start: int, size: int | None) -> str:
    return f"{url}@{start}+{size}"


def size_of(url: str) -> int:
    """Return the size of a file in bytes.

    Raises:
        ReaderError: the file is absent, or the storage does not respond or does not report the size.
    """
    size = _with_retries(url, lambda system, path: _call(system, "info", path)).get("size")
    if size is None:
        raise ReaderError(f"the storage does not report the size of {url!r}.")
    return int(size)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of a folder is a folder; False for a link that cannot be followed."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def list_folder(folder: str) -> tuple[list[str], list[str]]:
    """Return the names of the subfolders and of all other entries of a folder, unsorted; links are followed.

    Raises:
        ReaderError: the folder is absent or cannot be read, or the storage does not respond.
    """
    folders: list[str] = []
    files: list[str] = []
    if not is_remote(folder):
        try:
            with os.scandir(folder or ".") as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else files).append(entry.name)
        except OSError as error:
            hint = opening_hint(folder, error)
            raise ReaderError(f"cannot read the folder {folder!r}: {error.strerror}.", hint=hint) from None
        return folders, files

    def request(system: Any, path: str) -> list[dict[str, Any]]:
        system.invalidate_cache(path)  # the folder may have changed
        return _call(system, "ls", path, detail=True)

    for entry in _with_retries(folder, request):
        name = entry["name"].rstrip("/").rpartition("/")[2]
        if name not in ("", ".", ".."):
            (folders if entry["type"] == "directory" else files).append(name)
    return folders, files


def local_copy(path: str) -> str:
    """Return the path of a local copy, for files that must be read from beginning to end.

    The copy is in the cache. If there is no cache or it is full, the copy is in the folder for temporary files until
    the process ends. For a local file, its own path is returned.

    Raises:
        ReaderError: the file is absent, the storage does not respond, or there is no space for a copy.
    """
    if not is_remote(path):
        return path
    cache = _cache
    if cache is not None and cache.has_copy(copy := cache.copy_path(path)):
        cache.pin(copy, is_new=False)
        return str(copy)
    if (copy := _temporary_copy(path)) is not None and copy.exists():
        return str(copy)
    parts = _parts(path)
    first = next(parts)
    contents = itertools.chain([first.contents], (part.contents for part in parts))
    if cache is not None and cache.is_writable and first.is_reliable:
        copy = cache.copy_path(path)
        try:
            cache.write_copy(copy, contents)
            cache.pin(copy, is_new=True)
            return str(copy)
        except DalifyError:  # a part could not be read
            raise
        except OSError as error:
            cache.stop_writing(error)
            return local_copy(path)
    try:
        copy = Path(_temporary_folder(), file_name(path))
        write_whole(copy, contents, mode=0o600)
    except DalifyError:
        raise
    except OSError as error:
        raise ReaderError(
            f"no space for a copy of {path!r} in the folder for temporary files: {error}.",
            hint="Set another folder with storage.configure(cache_folder=...) or the environment variable TMPDIR.",
        ) from None
    return str(copy)


def _parts(url: str) -> Iterator[Response]:
    """Yield the contents of a file in parts, so that timeout and memory do not depend on its size."""
    size = _with_retries(url, lambda system, path: _call(system, "info", path)).get("size")
    if size is None or size <= _PART_BYTES:
        response = _fetch(url, 0, None)
        if size is not None and len(response.contents) != size:
            raise _changed(url)
        yield response
        return
    tag = None
    for start in range(0, size, _PART_BYTES):
        stop = min(start + _PART_BYTES, size)
        response = _fetch(url, start, stop)
        if len(response.contents) != stop - start or tag not in (None, response.tag):
            raise _changed(url)
        tag = response.tag
        yield response


def _changed(url: str) -> ReaderError:
    return ReaderError(f"the file {url!r} changed while it was copied, or was not sent completely.")


def copy_or_path(path: str) -> str:
    """Return the path of the copy created by ``local_copy``, or the path itself if there is none."""
    if not is_remote(path):
        return path
    if _cache is not None and _cache.has_copy(copy := _cache.copy_path(path)):
        return str(copy)
    copy = _temporary_copy(path)
    return str(copy) if copy is not None and copy.exists() else path


def _temporary_copy(url: str) -> Path | None:
    """Return the path of a temporary copy, whether or not it exists; None if there are no temporary copies."""
    copies = [Path(folder.path, file_name(url)) for folder in _temporary]
    return next((copy for copy in copies if copy.exists()), copies[0]) if copies else None


def _delete_copies(text: str) -> tuple[str, bool]:
    """Delete the copies of files that could not be decoded.

    Args:
        text: an origin, which is a URL, or an error message that contains URLs or paths of copies.

    Returns:
        a note for the user, and whether a copy was deleted.
    """
    if _cache is None and not is_remote(text):
        return "", False
    found: list[Path] = []
    names = [text] if is_remote(text) else []
    for url in dict.fromkeys(names + _URL.findall(text)):
        temporary = _temporary_copy(url)
        found += [] if temporary is None else [temporary]
        if _cache is not None:
            found += [_cache.entry_path(_key(url, 0, None)), _cache.copy_path(url)]
    if _cache is not None:
        found += [Path(name) for name in _cache.paths_in(text)]
    found = [path for path in dict.fromkeys(found) if path.exists()]
    for path in found:
        if _cache is not None and path.parent == _cache.folder:
            _cache.delete(path)
        else:
            path.unlink(missing_ok=True)
    names = " and ".join(repr(str(path)) for path in found)
    return f"The cached copy {names} was deleted; it will be downloaded again." if found else "", bool(found)


add_listener(_delete_copies)


class _TemporaryFolder(NamedTuple):
    """A folder for copies of files, which is deleted when the process that created it ends."""

    path: str
    owner: Owner


# The first one may be that of this process; the others are those of the processes that it was forked from.
_temporary: list[_TemporaryFolder] = []


def _temporary_folder() -> str:
    with _lock:
        if not (_temporary and _temporary[0].owner.is_this_process):
            _temporary.insert(0, _TemporaryFolder(tempfile.mkdtemp(prefix="dalify-"), Owner()))
        return _temporary[0].path


@at_exit
def _delete_temporary_folder() -> None:
    for folder in _temporary:
        if folder.owner.is_this_process:
            shutil.rmtree(folder.path, ignore_errors=True)


def _fetch(url: str, start: int, stop: int | None) -> Response:
    """Return bytes of a file, fewer if it ends before `stop`.

    Raises:
        ReaderError: the file is absent, or the storage does not respond.
        LimitError: the whole file is requested and is larger than ``max_sample_bytes``.
    """
    max_bytes = limits.current().max_sample_bytes if stop is None else stop - start

    def request(system: Any, path: str) -> Response:
        if is_web(system):
            return _run(system, fetch, system, path, start, stop, max_bytes)
        return _request_by_fsspec(system, path, start, stop, max_bytes)

    try:
        response = _with_retries(url, request)
    except TooLongError as error:
        limits.check_sample_bytes(error.size_bytes, f"the file {url!r}")
        raise AssertionError("dalify bug: a body within the limit was too long") from None
    if stop is None:
        limits.check_sample_bytes(len(response.contents), f"the file {url!r}")
    return response


def _request_by_fsspec(system: Any, path: str, start: int, stop: int | None, max_bytes: int) -> Response:
    """Read from a storage other than a web server; for a whole file, request one byte more than allowed."""
    is_whole = start == 0 and stop is None
    if is_whole and not getattr(system, "async_impl", False):
        size = _call(system, "info", path).get("size")
        if size is not None and size > max_bytes:
            raise TooLongError(size)
        return Response(_call(system, "cat_file", path))
    end = start + max_bytes + 1 if stop is None else stop
    try:
        return Response(_call(system, "cat_file", path, start=start, end=end))
    except Exception:  # object stores reject ranges of an empty file; some report it as absent
        if is_whole:
            system.invalidate_cache(path)  # a listing may be older than the file
            if _call(system, "info", path).get("size") == 0:
                return Response(b"")
        raise


def _with_retries(url: str, request: Callable[[Any, str], T]) -> T:
    """Send a request to a storage, with retries."""
    try:
        system, path = fsspec.core.url_to_fs(url)
    except DalifyError:
        raise
    except (ValueError, ImportError) as error:
        raise ReaderError(f"cannot read {url!r}: {error}.") from None
    wait_s = _FIRST_WAIT_S
    attempts = _requests.retries + 1
    for attempt in range(attempts):
        try:
            return request(system, path)
        except (DalifyError, TooLongError):
            raise
        except _FINAL_ERRORS as error:
            reason = "there is no such file" if isinstance(error, FileNotFoundError) else str(error) or "access denied"
            raise ReaderError(f"cannot read {url!r}: {reason}.") from None
        except Exception as error:  # each storage raises its own exceptions
            if attempt == attempts - 1:
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
                times = f"{attempts} attempts" if attempts > 1 else "one attempt"
                raise ReaderError(
                    f"cannot read {url!r}: {reason} ({times}, each of at most {_requests.timeout_s:g} s).",
                    hint="Increase timeout_s or retries with storage.configure(...).",
                ) from None
            # Randomized, so that clients do not repeat their requests at the same time.
            requested_s = min(getattr(error, "retry_after_s", 0.0), _requests.timeout_s)
            time.sleep(max(wait_s * random.uniform(0.5, 1.5), requested_s))
            wait_s = min(2 * wait_s, _MAX_WAIT_S)
    raise AssertionError("dalify bug: neither a response nor an error")


def _call(system: Any, method: str, path: str, **arguments: Any) -> Any:
    if getattr(system, "async_impl", False):
        return _run(system, getattr(system, f"_{method}"), path, **arguments)
    return getattr(system, method)(path, **arguments)


def _run(system: Any, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return the result of a coroutine; it is canceled at the timeout, and its connection is closed."""
    timeout_s = _requests.timeout_s

    async def bounded() -> Any:
        return await asyncio.wait_for(function(*arguments, **named), timeout_s)

    return fsspec_asyn.sync(system.loop, bounded)
