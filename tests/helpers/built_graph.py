"""The graph of a pipeline after all passes."""

from __future__ import annotations

from dalify import Pipeline
from dalify.pipeline.pipeline import parts_of

__all__ = ["names_in"]


def names_in(pipe: Pipeline) -> set[str]:
    """Operators of the graph after all passes."""
    pipe.build()
    built = parts_of(pipe).builder.built
    assert built is not None
    return {node.operator.name for node in built.graph.nodes()}
