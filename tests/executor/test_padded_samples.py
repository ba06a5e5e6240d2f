"""Kernels on padded samples: batches of very different sizes, without pixels, of one sample, and of audio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError
from dalify.kernels.arrays.padding_torch import similar_shapes
from tests.executor.test_device_samples import OPERATIONS, launches, results

Operation = Callable[[Any], Any]

SIZES = [(9, 12), (120, 90), (3, 4), (40, 41), (1, 1), (2, 300), (8, 8), (121, 88)]
PADDED = [
    "given mean",
    "mean and deviation",
    "arithmetic, broadcast",
    "sum",
    "mean",
    "mean of rows",
    "minimum",
    "maximum",
]
PADDED += [
    "standard deviation",
    "stack",
    "one_hot",
    "jpeg_compression_distortion",
    "grid_mask",
    "full_like",
    "equalize",
]


def _spectra(audio: Any) -> Any:
    return fn.spectrogram(audio, nfft=128, window_length=100, window_step=40)


def _mel(audio: Any) -> Any:
    return fn.mel_filter_bank(_spectra(audio), nfilter=20, sample_rate=8000)


RECORDINGS: dict[str, Operation] = {
    "spectrogram": _spectra,
    "spectrogram, padded with 0": lambda x: fn.spectrogram(
        x, window_length=64, window_step=30, reflect_padding=False, power=1, layout="tf"
    ),
    "mel_filter_bank": _mel,
    "to_decibels": lambda x: fn.to_decibels(_mel(x), cutoff_db=-60),
    "to_decibels of a reference": lambda x: fn.to_decibels(_mel(x), reference=3.0, cutoff_db=-60),
    "mfcc": lambda x: fn.mfcc(fn.to_decibels(_mel(x), cutoff_db=-60), n_mfcc=13, lifter=20),
    "audio_resample": lambda x: fn.audio_resample(x, scale=1.37, quality=20.0),
    "audio_resample to other lengths and types": lambda x: fn.audio_resample(
        x * 0.3, scale=fn.random.uniform(range=[0.4, 1.6], seed=3), dtype=types.INT16
    ),
    "audio_resample to one length": lambda x: fn.audio_resample(x, out_length=900),
    "audio_resample of channels": lambda x: fn.audio_resample(
        fn.stack(x, x * 0.5, axis=1), in_rate=8000.0, out_rate=5512.5
    ),
    "nonsilent_region": lambda x: fn.stack(*fn.nonsilent_region(x, cutoff_db=-1.5, window_length=64)),
    "nonsilent_region of integers": lambda x: fn.stack(
        *fn.nonsilent_region(fn.cast(x * 1000.0, dtype=types.INT16), cutoff_db=-2.0, window_length=50)
    ),
    "power_spectrum": fn.power_spectrum,
    "power_spectrum of one length": lambda x: fn.power_spectrum(x, nfft=500, power=1),
    "power_spectrum along an axis": lambda x: fn.power_spectrum(fn.stack(x, x * x, axis=1), axis=0, power=1),
    "preemphasis_filter": fn.preemphasis_filter,
    "preemphasis_filter, reflected": lambda x: fn.preemphasis_filter(x, border="reflect", preemph_coeff=0.8),
}

NOISES: dict[str, Operation] = {
    "gaussian": lambda x: fn.noise.gaussian(x, stddev=20.0, mean=fn.random.uniform(range=[0, 9], seed=3), seed=5),
    "shot": lambda x: fn.noise.shot(x, factor=20.0, seed=5),
    "shot of some": lambda x: fn.noise.shot(x, factor=fn.random.choice(2, seed=1) * 7.0, seed=5),
    "salt_and_pepper": lambda x: fn.noise.salt_and_pepper(x, prob=0.3, seed=5),
    "salt_and_pepper of values": lambda x: fn.noise.salt_and_pepper(x, prob=0.3, per_channel=True, seed=5),
    "salt_and_pepper of planes": lambda x: fn.noise.salt_and_pepper(fn.transpose(x, perm=[2, 0, 1]), prob=0.3, seed=5),
}


def images(sizes: list[tuple[int, int]], dtype: str = "uint8") -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    return [random.integers(0, 200, (*size, 3)).astype(dtype) for size in sizes]


def recordings() -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(1)
    return [random.normal(size=size).astype(np.float32) for size in (1000, 5000, 333, 7, 20000, 1)]


def assert_same(operation: Operation, given: list[Any], layout: str = "HWC", tolerance: float = 1e-4) -> None:
    """Compare the device with the CPU; integers may differ by one if sums have another order."""
    expected = results(operation, given, layout, device="cpu")
    for found, other in zip(results(operation, given, layout), expected, strict=True):
        assert (found.dtype, found.shape) == (other.dtype, other.shape)
        one = float(other.dtype.kind in "iu" and other.dtype.itemsize < 4)
        np.testing.assert_allclose(found.astype(np.float64), other.astype(np.float64), rtol=tolerance, atol=one or 1e-3)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", PADDED)
def test_sizes_that_are_not_padded_together(name: str) -> None:
    assert_same(OPERATIONS[name], images(SIZES))
    assert_same(OPERATIONS[name], images([SIZES[0]]))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "name", ["sum", "minimum", "maximum", "mean of rows", "stack", "arithmetic, broadcast", "transpose"]
)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64"])
def test_element_types(name: str, dtype: str) -> None:
    assert_same(OPERATIONS[name], images(SIZES[:4], dtype), tolerance=2e-3 if dtype == "float16" else 1e-6)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "name", ["sum", "minimum", "maximum", "maximum of all", "stack", "cat", "copy", "gaussian", "arithmetic"]
)
def test_samples_without_pixels(name: str) -> None:
    operations = {**OPERATIONS, **NOISES, "maximum of all": fn.reductions.max, "cat": lambda x: fn.cat(x, x, axis=0)}
    for sizes in ([(0, 5), (9, 12), (3, 4)], [(9, 12), (4, 0), (3, 4)], [(0, 5), (5, 0)]):
        assert_same(operations[name], images(sizes))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", RECORDINGS)
def test_audio(name: str) -> None:
    assert_same(RECORDINGS[name], recordings(), "")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_noise_depends_on_the_position_in_the_sample(name: str, dtype: str) -> None:
    assert_same(NOISES[name], images([(9, 12), (40, 41), (3, 4), (1, 1), (2, 90)], dtype))


@pytest.mark.usefixtures("gpu")
def test_spectra_of_several_numbers_of_frequencies() -> None:
    random = np.random.default_rng(2)
    given = [random.random(shape, np.float32) for shape in ((65, 7), (33, 9), (65, 1), (17, 20))]
    assert_same(lambda x: fn.mel_filter_bank(x, nfilter=12, sample_rate=8000), given, "ft")
    assert_same(lambda x: fn.mfcc(x, n_mfcc=20, axis=1, normalize=True), given[1:], "")


@pytest.mark.usefixtures("gpu")
def test_a_given_mean_whose_axes_depend_on_the_shape() -> None:
    random = np.random.default_rng(3)
    given = [random.normal(size=shape).astype(np.float32) for shape in ((5, 7), (9, 5), (5, 8), (3, 5))]
    mean = np.arange(5.0)
    found = results(lambda x: fn.normalize(x, mean=mean.tolist(), stddev=[2.0]), given, "")
    for sample, result in zip(given, found, strict=True):
        across = mean if sample.shape[1] == 5 else mean[:, None]
        np.testing.assert_allclose(result, (sample - across) / 2, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("width", [2, 3, 5])
def test_points_of_several_numbers(width: int) -> None:
    random = np.random.default_rng(6)
    given = [random.normal(size=(count, width)).astype(np.float32) for count in (3, 1, 70, 0, 12)]
    matrix = random.normal(size=(4, width + 1)).astype(np.float32)
    found = results(lambda x: fn.coord_transform(x, MT=matrix.reshape(-1).tolist()), given, "")
    for points, result in zip(given, found, strict=True):
        np.testing.assert_allclose(result, points @ matrix[:, :-1].T + matrix[:, -1], rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("gpu")
def test_points_of_several_numbers_of_coordinates() -> None:
    random = np.random.default_rng(7)
    given = [random.normal(size=shape).astype(np.float32) for shape in ((3, 2), (1, 3), (7, 2), (2, 5))]
    for points, result in zip(given, results(lambda x: fn.coord_transform(x, M=2.5, T=-1.0), given, ""), strict=True):
        np.testing.assert_allclose(result, points * 2.5 - 1, rtol=1e-6)


@pytest.mark.usefixtures("gpu")
def test_statistics_of_padded_samples() -> None:
    given = images(SIZES, "float32")
    for sample, result in zip(given, results(lambda x: fn.normalize(x, axis_names="HW", ddof=1), given), strict=True):
        wide = sample.astype(np.float64)
        spread = wide.std((0, 1), ddof=1) if len(sample) * len(sample[0]) > 1 else np.zeros(3)
        expected = (wide - wide.mean((0, 1))) / np.where(spread > 0, spread, np.inf)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("gpu")
def test_division_by_zero_names_the_sample() -> None:
    given = images([(5, 6), (90, 80), (7, 3)])
    given[1][...] = 1
    given[2][4, 1, 1] = 0
    given[0] += 1

    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipeline() -> Any:
        return 100 // fn.external_source([given], layout="HWC").gpu()

    with pytest.raises(ArgumentValueError, match=r"division by zero(?s:.*)sample 2"):
        pipeline().run()


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("name", [*RECORDINGS, *NOISES])
def test_the_number_of_calls_does_not_grow_with_samples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("shot"):
        pytest.skip("attempts are repeated until the values of all samples are accepted")
    given: list[Any] = recordings()[:3] if name in RECORDINGS else images([(9, 12), (40, 41), (3, 4)])
    layout = "" if name in RECORDINGS else "HWC"
    few, many = (launches({**RECORDINGS, **NOISES}[name], given * count, monkeypatch, layout) for count in (3, 8))
    assert few
    assert sorted(few) == sorted(many)


def test_groups_of_similar_shapes() -> None:
    random = np.random.default_rng(4)
    for _ in range(200):
        shapes = np.exp(random.uniform(0, 7, (random.integers(1, 40), random.integers(1, 4)))).astype(np.int64)
        groups = similar_shapes(shapes)
        assert sorted(np.concatenate(groups).tolist()) == list(range(len(shapes)))
        for group in groups:
            assert (np.diff(group) > 0).all()
            assert shapes[group].max(0).prod() <= 4 * shapes[group].prod(1).min()
        assert len(similar_shapes(np.repeat(shapes, 3, 0))) == len(groups)
