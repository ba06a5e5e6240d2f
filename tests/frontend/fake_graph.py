"""A graph of numbers, small enough to be run one sample at a time.

Running a node made in a branch for a sample that does not take the branch is an error: every test checks the laziness.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from dalify.frontend import overloads, rewrite, values
from dalify.graph import DataNode, current_branch

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "lt": operator.lt,
    "leq": operator.le,
    "gt": operator.gt,
    "geq": operator.ge,
    "eq": operator.eq,
    "neq": operator.ne,
    "minus": operator.neg,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "not": operator.not_,
}


class FakeEdge:
    node = "fake"

    def __init__(self, function: str, operands: tuple[Any, ...], device: str = "cpu") -> None:
        self.function = function
        self.operands = operands
        self.device = device
        self.branch = current_branch()

    def run(self, sample: Mapping[str, Any], known: dict[FakeEdge, Any]) -> Any:
        if self not in known:
            branch = self.branch
            while branch is not None:
                taken = bool(branch.condition.run(sample, known))
                assert taken is branch.taken, "a node ran for a sample outside its branch"
                branch = branch.parent
            known[self] = self._compute(sample, known)
        return known[self]

    def _compute(self, sample: Mapping[str, Any], known: dict[FakeEdge, Any]) -> Any:
        if self.function == "input":
            return sample[self.operands[0]]
        if self.function == "constant":
            return self.operands[0]
        if self.function == "merge":
            condition, if_true, if_false = self.operands
            return (if_true if condition.run(sample, known) else if_false).run(sample, known)
        operands = [part.run(sample, known) if isinstance(part, FakeEdge) else part for part in self.operands]
        return FUNCTIONS[self.function](*operands)


class FakeNode(DataNode):
    __slots__ = ()

    def _apply(self, function: str, *operands: Any) -> DataNode:
        return make(function, *operands)


def make(function: str, *operands: Any, device: str = "cpu") -> FakeNode:
    return FakeNode(
        FakeEdge(function, tuple(part.edge if isinstance(part, DataNode) else part for part in operands), device)
    )


def merge(condition: DataNode, if_true: DataNode, if_false: DataNode, name: str, lines: Any) -> DataNode:
    del name, lines
    return make("merge", condition, if_true, if_false)


def node(name: str) -> FakeNode:
    return make("input", name)


@contextmanager
def fake_graph() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "merge", merge)
        patch.setattr(values, "constant", lambda value: make("constant", value))
        patch.setattr(overloads, "logical_not", lambda value: make("not", value))
        yield


def run(value: Any, sample: Mapping[str, Any], known: dict[FakeEdge, Any] | None = None) -> Any:
    """Compute nested nodes for one sample."""
    known = {} if known is None else known
    if isinstance(value, DataNode):
        return value.edge.run(sample, known)
    if isinstance(value, dict):
        return {key: run(item, sample, known) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(run(item, sample, known) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(run(item, sample, known) for item in value)
    return value


def traced(function: Callable[..., Any], *names: str) -> Any:
    """Trace a function with one input node per name."""
    with fake_graph():
        result = rewrite(function)(*(node(name) for name in names))
    assert current_branch() is None, "a branch was not left"
    return result


def check(function: Callable[..., Any], *samples: tuple[Any, ...]) -> None:
    """Compare the traced function, sample by sample, with Python running it on the numbers."""
    names = [f"input_{number}" for number in range(len(samples[0]))]
    graph = traced(function, *names)
    for sample in samples:
        expected = function(*sample)
        found = run(graph, dict(zip(names, sample, strict=True)))
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(found, expected)
        else:
            assert found == expected, f"sample {sample}: {found} instead of {expected}"
