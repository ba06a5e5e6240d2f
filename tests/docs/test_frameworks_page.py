"""Run the examples of docs/frameworks.md: the first block of the page, then the section of an installed framework."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from tests.helpers.frameworks import FRAMEWORKS, MISSING, imported

PAGE = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
SECTIONS = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow", "paddle": "Paddle"}


def programs(text: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("name", [name for name in SECTIONS if name not in MISSING])
def test_programs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, *sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (section,) = (text for text in sections if text.startswith(SECTIONS[name] + "\n"))
    monkeypatch.chdir(tmp_path)
    if FRAMEWORKS[name].package:
        imported(FRAMEWORKS[name].package)
    source = programs(before) + programs(section)
    assert len(source) > len(programs(before))
    program = tmp_path / "page.py"  # conditions need the source file
    program.write_text(source, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of frameworks about small examples
        exec(compile(source, str(program), "exec"), {"__name__": "page"})
