"""Resolves file names in data: they are relative to a folder and must stay inside it.

Lists, manifests and tables are not trusted. Without this check, a name in them could be any file of this machine, any
server that it can reach, or a chain of protocols that fsspec would execute.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from dalify.base.errors import ReaderError
from dalify.formats.files.storage import is_remote, joined

# Names without any of these, nearly all names, are relative and stay inside the folder.
_SUSPICIOUS = ("..", ":", "\\", "%", "~")


class DataRoot:
    """The folder that file names in data are relative to.

    The check applies to the name, not to the targets of symbolic links: links in the folder were created by its owner,
    and datasets often consist of links. A name with ``..`` is resolved before it is opened, so that it cannot leave
    the target of a link.

    Args:
        folder: local path or URL; None or "" for the working directory.
        allow_outside_root: whether names may point anywhere, because the user trusts the data.
    """

    __slots__ = ("_allow_outside_root", "_folder", "_is_remote", "_prefixes")

    def __init__(self, folder: str | None, *, allow_outside_root: bool) -> None:
        self._folder = folder or ""
        self._allow_outside_root = allow_outside_root
        self._is_remote = is_remote(self._folder)
        self._prefixes: tuple[str, ...] = ()

    def relative(self, name: str, source: str, entry: str = "", number: int | None = None) -> str:
        """Return a name in the form that can be appended to the folder.

        Args:
            name: the name in the data.
            source: the file or table that contains it, for error messages.
            entry: kind of entry, for example ``line``.
            number: number of the entry.

        Raises:
            ReaderError: the name points outside the folder or is another URL.
        """
        if self._allow_outside_root or not (name.startswith("/") or any(mark in name for mark in _SUSPICIOUS)):
            return name
        found = self._contained_url(name) if self._is_remote else self._contained_path(name)
        if found is None:
            place = f"{source}, {entry} {number}" if entry else source
            raise ReaderError(
                f"{place}: the name {name!r} points outside the folder {self._folder or os.curdir!r}.",
                hint="Names in data are relative to that folder. If you trust the data, set allow_outside_root=True on "
                "this reader to allow absolute paths, URLs and parent folders.",
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
                # As given, and with links resolved: lists may contain either form.
                found = os.path.normpath(folder.absolute()), str(folder.resolve())
                self._prefixes = tuple(path.rstrip(os.sep) + os.sep for path in found)
            return normal if normal.startswith(self._prefixes) else None
        if normal == os.pardir or normal.startswith(os.pardir + os.sep):
            return None
        return normal if os.pardir in name else name

    def _contained_url(self, name: str) -> str | None:
        folder = f"{self._folder.rstrip('/')}/"
        rest = name.removeprefix(folder) if is_remote(name) else name
        # fsspec interprets "::" as a chain of protocols; servers may decode %2e%2e to "..".
        parts = unquote(rest).replace("\\", "/").split("/")
        is_elsewhere = is_remote(rest) or "::" in rest or rest.startswith("/")
        return None if is_elsewhere or ".." in parts else name
