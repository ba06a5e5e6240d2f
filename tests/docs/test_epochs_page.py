"""Every row of the tables on epochs names an existing test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "epochs.md").read_text(encoding="utf-8")
HEADING = "| | DALI's default | dalify's default | to get the other | test |"
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and line != HEADING]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_row_is_held_by_a_test(row: str) -> None:
    cells = row.strip("|").split("|")
    assert len(cells) == 5
    path, name = re.fullmatch(r" `(tests/[\w/]+\.py)::(test_\w+)` ", cells[4]).groups()  # type: ignore[union-attr]
    assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_tables_have_rows() -> None:
    assert len(ROWS) > 20
