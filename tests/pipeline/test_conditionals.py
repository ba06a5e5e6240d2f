"""Random programs of nested conditionals return the result of plain Python for every sample."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify import fn, pipeline_def, types
from dalify.base.errors import ConditionError, DivergentBranchesError

_numbers = itertools.count()
_VARIABLES = ("a", "b", "c")


def compiled(source: str, **names: Any) -> Callable[..., Any]:
    """Return the function ``program`` of a source text, whose lines tracebacks and the rewriter can find."""
    filename = f"<program {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    space: dict[str, Any] = dict(names)
    exec(compile(source, filename, "exec"), space)
    return space["program"]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 0) -> str:
    """Return a boolean expression of the variables."""
    kind = draw(st.sampled_from(["compare", "compare", "chain", "and", "or", "not"] if depth < 2 else ["compare"]))
    if kind == "compare":
        sign = draw(st.sampled_from(["<", ">", "==", "!=", "<=", ">="]))
        return f"{draw(st.sampled_from(_VARIABLES))} {sign} {draw(st.integers(-3, 3))}"
    if kind == "chain":
        return f"{draw(st.integers(-4, 0))} < {draw(st.sampled_from(_VARIABLES))} <= {draw(st.integers(0, 4))}"
    if kind == "not":
        return f"not ({draw(conditions(depth + 1))})"
    return f"({draw(conditions(depth + 1))}) {kind} ({draw(conditions(depth + 1))})"


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Return an integer expression of the variables."""
    kind = draw(st.sampled_from(["variable", "sum", "product", "ternary"]))
    variable = draw(st.sampled_from(_VARIABLES))
    if kind == "variable":
        return variable
    if kind == "sum":
        return f"{variable} + {draw(st.sampled_from(_VARIABLES))}"
    if kind == "product":
        return f"{variable} * {draw(st.integers(-2, 2))}"
    return f"({variable} if {draw(conditions(1))} else {draw(st.sampled_from(_VARIABLES))} - 1)"


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """Statements: assignments, ``if`` with and without ``elif`` and ``else``, early returns in both branches."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["assign", "assign", "if", "elif", "augment"] if depth < 3 else ["assign"]))
        if kind == "assign":
            lines.append(f"{draw(st.sampled_from(_VARIABLES))} = {draw(expressions())}")
        elif kind == "augment":
            lines.append(f"{draw(st.sampled_from(_VARIABLES))} += {draw(st.integers(-2, 2))}")
        else:
            lines.append(f"if {draw(conditions())}:")
            lines += [f"    {line}" for line in draw(blocks(depth + 1))]
            if kind == "elif":
                lines.append(f"elif {draw(conditions())}:")
                lines += [f"    {line}" for line in draw(blocks(depth + 1))]
            if draw(st.booleans()):
                lines.append("else:")
                lines += [f"    {line}" for line in draw(blocks(depth + 1))]
    return lines


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Return a function of three integers that returns three integers."""
    lines = draw(blocks())
    if draw(st.booleans()):
        lines += [f"if {draw(conditions())}:", *(f"    {line}" for line in draw(blocks(2))), "    return c, a, b"]
    lines.append("return a, b, c")
    return "def program(a, b, c):\n" + "".join(f"    {line}\n" for line in lines)


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(1, 3), st.integers(0, 2**32))
def test_random_programs_equal_python_per_sample(source: str, num_threads: int, seed: int) -> None:
    program = compiled(source)
    values = np.random.default_rng(seed).integers(-4, 5, (3, 9)).astype(np.int32)

    @pipeline_def(batch_size=9, num_threads=num_threads)
    def pipeline() -> Any:
        nodes = [fn.external_source(source=itertools.repeat(row), ndim=0, dtype=types.INT32) for row in values]
        return program(*nodes)

    outputs = pipeline().run()
    expected = np.array([program(*(int(value) for value in column)) for column in values.T], np.int32)
    np.testing.assert_array_equal(np.stack([output.as_array() for output in outputs], axis=1), expected)


def test_random_numbers_in_a_branch_are_those_without_it() -> None:
    @pipeline_def(batch_size=32, num_threads=2, seed=7)
    def branching() -> Any:
        take = fn.external_source(source=lambda: np.arange(32) % 3 == 0, ndim=0, dtype=types.BOOL)
        data = fn.external_source(source=lambda: np.zeros((32, 2), np.float32), ndim=1, dtype=types.FLOAT)
        if take:  # noqa: SIM108 -- an if statement is what is tested
            data = data + fn.random.uniform(range=[0, 1])
        else:
            data = fn.random.normal(data)
        return data, take

    @pipeline_def(batch_size=32, num_threads=1, seed=7)
    def plain() -> Any:
        data = fn.external_source(source=lambda: np.zeros((32, 2), np.float32), ndim=1, dtype=types.FLOAT)
        return data + fn.random.uniform(range=[0, 1]), fn.random.normal(data)

    one, other = branching(), plain()
    for _ in range(3):
        found, take = (output.as_array() for output in one.run())
        uniform, normal = (output.as_array() for output in other.run())
        np.testing.assert_array_equal(found, np.where(take[:, None], uniform, normal))


def test_branches_that_differ_are_refused_when_the_graph_is_built() -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def pipeline() -> Any:
        flag = fn.external_source(source=lambda: np.ones(4, bool), ndim=0, dtype=types.BOOL)
        if flag:  # noqa: SIM108
            value = types.Constant(1)
        else:
            value = types.Constant(1.5)
        return value

    with pytest.raises(DivergentBranchesError) as caught:
        pipeline().build()
    text = str(caught.value)
    assert "'value' has a different element type in each branch" in text
    assert "value = types.Constant(1)\n" in text
    assert "value = types.Constant(1.5)" in text
    assert "fn.cast" in text


@pytest.mark.parametrize(
    ("combined", "message"),
    [
        (lambda flag, value: flag and value, "of this `and` must be one boolean per sample; its element type is"),
        (lambda flag, value: flag or value > 1, "of this `or` must be one boolean per sample; its number of dim"),
    ],
)
def test_right_operands_that_are_not_boolean(combined: Callable[[Any, Any], Any], message: str) -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def pipeline() -> Any:
        value = fn.external_source(source=lambda: np.ones((4, 1), np.int32), ndim=1, dtype=types.INT32)
        return combined(value[0] == 1, value)

    with pytest.raises(DivergentBranchesError, match=message):
        pipeline().build()


@pytest.mark.parametrize("num_threads", [1, 4])
def test_samples_of_branches_that_differ_name_the_users_line(num_threads: int) -> None:
    @pipeline_def(batch_size=4, num_threads=num_threads)
    def pipeline() -> Any:
        flag = fn.external_source(source=lambda: np.array([False, True, False, True]), ndim=0, dtype=types.BOOL)
        matrix = fn.external_source(source=lambda: np.zeros((4, 2, 3), np.float32))
        if flag:  # noqa: SIM108
            value = matrix
        else:
            value = matrix[0]
        return value

    with pytest.raises(DivergentBranchesError, match="same number of dimensions") as caught:
        pipeline().run()
    assert "if flag:" in str(caught.value)


def test_a_condition_of_several_elements_names_the_users_line() -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def pipeline() -> Any:
        data = fn.external_source(source=lambda: np.ones((4, 3), np.float32), ndim=1, dtype=types.FLOAT)
        if data > 0:
            data = data + 1
        return data

    pipe = pipeline()
    with pytest.raises(ConditionError) as caught:
        pipe.run()
    assert "if data > 0:" in str(caught.value)
    assert "fn.reductions" in str(caught.value)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("is_true_on_gpu", [True, False])
def test_branches_on_different_devices_meet_on_the_gpu(is_true_on_gpu: bool) -> None:

    @pipeline_def(batch_size=6, num_threads=1, seed=3)
    def pipeline() -> Any:
        data = fn.external_source(lambda: np.arange(6, dtype=np.int32))
        if data % 2 == 0:
            result = (data + 100).gpu() if is_true_on_gpu else data + 100
        else:
            result = data * 2 if is_true_on_gpu else (data * 2).gpu()
        return result

    (output,) = pipeline().run()
    assert output.device == "gpu"
    assert output.as_cpu().as_array().tolist() == [100, 2, 102, 6, 104, 10]
