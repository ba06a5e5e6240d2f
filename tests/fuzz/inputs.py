"""An input of a target: named parts of bytes, which can be kept in shared memory or as a folder of files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

Input = dict[str, bytes]
"""Contents by name: files of a dataset, or a document. Parts whose name begins with ``:`` select how to run them."""

_DESCRIPTION = "finding.json"
_FILES = "files"


def packed(given: Input) -> bytes:
    """Return an input as one string of bytes."""
    head = json.dumps([[name, len(data)] for name, data in given.items()]).encode()
    return len(head).to_bytes(4, "little") + head + b"".join(given.values())


def unpacked(data: bytes) -> Input:
    """Return the argument of ``packed`` from its result."""
    start = 4 + int.from_bytes(data[:4], "little")
    found: Input = {}
    for name, size in json.loads(data[4:start]):
        found[name] = data[start : start + size]
        start += size
    return found


def size_of(given: Input) -> int:
    """Return the bytes of all parts."""
    return sum(map(len, given.values()))


def save(folder: Path, given: Input, description: dict[str, object]) -> None:
    """Write an input and its description; the folder is emptied before.

    Args:
        folder: below which ``finding.json`` and ``files/`` are written.
        given: the input.
        description: plain data, with the key ``target``.
    """
    shutil.rmtree(folder, ignore_errors=True)
    options = {name[1:]: data.decode() for name, data in given.items() if name.startswith(":")}
    for name, data in given.items():
        if not name.startswith(":"):
            path = folder / _FILES / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**description, "options": options}, indent=1)
    (folder / _DESCRIPTION).write_text(text + "\n")


def load(folder: Path) -> tuple[dict[str, object], Input]:
    """Return description and input of a folder that ``save`` wrote."""
    description = json.loads((folder / _DESCRIPTION).read_text())
    files = folder / _FILES
    found = {str(path.relative_to(files)): path.read_bytes() for path in sorted(files.rglob("*")) if path.is_file()}
    options = {f":{name}": text.encode() for name, text in description.pop("options").items()}
    return description, {**found, **options}
