"""Every operator computes the same in eager mode as in a pipeline, batch by batch and sample by sample."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dalify import eager
from dalify.base.errors import UnknownOperatorError
from dalify.data import TensorCPU, TensorListCPU
from dalify.immediate.calls import make_eager
from dalify.registry import Source, catalog
from tests.operators.battery.case import SAMPLES, Case, Data, Each
from tests.operators.battery.run_case import ALL, Output, assert_same, case_of, every_operator, outputs_of, run_case


def _function(name: str) -> Any:
    operator = catalog.find(name)
    if isinstance(operator, Source):
        with pytest.raises(UnknownOperatorError, match="pipeline_def"):
            make_eager(operator, f"eager.{name}")
        pytest.skip("gives pipelines their data")
    return make_eager(operator, f"eager.{name}")


def _seeded(name: str, case: Case, folder: Path) -> Case:
    """Return the case with a seed; without one, each call draws new numbers."""
    if not catalog.find(name).is_random:
        return case
    return dataclasses.replace(case, arguments={**case.given(folder), "seed": 5})


def _listed(results: Any) -> list[Any]:
    if isinstance(results, dict):
        return list(results.values())
    return list(results) if isinstance(results, (list, tuple)) else [] if results is None else [results]


def _batch(data: Data | Each, samples: tuple[int, ...]) -> Any:
    values = data.samples if isinstance(data, Data) else data.values
    return eager.batch([values[index] for index in samples], data.layout)


def _in_batch(name: str, case: Case, folder: Path, samples: tuple[int, ...]) -> list[Output]:
    arguments = {
        key: _batch(value, samples) if isinstance(value, Each) else value for key, value in case.given(folder).items()
    }
    if not case.inputs:
        arguments["batch_size"] = len(samples)
    results = _listed(_function(name)(*(_batch(data, samples) for data in case.inputs), **arguments))
    assert all(isinstance(result, TensorListCPU) for result in results)
    return outputs_of(results)


def _alone(name: str, case: Case, folder: Path, index: int) -> list[Output]:
    arguments = {
        key: eager.tensor(value.values[index], value.layout) if isinstance(value, Each) else value
        for key, value in case.given(folder).items()
    }
    inputs = [eager.tensor(data.samples[index], data.layout) for data in case.inputs]
    results = _listed(_function(name)(*inputs, **arguments))
    assert all(isinstance(result, TensorCPU if inputs else (TensorCPU, np.ndarray)) for result in results)
    return [(result.layout() if isinstance(result, TensorCPU) else "", [np.array(result)]) for result in results]


@every_operator
def test_batch_equals_that_of_a_pipeline(name, folder):
    case = _seeded(name, case_of(name), folder)
    _function(name)
    samples = (*ALL, SAMPLES) if case.inputs else ALL
    assert_same(_in_batch(name, case, folder, samples), run_case(name, case, folder, samples))


@every_operator
def test_sample_equals_that_of_a_pipeline(name, folder):
    case = _seeded(name, case_of(name), folder)
    _function(name)
    if case.not_sample_by_sample:
        pytest.skip(case.not_sample_by_sample)
    whole = run_case(name, case, folder)
    for index in ALL[:1] if catalog.find(name).is_random else ALL:
        alone = _alone(name, case, folder, index)
        expected = [(layout if case.inputs else "", [samples[index]]) for layout, samples in whole]
        if not case.inputs:
            alone = [("", samples) for _, samples in alone]
        assert_same(alone, expected)


@every_operator
def test_results_are_of_the_type_of_the_inputs(name, folder):
    """Numpy arrays for numpy arrays, torch tensors for torch tensors, none of them in memory of the inputs."""
    case = _seeded(name, case_of(name), folder)
    function = _function(name)
    arguments = case.given(folder)
    layouts = {data.layout for data in case.inputs}
    if not case.inputs or any(isinstance(value, Each) for value in arguments.values()) or len(layouts) > 1:
        pytest.skip("no inputs, or more than one kind of data")
    named = {"layout": layouts.pop()} if "layout" not in catalog.find(name).parameters else {}
    arrays = [np.array(data.samples[0]) for data in case.inputs]
    before = [array.copy() for array in arrays]
    results = _listed(function(*arrays, **arguments, **named))
    others = _listed(function(*(torch.from_numpy(array) for array in arrays), **arguments, **named))
    for result, other in zip(results, others, strict=True):
        assert isinstance(result, np.ndarray)
        assert isinstance(other, torch.Tensor)
        np.testing.assert_array_equal(result, other.numpy())
        assert not any(np.shares_memory(result, array) for array in arrays)
        assert result.flags.writeable
        result[...] = 0
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)
