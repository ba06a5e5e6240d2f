"""Random programs of nested conditions, traced and run per sample, equal Python."""

from __future__ import annotations

import itertools
import linecache
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.frontend import rewrite
from tests.frontend.fake_graph import fake_graph, node, run

TARGETS = ["a", "b", "box.value", "items['k']"]
SAMPLES = list(itertools.product((-1, 0, 2), repeat=3))
numbers = itertools.count()

atoms = st.sampled_from(["x", "y", "z", *TARGETS, "0", "1", "2"])


def _comparisons(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    # A node first: two Python numbers make a Python condition, which is interesting only now and then.
    single = st.builds("{} {} {}".format, values, operators, values)
    chain = st.builds("{} {} {} {} {}".format, values, operators, values, operators, values)
    return single | chain


def _conditions(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        _comparisons(values),
        lambda inner: st.builds("not ({})".format, inner)
        | st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("({}) and ({}) and ({})".format, inner, inner, inner)
        | st.builds("(({}) if ({}) else ({}))".format, inner, inner, inner),
        max_leaves=4,
    )


expressions = st.recursive(
    atoms,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-"), inner)
    | st.builds("({} if {} else {})".format, inner, _conditions(atoms), inner)
    | st.builds("helper({}, {})".format, inner, inner),
    max_leaves=3,
)
conditions = _conditions(expressions)


def _indented(block: list[str]) -> list[str]:
    return ["    " + line for line in block]


def _join(blocks: list[list[str]]) -> list[str]:
    return [line for block in blocks for line in block]


def _if(condition: str, body: list[str], other: str, middle: list[str] | None, last: list[str] | None) -> list[str]:
    lines = [f"if {condition}:", *_indented(body)]
    lines += [] if middle is None else [f"elif {other}:", *_indented(middle)]
    return lines + ([] if last is None else ["else:", *_indented(last)])


def _statements(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    optional = st.none() | inner
    conditional = st.builds(_if, conditions, inner, conditions, optional, optional)
    loop = st.builds(
        lambda condition, body, rest: [
            "for i in range(2):",
            f"    if {condition}:",
            *_indented(_indented([line for line in body if "return" not in line] or ["pass"])),
            "        continue",
            *_indented([line for line in rest if "return" not in line]),
            "    a = a + i",
        ],
        conditions,
        simple_blocks,
        simple_blocks,
    )
    return st.lists(conditional | loop | inner, min_size=1, max_size=3).map(_join)


assignments = st.builds("{} {} {}".format, st.sampled_from(TARGETS), st.sampled_from(["=", "=", "+="]), expressions)
returns = st.builds("return {}".format, expressions)
simple_blocks = st.lists(assignments.map(lambda line: [line]), min_size=1, max_size=2).map(_join)
blocks = st.recursive(simple_blocks | returns.map(lambda line: [line]), _statements, max_leaves=6)

HEAD = """\
def helper(p, q):
    if p > q:
        return p - q
    if q > 1:
        p = p + 3 if p < 0 else p
    return p

def program(x, y, z):
    a, b = x, 1
    box = SimpleNamespace(value=y)
    items = {"k": 5}
"""


def program(body: list[str]) -> Any:
    text = HEAD + "\n".join(_indented(body)) + "\n    return a + b + box.value + items['k']\n"
    filename = f"<random program {next(numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"SimpleNamespace": SimpleNamespace}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["program"], filename


@settings(max_examples=150)
@given(blocks)
def test_random_programs_equal_python(body: list[str]) -> None:
    function, filename = program(body)
    try:
        with fake_graph():
            graph = rewrite(function)(node("x"), node("y"), node("z"))
        for x, y, z in SAMPLES:
            assert run(graph, {"x": x, "y": y, "z": z}) == function(x, y, z), "\n".join(body)
    finally:
        del linecache.cache[filename]
