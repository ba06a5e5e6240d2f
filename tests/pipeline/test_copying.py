"""Pipelines of one graph with other options."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1, seed=5)
def numbers() -> Any:
    x = fn.external_source(source=lambda info: np.int32([info.idx_in_epoch]), batch=False, name="numbers")
    return x, fn.random.uniform()


def test_a_copy_begins_with_the_first_batch() -> None:
    pipe = numbers()
    first = [output.as_array().ravel().tolist() for output in pipe.run()]
    copied = pipe.copy()
    assert [output.as_array().ravel().tolist() for output in copied.run()] == first
    assert copied.seed == pipe.seed


def test_options_of_a_copy() -> None:
    pipe = numbers()
    smaller = pipe.copy(batch_size=3, num_threads=2)
    assert (smaller.max_batch_size, smaller.num_threads, pipe.max_batch_size) == (3, 2, 4)
    assert smaller.run()[0].as_array().ravel().tolist() == [0, 1, 2]
    assert pipe.run()[0].as_array().ravel().tolist() == [0, 1, 2, 3]


def test_external_sources() -> None:
    assert [node.name for node in numbers().external_sources()] == ["numbers"]
