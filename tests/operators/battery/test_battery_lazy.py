"""Every operator computes the same in lazy mode as in eager mode, and the type of the result is known before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify import eager, lazy
from dalify.data import TensorListCPU
from dalify.immediate.lazy.values import LazyBatch
from dalify.registry import catalog
from tests.operators.battery.case import SAMPLES, Case, Each
from tests.operators.battery.run_case import ALL, assert_same, case_of, every_operator, outputs_of
from tests.operators.battery.test_battery_eager import _batch, _function, _listed, _seeded


@every_operator
def test_results_equal_those_of_calls_at_once(name, folder):
    """Of a batch, and of a single sample where arguments do not differ from sample to sample."""
    case = _seeded(name, case_of(name), folder)
    function = _function(name)
    given = case.given(folder)
    samples = (*ALL, SAMPLES) if case.inputs else ALL
    inputs = [_batch(data, samples) for data in case.inputs]
    arguments = {key: _batch(value, samples) if isinstance(value, Each) else value for key, value in given.items()}
    if not case.inputs:
        arguments["batch_size"] = len(samples)
    expected = _listed(function(*inputs, **arguments))
    with lazy(num_threads=2):
        results = _listed(function(*inputs, **arguments))
    if catalog.find(name).is_serial or catalog.find(name).has_side_effect:
        assert all(isinstance(result, TensorListCPU) for result in results)
        assert_same(outputs_of(results), outputs_of(expected))
        return
    assert all(isinstance(result, LazyBatch) and not result.is_computed for result in results)
    for result, wanted in zip(results, expected, strict=True):
        assert len(result) == len(wanted)
        assert (result.dtype, result.ndim(), result.layout()) == (wanted.dtype, wanted.ndim(), wanted.layout())
    assert_same(outputs_of([result.get() for result in results]), outputs_of(expected))
    if not any(isinstance(value, Each) for value in given.values()):
        _test_sample(function, case, given)


def _test_sample(function: Any, case: Case, arguments: Mapping[str, Any]) -> None:
    arrays = [np.array(data.samples[0]) for data in case.inputs]
    inputs = [eager.tensor(array, data.layout) for array, data in zip(arrays, case.inputs, strict=True)]
    expected = _listed(function(*inputs, **arguments))
    with lazy(num_threads=1):
        results = _listed(function(*inputs, **arguments))
    for array in arrays:
        array[...] = 0  # it was copied
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)
        assert not any(np.shares_memory(result.numpy(), array) for array in arrays)
