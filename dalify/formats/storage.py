"""Files that lie elsewhere: any URL that fsspec knows, read with patience and kept in a cache on disk.

Alone because networks stall and disks fill up, and no reader should have to know. Paths without a scheme never come
here.
"""

from __future__ import annotations

import atexit
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule
from dalify.formats.disk_cache import DiskCache, file_name, write_whole

fsspec = LazyModule("fsspec", "reading from URLs", "dalify[remote]")
fsspec_asyn = LazyModule("fsspec.asyn", "reading from URLs", "dalify[remote]")

__all__ = [
    "StorageOptions",
    "configure",
    "copy_if_there",
    "current",
    "folder_of",
    "is_remote",
    "joined",
    "listed",
    "local_copy",
    "prefix_of",
    "read",
    "read_text",
    "size_of",
]

T = TypeVar("T")
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 10.0
_PART_BYTES = 32 << 20  # of files that are copied
# What trying again does not change.
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ImportError)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """How remote files are read.

    Attributes:
        cache_folder: where copies of what was read are kept; None: nowhere. Files are taken not to change.
        cache_bytes: bound of the cache; what was not used for longest is dropped. Containers that are copied as a whole
            count, but stay while they are read.
        timeout_s: how long to wait for one answer.
        retries: how often to try again, after 0.2 s, 0.4 s and so on up to 10 s.
    """

    cache_folder: str | None = None
    cache_bytes: int = 10 << 30
    timeout_s: float = 30.0
    retries: int = 4


_FOLDER_OF_ENVIRONMENT = os.environ.get("DALIFY_CACHE") or None
_options = StorageOptions(cache_folder=_FOLDER_OF_ENVIRONMENT)
_cache = None if _FOLDER_OF_ENVIRONMENT is None else DiskCache(_FOLDER_OF_ENVIRONMENT, _options.cache_bytes)
_lock = ForkLock()


def configure(
    *,
    cache_folder: str | os.PathLike[str] | None = _FOLDER_OF_ENVIRONMENT,
    cache_bytes: int = 10 << 30,
    timeout_s: float = 30.0,
    retries: int = 4,
) -> None:
    """Say how remote files are read, from now on and in all readers of this process.

    Addresses of servers, keys and the like are settings of fsspec: ``fsspec.config.conf["s3"] = {...}``.

    Args:
        cache_folder: where copies of what was read are kept; None: nowhere. Left out: the folder that the environment
            variable DALIFY_CACHE named when the process began, nowhere without it. Files are taken not to change.
        cache_bytes: bound of the cache; what was not used for longest is dropped. Containers that are copied as a whole
            count, but stay while they are read.
        timeout_s: how long to wait for one answer.
        retries: how often to try again, after 0.2 s, 0.4 s and so on up to 10 s.

    Raises:
        ArgumentValueError: a value out of range.
    """
    global _options, _cache
    if not cache_bytes > 0 or not timeout_s > 0 or retries < 0:
        raise ArgumentValueError(
            "cache_bytes and timeout_s must be above 0, and retries not negative; got "
            f"cache_bytes={cache_bytes}, timeout_s={timeout_s}, retries={retries}."
        )
    _options = StorageOptions(
        cache_folder=None if cache_folder is None else os.fspath(cache_folder),
        cache_bytes=cache_bytes,
        timeout_s=timeout_s,
        retries=retries,
    )
    _cache = None if _options.cache_folder is None else DiskCache(_options.cache_folder, cache_bytes)


def current() -> StorageOptions:
    """Return the options in force."""
    return _options


def is_remote(path: str) -> bool:
    """Tell whether a path is a URL: ``s3://…``, ``https://…``, ``memory://…``."""
    return "://" in path


def joined(root: str | None, name: str) -> str:
    """Return a path below a folder; what is complete in itself stays as it is."""
    if not root or is_remote(name):
        return name
    return f"{root.rstrip('/')}/{name}" if is_remote(root) else os.path.join(root, name)  # noqa: PTH118 -- a million


def prefix_of(folder: str) -> str:
    """Return what the paths of the files in a folder begin with."""
    return f"{folder.rstrip('/')}/" if is_remote(folder) else f"{Path(folder)}{os.sep}"


def folder_of(path: str) -> str:
    """Return the folder in which a file lies."""
    return path.rpartition("/")[0] if is_remote(path) else str(Path(path).absolute().parent)


def read_text(path: str, what: str) -> str:
    """Return the contents of a text file, UTF-8, on this machine or elsewhere.

    Args:
        path: of the file.
        what: it is, for messages.

    Raises:
        ReaderError: the file is absent or cannot be read.
    """
    if is_remote(path):
        return read(path).tobytes().decode("utf-8", "surrogateescape")
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ReaderError(f"cannot read {what} {path!r}: {error.strerror}.") from None


def read(url: str, start: int = 0, size: int | None = None) -> Bytes:
    """Return the bytes of a file, or a part of them, as a new 1-D uint8 array.

    Args:
        url: where it lies.
        start: first byte.
        size: number of bytes; None for all that follow.

    Raises:
        ReaderError: the file is absent, ends before, or the storage does not answer.
    """
    if size == 0:
        return np.empty(0, np.uint8)
    cache = _cache
    kept = None if cache is None else cache.path(f"{url}@{start}+{size}")
    if cache is not None and kept is not None:
        found = cache.read(kept)
        if found is not None:
            return found
    end = None if size is None else start + size
    whole = start == 0 and size is None
    contents = _patiently(url, lambda system, path: _call(system, "cat_file", path, start or None, end))
    if not whole and size is not None and len(contents) != size:
        raise ReaderError(f"the file {url!r} ends before byte {start + size}.")
    if cache is not None and kept is not None:
        cache.keep(kept, contents)
    return np.frombuffer(bytearray(contents), np.uint8)


def size_of(url: str) -> int:
    """Return the size of a file in bytes.

    Raises:
        ReaderError: the file is absent, or the storage does not answer or does not tell.
    """
    size = _patiently(url, lambda system, path: _call(system, "info", path)).get("size")
    if size is None:
        raise ReaderError(f"the storage does not tell the size of {url!r}.")
    return int(size)


def listed(url: str) -> tuple[list[str], list[str]]:
    """Return the names of the sub-folders and of the files of a folder, unsorted.

    Raises:
        ReaderError: the folder is absent, or the storage does not answer.
    """

    def ask(system: Any, path: str) -> list[dict[str, Any]]:
        system.invalidate_cache(path)  # it may have changed since
        return _call(system, "ls", path, True)

    folders: list[str] = []
    files: list[str] = []
    for entry in _patiently(url, ask):
        name = entry["name"].rstrip("/").rpartition("/")[2]
        (folders if entry["type"] == "directory" else files).append(name)
    return folders, files


def local_copy(path: str) -> str:
    """Return the path of a copy on this machine, for what has to be read through from beginning to end.

    It lies in the cache, or where that is none or full in the folder for temporary files until the process ends. What
    lies on this machine is its own copy.

    Raises:
        ReaderError: the file is absent, the storage does not answer, or there is no room for a copy.
    """
    if not is_remote(path):
        return path
    cache, kept = _copy_place(path)
    is_new = not kept.exists()
    if is_new:
        try:
            write_whole(kept, _parts(path))
        except ReaderError:
            raise
        except OSError as error:
            if cache is not None:
                cache.refuse(error)
                return local_copy(path)
            raise ReaderError(
                f"there is no room for a copy of {path!r} in {str(kept.parent)!r}: {error.strerror}.",
                hint="Name another folder: storage.configure(cache_folder=...), or TMPDIR in the environment.",
            ) from None
    if cache is not None:
        cache.hold(kept, is_new=is_new)
    return str(kept)


def _parts(url: str) -> Iterator[bytes]:
    """Yield the contents of a file piece by piece: neither the patience nor the memory goes by its size."""
    size = _patiently(url, lambda system, path: _call(system, "info", path)).get("size")
    if size is None or size <= _PART_BYTES:
        yield _patiently(url, lambda system, path: _call(system, "cat_file", path))
        return
    for start in range(0, size, _PART_BYTES):
        stop = min(start + _PART_BYTES, size)
        part = _patiently(url, partial(_part, start=start, stop=stop))
        if start == 0 and len(part) == size:  # servers that know no ranges send all of it
            yield part
            return
        if len(part) != stop - start:
            raise ReaderError(f"the file {url!r} has changed while it was copied, or ends before byte {stop}.")
        yield part


def _part(system: Any, path: str, start: int, stop: int) -> bytes:
    return _call(system, "cat_file", path, start, stop)


def copy_if_there(path: str) -> str:
    """Return the path of the copy that ``local_copy`` made; the path itself where it made none."""
    if not is_remote(path):
        return path
    kept = _copy_place(path)[1]
    return str(kept) if kept.exists() else path


def _copy_place(url: str) -> tuple[DiskCache | None, Path]:
    """Return where the copy of a file lies, or is to lie, and the cache, if that is in it."""
    if _cache is not None:
        kept = _cache.path(f"{url}@0+None")
        if _cache.takes or kept.exists():
            return _cache, kept
    return None, Path(_temporary_folder(), file_name(url))


_temporary: list[tempfile.TemporaryDirectory[str]] = []


def _temporary_folder() -> str:
    with _lock:
        if not _temporary:
            _temporary.append(tempfile.TemporaryDirectory(prefix="dalify-"))
            atexit.register(_temporary[0].cleanup)
        return _temporary[0].name


def _patiently(url: str, ask: Callable[[Any, str], T]) -> T:
    """Ask a storage, again and again where it does not answer."""
    try:
        system, path = fsspec.core.url_to_fs(url)
    except DalifyError:
        raise
    except (ValueError, ImportError) as error:
        raise ReaderError(f"cannot read {url!r}: {error}.") from None
    wait_s = _FIRST_WAIT_S
    attempts = _options.retries + 1
    for attempt in range(attempts):
        try:
            return ask(system, path)
        except _FINAL as error:
            reason = "there is no such file" if isinstance(error, FileNotFoundError) else str(error) or "refused"
            raise ReaderError(f"cannot read {url!r}: {reason}.") from None
        except Exception as error:  # each storage has exceptions of its own
            if attempt == attempts - 1:
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
                times = f"{attempts} attempts" if attempts > 1 else "one attempt"
                raise ReaderError(
                    f"cannot read {url!r}: {reason} ({times}, each of at most {_options.timeout_s:g} s).",
                    hint="storage.configure(timeout_s=..., retries=...) makes it more patient.",
                ) from None
            # Not all at the same moment: what is overloaded would be so again.
            time.sleep(wait_s * random.uniform(0.5, 1.5))
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
    raise AssertionError("dalify bug: neither an answer nor an error")


def _call(system: Any, method: str, path: str, *arguments: Any) -> Any:
    if getattr(system, "async_impl", False):
        function = getattr(system, f"_{method}")
        return fsspec_asyn.sync(system.loop, function, path, *arguments, timeout=_options.timeout_s)
    return getattr(system, method)(path, *arguments)
