"""Every operator computes the same in dynamic mode as in a pipeline, immediately and deferred."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import dalify.experimental.dynamic as ndd
from dalify.experimental.dynamic.calls import make_dynamic
from dalify.experimental.dynamic.rng import RNG
from dalify.registry import Source, catalog
from tests.operators.battery.case import Data, Each
from tests.operators.battery.run_case import ALL, Output, assert_same, case_of, every_operator, run_case

_SEED = 5


def _batch(data: Data | Each) -> ndd.Batch:
    values = data.samples if isinstance(data, Data) else data.values
    return ndd.batch([values[index] for index in ALL], layout=data.layout or None)


def _outputs(results: Any) -> list[Output]:
    """Return layout and samples of each output; all must be batches, and the single one of an operator no tuple."""
    if isinstance(results, dict):
        results = tuple(results.values())
    elif results is None:
        results = ()
    elif not isinstance(results, tuple):
        results = (results,)
    assert all(isinstance(result, ndd.Batch) for result in results)
    return [(result.layout or "", [np.array(sample) for sample in result]) for result in results]


@every_operator
def test_batch_equals_that_of_a_pipeline(name, folder):
    operator = catalog.find(name)
    if isinstance(operator, Source):
        pytest.skip("gives data")
    case = case_of(name)
    arguments = case.given(folder)
    given = {key: _batch(value) if isinstance(value, Each) else value for key, value in arguments.items()}
    if not case.inputs:
        given["batch_size"] = len(ALL)
    inputs = [_batch(data) for data in case.inputs]
    function = make_dynamic(operator, f"ndd.{name}")
    if operator.is_random:
        given.pop("seed", None)
        given["rng"] = RNG(_SEED)  # at its beginning: the numbers of the first batch of a pipeline with this seed
        arguments = {**arguments, "seed": _SEED}
    expected = run_case(name, dataclasses.replace(case, arguments=arguments), folder, ALL)
    assert_same(_outputs(function(*inputs, **given)), expected)
    if operator.is_random:
        given["rng"] = RNG(_SEED)
    with ndd.EvalMode.deferred:
        results = function(*inputs, **given)
    waits = not (operator.is_serial or operator.has_side_effect)
    first = results[0] if isinstance(results, tuple) else results
    assert first is None or first.is_computed != waits
    assert_same(_outputs(results), expected)
