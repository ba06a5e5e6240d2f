"""The build hook: wheels contain the stubs, whether they are built from a checkout or an sdist."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from docs.stubs import files

ROOT = Path(__file__).parents[2]

pytest.importorskip("hatchling")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project as git has it: without stubs."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyi", "*.nb?", "pictures")
    for folder in ("dalify", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def stubs_of_wheel(project: Path) -> tuple[set[str], str]:
    """Build a wheel without isolation; return the names of its stubs, and what was printed."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    [wheel] = (project / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.endswith(".pyi")}
    return names, result.stdout + result.stderr


def test_wheel_contains_the_stubs(project: Path) -> None:
    names, _ = stubs_of_wheel(project)
    assert names == {f"dalify/{path.as_posix()}" for path in files()}


def test_build_from_an_sdist_generates_nothing(project: Path) -> None:
    """Its stubs are already there, and the generator's dependencies may be absent."""
    (project / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: dalify\nVersion: 0.1.0\n", encoding="utf-8")
    (project / "dalify" / "fn").mkdir(exist_ok=True)
    (project / "dalify" / "fn" / "__init__.pyi").touch()
    names, _ = stubs_of_wheel(project)
    assert names == {"dalify/fn/__init__.pyi"}


def test_without_a_dependency_the_build_warns(project: Path) -> None:
    settings = (project / "pyproject.toml").read_text(encoding="utf-8")
    changed = settings.replace("dependencies = [", 'dependencies = [\n    "not-installed>=1",', 1)
    assert changed != settings
    (project / "pyproject.toml").write_text(changed, encoding="utf-8")
    names, printed = stubs_of_wheel(project)
    assert not names
    assert "the stubs for editors are not generated: not-installed not installed" in " ".join(printed.split())


def test_an_error_of_the_generator_stops_the_build(project: Path) -> None:
    (project / "docs" / "signatures.py").write_text("raise ValueError('broken')", encoding="utf-8")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert result.returncode
    assert "ValueError: broken" in result.stderr
