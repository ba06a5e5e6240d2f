"""Every pass preserves the results of a graph, and changes it as documented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import DivergentBranchesError
from dalify.frontend import do_not_convert
from dalify.graph import DataNode, Graph, node_specs
from dalify.passes import PASSES, Report, deduplicate, fold_constants, infer_specs, place, split_branches, verify
from dalify.passes.verify import Stage
from dalify.pipeline.pipeline import parts_of

EVERY_GRAPH = [item for name, item in PASSES.items() if name != "narrow"]  # it needs an option

VALUES = np.arange(24, dtype=np.int32).reshape(4, 6) - 9


def source() -> DataNode:
    """A graph value with VALUES, one row per sample."""
    return fn.external_source(source=lambda: VALUES, ndim=1, dtype=types.INT32)


def graph_of(*nodes: DataNode) -> Graph:
    return Graph(tuple(node.edge for node in nodes))


def run(graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Run a graph that has been through some passes already."""
    pipe = Pipeline(batch_size=4, num_threads=2)
    pipe.set_outputs(*(DataNode(edge) for edge in graph.outputs))
    return [output.as_array() for output in pipe.run()]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 0) -> Any:
    """Nested arithmetic as tuples: ``("x",)``, ``(3,)`` or ``("+", left, right)``."""
    if depth > 3 or draw(st.integers(0, 3)) == 0:
        return (draw(st.sampled_from(["x", 0, 1, 2, -3])),)
    operator = draw(st.sampled_from(["+", "-", "*"]))
    return (operator, draw(expressions(depth + 1)), draw(expressions(depth + 1)))


def evaluate(expression: Any, x: Any, number: Any) -> Any:
    if len(expression) == 1:
        return x if expression[0] == "x" else number(expression[0])
    left, right = (evaluate(part, x, number) for part in expression[1:])
    return {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}[expression[0]]()


@settings(max_examples=40, deadline=None)
@given(st.lists(expressions(), min_size=1, max_size=3))
def test_passes_keep_results(parts: list[Any]) -> None:
    x = source()
    nodes = [evaluate(part, x, lambda value: types.Constant(value).node()) + 0 * x for part in parts]
    with np.errstate(over="ignore"):
        expected = [evaluate(part, VALUES, np.int32) + 0 * VALUES for part in parts]
    graph = graph_of(*nodes)
    for run_pass, stage in EVERY_GRAPH:
        graph = run_pass(graph, Report())
        verify(graph, stage)
        for found, wanted in zip(run(graph), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_a_second_run_of_a_pass_changes_nothing() -> None:
    x = source()
    graph = graph_of(x * 2 + x * 2, (types.Constant(2) * 3).node() + x)
    for run_pass, _ in EVERY_GRAPH:
        once = run_pass(graph, Report())
        assert len(run_pass(once, Report()).nodes()) == len(once.nodes())
        graph = once


def test_pruning_keeps_nodes_that_outputs_need() -> None:
    x = source()
    used, unused = x + 1, x * 7
    names = {node.operator.name for node in graph_of(used).nodes()}
    assert unused.edge.node not in graph_of(used).nodes()
    assert names == {"external_source", "_literal", "arithmetic"}


def test_one_pruned_output_of_several() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        _, second = fn.external_source(source=lambda: (np.zeros((2, 1)), np.ones((2, 1))), num_outputs=2)
        return second

    assert pipeline().run()[0].as_array().tolist() == [[1.0], [1.0]]


def test_preserve_keeps_a_node_and_explain_lists_pruned_nodes() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        data = fn.external_source(source=lambda: np.zeros((2, 3), np.float32), ndim=1, dtype=types.FLOAT)
        fn.copy(data, preserve=True)
        fn.cast(data, dtype=types.UINT8)
        return data

    pipe = pipeline()
    text = pipe.explain()
    kept = {node.operator.name for node in parts_of(pipe).builder.graph().nodes()}
    assert "copy" in kept
    assert "cast" not in kept
    assert "cast(cpu) at test_passes.py" in text
    assert "is not needed by any output" in text
    pipe.run()


def test_deduplicate_merges_equal_nodes_only() -> None:
    x = source()
    report = Report()
    graph = deduplicate(graph_of(x + 1, x + 1, x + 2, x + 1.0), report)
    nodes = {edge.node for edge in graph.outputs}
    assert len(nodes) == 3  # 1 and 1.0 are different constants
    assert "computed once" in str(report.notes)


def test_deduplicate_leaves_random_numbers_alone() -> None:
    first, second = fn.random.uniform(), fn.random.uniform()
    graph = deduplicate(graph_of(first, second), Report())
    assert len(graph.nodes()) == 2


def test_fold_constants() -> None:
    node = (types.Constant(3) + types.Constant(4)).node() * 2
    graph = fold_constants(graph_of(node), Report())
    (literal,) = graph.nodes()
    assert literal.arguments["value"] == 14
    assert literal.arguments["value"].dtype == np.int32


def test_division_by_zero_of_constants_is_the_runs_error() -> None:
    node = types.Constant(3) // types.Constant(0)
    graph = fold_constants(graph_of(node), Report())
    with pytest.raises(ValueError, match="division by zero"):
        run(graph)


def test_infer_specs_names_operator_and_line() -> None:
    node = fn.transpose(source(), perm=[0, 1, 2])
    with pytest.raises(Exception, match=r"fn\.transpose") as caught:
        infer_specs(graph_of(node), Report())
    assert "test_passes.py" in str(caught.value)
    assert "node = fn.transpose(source(), perm=[0, 1, 2])" in str(caught.value)


def test_a_value_that_leaks_out_of_a_branch_is_refused() -> None:
    leaked: list[DataNode] = []

    @do_not_convert  # the rewriter would reject the change immediately
    def remember(value: DataNode) -> None:
        leaked[:] = [value]

    @pipeline_def(batch_size=4, num_threads=1)
    def pipeline() -> Any:
        x = source()
        flag = fn.external_source(source=lambda: np.ones(4, bool), ndim=0, dtype=types.BOOL)
        if flag:
            y = x + 1
            remember(y)
        else:
            y = x
        return y, leaked[0]

    with pytest.raises(DivergentBranchesError, match="used outside of it"):
        pipeline().build()


@pytest.mark.usefixtures("emulated_gpu")
def test_place_inserts_copies_and_reports_them() -> None:
    node = fn.cast(source().gpu(), dtype=types.FLOAT) + 1
    report = Report()
    graph = place(split_branches(graph_of(node), Report()), report)
    verify(graph, "placed")
    assert sum(item.operator.name == "_transfer" for item in graph.nodes()) == 2  # the data, and the constant
    assert "copied to the GPU" in str(report.notes)
    np.testing.assert_array_equal(run_gpu(graph), VALUES + 1.0)


def run_gpu(graph: Graph) -> np.ndarray[Any, Any]:
    pipe = Pipeline(batch_size=4, num_threads=1)
    pipe.set_outputs(*(DataNode(edge) for edge in graph.outputs))
    return pipe.run()[0].as_cpu().as_array()


@pytest.mark.parametrize("stage", ["traced", "split", "placed"])
def test_verify_finds_a_broken_promise(stage: Stage) -> None:
    x = source()
    good = graph_of(x + 1)
    verify(good, "traced")
    edge = good.outputs[0]
    broken = Graph((type(edge)(edge.node, 0),))
    object.__setattr__(broken.outputs[0].node, "inputs", (type(edge)(x.edge.node, 5),))
    with pytest.raises(AssertionError, match="dalify bug"):
        verify(broken, stage)


def test_types_are_known_before_anything_runs() -> None:
    (spec,) = node_specs((source() / 2).edge.node)
    assert (spec.dtype, spec.ndim, spec.layout) == (types.FLOAT, 1, "")
