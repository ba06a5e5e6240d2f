"""Operators that change shapes or layouts process all samples of a ragged chunk in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, eager, fn, pipeline_def, types
from dalify.base.errors import DalifyError
from dalify.executor.kernel_step import KernelStep

RANDOM = np.random.default_rng(0)
SAMPLES = [RANDOM.integers(0, 200, (size, 1, size % 3 + 1), np.uint8) for size in (300, 600, 700, 200, 500)]

# A function of graph values, and the same in NumPy.
VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "layout": (lambda x: fn.reshape(x, layout="HWC"), lambda x: x),
    "expand_dims": (lambda x: fn.expand_dims(x, axes=[0, 3]), lambda x: x[None, :, :, None]),
    "squeeze": (lambda x: fn.squeeze(x, axes=[1]), lambda x: x[:, 0]),
    "per_frame": (lambda x: fn.per_frame(x, replace=True), lambda x: x),
    "element": (lambda x: fn.element_extract(fn.reshape(x, layout="FHC"), element_map=[0]), lambda x: x[0]),
    "inferred extent": (lambda x: fn.reshape(x, shape=[-1]), lambda x: x.reshape(-1)),
    "per sample": (
        lambda x: fn.reshape(x, fn.external_source(source=lambda: [np.int32([1, x.size]) for x in SAMPLES])),
        lambda x: x.reshape(1, -1),
    ),
    "bytes": (
        lambda x: fn.reinterpret(x, dtype=types.INT8),
        lambda x: x.view(np.int8),
    ),
    "source dimensions": (lambda x: fn.reshape(x, src_dims=[0, 2, 1]), lambda x: x.reshape(x.shape[0], -1, 1)),
    "factors": (lambda x: fn.reshape(x, rel_shape=[0.25, 4, 1]), lambda x: x.reshape(len(x) // 4, 4, -1)),
    "inferred extent and a factor": (lambda x: fn.reshape(x, rel_shape=[-1, 1.5]), lambda x: x.reshape(-1, 2)),
}


def pipeline_of(view: Callable[[Any], Any]) -> Pipeline:
    @pipeline_def(batch_size=len(SAMPLES), num_threads=1, prefetch_queue_depth=1)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda: SAMPLES, ndim=3, dtype=np.uint8)
        # A list of arrays, adjacent samples, and another element-wise operator that may write over its input.
        return view(x), view(x + 1), (view(x + 1) + 1) * 2

    return pipeline()


@pytest.mark.parametrize("name", VIEWS)
def test_results_equal_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    called = KernelStep._call_kernel

    def spy(step: KernelStep, *arguments: Any) -> Any:
        calls.append(step.node.operator.name)
        return called(step, *arguments)

    monkeypatch.setattr(KernelStep, "_call_kernel", spy)
    view, expected = VIEWS[name]
    with pipeline_of(view) as pipe:
        for _ in range(3):  # the first batch is divided into chunks of one sample
            calls.clear()
            listed, plain, more = pipe.run()
    for sample, same, found, added in zip(SAMPLES, listed, plain, more, strict=True):
        np.testing.assert_array_equal(same, expected(sample))
        wanted = expected(sample.astype(np.int32) + 1)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(added, (wanted + np.int32(1)) * np.int32(2))
    assert not calls


def test_arrays_that_are_not_contiguous() -> None:
    @pipeline_def(batch_size=len(SAMPLES), num_threads=1)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda: [sample.transpose(2, 0, 1) for sample in SAMPLES], ndim=3)
        return fn.reshape(x, layout="CHW"), fn.reshape(x, shape=[-1])

    with pipeline() as pipe:
        same, flat = pipe.run()
    for sample, found, row in zip(SAMPLES, same, flat, strict=True):
        np.testing.assert_array_equal(found, sample.transpose(2, 0, 1))
        np.testing.assert_array_equal(row, sample.transpose(2, 0, 1).reshape(-1))


def test_a_wrong_sample_is_named() -> None:
    with pipeline_of(lambda x: fn.squeeze(x, axes=[2])) as pipe, pytest.raises(DalifyError) as caught:
        pipe.run()
    assert caught.value.sample == 2  # the first one with several channels
    assert caught.value.operator == "fn.squeeze"


def test_the_layout_does_not_depend_on_the_other_samples() -> None:
    for count in (1, 3):
        x = eager.copy(eager.batch([np.zeros((2, 3 * n + 3), np.float32) for n in range(count)], "HW"))
        shape = eager.batch([np.array([3, 2 * n + 2], np.int32) for n in range(count)])
        assert eager.reshape(x, shape=shape).layout() == "HW"
