"""fn.normalize compared with the real DALI, on both devices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.both import assert_same_as_dali, run_here

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, (rows, 7, 3), dtype=np.uint8) for rows in (5, 5, 6)]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_measured_and_given(device, dtype):
    mean = np.array([[[100, 120, 140]]], np.float32)
    stddev = np.array([[[30, 50, 70]]], np.float32)

    def graph(dali, x):
        normalize, types = dali.fn.normalize, dali.types
        return [
            normalize(x),
            normalize(x, axes=[0, 1]),
            normalize(x, axes=[0, 2], ddof=1),
            normalize(x, axis_names="C", epsilon=3.0),
            normalize(x, mean=100.0),
            normalize(x, mean=100.0, axes=[0, 1], epsilon=2.0),
            normalize(x, stddev=20.0, scale=10, shift=7),
            normalize(x, stddev=20.0, mean=10.0, epsilon=5.0),
            normalize(x, dtype=types.UINT8, scale=50, shift=128),
            normalize(x, dtype=types.INT16, scale=100, axes=[1]),
            normalize(x, mean=mean),
            normalize(x, mean=mean, stddev=stddev),
            normalize(x, mean=mean, axes=[0, 1]),
            normalize(x, ddof=10_000),
        ]

    samples = [image.astype(dtype) for image in IMAGES]
    assert_same_as_dali(graph, samples, layouts="HWC", device=device, rtol=1e-4, atol=1e-5)


def test_over_the_batch(device):
    def graph(dali, x):
        normalize = dali.fn.normalize
        return [
            normalize(x, batch=True),
            normalize(x, batch=True, axes=[0, 1], ddof=1),
            normalize(x, batch=True, axis_names="HW", epsilon=1.0, scale=2.0, shift=-1.0),
            normalize(x, batch=True, mean=100.0),
            normalize(x, batch=True, stddev=50.0, axes=[0, 1]),
        ]

    assert_same_as_dali(graph, IMAGES, layouts="HWC", device=device, rtol=1e-4, atol=1e-5)
    assert_same_as_dali(graph, IMAGES[:2], layouts="HWC", device=device, rtol=1e-4, atol=1e-5)
    without_pixels = [IMAGES[0], IMAGES[1][:0], IMAGES[2]]
    assert_same_as_dali(graph, without_pixels, layouts="HWC", device=device, rtol=1e-4, atol=1e-5)


def test_values_of_each_sample(device):
    def graph(dali, x):
        fn = dali.fn
        host = x if device == "cpu" or dali.__name__ != "dalify" else x.cpu()
        center = fn.reductions.mean(host, axes=[0, 1], keep_dims=True)
        spread = fn.reductions.std_dev(host, center, axes=[0, 1], keep_dims=True)
        return [fn.normalize(x, mean=center, stddev=spread, axes=[0, 1])]

    assert_same_as_dali(graph, IMAGES, layouts="HWC", device=device, rtol=1e-4, atol=1e-5)


def test_data_that_do_not_vary(device):
    def graph(dali, x):
        return [dali.fn.normalize(x, shift=3.0), *([dali.fn.normalize(x, axes=[0], shift=3.0)] if has_axes else [])]

    has_axes = True

    assert_same_as_dali(graph, [np.full((3, 2), 7, np.uint8)] * 2, device=device)
    has_axes = False
    ((_, samples),) = run_here(graph, [np.float32(4)], device=device)
    assert samples[0] == 3


def test_nan_stays_nan(device):
    """A factor of 0 would hide that a deviation, the data or epsilon are NaN."""

    def graph(dali, x):
        normalize = dali.fn.normalize
        return [normalize(x, mean=1.0), normalize(x, stddev=float("nan")), normalize(x, epsilon=float("nan"))]

    assert_same_as_dali(graph, [np.float32([[1, 2, np.nan], [3, 5, 9]])] * 2, device=device, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"axes": []}, "axes must not be empty"),
        ({"axes": [3]}, "axis 3 is out of range"),
        ({"mean": [1.0, 2.0, 3.0, 4.0]}, "4 entries matches no axes"),
        ({"mean": [1.0, 2.0], "axes": [0, 1]}, "mean must have 1 or 3 entries"),
        ({"mean": [1.0, 2.0, 3.0], "batch": True}, "must be a single number"),
        ({"batch": True, "axes": [1]}, "equal extents"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises((ValueError, IndexError), match=message):
        run_here(lambda dali, x: [dali.fn.normalize(x, **arguments)], IMAGES, layouts="HWC")
