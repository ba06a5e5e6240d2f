"""The graph of a pipeline after all passes, or without some of them."""

from __future__ import annotations

import pytest

from dalify import Pipeline, passes
from dalify.pipeline.pipeline import parts_of


def names_in(pipe: Pipeline) -> set[str]:
    """Return the operators of the graph after all passes."""
    pipe.build()
    built = parts_of(pipe).builder.built
    assert built is not None
    return {node.operator.name for node in built.graph.nodes()}


def omit_passes(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Build graphs without some passes."""
    patch.setattr(passes, "PASSES", {name: item for name, item in passes.PASSES.items() if name not in names})
