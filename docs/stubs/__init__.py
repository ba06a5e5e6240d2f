"""Write the stubs of the operators for editors and type checkers: ``python -m docs.stubs``.

The stubs are not committed. ``hatch_build.py`` generates them when the package is built or installed, and
``make docs`` and ``make check`` again after operators have changed.
"""

from __future__ import annotations

from pathlib import Path

from docs.stubs import dynamic, functions

PACKAGE = Path(__file__).parents[2] / "dalify"


def files() -> dict[Path, str]:
    """Return all stubs by path, relative to the package."""
    return {**functions.files(), **dynamic.files()}


def write(package: Path) -> None:
    """Write all stubs into a copy of the package, and remove those of namespaces that no longer exist."""
    made = {package / path: text for path, text in files().items()}
    for path in package.rglob("*.pyi"):
        if path not in made:
            path.unlink()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
