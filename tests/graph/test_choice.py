"""One of many branches by number: every sample is returned once, in its position, for any numbers and shapes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify import fn, pipeline_def
from dalify.graph import choose

NUMBERS = st.lists(st.integers(0, 4), min_size=1, max_size=40)


@settings(max_examples=40)
@given(numbers=NUMBERS, threads=st.integers(1, 3), is_ragged=st.booleans())
def test_compared_with_python(numbers, threads, is_ragged):
    samples = [np.full((2 + is_ragged * (k % 3), 3), k, np.int32) for k in range(len(numbers))]
    functions = [lambda x: x, lambda x: x + 1000, lambda x: x * 2, lambda x: -x, lambda x: x[::-1] - 7]

    @pipeline_def(batch_size=len(numbers), num_threads=threads, device_id=None)
    def pipeline():
        data = fn.external_source(source=lambda: samples)
        index = fn.external_source(source=lambda: np.array(numbers, np.int32))
        result = choose(index, [lambda function=function: function(data) for function in functions])
        return result, data

    found, kept = pipeline().run()
    for position, (sample, number) in enumerate(zip(samples, numbers, strict=True)):
        np.testing.assert_array_equal(found.at(position), functions[number](sample))
        np.testing.assert_array_equal(kept.at(position), sample)


def test_it_is_one_split_for_each_branch_and_one_join():
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def pipeline():
        data = fn.external_source(name="data", ndim=2, layout="HW", dtype=np.float32)
        index = fn.external_source(name="index", ndim=0, dtype=np.int32)
        return choose(index, [lambda: -data, lambda: data, lambda: fn.flip(data), lambda: data, lambda: data])

    text = pipeline().explain()
    assert "splits 5 values" in text
