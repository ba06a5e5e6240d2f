"""Filters compared with DALI and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dalify.data.samples import Samples
from dalify.kernels.images import convolve
from dalify.kernels.images.separable import SymmetricKernels
from tests.helpers.real_dali import run_dali

RANDOM = np.random.default_rng(0)


def gaussians(pairs):
    """Return the weights of Gaussians for pairs of standard deviation and window size."""
    sigmas, sizes = (
        np.array([pair], dtype).reshape(1, -1)
        for pair, dtype in zip(zip(*pairs, strict=True), (float, int), strict=True)
    )
    return convolve.gaussian_kernels(sigmas, sizes).arrays[0]


def filtered(out, x, kernels, first_axis):
    kernels = SymmetricKernels.of_arrays(kernels)
    convolve.convolve_samples(Samples.of_dense(out), Samples.of_dense(x), kernels, first_axis)


def blurred(x, sigmas, first_axis, on_torch=False):
    kernels = [gaussians([(s, convolve.gaussian_window(s)) for s in sigmas])]
    out = np.empty_like(x[None])
    if on_torch:
        convolve.convolve_axes_torch(torch.from_numpy(out), torch.from_numpy(x[None]), kernels, first_axis)
    else:
        filtered(out, x[None], kernels, first_axis - 1)
    return out[0]


def test_window_and_sigma_follow_from_each_other():
    assert convolve.gaussian_sigma(3) == pytest.approx(0.8)
    assert convolve.gaussian_window(0.5) == 5
    np.testing.assert_allclose(gaussians([(0.8, 3)])[0], [0.239, 0.522, 0.239], atol=5e-4)


@pytest.mark.parametrize("widest", [7, 9, 31, 127, 129, 1001])
def test_weights_are_bit_identical_to_numpy(widest):
    sizes = [widest, *RANDOM.integers(0, widest // 2, 40) * 2 + 1]
    pairs = [(float(sigma), int(size)) for sigma, size in zip(RANDOM.uniform(0.05, 40, 41), sizes, strict=True)]
    for (sigma, size), found in zip(pairs, gaussians(pairs), strict=True):
        weights = np.exp(-0.5 * (np.arange(-(size // 2), size // 2 + 1) / sigma) ** 2)
        np.testing.assert_array_equal(found, (weights / weights.sum()).astype(np.float32), strict=True)


@pytest.mark.parametrize("dtypes", [("u1", "u1"), ("u1", "f4"), ("f4", "f4"), ("i2", "i2")])
@pytest.mark.parametrize("channels", [(), (1,), (2,), (4,), (5,), (1, 3, 6)])
def test_images_of_different_shapes(channels, dtypes):
    ndimage = pytest.importorskip("scipy.ndimage")
    shapes = np.array([(9 + n, 7 + 2 * n, *(channels and (channels[n % len(channels)],))) for n in range(4)])
    x, out = (Samples.empty(shapes, np.dtype(dtype)) for dtype in dtypes)
    for image in x.arrays():
        image[...] = RANDOM.integers(0, 256, image.shape)
    pairs = gaussians([(0.5 + n / 4, 3 + 2 * (n % 4)) for n in range(8)])
    kernels = list(zip(pairs[::2], pairs[1::2], strict=True))
    convolve.convolve_samples(out, x, SymmetricKernels.of_arrays(kernels), 0)
    for found, image, (vertical, horizontal) in zip(out.arrays(), x.arrays(), kernels, strict=True):
        exact = ndimage.convolve1d(image.astype(float), vertical, 0, mode="mirror")
        exact = ndimage.convolve1d(exact, horizontal, 1, mode="mirror")
        assert np.abs(found - exact).max() <= (1e-3 if dtypes[1] == "f4" else 0.51)


CASES = [
    ((31, 33, 3), "HWC", 1, [1.0, 1.0]),
    ((31, 33, 3), "HWC", 1, [3.0, 0.5]),
    ((3, 31, 33), "CHW", 2, [1.0, 2.0]),
    ((31, 33), "HW", 1, [1.0, 2.0]),
    ((3, 2, 3), "HWC", 1, [2.0, 2.0]),
    ((1, 1, 3), "HWC", 1, [2.0, 2.0]),
    ((6, 4, 9, 3), "DHWC", 1, [1.0, 0.7, 0.4]),
    ((6, 4, 9, 7), "DHWC", 1, [1.0, 0.7, 0.4]),
]


@pytest.mark.parametrize("on_torch", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize(("shape", "layout", "first_axis", "sigmas"), CASES)
def test_equals_dali(shape, layout, first_axis, sigmas, dtype, on_torch):
    x = RANDOM.integers(0, 256, shape).astype(dtype)
    expected = run_dali("gaussian_blur", [x], layouts=layout, sigma=sigmas)[0]
    result = blurred(x, sigmas, first_axis, on_torch)
    tolerance = 255 * 1e-6 if dtype == np.float32 else 1
    assert np.abs(result.astype(float) - expected).max() <= tolerance


def test_bytes_to_floats_keep_the_fraction():
    x = RANDOM.integers(0, 256, (2, 12, 13, 3), dtype=np.uint8)
    (kernel,) = gaussians([(1.0, 7)])
    out = np.empty(x.shape, np.float32)
    filtered(out, x, [[kernel, kernel]] * 2, 0)
    ndimage = pytest.importorskip("scipy.ndimage")
    exact = ndimage.convolve1d(ndimage.convolve1d(x.astype(float), kernel, 1, mode="mirror"), kernel, 2, mode="mirror")
    np.testing.assert_allclose(out, exact, rtol=1e-5)


def test_every_sample_has_its_own_kernel():
    x = RANDOM.random((3, 9, 8, 2), dtype=np.float32)
    each = gaussians([(s, convolve.gaussian_window(s)) for s in (0.3, 1.0, 2.0)])
    kernels = [[kernel] * 2 for kernel in each]
    out = np.empty_like(x)
    filtered(out, x, kernels, 0)
    for n in range(3):
        alone = np.empty_like(x[n : n + 1])
        filtered(alone, x[n : n + 1], kernels[n : n + 1], 0)
        np.testing.assert_array_equal(out[n], alone[0])
    on_torch = torch.empty(x.shape)
    convolve.convolve_axes_torch(on_torch, torch.from_numpy(x), kernels, 1)
    np.testing.assert_allclose(on_torch.numpy(), out, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_mirrored_indices_are_numpy_reflect(size):
    expected = np.pad(np.arange(size), 9, mode="reflect") if size > 1 else np.zeros(19, int)
    np.testing.assert_array_equal(convolve.mirrored_indices(size, 9), expected)


def exactly_filtered(image, kernels, first_axis):
    ndimage = pytest.importorskip("scipy.ndimage")
    exact = image.astype(float)
    for axis, kernel in enumerate(kernels, first_axis):
        exact = ndimage.convolve1d(exact, kernel, axis, mode="mirror")
    return exact


# Images are filtered in strips of 262,144 bytes and in blocks of 32 elements.
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (5, 1), (3, 3), (9, 31)])
@pytest.mark.parametrize(
    "shape", [(5, 31, 1), (4, 32, 1), (3, 11, 3), (7, 1, 3), (1, 40, 4), (3, 9001, 3), (2, 3, 9001)]
)
def test_widths_strips_and_blocks(shape, sizes, dtype):
    x = RANDOM.integers(0, 256, shape).astype(dtype)
    kernels = gaussians([(0.4 * size, size) for size in sizes])
    out = np.empty_like(x)
    filtered(out[None], x[None], [kernels], 0)
    tolerance = 1e-3 if dtype == np.float32 else 0.501
    assert np.abs(out - exactly_filtered(x, kernels, 0)).max() <= tolerance


@pytest.mark.parametrize("shape", [(7,), (40, 3), (1,)])
def test_one_axis(shape):
    x = RANDOM.random((2, *shape), dtype=np.float32)
    kernels = [gaussians([(sigma, 9)]) for sigma in (1.0, 2.5)]
    out = np.empty_like(x)
    filtered(out, x, kernels, 0)
    for n in range(2):
        np.testing.assert_allclose(out[n], exactly_filtered(x[n], kernels[n], 0), atol=1e-5)


def test_infinities_and_nan():
    x = np.ones((1, 9, 40, 1), np.float32)
    x[0, 2, 5], x[0, 6, 30] = np.inf, np.nan
    out = np.empty_like(x)
    filtered(out, x, [gaussians([(1.0, 3), (1.0, 3)])], 0)
    is_near = np.zeros((9, 40), bool)
    is_near[1:4, 4:7] = is_near[5:8, 29:32] = True
    np.testing.assert_array_equal(np.isfinite(out[0, ..., 0]), ~is_near)
    filtered(out, x, [gaussians([(1.0, 1), (1.0, 1)])], 0)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize(
    ("pair", "found"),
    [((0, 5), (1.1, 5)), ((0.5, 0), (0.5, 5)), ((2.0, 3), (2.0, 3)), ((0, 1), (0.5, 1)), ((1000, 0), (1000, 6001))],
)
def test_missing_arguments_are_computed(pair, found):
    sigmas, sizes = np.empty(1), np.empty(1, np.int64)
    given = np.array(pair[:1], np.float32), np.array(pair[1:], np.int32)
    assert convolve.complete_gaussians(sigmas, sizes, *given, 1000, 6001) == -1
    assert (sigmas[0], sizes[0]) == pytest.approx(found)


@pytest.mark.parametrize(
    "pair", [(0, 0), (-1, 3), (1, 2), (0, 4), (1, -3), (np.nan, 3), (np.nan, 0), (1001, 3), (np.inf, 0), (1, 6003)]
)
def test_refused_pairs_are_found(pair):
    given = np.array([1, pair[0], -1], np.float32), np.array([3, pair[1], 0], np.int32)
    assert convolve.complete_gaussians(np.empty(3), np.empty(3, np.int64), *given, 1000, 6001) == 1
