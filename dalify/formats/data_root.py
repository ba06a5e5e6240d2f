"""Names of files that stand in data: they are relative to a folder, and do not lead out of it.

A list, manifest or table may come from anywhere. Without this check, a name in it could be any file of this machine,
any server that it can reach, or a chain of protocols that fsspec would execute.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from dalify.base.errors import ReaderError
from dalify.formats.storage import is_remote, joined

__all__ = ["DataRoot"]

# Names without any of these are relative and go down only; nearly all names are like that.
_SUSPICIOUS = ("..", ":", "\\", "%", "~")


class DataRoot:
    """The folder that names in data are relative to.

    What counts is the name, not where symbolic links lead: links in the folder were made by whoever made the folder,
    and data sets are often put together of them. A name with ``..`` is resolved before it is opened, so that it cannot
    climb out of what a link points to.

    Args:
        folder: on this machine or a URL; None or "" for the working folder.
        allow_outside: names may lead anywhere: the user trusts the data.
    """

    __slots__ = ("_allow_outside", "_folder", "_is_remote", "_prefixes")

    def __init__(self, folder: str | None, *, allow_outside: bool) -> None:
        self._folder = folder or ""
        self._allow_outside = allow_outside
        self._is_remote = is_remote(self._folder)
        self._prefixes: tuple[str, ...] = ()

    def relative(self, name: str, source: str, entry: str = "", number: int | None = None) -> str:
        """Return a name as it can be joined to the folder.

        Args:
            name: as it stands in the data.
            source: the file or table in which it stands, for messages.
            entry: kind of the entry in it, for instance ``line``.
            number: of the entry.

        Raises:
            ReaderError: the name leads out of the folder, or is a URL or path of another place.
        """
        if self._allow_outside or not (name.startswith("/") or any(mark in name for mark in _SUSPICIOUS)):
            return name
        found = self._contained_url(name) if self._is_remote else self._contained_path(name)
        if found is None:
            place = f"{source}, {entry} {number}" if entry else source
            raise ReaderError(
                f"{place}: the name {name!r} leads out of the folder {self._folder or os.curdir!r}.",
                hint="Names in data are relative to that folder. If the data can be trusted, write "
                "allow_outside_root=True for this reader: then they can be absolute paths, URLs, and lead upwards.",
            )
        return found

    def path(self, name: str, source: str) -> str:
        """Return the path or URL of a file.

        Raises:
            ReaderError: see ``relative``.
        """
        return joined(self._folder, self.relative(name, source))

    def _contained_path(self, name: str) -> str | None:
        if is_remote(name):
            return None
        is_absolute = os.path.isabs(name) or bool(os.path.splitdrive(name)[0])  # noqa: PTH117
        normal = os.path.normpath(name)
        if is_absolute:
            if not self._prefixes:
                folder = Path(self._folder or os.curdir)
                # As given, and as it is without links: programs that write lists may have either.
                found = os.path.normpath(folder.absolute()), str(folder.resolve())
                self._prefixes = tuple(path.rstrip(os.sep) + os.sep for path in found)
            return normal if normal.startswith(self._prefixes) else None
        if normal == os.pardir or normal.startswith(os.pardir + os.sep):
            return None
        return normal if os.pardir in name else name

    def _contained_url(self, name: str) -> str | None:
        folder = f"{self._folder.rstrip('/')}/"
        rest = name.removeprefix(folder) if is_remote(name) else name
        # fsspec takes "::" for a chain of protocols; servers may decode what is written as %2e%2e.
        parts = unquote(rest).replace("\\", "/").split("/")
        is_elsewhere = is_remote(rest) or "::" in rest or rest.startswith("/")
        return None if is_elsewhere or ".." in parts else name
