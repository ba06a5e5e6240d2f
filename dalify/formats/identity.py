"""What tells an entry of a reader from all others, and the state of its data from an earlier one.

Alone because every reader whose samples may be cached answers the same two questions: where do the data lie, and have
they changed since.
"""

from __future__ import annotations

import os

from dalify.formats.storage import is_remote

__all__ = ["file_identity"]


def file_identity(path: str, *place: object) -> tuple[str, str]:
    """Return key and state of data in a file.

    Args:
        path: of the file, or a URL. Data of URLs are taken not to change.
        place: where in the file the data lie, and what else belongs to them, such as a label.

    Raises:
        OSError: the file is not there.
    """
    # No Path: this runs a hundred thousand times per second.
    key = path if os.path.isabs(path) or is_remote(path) else os.path.abspath(path)  # noqa: PTH100, PTH117
    if place:
        key = "\0".join((key, *map(str, place)))
    if is_remote(path):
        return key, ""
    status = os.stat(path)  # noqa: PTH116 -- the same
    return key, f"{status.st_size} {status.st_mtime_ns}"
