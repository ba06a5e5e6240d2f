"""Properties of every operator of the catalog, checked on the cases of `tests.operators.battery.cases`.

Operator files are found automatically; each needs an entry in `CASES`. This module contains no operator names.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import SerializationError
from dalify.data.dtypes import from_numpy
from dalify.pipeline import do_not_convert
from dalify.registry import Reader, catalog
from tests.operators.battery.case import SAMPLES
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import (
    ALL,
    NAMES,
    assert_same,
    built,
    case_of,
    every_operator,
    fed_values,
    inputs_of,
    nodes_of,
    outputs_of,
    results_of,
    run_case,
    run_case_on_dali,
    typical,
)


def test_every_operator_has_a_case():
    missing = sorted(set(NAMES) - set(CASES))
    assert not missing, (
        f"{', '.join(f'fn.{name}' for name in missing)}: no case. Add to CASES of a file in "
        f'tests/operators/battery/cases/: "{missing[0]}": exact_case(DATA, argument=value), with typical inputs and '
        "arguments; see Case for the rest."
    )


# -- results ---------------------------------------------------------------------------------------------------------


@every_operator
def test_a_batch_equals_its_samples(name, folder):
    """A sample gives the same result alone as in its batch; with random numbers, if its position is the same."""
    case = case_of(name)
    whole = typical(name, folder)
    if case.not_sample_by_sample:
        pytest.skip(case.not_sample_by_sample)
    for index in ALL[:1] if catalog.find(name).is_random else ALL:
        alone = run_case(name, case, folder, (index,))
        assert_same(alone, [(layout, [samples[index]]) for layout, samples in whole])


@every_operator
def test_chunks_equal_the_whole(name, folder):
    """The result does not depend on the number of threads and chunks."""
    case = case_of(name)
    assert_same(run_case(name, case, folder, num_threads=3, seconds_per_sample=1.0), typical(name, folder))


@every_operator
def test_ragged_equals_uniform(name, folder):
    """A sample with another shape or argument does not change the results of the others."""
    case = case_of(name)
    if case.not_sample_by_sample:
        pytest.skip(case.not_sample_by_sample)
    if not case.inputs:
        pytest.skip("no inputs")
    # The odd one in the middle for kernels that take neighbors together; last for random ones, which go by position.
    order = (*ALL, SAMPLES) if catalog.find(name).is_random else (0, 1, SAMPLES, 2, 3, 4)
    ragged = run_case(name, case, folder, order)
    kept = [order.index(index) for index in ALL]
    assert_same([(layout, [samples[place] for place in kept]) for layout, samples in ragged], typical(name, folder))


@every_operator
def test_gpu_equals_cpu(name, folder, gpu):
    """GPU kernels give what CPU kernels give; random ones, too."""
    case = case_of(name)
    result = run_case(name, case, folder, device=gpu)
    assert_same(result, typical(name, folder), atol=1, rtol=1e-5)


@every_operator
def test_ragged_on_gpu(name, folder, gpu):
    case = case_of(name)
    if not case.inputs:
        pytest.skip("no inputs")
    order = (*ALL, SAMPLES)
    assert_same(run_case(name, case, folder, order, device=gpu), run_case(name, case, folder, order), atol=1, rtol=1e-5)


@every_operator
@pytest.mark.parametrize("flags", [(1, 0, 0, 1, 0), (1, 1, 1, 1, 1), (0, 0, 0, 0, 0)], ids=["mixed", "all", "none"])
def test_conditional(name, folder, flags):
    """The result of an operator in a branch is the same as outside; an empty branch runs no operator."""
    case = case_of(name)
    if case.not_sample_by_sample or isinstance(catalog.find(name), Reader) or not case.inputs:
        pytest.skip(case.not_sample_by_sample or "runs outside of branches, for whole batches")
    expected = typical(name, folder)
    samples = case.inputs[0].samples[:SAMPLES]
    layout = case.inputs[0].layout
    keeps_form = len(expected) == 1 and all(
        one.dtype == other.dtype and one.ndim == other.ndim for one, other in zip(expected[0][1], samples, strict=True)
    )
    keeps_form = keeps_form and expected[0][0] == layout

    @do_not_convert
    def sources() -> Any:
        flag = dalify.fn.external_source(source=lambda: list(np.array(flags, bool)), dtype=types.BOOL, ndim=0)
        return flag, inputs_of(case, ALL, "cpu")

    @do_not_convert
    def applied(inputs: Any) -> Any:
        return results_of(name, case, inputs, ALL, folder, "cpu")

    def one_side() -> Any:
        flag, inputs = sources()
        result = inputs[0]
        if flag:
            result = applied(inputs)[0]
        return result

    def both_sides() -> Any:
        flag, inputs = sources()
        results = applied(inputs) if flag else applied(inputs)  # noqa: RUF034 -- the two sides see other samples
        return tuple(results)

    if keeps_form:
        chosen = [one if flag else other for flag, one, other in zip(flags, expected[0][1], samples, strict=True)]
        with built(one_side, num_threads=2) as pipe:
            assert_same(outputs_of(pipe.run()), [(layout, chosen)])
    if not catalog.find(name).is_random:
        with built(both_sides, num_threads=2) as pipe:
            assert_same(outputs_of(pipe.run()), expected)


@every_operator
def test_parity(name, folder, oracle):
    """The real DALI gives the same, within the promised tolerance."""
    case = case_of(name)
    if case.not_compared_with_dali:
        pytest.skip(case.not_compared_with_dali)
    samples = (*ALL, SAMPLES) if case.inputs else ALL
    ours = run_case(name, case, folder, samples)
    theirs = run_case_on_dali(name, case, folder, oracle, samples)
    assert_same(ours, theirs, atol=case.atol, rtol=case.rtol, share=case.share)


# -- inferred types and shapes ---------------------------------------------------------------------------------------


@every_operator
def test_inference(name, folder):
    """Type, dimensions and layout that a node has when the graph is built are those of the results."""
    case = case_of(name)
    nodes = nodes_of(name, case, ALL, folder)
    for node, (layout, samples) in zip(nodes, typical(name, folder), strict=True):
        if not catalog.find(name).is_serial and name != "external_source" and not case.known_late:
            assert node.dtype is not None
            assert node.layout is not None
        assert node.dtype in (None, from_numpy(samples[0].dtype))
        assert node.ndim in (None, samples[0].ndim)
        assert node.layout in (None, layout)


@every_operator
def test_serialized(name, folder):
    """A graph written down and read back gives the same."""
    case = case_of(name)
    names: list[str] = []

    def graph() -> Any:
        return tuple(nodes_of(name, case, ALL, folder, names=names))

    with built(do_not_convert(graph)) as pipe:
        if case.not_serialized:
            with pytest.raises(SerializationError, match=re.escape(f"fn.{name}")):
                pipe.serialize()
            return
        text = pipe.serialize()
    again = dalify.Pipeline.deserialize(text, prefetch_queue_depth=1, allow_side_effects=True)
    try:
        again.build()
        for key, values in zip(names, fed_values(case, ALL, folder), strict=True):
            again.feed_input(key, values)
        assert_same(outputs_of(again.run()), typical(name, folder))
    finally:
        again.close()
