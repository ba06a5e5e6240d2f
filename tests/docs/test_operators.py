"""The published list of operators is that of the package."""

from __future__ import annotations

from dalify import fn
from docs.operators import PAGE, page


def test_list_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m docs.operators"


def test_every_name_in_the_list_is_a_function() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `fn.")]
    assert len(rows) > 50
    for row in rows:
        found = fn
        for part in row.split("`")[1].removeprefix("fn.").split("."):
            found = getattr(found, part)
        assert callable(found)
