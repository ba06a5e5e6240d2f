"""Fuse a resize with the crop and the normalization after it. The first operator declares what it fuses with.

``resize`` before ``crop_mirror_normalize`` with a crop is the standard preprocessing of images for validation. The crop
becomes part of the resize (``resize_crop_mirror``, which reads the same pixels around its window). All images then have
the same size, so normalization runs once for many images.

On a GPU, a resize or a random crop and the normalization after it become one operator: the resized image is not
written to memory.
"""

from __future__ import annotations

from dalify.graph import Graph
from dalify.passes.pairs import join_pairs
from dalify.passes.report import Report

__all__ = ["fuse"]


def fuse(graph: Graph, report: Report) -> Graph:
    """Return the graph in which a resize computes only the window of the crop after it, and normalizes it on a GPU.

    Args:
        graph: any graph.
        report: receives a note for every fused pair.
    """
    moved = join_pairs(
        graph,
        lambda first, second: report.note("fuse", f"{first!r} computes only the window of {second!r}"),
        kind="moves",
    )
    return join_pairs(
        moved,
        lambda first, second: report.note("fuse", f"{first!r} and {second!r} run as one operator"),
        kind="merges",
    )
