"""What every operator computes lazily is what it computes at once, and its kind is known before."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import eager, lazy
from dalify.data import TensorListCPU
from dalify.deferred import LazyBatch, LazySample
from dalify.registry import catalogue
from tests.operators.cases import SAMPLES
from tests.operators.run_case import ALL, assert_same, case_of, every_operator, outputs_of
from tests.operators.test_battery_eager import _batch, _function, _listed, _seeded


def _given(name, folder):
    case = _seeded(name, case_of(name), folder)
    return case, _function(name), case.given(folder)


@every_operator
def test_batch_is_that_of_a_call_at_once(name, folder):
    case, function, given = _given(name, folder)
    operator = catalogue.find(name)
    samples = (*ALL, SAMPLES) if case.inputs else ALL
    inputs = [_batch(data, samples) for data in case.inputs]
    arguments = {key: _batch(value, samples) if hasattr(value, "values") else value for key, value in given.items()}
    if not case.inputs:
        arguments["batch_size"] = len(samples)
    expected = _listed(function(*inputs, **arguments))
    with lazy(num_threads=2):
        results = _listed(function(*inputs, **arguments))
    if operator.is_serial or operator.has_side_effect:
        assert all(isinstance(result, TensorListCPU) for result in results)
        assert_same(outputs_of(results), outputs_of(expected))
        return
    assert all(isinstance(result, LazyBatch) and not result.is_computed for result in results)
    for result, wanted in zip(results, expected, strict=True):
        assert len(result) == len(wanted)
        assert (result.dtype, result.ndim(), result.layout()) == (wanted.dtype, wanted.ndim(), wanted.layout())
    assert_same(outputs_of([result.get() for result in results]), outputs_of(expected))


@every_operator
def test_sample_is_that_of_a_call_at_once(name, folder):
    case, function, arguments = _given(name, folder)
    operator = catalogue.find(name)
    if any(hasattr(value, "values") for value in arguments.values()) or operator.is_serial or operator.has_side_effect:
        pytest.skip("arguments that differ from sample to sample, or a user's function")
    arrays = [np.array(data.samples[0]) for data in case.inputs]
    inputs = [eager.tensor(array, data.layout) for array, data in zip(arrays, case.inputs, strict=True)]
    expected = _listed(function(*inputs, **arguments))
    with lazy():
        results = _listed(function(*inputs, **arguments))
    for array in arrays:
        array[...] = 0  # it was copied
    for result, wanted in zip(results, expected, strict=True):
        assert isinstance(result, LazySample)
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)
        assert not any(np.shares_memory(result.numpy(), array) for array in arrays)
