"""Random programs give the same in both libraries, and their errors can be caught as they are for DALI."""

from __future__ import annotations

import importlib

import pytest

import dalify
from tests.compatibility.random_programs import RandomProgram
from tests.compatibility.test_programs import assert_same
from tests.operators.battery.variants import EVERYTHING

_COUNT = 1000 if EVERYTHING else 25
# Of branches whose types or layouts are known at run time only: dalify takes them if the next operator converts them.
_TAKEN = "Divergent data found in different branches"


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("seed", range(_COUNT))
def test_random_programs(seed, oracle):
    for name in ("nvidia.dali", "dalify"):
        importlib.import_module(f"{name}.plugin.pytorch")
    theirs, ours = RandomProgram(seed).run(oracle), RandomProgram(seed).run(dalify)
    if isinstance(theirs, Exception):
        kind = next(item for item in type(theirs).__mro__ if item.__module__ == "builtins")
        is_taken = not isinstance(ours, Exception) and _TAKEN in str(theirs)
        assert is_taken or isinstance(ours, kind), f"in DALI: {theirs!r}"
    elif isinstance(ours, Exception):
        raise ours
    else:
        assert_same(ours, theirs)


def test_programs_without_dali():
    """Most random programs run: what is compared is not that both fail."""
    importlib.import_module("dalify.plugin.pytorch")
    results = [RandomProgram(seed).run(dalify) for seed in range(25)]
    assert sum(isinstance(result, list) for result in results) >= 20
