"""Random programs and calls give the same in both libraries, and their errors can be caught as they are for DALI."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import dalify
from tests.compatibility.random_calls import RandomCall
from tests.compatibility.random_programs import RandomProgram
from tests.compatibility.test_programs import assert_same
from tests.operators.battery.variants import EVERYTHING

_PROGRAMS, _CALLS = (1000, 5000) if EVERYTHING else (25, 100)
# DALI's error for branches of different types or layouts; dalify accepts them if the next operator converts them.
_TAKEN = "Divergent data found in different branches"


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("seed", range(_PROGRAMS))
def test_random_programs(seed, oracle):
    for name in ("nvidia.dali", "dalify"):
        importlib.import_module(f"{name}.plugin.pytorch")
    theirs, ours = RandomProgram(seed).run(oracle), RandomProgram(seed).run(dalify)
    if not (isinstance(theirs, Exception) and _TAKEN in str(theirs) and not isinstance(ours, Exception)):
        _compare(ours, theirs)


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("seed", range(_CALLS))
def test_random_calls(seed, oracle):
    theirs, ours = RandomCall(seed).run(oracle), RandomCall(seed).run(dalify)
    # dalify supports more types and layouts.
    if not (isinstance(theirs, Exception) and not isinstance(ours, Exception)):
        _compare(ours, theirs)


def _compare(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, Exception):
        kind = next(item for item in type(theirs).__mro__ if item.__module__ == "builtins")
        assert isinstance(ours, kind), f"in DALI: {theirs!r}"
    elif isinstance(ours, Exception):
        raise ours
    else:
        assert_same(ours, theirs)


def test_programs_without_dali():
    """Most random programs and calls run without errors, so that results are compared."""
    importlib.import_module("dalify.plugin.pytorch")
    for make, count in ((RandomProgram, 25), (RandomCall, 100)):
        results = [make(seed).run(dalify) for seed in range(count)]
        assert sum(isinstance(result, list) for result in results) >= 0.7 * count
