"""Files that are there as a whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

__all__ = ["write_whole"]

_FLAGS = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_NAME_CHARACTERS = 100  # of the name of the file in that of the unfinished one


def write_whole(
    path: str | os.PathLike[str], parts: Iterable[bytes], *, mode: int = 0o666, is_durable: bool = False
) -> None:
    """Write a file under a random name in the same folder, and give it its own name when it is complete.

    The unfinished file is created exclusively, so no link or file that somebody else has put there is written to. A
    symbolic link under the final name is replaced, not followed.

    Args:
        path: of the file. Its folder must exist.
        parts: the contents, one part after the other.
        mode: permissions; the umask of the process is taken off.
        is_durable: the contents are on the disk when the file gets its name: they outlast a machine that stops.

    Raises:
        OSError: the file cannot be written; nothing is left of it.
        Exception: what `parts` raises; nothing is left of the file.
    """
    target = Path(path)
    unfinished = target.with_name(f"{target.name[:_NAME_CHARACTERS]}.{secrets.token_hex(8)}.part")
    descriptor = os.open(unfinished, _FLAGS, mode)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 -- a descriptor, not a path
            file.writelines(parts)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
