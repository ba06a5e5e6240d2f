"""Execute a tutorial cell by cell: ``python -m docs.site.run_cells TUTORIAL REPORT``.

Prints a mark before the output of each cell, and writes the mark and the pictures of each cell to REPORT, as JSON.
"""

from __future__ import annotations

import json
import secrets
import sys
import types
from pathlib import Path

from docs.site.tutorials import cells_of

_PICTURES = Path("out", "tutorials")


def _pictures() -> dict[str, int]:
    """Return the modification times of the pictures, in nanoseconds."""
    files = [path for path in _PICTURES.glob("*") if path.suffix in {".png", ".jpg", ".svg"}]
    return {path.as_posix(): path.stat().st_mtime_ns for path in sorted(files)}


def main(path: Path, report: Path) -> None:
    """Execute all cells in a module that worker processes and `inspect` accept as the program."""
    program = types.ModuleType("__main__")
    program.__file__ = str(path)
    sys.modules["__main__"] = program
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    mark = f"-- cell {secrets.token_hex(8)}"
    pictures: list[list[str]] = []
    for cell in cells_of(path):
        print(mark, flush=True)
        before = _pictures()
        try:
            if not cell.is_text:
                # Empty lines keep the line numbers of the file.
                exec(compile("\n" * cell.line + cell.source, str(path), "exec"), program.__dict__)
        except SystemExit as end:  # a tutorial ends early if it needs a package that is not installed
            if end.code not in (None, 0):
                raise
            pictures.append([])
            break
        sys.stdout.flush()
        pictures.append([name for name, time_ns in _pictures().items() if before.get(name) != time_ns])
    report.write_text(json.dumps([mark, pictures]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
