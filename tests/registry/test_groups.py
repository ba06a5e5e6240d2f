"""Kernels of arrays are called with consecutive samples of equal shapes, and what they write reaches the samples."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from dalify.base.optional import torch
from dalify.data import Batch, DALIDataType, Spec
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.random.philox import Draws
from dalify.registry.groups import on_groups

RANDOM = np.random.default_rng(5)
SHAPES = [(3, 2), (3, 2), (1, 4), (3, 2), (0, 4), (0, 4), (300, 400), (300, 400)]
ARRAYS = [RANDOM.normal(size=shape).astype(np.float32) for shape in SHAPES]
# Samples of 480 kB are not stacked.
RUNS = [2, 1, 1, 2, 1, 1]


def samples_of(arrays: list[np.ndarray], form: str) -> Any:
    if form == "device":
        tensors: Any = [torch.from_numpy(array) for array in arrays]
        return DeviceSamples.of_batch(Batch(None, tensors, device="gpu"))
    return Samples.of_batch(Batch(None, arrays))


def empty(shapes: Any, form: str) -> Any:
    shapes = np.array(shapes, np.int64)
    if form == "device":
        return DeviceSamples.empty(shapes, torch.float32, torch.device("cpu"))
    return Samples.empty(shapes, np.dtype(np.float32))


def values_of(samples: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in (samples.arrays() if isinstance(samples, Samples) else samples.tensors())]


@pytest.mark.parametrize("form", ["host", "device"])
def test_one_call_for_each_run(form: str) -> None:
    sizes: list[int] = []

    @on_groups(outputs=2)
    def kernel(
        out: Any, flat: Any, x: Any, absent: Any, *, factor: Any, spec: Spec, out_specs: Any, count: int
    ) -> None:
        assert absent is None
        assert len(x) == len(factor) == count
        assert x.is_contiguous() if form == "device" else x.flags.c_contiguous
        assert spec.shape == tuple(x.shape[1:])
        assert [each.shape for each in out_specs] == [tuple(out.shape[1:]), tuple(flat.shape[1:])]
        sizes.append(count)
        for n in range(count):
            out[n] = x[n] * float(factor[n])
            flat[n] = x[n].reshape(-1)

    out, flat = empty(SHAPES, form), empty([[a * b] for a, b in SHAPES], form)
    spec, factor = Spec(DALIDataType.FLOAT, 2, ""), np.arange(8.0)
    kernel(out, flat, samples_of(ARRAYS, form), None, factor=factor, spec=spec, out_specs=(spec, spec), count=8)
    assert sizes == RUNS
    for n, (scaled, one, x) in enumerate(zip(values_of(out), values_of(flat), ARRAYS, strict=True)):
        np.testing.assert_array_equal(scaled, x * np.float32(n))
        np.testing.assert_array_equal(one, x.reshape(-1))


def test_an_array_is_one_call_without_a_copy() -> None:
    x = np.arange(12.0).reshape(3, 4)
    given: list[Any] = []

    @on_groups(repeats=True)
    def kernel(out: Any, first: Any, second: Any) -> None:
        given.extend((out, first, second))

    repeated = np.broadcast_to(x[:1], x.shape)
    out = np.empty_like(x)
    kernel(*(Samples.of_batch(Batch(array)) for array in (out, x, repeated)))
    assert given[0] is out
    assert given[1] is x
    assert given[2].strides[0] == 0

    def contiguous(out: Any, x: Any) -> None:
        assert x.flags.c_contiguous
        out[...] = x

    on_groups()(contiguous)(Samples.of_batch(Batch(out)), Samples.of_batch(Batch(repeated)))
    np.testing.assert_array_equal(out, repeated)


def test_shaping_arguments_and_lengths_divide_a_chunk() -> None:
    found: list[Any] = []

    @on_groups(shaping=["rows"], constants=["table"])
    def kernel(out: Any, *, rows: Any, weights: Any, table: Any, draws: Any) -> None:
        assert table is constant
        found.append((rows.tolist(), weights.tolist(), draws.samples.tolist()))

    constant = np.arange(100)
    weights = [np.ones(2), np.ones(2), np.ones(3), np.ones(3)]
    draws = Draws(1, 2).at(np.arange(4))
    kernel(
        Samples.of_dense(np.empty((4, 2))), rows=np.array([1, 1, 1, 2]), weights=weights, table=constant, draws=draws
    )
    assert found == [([1, 1], [[1, 1]] * 2, [0, 1]), ([1], [[1] * 3], [2]), ([2], [[1] * 3], [3])]


def test_results_of_allocating_kernels_are_joined() -> None:
    @on_groups(outputs=0)
    def kernel(x: Any) -> Any:
        return x.sum((1, 2)), [each[:1] for each in x]

    sums, parts = kernel(samples_of(ARRAYS, "host"))
    assert all(isinstance(each, np.ndarray) for each in sums)
    np.testing.assert_allclose(sums, [x.sum() for x in ARRAYS], rtol=1e-3)
    for part, x in zip(parts, ARRAYS, strict=True):
        np.testing.assert_array_equal(part, x[:1])


def test_views_of_inputs_keep_their_memory() -> None:
    arrays = [np.full((n, 2), n) for n in (2, 3)]
    memory = weakref.ref(arrays[1])
    views = on_groups(outputs=0)(lambda x: x[:, ::-1])(samples_of(arrays, "host"))
    del arrays
    gc.collect()
    assert memory() is not None
    np.testing.assert_array_equal(views[1], np.full((3, 2), 3))
    del views
    gc.collect()
    assert memory() is None


@pytest.mark.parametrize(("wrong", "sample"), [((1, 4), 2), ((0, 4), None)])
def test_an_error_has_the_sample_if_it_is_known(wrong: tuple[int, ...], sample: int | None) -> None:
    @on_groups(outputs=0)
    def kernel(x: Any) -> Any:
        if x.shape[1:] == wrong:
            raise KeyError(wrong)
        return x

    with pytest.raises(KeyError) as caught:
        kernel(samples_of(ARRAYS, "host"))
    assert getattr(caught.value, "sample", None) == sample
