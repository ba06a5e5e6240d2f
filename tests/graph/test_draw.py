"""Drawings: they are complete, nothing overlaps, and strings of users cannot break them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify.base.source_line import SourceLine
from dalify.graph import Branch, Edge, Graph, Node
from dalify.graph.draw import to_dot, to_svg
from dalify.registry import Operator, Structural

SVG = "{http://www.w3.org/2000/svg}"


def node(name: str, *inputs: Edge, output_count: int = 1, branch: Branch | None = None, **arguments: Any) -> Node:
    is_merge = name == "_conditional.merge"
    operator = (Structural if is_merge else Operator)(lambda: None, name=name)
    line = SourceLine("/home/me/train.py", 31, "training")
    return Node(operator, inputs, arguments, output_count=output_count, branch=branch, line=line)


@pytest.fixture
def graph() -> Graph:
    """A reader, a condition with a node in each branch, an argument per sample."""
    reader = node("readers.file", output_count=2, file_root='C:\\photos "new" <&>')
    coin = node("random.coin_flip")
    sides = [Branch(Edge(coin, 0), taken, None, None) for taken in (True, False)]
    angle = node("random.uniform")
    turned = node("rotate", Edge(reader, 0), branch=sides[0], angle=Edge(angle, 0))
    blurred = node("gaussian_blur", Edge(reader, 0), branch=sides[1])
    merged = node("_conditional.merge", Edge(turned, 0), Edge(blurred, 0))
    return Graph((Edge(merged, 0), Edge(reader, 1)))


def test_dot_names_nodes_arguments_and_conditions(graph: Graph) -> None:
    text = to_dot(graph)
    assert text.startswith("digraph pipeline {")
    for word in ("readers.file", "rotate", "gaussian_blur", "conditional.merge", "train.py:31", "output 1"):
        assert word in text
    assert text.count('style="dashed"') == 2
    assert '[label="angle"]' in text
    assert 'C:\\\\photos \\"new\\"' in text


def test_svg_is_well_formed_and_complete(graph: Graph) -> None:
    root = ElementTree.fromstring(to_svg(graph))
    words = [element.text for element in root.iter(f"{SVG}text")]
    for word in ("readers.file", "rotate", "gaussian_blur", "output 0", "output 1", "angle", "if true", "if false"):
        assert word in words
    assert len(rectangles(root)) == len(graph.nodes()) + len(graph.outputs)


def rectangles(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    boxes = [box.attrib for box in root.iter(f"{SVG}rect") if box.get("rx")]
    return [(float(box["x"]), float(box["y"]), float(box["width"]), float(box["height"])) for box in boxes]


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=30))
def test_boxes_do_not_overlap_and_are_within_the_image(reads: list[list[int]]) -> None:
    nodes: list[Node] = []
    for index, inputs in enumerate(reads):
        nodes.append(node(f"operator_{index}", *(Edge(nodes[i % index], 0) for i in inputs if index)))
    root = ElementTree.fromstring(to_svg(Graph(tuple(Edge(each, 0) for each in nodes[-3:]))))
    boxes = rectangles(root)
    for index, (x, y, width, height) in enumerate(boxes):
        assert x >= 0
        assert y >= 0
        assert x + width <= float(root.attrib["width"])
        assert y + height <= float(root.attrib["height"])
        for left, top, other_width, other_height in boxes[:index]:
            beside = x >= left + other_width or left >= x + width
            assert beside or y >= top + other_height or top >= y + height
