"""Fuse a resize with the crop after it, so that only the pixels of the crop are resampled.

``resize`` before ``crop_mirror_normalize`` with a crop is the standard preprocessing of images for validation. The crop
becomes part of the resize (``resize_crop_mirror``, which reads the same pixels around its window). All images then have
the same size, so normalization runs once for many images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dalify.graph import Edge, Graph, Node, edge_spec, rewrite
from dalify.passes.report import Report
from dalify.registry import catalogue

__all__ = ["fuse"]

_OF_CROP = ("crop", "crop_h", "crop_w", "crop_pos_x", "crop_pos_y", "rounding")
_EXACT_PARTS = 256


def fuse(graph: Graph, report: Report) -> Graph:
    """Return the graph in which a resize computes only the window of the crop after it.

    Args:
        graph: any graph.
        report: receives a note for every fused resize.
    """
    uses = Counter(edge for node in graph.nodes() for edge in node.edges())
    uses.update(graph.outputs)
    crops: dict[int, Node] = {}
    for node in graph.nodes():
        resized = node.inputs[0] if node.operator.name == "crop_mirror_normalize" else None
        if resized is not None and uses[resized] == 1 and _can_take_in(resized.node, node):
            crops[resized.node.number] = node
    cut = {node.number for node in crops.values()}

    def change(node: Node, new_edge: Callable[[Edge], Edge]) -> Node:
        if node.operator.name == "crop_mirror_normalize" and node.number in cut:
            kept = {name: value for name, value in node.arguments.items() if name not in _OF_CROP}
            return replace(node, arguments=kept)
        crop = crops.get(node.number)
        if crop is None or node.operator.name != "resize":
            return node
        taken = {name: crop.arguments[name] for name in _OF_CROP if name in crop.arguments}
        report.note("fuse", f"{node!r} computes only the window of {crop!r}")
        return replace(node, operator=catalogue.find("resize_crop_mirror"), arguments={**node.arguments, **taken})

    return rewrite(graph, change) if crops else graph


def _can_take_in(resize: Node, crop: Node) -> bool:
    """Return whether the crop window is always inside the resized image and no other option prevents fusion."""
    if resize.operator.name != "resize" or resize.preserve or resize.branch is not crop.branch:
        return False
    if resize.output_count != 1:  # resize_crop_mirror does not have the second output of save_attrs
        return False
    source = resize.inputs[0]
    if source is None or edge_spec(source).layout != "HWC" or resize.device != crop.device:
        return False
    given = crop.arguments
    if any(isinstance(given.get(name), Edge) for name in _OF_CROP) or given.get("crop_d"):
        return False
    # The operators compute positions in different precisions; for numbers with few binary digits, such as 0.5, both are
    # exact.
    if any(given.get(name, 0.5) * _EXACT_PARTS % 1 for name in ("crop_pos_x", "crop_pos_y")):
        return False
    window = given.get("crop") or (given.get("crop_h", 0), given.get("crop_w", 0))
    least = _minimum_size(resize.arguments)
    return len(window) == 2 and least is not None and all(0 < a <= b for a, b in zip(window, least, strict=True))


def _minimum_size(arguments: Any) -> tuple[float, float] | None:
    """Return the minimum height and width of the result of a resize for any image; None if unknown."""
    if any(isinstance(value, Edge) for value in arguments.values()):
        return None
    sizes = {name for name in arguments if name in ("size", "resize_shorter", "resize_longer", "resize_x", "resize_y")}
    if arguments.get("max_size") is not None or arguments.get("mode", "default") != "default" or len(sizes) != 1:
        return None
    if "resize_shorter" in arguments:
        return (arguments["resize_shorter"],) * 2
    size = arguments.get("size", ())
    return (size[0], size[1]) if len(size) == 2 and min(size) > 0 else None
