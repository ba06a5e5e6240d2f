"""The committed pages of the operators match the package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dalify import fn
from dalify.registry import COMMON_PARAMETERS, READER_PARAMETERS
from docs import parity, pictures
from docs.operators import FOLDER, PAGE, page, page_of
from docs.shared import COMMON, READERS
from docs.signatures import public_names
from tests.operators.cases import CASES

FIGURES = json.loads(parity.FIGURES.read_text(encoding="utf-8"))
WITH_PICTURE = [name for name in public_names() if pictures.has_picture(name)]
LARGEST_PICTURE_BYTES = 15_000


def test_list_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m docs.operators"


@pytest.mark.parametrize("name", public_names())
def test_page_is_up_to_date(name: str) -> None:
    path = FOLDER / f"{name}.md"
    assert path.exists(), "run: python -m docs.operators"
    assert path.read_text(encoding="utf-8") == page_of(name, FIGURES), "run: python -m docs.operators"


def test_no_page_of_a_removed_operator() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(public_names())


def test_every_name_in_the_list_is_a_function() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| [`fn.")]
    assert len(rows) == len(public_names())
    for row in rows:
        found = fn
        for part in row.split("`")[1].removeprefix("fn.").split("."):
            found = getattr(found, part)
        assert callable(found)


def test_shared_arguments_are_explained() -> None:
    assert set(READERS) == set(READER_PARAMETERS)
    assert set(COMMON) == set(COMMON_PARAMETERS)


@pytest.mark.parametrize("name", public_names())
def test_page_is_complete(name: str) -> None:
    """Every input and argument is explained, with its type."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert not [row for row in rows if row.rstrip("| ").endswith("|") or row.endswith("|  |")]
    assert "## Example" in text
    assert "## Returns" in text


# -- parity ----------------------------------------------------------------------------------------------------------


def test_parity_is_up_to_date() -> None:
    missing = sorted(set(public_names()) & set(CASES) - set(FIGURES))
    assert not missing, f"run: python -m docs.parity {' '.join(missing)}"
    assert parity.PAGE.read_text(encoding="utf-8") == parity.page(FIGURES), "run: python -m docs.parity"


def test_no_cell_of_parity_is_empty() -> None:
    rows = [line for line in parity.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(rows) > len(public_names())
    assert not [row for row in rows if "|  |" in row or "| |" in row]


# -- pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_PICTURE)
def test_picture_is_there_and_small(name: str) -> None:
    path = pictures.FOLDER / f"{name}.jpg"
    assert path.exists(), f"run: python -m docs.pictures {name}"
    assert path.stat().st_size < LARGEST_PICTURE_BYTES


@pytest.mark.parametrize("name", ["rotate", "noise.gaussian", "gaussian_blur"])
def test_pictures_come_out_the_same_twice(name: str, tmp_path: Path) -> None:
    one, other = (pictures.picture_of(name, tmp_path) for _ in range(2))
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one, other)
