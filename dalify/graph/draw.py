"""Draw graphs: DOT for Graphviz, and SVG with a layered layout that needs no other program.

Both formats are generated from the same boxes and arrows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from dalify.base.narrow import is_list_or_tuple
from dalify.graph.branch import is_within
from dalify.graph.graph import Graph
from dalify.graph.node import Branch, Edge, Node

_COLORS = {"cpu": "#dbe9f6", "mixed": "#fde7c8", "gpu": "#d9f0d3", "output": "#eeeeee"}
_CHARACTER_PIXELS, _LINE_PIXELS, _PADDING, _COLUMN_GAP, _LAYER_GAP = 7.3, 16, 8, 24, 44
_LONGEST_CONSTANTS = 42  # characters; the drawing shows the source line for the rest
_SWEEPS = 12  # more than enough in graphs of several dozen nodes


@dataclass(eq=False, slots=True)
class _Box:
    """An element of the drawing: a node, an output, or (without text) a bend of a long arrow."""

    lines: Sequence[str] = ()
    color: str = ""
    layer: int = 0
    x: float = 0.0  # center
    y: float = 0.0  # top
    height: float = 0.0
    above: list[_Box] = field(default_factory=list["_Box"])
    below: list[_Box] = field(default_factory=list["_Box"])

    @property
    def width(self) -> float:
        return max((len(line) for line in self.lines), default=0) * _CHARACTER_PIXELS + 2 * _PADDING


@dataclass(eq=False, slots=True)
class _Arrow:
    tail: _Box
    head: _Box
    text: str = ""
    is_condition: bool = False
    bends: list[_Box] = field(default_factory=list[_Box])


def to_dot(graph: Graph) -> str:
    """Return the graph in Graphviz' DOT language."""
    boxes, arrows = _boxes_and_arrows(graph)
    names = {box: f"n{index}" for index, box in enumerate(boxes)}
    text = ["digraph pipeline {", '  node [shape=box, style="filled,rounded", fontname="monospace", fontsize=11];']
    text += [f'  {names[box]} [label="{_dot_label(box.lines)}", fillcolor="{box.color}"];' for box in boxes]
    for arrow in arrows:
        style = ', style="dashed"' if arrow.is_condition else ""
        text.append(f'  {names[arrow.tail]} -> {names[arrow.head]} [label="{_dot_label([arrow.text])}"{style}];')
    return "\n".join([*text, "}", ""])


def to_svg(graph: Graph) -> str:
    """Return the graph as SVG; data flow down, dashed arrows connect conditions with the nodes of their branches."""
    boxes, arrows = _boxes_and_arrows(graph)
    _assign_layers(boxes, arrows)
    for arrow in arrows:
        _bend(arrow)
    layers = _layers([*boxes, *(bend for arrow in arrows for bend in arrow.bends)])
    _reduce_crossings(layers)
    width, height = _place(layers)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="monospace" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#555"/></marker></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    parts += [line for box in boxes for line in _svg_box(box)]
    parts += _svg_arrows(boxes, arrows)
    return "\n".join([*parts, "</svg>", ""])


def _boxes_and_arrows(graph: Graph) -> tuple[list[_Box], list[_Arrow]]:
    boxes = {node: _Box(_node_lines(node), _COLORS[node.device]) for node in graph.nodes()}
    arrows: list[_Arrow] = []
    for node, box in boxes.items():
        for text, edge in _named_edges(node):
            arrows.append(_Arrow(boxes[edge.node], box, _edge_text(edge, text)))
        if node.branch is not None and _opens_branch(node, node.branch):
            taken = node.branch.taken
            side = ("if true" if taken else "if false") if isinstance(taken, bool) else f"if {taken}"
            arrows.append(_Arrow(boxes[node.branch.condition.node], box, side, is_condition=True))
    outputs: list[_Box] = []
    for index, edge in enumerate(graph.outputs):
        outputs.append(_Box([f"output {index}"], _COLORS["output"]))
        arrows.append(_Arrow(boxes[edge.node], outputs[-1], _edge_text(edge, "")))
    return [*boxes.values(), *outputs], arrows


def _node_lines(node: Node) -> list[str]:
    # The arguments of splits and merges were not written by the user.
    given: Mapping[str, Any] = {} if node.selecting_input is not None else node.arguments
    constants = ", ".join(f"{name}={_constant(value)}" for name, value in given.items() if not isinstance(value, Edge))
    if len(constants) > _LONGEST_CONSTANTS:
        constants = constants[: _LONGEST_CONSTANTS - 1] + "…"
    place = f"{PurePath(node.line.filename).name}:{node.line.line}" if node.line else ""
    title = node.operator.name.removeprefix("_") + (f' "{node.name}"' if node.name else "")
    return [line for line in (title, constants, place) if line]


def _constant(value: Any) -> str:
    if is_list_or_tuple(value):
        return f"[{', '.join(_constant(element) for element in value)}]"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Enum):
        return value.name
    # The name of a callback or source; its repr would contain an address.
    return getattr(value, "__name__", type(value).__name__) if callable(value) else str(value)


def _named_edges(node: Node) -> Iterator[tuple[str, Edge]]:
    yield from (("", edge) for edge in node.given_inputs)
    yield from ((name, value) for name, value in node.arguments.items() if isinstance(value, Edge))


def _edge_text(edge: Edge, text: str) -> str:
    output = f"[{edge.output}]" if edge.node.output_count > 1 else ""
    return " ".join(part for part in (output, text) if part)


def _opens_branch(node: Node, branch: Branch) -> bool:
    """Return whether data enter the branch at this node: all its inputs are from outside."""
    return not any(is_within(edge.node.branch, branch) for edge in node.edges())


def _dot_label(lines: Sequence[str]) -> str:
    return "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)


def _assign_layers(boxes: Sequence[_Box], arrows: Sequence[_Arrow]) -> None:
    """Place each box one layer below its lowest input, and boxes without inputs just above their first reader."""
    for box in boxes:  # in the order of the graph, so the inputs of a box have their layers already
        box.layer = max((arrow.tail.layer + 1 for arrow in arrows if arrow.head is box), default=0)
    for box in boxes:
        readers = [arrow.head.layer for arrow in arrows if arrow.tail is box]
        if readers and not any(arrow.head is box for arrow in arrows):
            box.layer = min(readers) - 1


def _bend(arrow: _Arrow) -> None:
    """Add a bend in each layer that an arrow crosses, so that it avoids the boxes there."""
    arrow.bends = [_Box(layer=layer) for layer in range(arrow.tail.layer + 1, arrow.head.layer)]
    for upper, lower in pairwise([arrow.tail, *arrow.bends, arrow.head]):
        upper.below.append(lower)
        lower.above.append(upper)


def _layers(boxes: Sequence[_Box]) -> list[list[_Box]]:
    layers: list[list[_Box]] = [[] for _ in range(1 + max(box.layer for box in boxes))]
    for box in boxes:
        box.x = len(layers[box.layer])
        layers[box.layer].append(box)
    return layers


def _reduce_crossings(layers: Sequence[list[_Box]]) -> None:
    """Order each layer by the mean position of its neighbors, alternately downwards and upwards."""
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            means = {box: _mean_x(box.above if sweep % 2 == 0 else box.below, box.x) for box in layer}
            layer.sort(key=means.__getitem__)
            for index, box in enumerate(layer):
                box.x = index


def _place(layers: Sequence[list[_Box]]) -> tuple[float, float]:
    """Set coordinates; return width and height of the drawing."""
    for layer in layers:
        _separate(layer, [0.0] * len(layer))
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            _separate(layer, [_mean_x([*box.above, *box.below], box.x) for box in layer])
    left = min(box.x - box.width / 2 for layer in layers for box in layer) - _COLUMN_GAP
    top = float(_COLUMN_GAP)
    for layer in layers:
        height = max(len(box.lines) for box in layer) * _LINE_PIXELS + _PADDING
        for box in layer:
            box.x -= left
            box.y = top
            # A bend has the height of the layer, so that its arrow is vertical beside the boxes.
            box.height = len(box.lines) * _LINE_PIXELS + _PADDING if box.lines else height
        top += height + _LAYER_GAP
    right = max(box.x + box.width / 2 for layer in layers for box in layer) + _COLUMN_GAP
    return right, top - _LAYER_GAP + _COLUMN_GAP


def _mean_x(neighbors: Sequence[_Box], otherwise: float) -> float:
    return sum(box.x for box in neighbors) / len(neighbors) if neighbors else otherwise


def _separate(layer: Sequence[_Box], desired: Sequence[float]) -> None:
    """Place boxes near their desired positions without overlap: the mean of packing from the left and from the right.

    Both packings keep the distances, and so does their mean.
    """
    distances = [(a.width + b.width) / 2 + _COLUMN_GAP for a, b in pairwise(layer)]
    from_left, from_right = list(desired), list(desired)
    for index, distance in enumerate(distances):
        from_left[index + 1] = max(desired[index + 1], from_left[index] + distance)
    for index, distance in reversed(list(enumerate(distances))):
        from_right[index] = min(desired[index], from_right[index + 1] - distance)
    for box, a, b in zip(layer, from_left, from_right, strict=True):
        box.x = (a + b) / 2


def _svg_arrows(boxes: Sequence[_Box], arrows: Sequence[_Arrow]) -> Iterator[str]:
    """Draw all arrows; the arrows of one box are side by side, in the order of their other ends."""
    starts: dict[_Arrow, float] = {}
    for box in boxes:
        leaving = [arrow for arrow in arrows if arrow.tail is box]
        leaving.sort(key=lambda arrow: [*arrow.bends, arrow.head][0].x)
        starts.update(zip(leaving, _ports(box, len(leaving)), strict=True))
    for box in boxes:
        arriving = [arrow for arrow in arrows if arrow.head is box]
        arriving.sort(key=lambda arrow: [arrow.tail, *arrow.bends][-1].x)
        for index, (arrow, end) in enumerate(zip(arriving, _ports(box, len(arriving)), strict=True)):
            yield from _svg_arrow(arrow, starts[arrow], end, index)


def _ports(box: _Box, count: int) -> list[float]:
    """Return the horizontal positions where arrows meet a box, from left to right."""
    return [box.x + box.width * ((index + 1) / (count + 1) - 0.5) for index in range(count)]


def _svg_arrow(arrow: _Arrow, start_x: float, end_x: float, index: int) -> Iterator[str]:
    x, y = start_x, arrow.tail.y + arrow.tail.height
    path = f"M{x:.1f} {y:.1f}"
    for box in [*arrow.bends, arrow.head]:
        next_x = end_x if box is arrow.head else box.x
        middle = (y + box.y) / 2
        path += f" C{x:.1f} {middle:.1f} {next_x:.1f} {middle:.1f} {next_x:.1f} {box.y:.1f}"
        x, y = next_x, box.y + box.height
        if box is not arrow.head:
            path += f" V{y:.1f}"
    dashes = ' stroke-dasharray="5 4"' if arrow.is_condition else ""
    yield f'<path d="{path}" fill="none" stroke="#777"{dashes} marker-end="url(#tip)"/>'
    if arrow.text:
        # At the arrow's end, where the argument is used. Neighbors' texts are at different heights.
        text_y = arrow.head.y - 9 - 11 * (index % 3)
        style = 'font-size="10" fill="#444" stroke="white" stroke-width="3" paint-order="stroke"'
        yield f'<text x="{end_x + 4:.1f}" y="{text_y:.1f}" {style}>{_escaped(arrow.text)}</text>'


def _escaped(text: str) -> str:
    # Not html.escape, whose import takes longer than the rest of this file.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _svg_box(box: _Box) -> list[str]:
    left = box.x - box.width / 2
    shape = f'<rect x="{left:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6"'
    lines = [f'{shape} fill="{box.color}" stroke="#888"/>']
    for index, text in enumerate(box.lines):
        style = ' font-weight="bold"' if index == 0 else ' fill="#555" font-size="11"'
        y = box.y + (index + 1) * _LINE_PIXELS - 1
        lines.append(f'<text x="{box.x:.1f}" y="{y:.1f}" text-anchor="middle"{style}>{_escaped(text)}</text>')
    return lines
