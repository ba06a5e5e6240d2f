"""Every row of the table of failures on the page about Ray names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ray.md").read_text(encoding="utf-8")
CELLS = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("path", "name"), CELLS)
def test_row_is_held_by_a_test(path: str, name: str) -> None:
    assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_tables_have_rows() -> None:
    assert len(CELLS) > 10
