"""The program that compares batches of threads and processes, with one small pipeline; it must detect differences."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import equality
from tests.fuzz.equality import Row, compared, table
from tests.helpers.platforms import needs_linux

pytestmark = needs_linux


@pytest.fixture(autouse=True)
def data_of_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # benchmarks make their data in out/


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_all_is_equal(method: str) -> None:
    row = compared("training", 3, random.Random(1), method)
    assert row.batches == 16
    assert row.deaths == 3
    assert row.compared_with_kills >= 16
    assert set(row.differ.values()) == {0}, row


def test_differences_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another seed for the pipelines with processes: all batches differ, those of the first half of a run do not."""
    real = equality.pipeline_def

    def other(**given: Any) -> Any:
        return real(**{**given, "seed": given["seed"] + bool(given["processes"])})

    monkeypatch.setattr(equality, "pipeline_def", other)
    monkeypatch.setattr(equality.Pipeline, "load_state_dict", lambda pipe, state: None)
    row = compared("volumes", 1, random.Random(1))
    assert row.differ["processes=2"] == row.batches
    assert row.differ["20 kills"] == row.compared_with_kills
    assert all(row.differ[name] > 0 for name in ("threads, then processes", "processes, then threads"))


def test_table() -> None:
    differ = dict.fromkeys(equality.HEADINGS[2:], 0) | {"processes=2": 3}
    text = table({"training": Row(16, differ, 20, 64)}, 20)
    assert text.splitlines()[2] == "| training | 16 | 3 differ | equal (20 killed, 64 batches) | equal | equal |"
