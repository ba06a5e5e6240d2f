"""Cache keys of reader entries, which identify the data and detect changes."""

from __future__ import annotations

import os

from dalify.formats.files.storage import is_remote


def file_identity(path: str, *place: object) -> tuple[str, str]:
    """Return a key for data in a file, and a value that changes when the file changes.

    Args:
        path: path of the file, or a URL. Data at URLs is assumed not to change.
        place: position in the file and other properties of the entry, such as a label.

    Raises:
        OSError: the file does not exist.
    """
    # Without Path objects, because this is called a hundred thousand times per second.
    key = path if os.path.isabs(path) or is_remote(path) else os.path.abspath(path)  # noqa: PTH100, PTH117
    if place:
        key = "\0".join((key, *map(str, place)))
    if is_remote(path):
        return key, ""
    status = os.stat(path)  # noqa: PTH116 -- the same
    return key, f"{status.st_size} {status.st_mtime_ns}"
