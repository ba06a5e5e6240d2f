"""Every row of the tables on processes names an existing test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "processes.md").read_text(encoding="utf-8")
HEADING = "| event | behavior | test |"
MEASUREMENTS = "| pipeline |"  # what a program has printed
TABLES = [table for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE) if not table.startswith(MEASUREMENTS)]
ROWS = [line for table in TABLES for line in table.splitlines()[2:]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_row_is_held_by_a_test(row: str) -> None:
    found = re.fullmatch(r"\| [^|]+ \| [^|]+ \| `(tests/[\w/]+\.py)::(test_\w+)` \|", row)
    assert found is not None
    path, name = found.groups()
    assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_tables_have_rows() -> None:
    assert len(ROWS) > 15
    assert {table.splitlines()[0] for table in TABLES} == {HEADING}
