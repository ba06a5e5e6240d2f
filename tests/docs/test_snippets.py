"""Python blocks of the hand-written pages run, in a folder with photographs; links have targets."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from dalify.mediapipe import shim
from docs.site.pages import GUIDE
from tests.helpers.torchvision_import import import_torchvision

import_torchvision("torchvision.datasets")  # the page imports it as users do

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/caching.md",
    "docs/custom_operators.md",
    "docs/dynamic.md",
    "docs/epochs.md",
    "docs/modes.md",
    "docs/torchvision.md",
    "docs/migrating/from_dali.md",
    "docs/migrating/from_dataloader.md",
    "docs/migrating/from_ffcv.md",
    "docs/migrating/from_gaudi.md",
]
WITH_LINKS = sorted({"README.md", *(path for _, _, path in GUIDE)})


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_python_runs(page: str, photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page are executed as one program, in order."""
    shutil.copytree(photo_folder, tmp_path / "photos")
    shutil.copy(next(photo_folder.glob("*/*.jpg")), tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(blocks(page)), encoding="utf-8")  # conditions need the source file
    assert program.stat().st_size
    try:
        exec(compile(program.read_text(encoding="utf-8"), str(program), "exec"), {"__name__": "page"})
    finally:
        shim.uninstall()  # one page installs it


@pytest.mark.parametrize("page", WITH_LINKS)
def test_links(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("#"):
            assert (path.parent / target.partition("#")[0]).exists(), target
