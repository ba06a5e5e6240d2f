"""The state of the random numbers of immediate calls."""

from __future__ import annotations

import json

import pytest

from dalify import eager
from dalify.base.errors import ArgumentTypeError, CheckpointError
from dalify.immediate.generator import Generator


def test_state_is_json():
    eager.seed(11)
    eager.random.uniform(range=(0.0, 1.0))
    state = json.loads(json.dumps(eager.get_state()))
    assert state == {"seed": 11, "calls": 1, "forks": 0}
    after = eager.random.normal()
    eager.set_state(state)
    assert eager.random.normal() == after


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"seed": 1},
        {"seed": 1, "calls": "2", "forks": 0},
        [1, 2, 3],
        {"seed": 1, "calls": -1, "forks": 0},
        {"seed": True, "calls": 1, "forks": 0},
    ],
)
def test_wrong_state(state):
    before = eager.get_state()
    with pytest.raises(CheckpointError):
        eager.set_state(state)
    assert eager.get_state() == before


@pytest.mark.parametrize("value", ["a", 1.5, None, True])
def test_wrong_seed(value):
    with pytest.raises(ArgumentTypeError, match="seed"):
        eager.seed(value)


def test_seeds_differ():
    """A program that gives no seed gets other numbers each time."""
    assert Generator().seed != Generator().seed


def test_only_drawing_calls_count():
    eager.seed(1)
    eager.cast(1, dtype=float)
    eager.random.uniform(range=(0.0, 1.0), seed=3)
    assert eager.get_state()["calls"] == 0
    eager.random.uniform(range=(0.0, 1.0), batch_size=5)
    assert eager.get_state()["calls"] == 1
