"""The pages of the site and its navigation."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from docs import operators, parity, pictures
from docs.families import families_of
from docs.signatures import public_names
from docs.site import api, tutorials
from docs.site.links import rewritten

ROOT = Path(__file__).parents[2]

# Written pages: section, title, file of the repository. The page of `docs/modes.md` is `modes.md`.
GUIDE: tuple[tuple[str, str, str], ...] = (
    ("Guide", "Modes", "docs/modes.md"),
    ("Guide", "Frameworks", "docs/frameworks.md"),
    ("Guide", "Transforms of torchvision", "docs/torchvision.md"),
    ("Guide", "Epochs", "docs/epochs.md"),
    ("Guide", "Caches", "docs/caching.md"),
    ("Guide", "Custom operators", "docs/custom_operators.md"),
    ("Guide", "Remote data", "docs/storage.md"),
    ("Guide", "Robustness", "docs/robustness.md"),
    ("Guide", "Processes, forks and signals", "docs/processes.md"),
    ("Guide", "Scaling", "docs/scaling.md"),
    ("Guide", "Ray", "docs/ray.md"),
    ("Guide", "Accelerators", "docs/accelerators.md"),
    ("Migrating", "From DALI", "docs/migrating/from_dali.md"),
    ("Migrating", "DALI's dynamic mode", "docs/dynamic.md"),
    ("Migrating", "From torch's DataLoader", "docs/migrating/from_dataloader.md"),
    ("Migrating", "From FFCV", "docs/migrating/from_ffcv.md"),
    ("Migrating", "From Gaudi", "docs/migrating/from_gaudi.md"),
    ("Migrating", "MediaPipe on any machine", "docs/mediapipe.md"),
    ("Development", "Architecture", "ARCHITECTURE.md"),
    ("Development", "Contributing", "CONTRIBUTING.md"),
    ("Development", "Operator battery", "tests/operators/battery/README.md"),
    ("Development", "Fuzzing", "tests/fuzz/README.md"),
    ("Development", "Changes", "CHANGELOG.md"),
)


def _page_of_file(path: str) -> str:
    if path.startswith("tests/"):
        return f"{Path(path).parent.name}.md"
    if path == path.upper().removesuffix("MD") + "md":
        return path.lower()
    return path.removeprefix("docs/")


def _tutorials() -> list[Path]:
    return sorted(tutorials.FOLDER.glob("[0-9][0-9]_*.py"))


def _pages() -> dict[str, str]:
    """Return the paths of all pages by the path of their file in the repository."""
    pages = {"README.md": "index.md", "docs/operators.md": "operators.md", "docs/parity.md": "parity.md"}
    pages |= {path: _page_of_file(path) for _, _, path in GUIDE}
    pages |= {f"tutorials/{path.name}": f"tutorials/{path.stem}.md" for path in _tutorials()}
    return pages


PAGES = _pages()


def navigation() -> list[dict[str, Any]]:
    """Return the navigation in the form of `mkdocs.yml`."""
    sections: dict[str, list[dict[str, str]]] = {}
    for section, title, path in GUIDE:
        sections.setdefault(section, []).append({title: PAGES[path]})
    made = [{tutorials.title_of(path): f"tutorials/{path.stem}.md"} for path in _tutorials()]
    families: list[Any] = [{"All operators": "operators.md"}, {"Parity": "parity.md"}]
    for family, names in families_of(public_names()).items():
        families.append({family: [{name: f"operators/{name}.md"} for name in names]})
    reference = [{title: f"api/{name}.md"} for name, title in api.MODULES.items()]
    return [
        {"Home": "index.md"},
        {"Guide": sections["Guide"]},
        {"Migrating": sections["Migrating"]},
        {"Tutorials": made},
        {"Operators": families},
        {"API": reference},
        {"Development": sections["Development"]},
    ]


def write(folder: Path, figures: dict[str, Any], *, run_tutorials: bool) -> None:
    """Write all pages.

    Args:
        folder: an empty folder.
        figures: parity figures by operator.
        run_tutorials: execute the tutorials and show their output.
    """
    for source, page in PAGES.items():
        if source.endswith(".md") and source not in {"docs/operators.md", "docs/parity.md"}:
            _save(folder / page, rewritten((ROOT / source).read_text(encoding="utf-8"), source, page, PAGES))
    for path in _tutorials():
        source, page = f"tutorials/{path.name}", f"tutorials/{path.stem}.md"
        if run_tutorials:
            print(f"executing {source}", flush=True)
        text = tutorials.page_of(
            path,
            tutorials.execute(path) if run_tutorials else None,
            folder / "tutorials" / path.stem,
            lambda text, source=source, page=page: rewritten(text, source, page, PAGES),
        )
        _save(folder / page, text)
    _save(folder / "operators.md", operators.page())
    _save(folder / "parity.md", parity.page(figures))
    for name in public_names():
        _save(folder / "operators" / f"{name}.md", operators.page_of(name, figures))
    shutil.copytree(pictures.FOLDER, folder / "pictures")
    for name, title in api.MODULES.items():
        _save(folder / "api" / f"{name}.md", api.page_of(name, title))


def _save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
