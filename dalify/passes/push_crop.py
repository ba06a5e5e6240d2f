"""Decode only the part of an image that the random crop after the decoder reads.

The crop is not changed: its window is a function of its random numbers and the size of the image, which the header of
the file contains. So the decoder computes the same window and leaves the rest of the image undefined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from dalify.graph import Edge, Graph, Node, rewrite
from dalify.passes.report import Report
from dalify.registry import catalogue

__all__ = ["push_crop"]

_OF_DECODER = ("output_type", "dtype", "adjust_orientation", "use_fast_idct", "on_error")
_OF_CROP = ("num_attempts", "random_area", "random_aspect_ratio", "size")


def push_crop(graph: Graph, report: Report) -> Graph:
    """Return the graph in which decoders whose only consumer is a random crop skip rows that it does not read.

    Args:
        graph: any graph.
        report: receives a note for every such decoder.
    """
    uses = Counter(edge for node in graph.nodes() for edge in node.edges())
    uses.update(graph.outputs)
    sole = {edge for edge, count in uses.items() if count == 1}
    crops: dict[Edge, Node] = {}
    for node in graph.nodes():
        image = node.inputs[0] if node.operator.name == "random_resized_crop" else None
        if image is not None and image in sole and _is_decoder(image.node) and image.node.branch is node.branch:
            crops[image] = node
    by_number = {image.node.number: (image.node, crop) for image, crop in crops.items()}

    def change(node: Node, _new_edge: Callable[[Edge], Edge]) -> Node:
        decoder, crop = by_number.get(node.number, (None, None))
        if decoder is None or crop is None or node.operator is not decoder.operator:
            return node
        arguments = {name: node.arguments[name] for name in _OF_DECODER if name in node.arguments}
        arguments |= {name: crop.arguments.get(name, crop.operator.parameters[name].default) for name in _OF_CROP}
        report.note("push_crop", f"{node!r} decodes only what {crop!r} reads")
        # With the number of the crop, both nodes draw the same random numbers and compute the same window.
        return replace(node, operator=catalogue.find("_decode_for_crop"), arguments=arguments, number=crop.number)

    return rewrite(graph, change) if crops else graph


def _is_decoder(node: Node) -> bool:
    return node.operator.name == "decoders.image" and node.device in ("cpu", "mixed") and not node.preserve
