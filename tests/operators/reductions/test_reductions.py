"""fn.reductions compared with the real DALI, on both devices."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import eager, types
from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, LayoutError, ShapeError
from tests.helpers.both import assert_same_as_dali, run_here

RNG = np.random.default_rng(0)
SAMPLES = [RNG.integers(0, 100, (rows, 6, 3), dtype=np.uint8) for rows in (5, 5, 2)]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
def test_all(device, dtype):
    names = ["sum", "mean", "mean_square", "rms", "min", "max"]

    def graph(dali, x):
        reductions = dali.fn.reductions
        outputs = []
        for name in names:
            reduce = getattr(reductions, name)
            outputs += [
                reduce(x), reduce(x, axes=[0]), reduce(x, axes=[-1, 0]), reduce(x, axis_names="HW"), reduce(x, axes=[]),
                reduce(x, keep_dims=True), reduce(x, axis_names="W", keep_dims=True),
            ]  # fmt: skip
        for name in ["std_dev", "variance"]:
            reduce = getattr(reductions, name)
            outputs += [
                reduce(x, reductions.mean(x)),
                reduce(x, 7.0, ddof=1),
                reduce(x, reductions.mean(x, axis_names="HW"), axis_names="HW"),
                reduce(x, reductions.mean(x, axes=[1], keep_dims=True), axes=[1], keep_dims=True, ddof=1),
            ]
        return outputs

    samples = [sample.astype(dtype) for sample in SAMPLES]
    assert_same_as_dali(graph, samples, layouts="HWC", device=device, rtol=1e-5, atol=1e-6)


def test_requested_types(device):
    def graph(dali, x):
        reductions, types = dali.fn.reductions, dali.types
        return [
            reductions.sum(x, dtype=types.FLOAT), reductions.sum(x, dtype=types.UINT8), 
            reductions.mean(x, dtype=types.FLOAT),
            reductions.mean_square(x, dtype=types.UINT64),
        ]  # fmt: skip

    assert_same_as_dali(graph, SAMPLES, device=device, rtol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "mean_square", "rms", "variance", "std_dev"])
def test_means_of_integers_are_bit_identical(device, reduction):
    """DALI multiplies by a rounded 1/n: the mean of seven 3s is above 3, and so a condition on it is true."""
    samples = [np.full(7, 3, np.uint8), *(RNG.integers(0, 9, count, dtype=np.uint8) for count in range(1, 60))]

    def graph(dali, x):
        reduce = getattr(dali.fn.reductions, reduction)
        if reduction not in ("variance", "std_dev"):
            return [reduce(x)]
        return [reduce(x, 4.0), reduce(x, 4.0, ddof=1)]

    is_root_of_torch = device == "gpu" and reduction in ("rms", "std_dev")  # not always rounded to the nearest
    assert_same_as_dali(graph, samples, device=device, rtol=2e-7 if is_root_of_torch else 0, atol=0)
    ((_, means),) = run_here(lambda dali, x: [dali.fn.reductions.mean(x)], samples, device=device)
    assert means[0] == np.float32(21) * (np.float32(1) / np.float32(7)) > 3


def test_one_center_for_several_results(device):
    ((_, got),) = run_here(lambda dali, x: [dali.fn.reductions.variance(x, 7.0, axes=[0])], SAMPLES, device=device)
    for sample, result in zip(SAMPLES, got, strict=True):
        np.testing.assert_allclose(result, np.square(sample - 7.0).mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("reduction", ["variance", "std_dev"])
def test_nothing_varies_along_no_axes(device, reduction):
    """Whatever the mean and the degrees of freedom are."""

    def graph(dali, x):
        reduce = getattr(dali.fn.reductions, reduction)
        mean = dali.fn.reductions.mean(x, axes=[])
        return [reduce(x, mean, axes=[]), reduce(x, mean, axes=[], ddof=1), reduce(x, 2.0, axes=[], keep_dims=True)]

    assert_same_as_dali(graph, SAMPLES, layouts="HWC", device=device, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"axes": [3]}, IndexingError, r"axis 3 is out of range for 3-D samples: it must be in \[-3, 2\]"),
        ({"axes": [0, -3]}, ArgumentValueError, "repeated"),
        ({"axis_names": "X"}, LayoutError, "must have an axis X"),
        ({"axis_names": "H", "axes": [0]}, ArgumentValueError, "not both"),
    ],
)
def test_mistakes_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        run_here(lambda dali, x: [dali.fn.reductions.sum(x, **arguments)], SAMPLES, layouts="HWC")


@pytest.mark.parametrize("apply", [lambda fn, x: fn.reductions.sum(x, axes=[0]), lambda fn, x: fn.cat(x, x)])
def test_axes_of_scalars_do_not_exist(apply):
    with pytest.raises(IndexingError, match="axis 0 does not exist: the samples are scalars"):
        run_here(lambda dali, x: [apply(dali.fn, x)], [np.float32(1), np.float32(2)])


def test_a_center_that_does_not_fit():
    def graph(dali, x):
        return [dali.fn.reductions.variance(x, dali.fn.reductions.mean(x, axes=[0]), axes=[1])]

    with pytest.raises(ShapeError, match="does not match results"):
        run_here(graph, SAMPLES)


@pytest.mark.parametrize("dtype", ["INT64", "UINT64", "INT32", "UINT8", "BOOL"])
@pytest.mark.parametrize("given", [np.float16, np.float32, np.float64])
def test_sums_of_floats_are_floats(given, dtype):
    """DALI refuses this; the sums would be those of the truncated values."""
    values = np.full(3, 0.75, given)
    text = rf"(?s)float type; got {dtype.lower()}\..*fn\.cast\(fn\.reductions\.sum\(x\), dtype=types\.{dtype}\)"
    with pytest.raises(DTypeError, match=text):
        eager.reductions.sum(values, dtype=getattr(types, dtype))
    sums = eager.reductions.sum(values, dtype=types.FLOAT)
    assert eager.cast(sums, dtype=types.INT64) == 2
