"""Windows and flips compared with NumPy; element by element outside of the source."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dalify.data import Batch
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.gather import copy_window, copy_window_torch, copy_windows, flip_axes
from dalify.kernels.arrays.windows_torch import flip_samples_torch


@given(data=st.data())
def test_windows_of_another_type(data):
    shapes = data.draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=4))
    own = [[data.draw(st.integers(0, extent - 1)) for extent in shape] for shape in shapes]
    sizes = [
        [data.draw(st.integers(1, e - s)) for e, s in zip(shape, start, strict=True)]
        for shape, start in zip(shapes, own, strict=True)
    ]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-300, 300, shape).astype(np.float32) for shape in shapes]
    x = Samples.of_batch(Batch(None, arrays))
    out = Samples.empty(np.array(sizes, np.int64), np.dtype(np.uint8))
    copy_windows(out, x, np.array(own, np.int64))
    for found, array, (top, left), (rows, columns) in zip(out.arrays(), arrays, own, sizes, strict=True):
        expected = np.clip(np.trunc(array[top : top + rows, left : left + columns]), 0, 255)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("device", ["cpu", "torch"])
@given(data=st.data())
def test_windows(device, data):
    dimensions = data.draw(st.integers(1, 4))
    shape, size = (tuple(data.draw(st.integers(1, 5)) for _ in range(dimensions)) for _ in range(2))
    anchors = st.lists(st.integers(-7, 7), min_size=dimensions, max_size=dimensions)
    first = data.draw(anchors)
    anchor = np.array([first, data.draw(st.one_of(anchors, st.just(first)))])
    x = np.random.default_rng(0).integers(0, 100, (2, *shape)).astype(data.draw(st.sampled_from(["u1", "i4", "f4"])))
    fill = np.arange(size[-1]) + 200
    out = np.empty((2, *size), x.dtype)
    if device == "cpu":
        copy_window(out, x, anchor, fill_values=fill)
    else:
        copy_window_torch(torch.from_numpy(out), torch.from_numpy(x), anchor, fill_values=fill)
    for n in range(2):
        for place in itertools.product(*map(range, size)):
            source = tuple(anchor[n] + place)
            is_inside = all(0 <= at < extent for at, extent in zip(source, shape, strict=True))
            assert out[n][place] == (x[n][source] if is_inside else fill[place[-1]])


def test_windows_convert():
    x = np.float32([[-1, 0.5, 2.5, 300]])
    out = np.empty((1, 5), np.uint8)
    copy_window(out, x, np.array([[0]]), fill_values=-7)
    assert out.tolist() == [[0, 0, 2, 255, 0]]  # fractions are cut off


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("shape", [(4, 5, 3), (3, 4, 5), (2, 3, 4, 1), (2, 3, 4, 5, 2), (3, 40, 30), (6,), (0, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_flips(device, shape, dtype):
    choices = list(itertools.product([0, 1], repeat=min(3, len(shape))))
    x = np.random.default_rng(0).integers(0, 256, (len(choices), *shape)).astype(dtype)
    out = np.zeros_like(x)
    flags = {axis: np.array([choice[axis] for choice in choices]) for axis in range(len(choices[0]))}
    if device == "cpu":
        flip_axes(Samples.of_dense(out), Samples.of_dense(x), flags)
    else:
        tensors = (DeviceSamples.of_dense(torch.from_numpy(array)) for array in (out, x))
        flip_samples_torch(*tensors, flags)
    for n, choice in enumerate(choices):
        expected = np.flip(x[n], [axis for axis, flag in enumerate(choice) if flag])
        np.testing.assert_array_equal(out[n], expected)


def ragged(arrays: list[np.ndarray]) -> Samples:
    return Samples.of_batch(Batch(None, arrays))


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_windows_of_samples_of_different_shapes(dtype, axes):
    generator = np.random.default_rng(axes)
    xs, outs, anchors, expected = [], [], [], []
    for n in range(40):
        shape = generator.integers(1, 7, axes)
        begin = generator.integers(-2 * (n % 3 == 0), shape)
        size = np.array([generator.integers(1, 1 + extent - max(b, 0)) for b, extent in zip(begin, shape, strict=True)])
        x = generator.integers(0, 200, shape).astype(dtype)
        padded = np.pad(x, 2, constant_values=7)[
            tuple(slice(b + 2, b + 2 + s) for b, s in zip(begin, size, strict=True))
        ]
        xs.append(x), outs.append(np.empty(size, dtype)), anchors.append(begin), expected.append(padded)
    copy_windows(ragged(outs), ragged(xs), np.array(anchors), fill_values=7)
    for out, values in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.float32])
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_windows_that_exceed_their_samples(dtype, axes):
    # Fill values along each axis, empty samples, and windows that contain, cross or miss their sample.
    generator = np.random.default_rng(axes)
    for fill_axis in [None, *range(axes)]:
        xs, outs, anchors, expected = [], [], [], []
        fill = generator.integers(1, 100, 1 if fill_axis is None else 3).astype(dtype)
        fill = fill.reshape([-1 if axis == fill_axis else 1 for axis in range(axes)])
        for _ in range(60):
            shape, size = generator.integers(0, 7, axes), generator.integers(1, 7, axes)
            anchor = generator.integers(-6, 7, axes)
            is_whole = generator.random(axes) < 0.3
            size[is_whole], anchor[is_whole] = shape[is_whole], 0
            if fill_axis is not None:
                size[fill_axis] = fill.size
            x = generator.integers(0, 100, shape).astype(dtype)
            values = np.broadcast_to(fill, size).copy()
            for place in np.ndindex(*size):
                source = tuple(anchor + place)
                if all(0 <= at < extent for at, extent in zip(source, shape, strict=True)):
                    values[place] = x[source]
            xs.append(x), outs.append(np.empty(size, dtype)), anchors.append(anchor), expected.append(values)
        copy_windows(ragged(outs), ragged(xs), np.array(anchors), fill_values=fill)
        for out, values in zip(outs, expected, strict=True):
            np.testing.assert_array_equal(out, values)


def test_flips_of_samples_of_different_shapes():
    generator = np.random.default_rng(0)
    xs = [generator.integers(0, 256, (4 + n, 9 - n, 3), dtype=np.uint8) for n in range(5)]
    outs = [np.zeros_like(x) for x in xs]
    rows, columns = generator.integers(0, 2, (2, 5))
    flip_axes(ragged(outs), ragged(xs), {0: rows, 1: columns})
    for n, (out, x) in enumerate(zip(outs, xs, strict=True)):
        np.testing.assert_array_equal(out, x[:: 1 - 2 * rows[n], :: 1 - 2 * columns[n]])
