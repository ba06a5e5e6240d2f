"""Counts of lazy mode."""

from __future__ import annotations

import gc
from dataclasses import fields

import pytest

from dalify import lazy
from dalify.deferred import Statistics
from dalify.immediate.lazy import compiled_graph


class Counted:
    """How much the counts have grown."""

    def __init__(self) -> None:
        self.before = lazy.statistics()

    def __call__(self) -> dict[str, int]:
        now = lazy.statistics()
        names = [field.name for field in fields(Statistics) if field.name != "fallbacks"]
        grown = {name: getattr(now, name) - getattr(self.before, name) for name in names}
        return {name: count for name, count in grown.items() if count}


@pytest.fixture(autouse=True)
def nothing_waits() -> None:
    """Free values to which errors of earlier tests refer."""
    gc.collect()


@pytest.fixture
def counted(nothing_waits: None) -> Counted:
    """Counts of the test alone, which begins without plans."""
    compiled_graph.PLANS.clear()
    return Counted()
