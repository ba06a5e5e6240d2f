"""Windows and flips against numpy, one element at a time where a window leaves the source."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify.kernels.gather import copy_window, copy_window_torch, flip_axes, flip_axes_torch

torch = pytest.importorskip("torch", reason="the second implementation runs on torch")


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
        copy_window(out, x, anchor, fill=fill)
    else:
        copy_window_torch(torch.from_numpy(out), torch.from_numpy(x), anchor, fill=fill)
    for n in range(2):
        for place in itertools.product(*map(range, size)):
            source = tuple(anchor[n] + place)
            is_inside = all(0 <= at < extent for at, extent in zip(source, shape, strict=True))
            assert out[n][place] == (x[n][source] if is_inside else fill[place[-1]])


def test_windows_convert():
    x = np.float32([[-1, 0.5, 2.5, 300]])
    out = np.empty((1, 5), np.uint8)
    copy_window(out, x, np.array([[0]]), fill=-7)
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
        flip_axes(out, x, flags)
    else:
        flip_axes_torch(torch.from_numpy(out), torch.from_numpy(x), flags)
    for n, choice in enumerate(choices):
        expected = np.flip(x[n], [axis for axis, flag in enumerate(choice) if flag])
        np.testing.assert_array_equal(out[n], expected)


def test_flip_of_views():
    x = np.random.default_rng(0).integers(0, 256, (2, 8, 9, 3), dtype=np.uint8)
    out = np.zeros((2, 8, 18, 3), np.uint8)
    flip_axes(out[:, :, ::2], x[:, ::-1], {1: np.array([1, 0])})
    np.testing.assert_array_equal(out[0, :, ::2], x[0, ::-1, ::-1])
    np.testing.assert_array_equal(out[1, :, ::2], x[1, ::-1])
