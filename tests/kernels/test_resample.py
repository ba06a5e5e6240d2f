"""Resampling compared with the float64 formula, Pillow, and the real DALI."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from dalify.base.errors import ShapeError
from dalify.data import Batch
from dalify.data.dtypes import DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.images.resample import resample
from dalify.kernels.images.resample_torch import resample_torch

NEAREST, LINEAR, CUBIC = DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_CUBIC
LANCZOS, GAUSSIAN = DALIInterpType.INTERP_LANCZOS3, DALIInterpType.INTERP_GAUSSIAN
FILTERS = list(DALIInterpType)


def run(device, x, size, start, end, *, dtype=None, kind=LINEAR, antialias=True):
    """Resample a group by one of the two implementations."""
    out = np.empty((len(x), *size, x.shape[-1]), dtype or x.dtype)
    corners = np.asarray(start, np.float32), np.asarray(end, np.float32)
    options = {"min_filter": kind, "mag_filter": kind, "antialias": antialias}
    if device == "cpu":
        resample(Samples.of_dense(out), Samples.of_dense(x), *corners, **options)
    else:
        target = torch.from_numpy(out)
        resample_torch(target, torch.from_numpy(x), *corners, **options)
    return out


def triangle_matrix(n_in: int, n_out: int, start: float, end: float) -> np.ndarray:
    """The antialiased linear filter as a float64 matrix, from its definition."""
    scale = (end - start) / n_out
    radius = max(1.0, abs(scale))
    matrix = np.zeros((n_out, n_in))
    for i in range(n_out):
        center = start + (i + 0.5) * scale - 0.5
        for j in range(int(np.floor(center - radius)), int(np.ceil(center + radius)) + 1):
            matrix[i, min(max(j, 0), n_in - 1)] += max(0.0, 1 - abs(j - center) / radius)
    return matrix / matrix.sum(1, keepdims=True)


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("size", "out_size", "interior"),  # columns that need no pixel beyond the border, if DALI runs that pass last
    [
        ((9, 12), (18, 24), None),
        ((16, 64), (8, 32), (0, 32)),
        ((24, 30), (12, 15), (0, 15)),
        ((3, 2), (12, 4), None),
        ((40, 12), (10, 24), (1, 23)),
    ],
)
def test_halves(device, dtype, channels, size, out_size, interior):
    """Weights are binary fractions, so that many exact results are half way between two integers."""
    x = np.random.default_rng(5).integers(0, 9, (4, *size, channels), dtype=dtype)
    start, end = np.zeros((4, 2)), np.tile(size, (4, 1))
    got = run(device, x, out_size, start, end, antialias=False)
    halves = {2: [0.5, 0.5], 4: [0, 0.5, 0.5, 0]}
    rows, columns = (
        triangle_matrix(n, m, 0, n) if m > n else np.kron(np.eye(m), halves[n // m])
        for n, m in zip(size, out_size, strict=True)
    )
    exact = np.einsum("oh,pw,nhwc->nopc", rows, columns, x.astype(np.float64))
    assert (exact % 1 == 0.5).mean() > 0.02
    block, width = 16 // x.itemsize, out_size[1]
    is_even = np.zeros((width, channels), bool)
    if device == "torch":
        is_even[:] = width >= 16
    elif interior is None:
        is_even.reshape(-1)[: width * channels // block * block] = True
    else:
        first, last = interior
        is_even[first : first + (last - first) // block * block] = True
    np.testing.assert_array_equal(got, np.where(is_even, np.rint(exact), np.floor(exact + 0.5)))


@pytest.mark.parametrize("device", ["cpu", "torch"])
@settings(max_examples=60)
@given(data=st.data())
def test_linear_equals_the_formula(device, data):
    extents = st.integers(1, 40)
    height, width, out_height, out_width = (data.draw(extents) for _ in range(4))
    channels = data.draw(st.sampled_from([1, 2, 3, 4, 5]))
    edges = st.floats(-0.5, 1.5, width=32)
    start, end = (np.float32([[data.draw(edges) * height, data.draw(edges) * width]]) for _ in range(2))
    x = np.random.default_rng(height * width).integers(0, 256, (1, height, width, channels), dtype=np.uint8)
    rows = triangle_matrix(height, out_height, float(start[0, 0]), float(end[0, 0]))
    columns = triangle_matrix(width, out_width, float(start[0, 1]), float(end[0, 1]))
    expected = np.einsum("yh,nhwc,xw->nyxc", rows, x, columns)
    got = run(device, x, (out_height, out_width), start, end, dtype=np.float32)
    np.testing.assert_allclose(got, expected, atol=0.02)  # 255 * pixels * float32 rounding of positions
    rounded = run(device, x, (out_height, out_width), start, end)
    assert np.abs(rounded - expected).max() <= 0.53


def test_known_rows():
    x = np.float32([0, 100, 200, 40]).reshape(1, 1, 4, 1)
    whole = [[0, 0]], [[1, 4]]
    np.testing.assert_allclose(run("cpu", x, (1, 2), *whole).ravel(), [62.5, 107.5])
    np.testing.assert_allclose(run("cpu", x, (1, 2), *whole, antialias=False).ravel(), [50, 120])
    np.testing.assert_allclose(run("cpu", x, (1, 2), *whole, kind=NEAREST).ravel(), [100, 40])
    np.testing.assert_allclose(run("cpu", x, (1, 2), *whole, kind=CUBIC).ravel(), [64.14, 118.05], atol=0.01)
    np.testing.assert_allclose(run("cpu", x, (1, 2), *whole, kind=LANCZOS).ravel(), [68.46, 122.83], atol=0.01)
    np.testing.assert_allclose(run("cpu", x, (1, 4), [[0, 1]], [[1, 3]]).ravel(), [75, 125, 175, 160])
    np.testing.assert_allclose(run("cpu", x, (1, 4), [[0, 4]], [[1, 0]]).ravel(), x.ravel()[::-1])


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize(
    ("kind", "pillow"),
    [(LINEAR, Image.Resampling.BILINEAR), (CUBIC, Image.Resampling.BICUBIC), (LANCZOS, Image.Resampling.LANCZOS)],
)
def test_equals_pillow(device, kind, pillow):
    """Except at the border, which Pillow omits in its sums, and near black and white, where it clips twice."""
    x = np.random.default_rng(0).integers(90, 166, (1, 61, 47, 3), dtype=np.uint8)
    for size in [(20, 30), (75, 22), (90, 100)]:
        got = run(device, x, size, [[0, 0]], [[61, 47]], kind=kind)
        expected = np.asarray(Image.fromarray(x[0]).resize(size[::-1], pillow))
        inside = np.s_[8:-8, 8:-8]
        assert np.abs(got[0].astype(int) - expected)[inside].max() <= (1 if kind == LINEAR else 2)


@pytest.mark.parametrize("kind", FILTERS)
def test_a_group_equals_its_samples(kind):
    generator = np.random.default_rng(1)
    x = generator.integers(0, 256, (5, 30, 31, 3), dtype=np.uint8)
    start, end = generator.uniform(0, 30, (2, 5, 2)).astype(np.float32)
    together = {device: run(device, x, (16, 18), start, end, kind=kind) for device in ("cpu", "torch")}
    for n in range(5):
        alone = run("cpu", x[n : n + 1], (16, 18), start[n : n + 1], end[n : n + 1], kind=kind)
        np.testing.assert_array_equal(together["cpu"][n], alone[0])
    assert np.abs(together["cpu"].astype(int) - together["torch"]).max() <= 1


def test_filters_may_differ_by_sample_and_direction():
    x = np.random.default_rng(2).random((2, 20, 20, 3), dtype=np.float32)
    corners = np.zeros((2, 2), np.float32), np.full((2, 2), 20, np.float32)
    out, expected = np.empty((2, 10, 30, 3), np.float32), np.empty((2, 10, 30, 3), np.float32)
    kinds = {"min_filter": np.array([LINEAR, CUBIC]), "mag_filter": np.array([CUBIC, NEAREST])}
    resample(Samples.of_dense(out), Samples.of_dense(x), *corners, **kinds)
    for n, (down, up) in enumerate([(LINEAR, CUBIC), (CUBIC, NEAREST)]):
        half = run("cpu", x[n : n + 1], (10, 20), [[0, 0]], [[20, 20]], kind=down)
        expected[n] = run("cpu", half, (10, 30), [[0, 0]], [[10, 20]], kind=up)
    np.testing.assert_allclose(out, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize("ndim", [3, 4])
def test_a_chunk_of_different_samples_equals_its_samples(ndim, dtype):
    """Filters, channels, widths, depths that stay, empty results: each combination of two, in one chunk."""
    random = np.random.default_rng(ndim)
    kinds = [
        (filters, channels, width, is_whole)
        for filters in ((NEAREST, NEAREST), (LINEAR, LINEAR), (CUBIC, NEAREST))
        for channels in (1, 3)
        for width in (0, 2, 9)
        for is_whole in (True, False)
    ]
    order = random.permutation(len(kinds))
    for first in range(0, len(kinds), 7):
        part = [kinds[n] for n in order[first : first + 7]]
        images, results, starts, ends = [], [], [], []
        for _, channels, width, is_whole in part:
            shape = (6, 8, 7)[3 - (ndim - 1) :]
            size = (6 if is_whole else 4, 5, width)[3 - (ndim - 1) :]
            images.append((random.random((*shape, channels)) * 200).astype(dtype))
            results.append(np.full((*size, channels), 77, dtype))
            starts.append([0 if is_whole else 1, 1, 2][3 - (ndim - 1) :])
            ends.append([6, 7, 5][3 - (ndim - 1) :])
        start, end = np.array(starts, np.float32), np.array(ends, np.float32)
        smaller, larger = np.array([kind[0] for kind in part], np.int32).T
        options = {"min_filter": smaller, "mag_filter": larger}
        target, source = (Samples.of_batch(Batch(None, samples)) for samples in (results, images))
        resample(target, source, start, end, **options)
        for n, (image, found) in enumerate(zip(images, results, strict=True)):
            alone = np.full_like(found, 77)
            one = {name: kind[n : n + 1] for name, kind in options.items()}
            corners = start[n : n + 1], end[n : n + 1]
            resample(Samples.of_dense(alone[None]), Samples.of_dense(image[None]), *corners, **one)
            np.testing.assert_array_equal(found, alone)


@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_volumes_are_separable(device):
    x = np.random.default_rng(3).random((2, 9, 12, 10, 3), dtype=np.float32)
    start = np.float32([[1, 0, 2], [8, 12, 0]])
    end = np.float32([[9, 11, 9], [0, 0, 10]])
    got = run(device, x, (4, 20, 7), start, end)
    for n in range(2):
        matrices = [triangle_matrix(x.shape[1 + a], (4, 20, 7)[a], start[n, a], end[n, a]) for a in range(3)]
        expected = np.einsum("zd,yh,xw,dhwc->zyxc", *matrices, x[n])
        np.testing.assert_allclose(got[n], expected, atol=1e-5)
    nearest = run(device, x, (4, 20, 7), start, end, kind=NEAREST)
    assert np.isin(nearest, x).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int16, np.int32, np.float64, np.float16])
@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_other_types_pass_through_float(device, dtype):
    if device == "torch" and dtype == np.uint16:
        pytest.skip("torch indexes no uint16")
    x = np.random.default_rng(4).integers(-100, 100, (1, 20, 21, 3)).astype(dtype)
    got = run(device, x, (11, 30), [[0, 0]], [[20, 21]])
    expected = run("cpu", x.astype(np.float32), (11, 30), [[0, 0]], [[20, 21]])
    np.testing.assert_allclose(got.astype(np.float64), expected, atol=0.6 if got.dtype.kind in "iu" else 0.05)
    nearest = run(device, x, (11, 30), [[0, 0]], [[20, 21]], kind=NEAREST)
    assert np.isin(nearest, x).all()


def ragged(arrays: list[np.ndarray]) -> Samples:
    return Samples.of_batch(Batch(None, arrays))


@pytest.mark.parametrize("kind", [LINEAR, NEAREST, CUBIC])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize("axes", [2, 3])
def test_samples_of_different_shapes_are_computed_as_each_alone(kind, dtype, axes):
    generator = np.random.default_rng(axes)
    xs, outs, starts, ends = [], [], [], []
    for n in range(7):
        extents, size = generator.integers(1, 24, (2, axes))
        channels = (1, 3, 3, 4, 3, 2, 5)[n]
        xs.append(generator.integers(0, 200, (*extents, channels)).astype(dtype))
        outs.append(np.empty((*size, channels), dtype))
        starts.append(generator.uniform(-2, 5, axes) if n else np.zeros(axes))
        ends.append(extents + generator.uniform(-2, 2, axes) if n else extents)
    outs[3] = np.empty((*outs[3].shape[:-2], 0, 4), dtype)  # nothing to compute
    start, end = np.float32(starts), np.float32(ends)
    kinds = np.full(7, kind)
    kinds[5] = NEAREST
    resample(ragged(outs), ragged(xs), start, end, min_filter=kinds, mag_filter=kinds)
    for n, (out, x) in enumerate(zip(outs, xs, strict=True)):
        if out.size:
            alone = run("cpu", x[None], out.shape[:-1], start[n : n + 1], end[n : n + 1], kind=int(kinds[n]))
            np.testing.assert_array_equal(out, alone[0])


def test_an_image_without_pixels_is_named():
    xs = [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 0, 3), np.uint8)]
    with pytest.raises(ShapeError, match="an empty image") as caught:
        resample(ragged([np.zeros((2, 2, 3), np.uint8)] * 2), ragged(xs), np.zeros((2, 2)), np.full((2, 2), 4))
    assert caught.value.sample == 1


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize("antialias", [True, False])
def test_equals_dali(oracle: ModuleType, kind: DALIInterpType, antialias: bool):
    """Extents without exact ties: there the last bit of a position decides which pixel is the nearest."""
    generator = np.random.default_rng(6)
    cases = []
    for height, width, channels, size in [(40, 61, 3, (17, 23)), (5, 7, 4, (31, 3)), (9, 13, 1, (4, 4))]:
        for dtype in (np.uint8, np.float32):
            x = (generator.random((height, width, channels)) * 255).astype(dtype)
            for y0, y1, x0, x1 in [(0, 1, 0, 1), (0.21, 0.73, 0.27, 0.81), (0.91, 0.13, 0.83, 0.07)]:
                start, end = [y0 * height, x0 * width], [y1 * height, x1 * width]
                if kind == GAUSSIAN and y0 == 0:
                    continue  # the ends of this filter do not fall to 0, and their positions tie
                cases.append((x, size, start, end))

    @oracle.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        outputs = []
        for x, size, start, end in cases:
            image = oracle.types.Constant(x, device="cpu", layout="HWC")
            filters = {"interp_type": oracle.types.DALIInterpType(int(kind)), "antialias": antialias}
            outputs.append(oracle.fn.resize(image, size=size, roi_start=start, roi_end=end, **filters))
        return tuple(outputs)

    built = pipeline()
    built.build()
    for (x, size, start, end), theirs in zip(cases, built.run(), strict=True):
        ours = run("cpu", x[None], size, [start], [end], kind=kind, antialias=antialias)[0]
        tolerance = (2 if kind in (CUBIC, LANCZOS) else 1) if x.dtype == np.uint8 else 2e-3
        difference = np.abs(np.asarray(theirs[0]).astype(np.float64) - ours)
        assert difference.max() <= tolerance, (size, start, end)
