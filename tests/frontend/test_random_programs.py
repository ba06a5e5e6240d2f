"""Random programs of nested conditions, traced and run per sample, equal Python."""

from __future__ import annotations

import itertools
import linecache
import random
from types import SimpleNamespace
from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from dalify.base.errors import UnsupportedSyntaxError
from dalify.frontend import rewrite
from tests.frontend.fake_graph import fake_graph, node, run

TARGETS = ["a", "b", "box.value", "items['k']"]
SAMPLES = list(itertools.product((-1, 0, 2), repeat=3))
FILENAME = "<random program>"
HEAD = """\
def helper(p, q):
    if p > q:
        return p - q
    if q > 1:
        p = p + 3 if p < 0 else p
    return p

def store(box, p):
    if 0 <= p < 3:
        box.value = box.value + p
    return box.value

def program(x, y, z):
    a, b = x, 1
    box = SimpleNamespace(value=y)
    items = {"k": 5}
"""


class Writer:
    """Writes programs by the choices of a random generator."""

    def __init__(self, choices: random.Random) -> None:
        self.choices = choices

    def value(self, depth: int) -> str:
        kind = self.choices.randrange(10) if depth > 0 else 9
        if kind < 2:
            return f"({self.value(depth - 1)} {self.choices.choice('+-')} {self.value(depth - 1)})"
        if kind < 4:
            return f"({self.value(depth - 1)} if {self.condition(depth - 1)} else {self.value(depth - 1)})"
        if kind == 4:
            return f"helper({self.value(depth - 1)}, {self.value(depth - 1)})"
        if kind == 5:
            return f"store(box, {self.value(depth - 1)})"
        return self.choices.choice(["x", "y", "z", *TARGETS, "0", "1", "2"])

    def condition(self, depth: int) -> str:
        kind = self.choices.randrange(8) if depth > 0 else 7
        if kind == 0:
            return f"not ({self.condition(depth - 1)})"
        if kind < 3:
            word = self.choices.choice(["and", "or"])
            return f" {word} ".join(f"({self.condition(depth - 1)})" for _ in range(self.choices.choice([2, 2, 3])))
        if kind == 3:
            one, test, other = (self.condition(depth - 1) for _ in range(3))
            return f"(({one}) if ({test}) else ({other}))"
        values = [self.value(depth - 1) for _ in range(self.choices.choice([2, 2, 3]))]
        operators = [self.choices.choice(["<", "<=", ">", ">=", "==", "!="]) for _ in values]
        return values[0] + "".join(f" {sign} {value}" for sign, value in zip(operators, values[1:], strict=False))

    def block(self, depth: int, end: str) -> list[str]:
        lines = [line for _ in range(self.choices.choice([1, 2, 2, 3])) for line in self.statement(depth, end)]
        if end and self.choices.random() < 0.3:
            lines.append(f"return {self.value(1)}" if end == "return" else "continue")
        return lines

    def statement(self, depth: int, end: str) -> list[str]:
        kind = self.choices.randrange(8) if depth > 0 else 7
        if kind < 3:
            lines = [f"if {self.condition(2)}:", *self.indented(depth - 1, end)]
            for _ in range(self.choices.choice([0, 0, 1])):
                lines += [f"elif {self.condition(1)}:", *self.indented(depth - 1, end)]
            return lines + (["else:", *self.indented(depth - 1, end)] if self.choices.random() < 0.6 else [])
        if kind == 3:
            return ["for i in range(2):", *self.indented(depth - 1, "continue"), "    a = a + i"]
        if kind == 4:
            return ["try:", *self.indented(depth - 1, ""), "finally:", f"    b = {self.value(1)}"]
        return [f"{self.choices.choice(TARGETS)} {self.choices.choice(['=', '=', '+='])} {self.value(2)}"]

    def indented(self, depth: int, end: str) -> list[str]:
        return ["    " + line for line in self.block(depth, end)]


def program(choices: random.Random) -> tuple[Any, str]:
    body = "\n".join("    " + line for line in Writer(choices).block(3, "return"))
    text = f"{HEAD}{body}\n    return a + b + box.value + items['k']\n"
    linecache.cache[FILENAME] = (len(text), None, text.splitlines(keepends=True), FILENAME)
    namespace: dict[str, Any] = {"SimpleNamespace": SimpleNamespace}
    exec(compile(text, FILENAME, "exec"), namespace)
    return namespace["program"], body


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_random_programs_equal_python(seed: int) -> None:
    function, body = program(random.Random(seed))
    try:
        with fake_graph():
            graph = rewrite(function)(node("x"), node("y"), node("z"))
    except UnsupportedSyntaxError:  # one program in several hundreds has more paths than the rewriter writes out
        reject()
    for x, y, z in SAMPLES:
        assert run(graph, {"x": x, "y": y, "z": z}) == function(x, y, z), body
