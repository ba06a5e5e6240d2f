"""Crop, mirror and normalize compared with NumPy's slices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.data import Batch
from dalify.data.samples import Samples
from dalify.kernels.images.crop_mirror_normalize import crop_mirror_normalize
from dalify.kernels.images.crop_mirror_normalize_torch import crop_mirror_normalize_torch


def run(device, out, x, anchor, **options):
    if device == "cpu":
        crop_mirror_normalize(Samples.of_dense(out), Samples.of_dense(x), anchor, **options)
    else:
        crop_mirror_normalize_torch(torch.from_numpy(out), torch.from_numpy(x), anchor, **options)
    return out


def expected_planes(x, anchor, size, mirror, mean, multiplier, shift, fill):
    """Return one sample; pixel by pixel outside of the source."""
    padding = [(max(size), max(size))] * 3 + [(0, 0)]
    places = tuple(slice(a + max(size), a + max(size) + s) for a, s in zip(anchor, size, strict=True))
    values = np.pad((x.astype(np.float64) - mean) * multiplier + shift, padding)[places]
    inside = np.pad(np.ones(x.shape[:3]), padding[:3])[places]
    channels = x.shape[-1]
    out = np.tile(np.asarray(fill, np.float64), (*size, 1))
    out[..., :channels] = np.where(inside[..., None] > 0, values, fill[:channels])
    return (out[:, :, ::-1] if mirror else out).transpose(3, 0, 1, 2)


@pytest.mark.parametrize("device", ["cpu", "torch"])
@settings(max_examples=60)
@given(data=st.data())
def test_window_mirror_and_normalize(device, data):
    draw = data.draw
    shape = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 12)),
        draw(st.integers(1, 40)),
        draw(st.sampled_from([1, 3, 4])),
    )
    size = (draw(st.integers(1, 3)), draw(st.integers(1, 10)), draw(st.integers(1, 45)))
    anchor = np.array([[draw(st.integers(-s, e)) for s, e in zip(size, shape, strict=False)] for _ in range(2)])
    mirror = np.array([draw(st.integers(0, 1)), 1])
    extra = draw(st.integers(0, 1))
    is_planar = draw(st.booleans())
    generator = np.random.default_rng(sum(shape))
    x = generator.integers(0, 256, (2, *shape), dtype=np.uint8)
    if draw(st.booleans()):
        x = x.astype(np.float32) / 3
    mean, multiplier = generator.uniform(1, 100, (2, 2, shape[-1]))
    fill = np.arange(shape[-1] + extra) - 3.5
    out_shape = (shape[-1] + extra, *size) if is_planar else (*size, shape[-1] + extra)
    out = np.full((2, *out_shape), np.nan, np.float32)
    options = {"mirror": mirror, "mean": mean, "multiplier": multiplier, "shift": 2.0, "fill_values": fill}
    run(device, out, x, anchor, is_planar=is_planar, **options)
    for n in range(2):
        expected = expected_planes(x[n], anchor[n], size, mirror[n], mean[n], multiplier[n], 2.0, fill)
        got = out[n] if is_planar else out[n].transpose(3, 0, 1, 2)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16, np.int16, np.float64])
def test_other_types_round_and_saturate(device, dtype):
    x = np.arange(60, dtype=np.int32).reshape(1, 1, 4, 5, 3)
    out = np.empty((1, 3, 1, 4, 5), dtype)
    options = {
        "mirror": np.zeros(1),
        "mean": np.full(3, 30.0),
        "multiplier": np.full(3, 4.25),
        "fill_values": np.zeros(3),
    }
    run(device, out, x, np.zeros((1, 3), int), **options)
    exact = ((x - 30) * 4.25).transpose(0, 4, 1, 2, 3)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        exact = np.clip(np.trunc(exact + np.copysign(0.5, exact)), limits.min, limits.max)
    np.testing.assert_allclose(out, exact, rtol=1e-3)


@pytest.mark.parametrize("is_planar", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_samples_of_different_shapes_and_one_set_of_parameters(is_planar, dtype):
    generator = np.random.default_rng(0)
    xs = [generator.integers(0, 256, (1, 20 + n, 33 - n, 3), dtype=np.uint8) for n in range(4)]
    outs = [np.empty((3, *x.shape[:3]) if is_planar else x.shape, dtype) for x in xs]
    options = {"mirror": np.zeros(4), "mean": np.float32([1, 2, 3]), "multiplier": np.float32([1, 2, 4])}
    samples = [Samples.of_batch(Batch(None, arrays)) for arrays in (outs, xs)]
    crop_mirror_normalize(*samples, np.zeros((4, 3), int), fill_values=np.zeros(3), is_planar=is_planar, **options)
    for out, x in zip(outs, xs, strict=True):
        expected = (x.astype(np.float32) - options["mean"]) * options["multiplier"]
        np.testing.assert_allclose(out, expected.transpose(3, 0, 1, 2) if is_planar else expected, rtol=1e-3)
