"""Computes crops as early as possible: in the resize before them, and in the decoder before that.

``resize`` before ``crop_mirror_normalize`` with a crop is the standard preprocessing of images for validation. The crop
becomes part of the resize (``_resize_crop``, with the same pixels around its window). All images then have the same
size, so normalization runs once for many images.

A decoder before a random crop, or before a resize with a crop, decodes only the part of the image that they read. They
are not changed: their window is a function of their arguments, their random numbers and the image size in the file's
header, so the decoder computes the same window. It leaves the rest of the image undefined. The first operator declares
these pairs.
"""

from __future__ import annotations

from dalify.graph import Graph, Node
from dalify.passes.pairs import join_pairs
from dalify.passes.report import Report


def push_crop(graph: Graph, report: Report) -> Graph:
    """Return the graph in which resizes and decoders compute only what the crop after them reads.

    Args:
        graph: any graph.
        report: a note is added for every such operator.
    """
    moved = join_pairs(
        graph,
        lambda first, second: report.note("push_crop", f"{first!r} computes only the window of {second!r}"),
        kind="moves",
    )

    def note(first: Node, second: Node) -> None:
        where = " where the host decodes" if first.device == "mixed" else ""
        report.note("push_crop", f"{first!r} decodes only what {second!r} reads{where}")

    return join_pairs(moved, note, kind="narrows")
