"""Convert links between files of the repository to links between pages of the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def links_of(text: str) -> list[str]:
    """Return the targets of all links and pictures outside code."""
    return [match[3] for part in _FENCE.split(text)[::2] for match in _LINK.finditer(part)]


def rewritten(text: str, source: str, page: str, pages: Mapping[str, str]) -> str:
    """Return a text whose links lead to pages of the site.

    Args:
        text: Markdown.
        source: path of the file in the repository.
        page: path of its page in the site.
        pages: paths of pages in the site by path in the repository. A link to any other file of the repository becomes
            its text, because the site does not contain the file.
    """

    def convert(match: re.Match[str]) -> str:
        mark, label, target = match[1], match[2], match[3]
        if "://" in target or target.startswith("#"):
            return match[0]
        path, hash_mark, anchor = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if there not in pages:
            return label
        relative = posixpath.relpath(pages[there], posixpath.dirname(page) or ".")
        return f"{mark}[{label}]({relative}{hash_mark}{anchor})"

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(convert, part) for part in parts[::2]]
    return "".join(parts)
