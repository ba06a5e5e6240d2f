"""Programs give the same results as in DALI's dynamic mode."""

from __future__ import annotations

import importlib

import pytest

import dalify.experimental.dynamic as ndd
from tests.experimental.dynamic.programs import PROGRAMS, READING, shown


@pytest.fixture(scope="module")
def real(oracle):
    return importlib.import_module("nvidia.dali.experimental.dynamic")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, real):
    assert shown(PROGRAMS[name](ndd)) == shown(PROGRAMS[name](real))


@pytest.mark.parametrize("name", READING)
def test_reading(name, real, photo_folder):
    program = READING[name](photo_folder)
    assert shown(program(ndd)) == shown(program(real))


def test_names(real):
    """All names of DALI's module exist, except those listed here with the reason."""
    missing = {
        "local": "a leftover of its imports",
        "torch": "a leftover, too",
    }
    kept = {
        name
        for name in dir(real)
        if not name.startswith("_") and not getattr(getattr(real, name), "__module__", "").startswith("typing")
    }
    assert {name for name in kept if not hasattr(ndd, name)} == set(missing)
    for space in ("readers", "decoders", "random", "reductions", "transforms", "noise", "segmentation", "math"):
        names = {name for name in dir(getattr(real, space)) if not name.startswith("_")}
        assert not {name for name in names if not hasattr(getattr(ndd, space), name)}
