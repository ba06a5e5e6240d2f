"""Atomic writing of files."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

_EXTRA_FLAGS = ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, name, 0) for name in _EXTRA_FLAGS)
_NO_FOLDERS_OF_FILES = (("dev",), ("proc",))  # /dev/stdout is an open file, which must not be replaced
_NAME_CHARACTERS = 100  # maximum number of characters of the file name in the name of the unfinished file


def write_file(path: str | os.PathLike[str], contents: bytes, *, is_durable: bool = False) -> None:
    """Write a file whose path a user named: atomically if it is a regular file or does not exist.

    The file that a symbolic link names is replaced, not the link. Pipes, devices, and open files such as /dev/stdout
    are written directly.

    Args:
        path: path of the file. Its folder must exist.
        contents: the contents.
        is_durable: flush the contents to the disk before the file is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(path)
    if (target.exists() and not target.is_file()) or target.absolute().parts[1:2] in _NO_FOLDERS_OF_FILES:
        target.write_bytes(contents)
        return
    if target.is_symlink():
        target = Path(os.path.realpath(target))
        if target.is_symlink():  # a cycle of links
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    try:
        write_whole(target, [contents], is_durable=is_durable)
    except OSError as error:
        if error.filename == str(target):
            error.filename = str(path)
        raise


def write_whole(
    path: str | os.PathLike[str], parts: Iterable[bytes], *, mode: int = 0o666, is_durable: bool = False
) -> None:
    """Write a file under a random name in the same folder, and rename it when it is complete.

    The unfinished file is created exclusively, so that existing links or files are not written to. A symbolic link
    under the final name is replaced.

    Args:
        path: path of the file. Its folder must exist.
        parts: the contents, in parts.
        mode: permissions, modified by the umask of the process.
        is_durable: flush the contents to the disk before the file is renamed.

    Raises:
        OSError: the file cannot be written, and is removed; or there is a folder, pipe or device of this name. It names
            `path`, not the unfinished file.
        Exception: an exception of `parts`; the file is removed.
    """
    target = Path(path)
    if target.exists() and not target.is_file():  # replacing a device such as /dev/null would remove it
        raise OSError(errno.EINVAL, "Not a regular file", str(target))
    unfinished = target.with_name(f"{target.name[:_NAME_CHARACTERS]}.{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(unfinished, _FLAGS, mode)
    except OSError as error:
        error.filename = str(target)
        raise
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 -- a descriptor, not a path
            file.writelines(parts)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(target)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(unfinished)):
            error.filename = str(target)  # the disk is full, for instance
        raise
