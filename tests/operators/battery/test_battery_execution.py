"""What the way to a result may not change, for every operator: graph, passes, size of the batch, pickled graphs."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import DalifyError
from dalify.graph.serialize import to_json
from dalify.pipeline import do_not_convert
from dalify.pipeline.pipeline import parts_of
from dalify.registry import catalog
from tests.helpers.built_graph import omit_passes
from tests.operators.battery.case import SAMPLES
from tests.operators.battery.direct_call import call_kernel, why_no_direct_call
from tests.operators.battery.run_case import (
    ALL,
    assert_same,
    built,
    case_of,
    every_operator,
    fed_values,
    nodes_of,
    outputs_of,
    run_case,
    typical,
)

# What may be left out: these passes make graphs faster, and change no result.
OPTIONAL_PASSES = ("fold_constants", "deduplicate", "push_crop", "fuse")


@every_operator
def test_graph_equals_the_kernel(name: str, folder: Path) -> None:
    """A pipeline gives the same as a direct call of the kernel."""
    case, operator = case_of(name), catalog.find(name)
    reason = why_no_direct_call(operator) or (case.not_sample_by_sample and "looks at the other samples")
    if reason:
        pytest.skip(reason)
    samples = (*ALL, SAMPLES) if case.inputs else ALL
    expected = run_case(name, case, folder, samples)
    by_hand = call_kernel(name, case, folder, samples)
    assert_same([("", outputs) for _, outputs in expected], [("", outputs) for outputs in by_hand])


@every_operator
def test_passes_change_nothing(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After and before other operators, with and without the passes that make graphs faster."""
    case = case_of(name)

    def graph() -> Any:
        results = [*nodes_of(name, case, ALL, folder), *nodes_of(name, case, ALL, folder)]
        copies = [dalify.fn.copy(node) for node in results]
        return (*results, *copies)

    def result() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with built(do_not_convert(graph)) as pipe:
                return outputs_of(pipe.run())

    optimized = result()
    omit_passes(monkeypatch, *OPTIONAL_PASSES)
    assert_same(optimized, result())


@every_operator
def test_small_batch(name: str, folder: Path) -> None:
    """In a batch with fewer samples than the maximum, each result is the same as in a full batch."""
    case = case_of(name)
    if case.not_sample_by_sample or not case.inputs:
        pytest.skip(case.not_sample_by_sample or "no inputs")
    names: list[str] = []
    few = ALL[:2]
    with built(do_not_convert(lambda: tuple(nodes_of(name, case, ALL, folder, names=names)))) as pipe:
        for key, values in zip(names, fed_values(case, few, folder), strict=True):
            pipe.feed_input(key, values)
        assert_same(outputs_of(pipe.run()), [(layout, samples[:2]) for layout, samples in typical(name, folder)])


@every_operator
def test_empty_batch(name: str, folder: Path) -> None:
    """An empty batch raises an error of dalify, and the next one is correct."""
    case = case_of(name)
    if not case.inputs or case.not_sample_by_sample:
        pytest.skip(case.not_sample_by_sample or "no inputs")
    names: list[str] = []
    with built(do_not_convert(lambda: tuple(nodes_of(name, case, ALL, folder, names=names)))) as pipe:
        for values in ([[] for _ in names], fed_values(case, ALL, folder)):
            try:
                for key, value in zip(names, values, strict=True):
                    pipe.feed_input(key, value)
                outputs = outputs_of(pipe.run())
            except DalifyError:
                assert not values[0]
            else:
                assert all(len(samples) == len(values[0]) for _, samples in outputs)
        assert_same(outputs, typical(name, folder))


@every_operator
def test_pickled(name: str, folder: Path) -> None:
    """A graph is pickled and comes back the same, but for one that holds a user's function."""
    case = case_of(name)
    if case.not_serialized:
        pytest.skip(case.not_serialized)
    with built(do_not_convert(lambda: tuple(nodes_of(name, case, ALL, folder, names=[])))) as pipe:
        graph = parts_of(pipe).builder.built.graph
        again = pickle.loads(pickle.dumps(graph))
        assert [node.operator for node in again.nodes()] == [node.operator for node in graph.nodes()]
        assert json.dumps(to_json(again)) == json.dumps(to_json(graph))


@every_operator
def test_inputs_are_unchanged(name: str, folder: Path) -> None:
    """No kernel writes into its inputs."""
    case = case_of(name)
    before = [[np.array(sample) for sample in data.samples] for data in case.inputs]
    run_case(name, case, folder)
    for samples, data in zip(before, case.inputs, strict=True):
        for one, other in zip(samples, data.samples, strict=True):
            np.testing.assert_array_equal(one, other)
