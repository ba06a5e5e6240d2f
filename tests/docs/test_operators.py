"""The generated pages of the operators are complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn
from dalify.registry import COMMON_PARAMETERS, READER_PARAMETERS
from docs import parity, pictures
from docs.operators import page, page_of
from docs.shared import COMMON, READERS
from docs.signatures import public_names
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import NAMES, has_gpu_kernel

WITH_PICTURE = [name for name in public_names() if pictures.has_picture(name)]
LARGEST_PICTURE_BYTES = 15_000


def test_the_list_has_every_operator() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| [`fn.")]
    assert sorted(row.split("`")[1].removeprefix("fn.") for row in rows) == sorted(public_names())
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
    text = page_of(name, {})
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert not [row for row in rows if row.rstrip("| ").endswith("|") or row.endswith("|  |")]
    assert "## Example" in text
    assert "## Returns" in text


# -- parity ----------------------------------------------------------------------------------------------------------


def test_parity_is_measured_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")  # as `docs.parity` sets it
    figures = {"rotate": parity.measure("rotate", tmp_path)}
    assert figures["rotate"]["dali"]["variants"] > 1
    [row] = [line for line in parity.page(figures).splitlines() if line.startswith("| [`fn.")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0] == "[`fn.rotate`](operators/rotate.md)"
    assert cells[4] == parity.shown(figures["rotate"]["dali"])
    assert f"| DALI | {cells[4]}, over {cells[3]} variants |" in page_of("rotate", figures)


def test_no_cell_of_parity_is_empty() -> None:
    """What was not measured has a reason."""
    figures: dict[str, dict[str, Any]] = {
        name: {"types": [], "promise": parity.promise(CASES[name])} for name in NAMES if name in CASES
    }
    for name, found in figures.items():
        if has_gpu_kernel(name):  # measured wherever there is a kernel
            found["gpu"] = {"variants": 1, "integers": 0}
    rows = [line for line in parity.page(figures).splitlines() if line.startswith("| ")]
    assert len(rows) > len(figures)
    assert not [row for row in rows if "|  |" in row or "| |" in row]


# -- images --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_PICTURE)
def test_image_exists_and_is_small(name: str) -> None:
    path = pictures.FOLDER / f"{name}.jpg"
    assert path.exists(), f"run: python -m docs.pictures {name}"
    assert path.stat().st_size < LARGEST_PICTURE_BYTES


@pytest.mark.parametrize("name", ["rotate", "noise.gaussian", "gaussian_blur"])
def test_images_are_reproducible(name: str, tmp_path: Path) -> None:
    one, other = (pictures.picture_of(name, tmp_path) for _ in range(2))
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one, other)
