"""The examples of docstrings give the documented results."""

from __future__ import annotations

import doctest
import importlib

import pytest

import dalify.experimental.dynamic as ndd


@pytest.mark.parametrize("name", ["rng", "states", "external"])
def test_examples(name):
    module = importlib.import_module(f"dalify.experimental.dynamic.{name}")
    found = doctest.testmod(module, extraglobs={"ndd": ndd})
    assert found.attempted
    assert not found.failed
