"""Fuse a resize with the crop after it, so that only the pixels of the crop are resampled.

``resize`` before ``crop_mirror_normalize`` with a crop is the standard preprocessing of images for validation. The crop
becomes part of the resize (``resize_crop_mirror``, which reads the same pixels around its window). All images then have
the same size, so normalization runs once for many images. The first operator declares what it fuses with.
"""

from __future__ import annotations

from dalify.graph import Graph
from dalify.passes.pairs import join_pairs
from dalify.passes.report import Report

__all__ = ["fuse"]


def fuse(graph: Graph, report: Report) -> Graph:
    """Return the graph in which a resize computes only the window of the crop after it.

    Args:
        graph: any graph.
        report: receives a note for every fused resize.
    """
    return join_pairs(
        graph,
        lambda first, second: report.note("fuse", f"{first!r} computes only the window of {second!r}"),
        moves=True,
    )
