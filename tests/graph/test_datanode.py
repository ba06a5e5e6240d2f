"""Python constructs that graph values do not support raise errors with a correction."""

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
        (lambda x: divmod(x, 2), "x // y"),
        (lambda x: divmod(7, x), "x // y"),
        (int, "fn.cast"),
        (len, "x.shape()"),
        (range, "numbers that are known now"),
        (list, "It is one output of fn.external_source; set num_outputs= for several"),
        (lambda x: f"{x:03d}", "debug=True"),
        (lambda x: 3 in x, "fn.reductions"),
        (np.mean, "fn.reductions"),
        (np.flip, "fn.python_function"),
        (lambda x: np.stack([x, x]), "numpy.stack()"),
    ],
)
def test_refused(use: Callable[[DataNode], Any], way_out: str) -> None:
    node = fn.external_source(source=lambda: np.zeros((2, 4), np.float32), ndim=1, dtype=types.FLOAT)
    with pytest.raises(ConditionError) as caught:
        use(node)
    assert "it has no value while the pipeline is defined." in str(caught.value)
    assert "test_datanode.py" in str(caught.value)
    assert way_out in str(caught.value)


def _unpacked_shape(x: Any) -> Any:
    height, _width = x.shape
    return height


@pytest.mark.parametrize(
    ("use", "way_out"),
    [
        (np.sqrt, "fn.python_function"),
        (lambda x: x.astype(np.float32), "fn.python_function"),
        (lambda x: x.shape[0], "x.shape()[0]"),
        (_unpacked_shape, "x.shape()[0]"),
    ],
)
def test_functions_of_libraries(use: Callable[[Any], Any], way_out: str) -> None:
    def pipeline() -> Any:
        return use(fn.external_source(source=lambda: np.zeros((2, 4), np.float32), ndim=1, dtype=types.FLOAT))

    with pytest.raises((TypeError, AttributeError)) as caught:
        pipeline_def(pipeline, batch_size=2, num_threads=1)()
    (note,) = caught.value.__notes__
    assert way_out in note


def test_errors_of_users_have_no_note() -> None:
    def pipeline() -> Any:
        x = fn.random.uniform()
        return {}["key"], x

    with pytest.raises(KeyError) as caught:
        pipeline_def(pipeline, batch_size=2, num_threads=1)()
    assert not hasattr(caught.value, "__notes__")


def test_formats_without_specification_are_the_repr() -> None:
    node = fn.external_source(source=lambda: np.zeros((2, 4), np.float32))
    assert f"{node}" == repr(node)


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
def test_shapes_are_written_to_the_requested_memory(wanted: str, kind: str) -> None:
    """Wherever the data lie, so that shapes can be arguments of operators."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def shapes():
        x = fn.external_source(source=lambda: [np.zeros((rows, 4, 3), np.uint8) for rows in (2, 5)], device="gpu")
        return x.shape(device=wanted), fn.slice(x, start=[0], end=x.shape()[0:1] - 1, axes=[0])

    found, smaller = shapes().run()
    assert type(found).__name__ == kind
    assert np.asarray(found.as_cpu().as_array()).tolist() == [[2, 4, 3], [5, 4, 3]]
    assert smaller.shape() == [(1, 4, 3), (4, 4, 3)]
