"""Decode only the part of an image that the random crop after the decoder reads.

The crop is not changed: its window is a function of its random numbers and the size of the image, which the header of
the file contains. So the decoder computes the same window and leaves the rest of the image undefined. The decoder
declares the crops of which that holds.
"""

from __future__ import annotations

from dalify.graph import Graph
from dalify.passes.pairs import join_pairs
from dalify.passes.report import Report

__all__ = ["push_crop"]


def push_crop(graph: Graph, report: Report) -> Graph:
    """Return the graph in which decoders whose only consumer is a random crop skip rows that it does not read.

    Args:
        graph: any graph.
        report: receives a note for every such decoder.
    """
    return join_pairs(
        graph,
        lambda first, second: report.note("push_crop", f"{first!r} decodes only what {second!r} reads"),
        kind="narrows",
    )
