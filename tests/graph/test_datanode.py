"""What Python can do with values and graph values cannot: each is refused with the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import DataNode, fn, pipeline_def, types
from dalify.base.errors import ConditionError


@pytest.mark.parametrize(
    ("use", "way_out"),
    [
        (lambda x: round(x), "fn.cast"),
        (lambda x: x @ x, "fn.transforms.combine"),
        (lambda x: np.eye(2) @ x, "fn.transforms.combine"),
        (lambda x: divmod(x, 2), "node // other"),
        (lambda x: divmod(7, x), "node // other"),
        (int, "fn.cast"),
        (len, r"node.shape()"),
        (lambda x: 3 in x, "fn.reductions"),
    ],
)
def test_refused(use: Callable[[DataNode], Any], way_out: str) -> None:
    node = fn.external_source(source=lambda: np.zeros((2, 4), np.float32), ndim=1, dtype=types.FLOAT)
    with pytest.raises(ConditionError) as caught:
        use(node)
    assert "a graph value, which has no value yet." in str(caught.value)
    assert "test_datanode.py" in str(caught.value)
    assert way_out in str(caught.value)


def test_a_single_number_is_a_coordinate() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        data = fn.external_source(source=lambda: np.arange(8).reshape(2, 4), ndim=1, dtype=types.INT64)
        begin = fn.external_source(source=lambda: np.array([1, 2], np.int32), ndim=0, dtype=types.INT32)
        extent = fn.external_source(source=lambda: np.array([2, 2], np.int32), ndim=0, dtype=types.INT32)
        return fn.slice(data, begin, extent, axes=[0])

    assert pipeline().run()[0].as_array().tolist() == [[1, 2], [6, 7]]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("wanted", "kind"), [("cpu", "TensorListCPU"), ("gpu", "TensorListGPU")])
def test_shapes_lie_where_they_are_wanted(wanted: str, kind: str) -> None:
    """Wherever the data lie, so that shapes can be arguments of operators."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def shapes():
        x = fn.external_source(source=lambda: [np.zeros((rows, 4, 3), np.uint8) for rows in (2, 5)], device="gpu")
        return x.shape(device=wanted), fn.slice(x, start=[0], end=x.shape()[0:1] - 1, axes=[0])

    found, smaller = shapes().run()
    assert type(found).__name__ == kind
    assert np.asarray(found.as_cpu().as_array()).tolist() == [[2, 4, 3], [5, 4, 3]]
    assert smaller.shape() == [(1, 4, 3), (4, 4, 3)]
