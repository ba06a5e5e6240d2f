"""Each intended difference from DALI in the documentation has a program with these results, or names its test."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from tests.compatibility.differences import UNDEFINED, Difference, image
from tests.compatibility.dynamic_differences import DYNAMIC_DIFFERENCES
from tests.compatibility.operator_differences import OPERATOR_DIFFERENCES
from tests.compatibility.pipeline_differences import PIPELINE_DIFFERENCES

ROOT = Path(__file__).parents[2]
# Pages, and the headings of their tables.
TABLES = {"ARCHITECTURE.md": "| DALI | dalify |", "docs/dynamic.md": "| DALI 2.4 | dalify | why |"}
# Rows that other tests execute.
ELSEWHERE = {
    "shuffle buffer": "tests/sources/test_sampler.py::test_shards_cover_the_data_exactly_once",
    "`fn.resize` of integers rounds": "tests/operators/test_resize.py::test_values_half_way_between_integers",
    "a TFRecord without a feature": "tests/formats/test_tfrecord.py::test_features_that_differ_from_their_declaration",
    "an index that ends": "tests/formats/test_tfrecord.py::test_an_index_of_the_first_records",
    "`fn.readers.webdataset`: samples with long": "tests/operators/readers/test_webdataset.py::test_long_names",
    "`fn.readers.webdataset` with `skip`": "tests/operators/readers/test_webdataset.py::test_mistakes",
    "`fn.readers.webdataset` leaves": "tests/operators/readers/test_webdataset.py::test_sparse_files_are_refused",
    "`fn.readers.coco` reads": "tests/operators/readers/test_coco.py::test_annotations_without_categories",
    "`fn.mel_filter_bank` and": "tests/operators/test_mel_filter_bank.py::test_formula",
    "after `set_state` in the middle": "tests/experimental/dynamic/test_states.py::test_an_epoch_is_finished_elsewhere",
    "`random_shuffle` uses": "tests/experimental/dynamic/test_states.py::test_shuffled_epochs_give_every_sample_once",
    "integers and states of `RNG`": "tests/experimental/dynamic/test_compared_with_dali.py::test_programs",
    "`capture=True` converts": "tests/experimental/dynamic/test_states.py::test_captured_loops_give_the_same",
}

WARPS = "linear interpolation by `fn.rotate`"
PROGRAMS = [*PIPELINE_DIFFERENCES, *OPERATOR_DIFFERENCES, *DYNAMIC_DIFFERENCES]
IDS = [f"{number}-{re.sub('[^a-zA-Z0-9]+', '_', program.row)[:40]}" for number, program in enumerate(PROGRAMS)]


def rows() -> list[str]:
    """Return the rows of all tables, without the heading and the line below it."""
    found: list[str] = []
    for page, heading in TABLES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        table = text[text.index(heading) :].split("\n\n")[0]
        found += [line.removeprefix("| ") for line in table.splitlines()[2:]]
    return found


ROWS = rows()


def check(program: Difference, package: ModuleType, expected: Any, folder: Path) -> None:
    if expected is UNDEFINED:
        pytest.skip("the result is not defined")
    arguments = (package, folder) if program.run.__code__.co_argcount == 2 else (package,)
    if isinstance(expected, type):
        with pytest.raises(expected):
            program.run(*arguments)
    else:
        np.testing.assert_equal(program.run(*arguments), expected)


@pytest.mark.parametrize("program", PROGRAMS, ids=IDS)
def test_dalify(program: Difference, tmp_path: Path) -> None:
    check(program, dalify, program.dalify, tmp_path)


@pytest.mark.parametrize("program", PROGRAMS, ids=IDS)
@pytest.mark.filterwarnings("ignore")  # DALI's deprecations and advice
def test_dali(program: Difference, oracle: ModuleType, tmp_path: Path) -> None:
    check(program, oracle, program.dali, tmp_path)


def warped(package: Any) -> list[np.ndarray]:
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    calls = (
        lambda x: package.fn.rotate(x, angle=20.0),
        lambda x: package.fn.warp_affine(x, matrix=[0.9, 0.2, 3, -0.1, 1.1, 2]),
        lambda x: package.fn.experimental.warp_perspective(x, matrix=[0.9, 0.2, 3, -0.1, 1.1, 2, 0, 0, 1]),
    )
    return [image(package, call, noise).astype(int) for call in calls]


def test_warps_of_three_bytes(oracle: ModuleType) -> None:
    for ours, theirs in zip(warped(dalify), warped(oracle), strict=True):
        difference = np.abs(ours - theirs)
        assert difference.max() == 1
        assert (difference > 0).mean() < 0.04


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[:50])
def test_rows_are_executed(row: str) -> None:
    own = [program.row for program in PROGRAMS] + [WARPS]
    assert any(row.startswith(start) for start in (*own, *ELSEWHERE))


@pytest.mark.parametrize("start", [*dict.fromkeys(program.row for program in PROGRAMS), WARPS, *ELSEWHERE])
def test_rows_exist(start: str) -> None:
    assert sum(row.startswith(start) for row in ROWS) == 1
    if start in ELSEWHERE:
        path, name = ELSEWHERE[start].split("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
