"""Operators on audio become one: spectrogram, filter bank, decibels and normalization; slice and pre-emphasis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import DalifyError, DTypeError, ShapeError
from tests.helpers.both import assert_same_as_dali
from tests.helpers.built_graph import names_in, omit_passes
from tests.helpers.recordings import noisy_tones

FUSED, FILTERED = "_mel_spectrogram", "_slice_preemphasis"
SEPARATE = {"spectrogram", "mel_filter_bank", "to_decibels", "normalize", "slice", "preemphasis_filter"}
# Fewer windows than SIMD lanes, as many, and more; reflected several times at both ends.
LENGTHS = (1, 2, 37, 160, 960, 1024, 1025, 5003)
RECORDINGS = [noisy_tones(samples, samples) for samples in LENGTHS]

Chain = Callable[[Any, Any], Any]


def spectra(lib: Any, audio: Any, **arguments: Any) -> Any:
    return lib.fn.spectrogram(audio, **{"nfft": 128, "window_length": 100, "window_step": 64, **arguments})


def bands(lib: Any, audio: Any, **arguments: Any) -> Any:
    return lib.fn.mel_filter_bank(spectra(lib, audio, **arguments), nfilter=20, sample_rate=16000.0)


def decibels(lib: Any, audio: Any, **arguments: Any) -> Any:
    return lib.fn.to_decibels(bands(lib, audio, **arguments), cutoff_db=-60.0)


def pipeline(chain: Chain, samples: list[np.ndarray] = RECORDINGS, threads: int = 2, **declared: Any) -> Pipeline:
    @pipeline_def(batch_size=len(samples), num_threads=threads, seed=3)
    def define() -> Any:
        lib = type("lib", (), {"fn": fn, "types": types})
        return chain(lib, fn.external_source(source=lambda: samples, **declared))

    return define()


def check(patch: pytest.MonkeyPatch, define: Callable[[], Pipeline], operators: set[str]) -> Pipeline:
    """Check that results are those without the pass, and which operators there are."""
    pipe = define()
    assert names_in(pipe) & {FUSED, FILTERED, *SEPARATE} == operators
    with patch.context() as inside:
        omit_passes(inside, "fuse")
        separate = define()
        assert not names_in(separate) & {FUSED, FILTERED}
    for _ in range(2):
        for found, wanted in zip(pipe.run(), separate.run(), strict=True):
            assert found.layout() == wanted.layout()
            for one, other in zip(map(np.asarray, found), map(np.asarray, wanted), strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
    return pipe


CHAINS: dict[str, Chain] = {
    "filter bank": bands,
    "own filters": lambda lib, x: lib.fn.mel_filter_bank(
        spectra(lib, x), nfilter=7, sample_rate=8000.0, freq_low=300.0, freq_high=3000.0, mel_formula="htk",
        normalize=False,
    ),
    "magnitudes": lambda lib, x: bands(lib, x, power=1),
    "time first": lambda lib, x: bands(lib, x, layout="tf"),
    "zeros outside": lambda lib, x: bands(lib, x, reflect_padding=False),
    "own window": lambda lib, x: bands(lib, x, window_fn=np.linspace(0.1, 1, 100).tolist()),
    "length of the window": lambda lib, x: bands(lib, x, nfft=None, window_length=90),
    "decibels": decibels,
    "decibels by default": lambda lib, x: lib.fn.to_decibels(bands(lib, x)),
    "decibels, time first": lambda lib, x: decibels(lib, x, layout="tf"),
    "decibels of 1": lambda lib, x: lib.fn.to_decibels(bands(lib, x), multiplier=20.0, reference=1.0),
    "normalized": lambda lib, x: lib.fn.normalize(decibels(lib, x), axes=[1]),
    "normalized, all axes": lambda lib, x: lib.fn.normalize(decibels(lib, x), axes=[-1, 0], ddof=1, epsilon=0.01),
    "normalized, time first": lambda lib, x: lib.fn.normalize(decibels(lib, x, layout="tf"), axis_names="f"),
    "normalized bands": lambda lib, x: lib.fn.normalize(bands(lib, x), axis_names="t", scale=3.0, shift=-1.0),
}  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_results_are_bit_identical(monkeypatch: pytest.MonkeyPatch, chain: Chain) -> None:
    assert "run as one operator" in check(monkeypatch, lambda: pipeline(chain), {FUSED}).explain()


def test_windows_inside_the_audio(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shape of a recording that is shorter than its only window is an exception."""

    def chain(lib: Any, x: Any) -> Any:
        return decibels(lib, x, center_windows=False)

    long = [recording for recording in RECORDINGS if len(recording) > 100]
    for samples in (long, [*long, noisy_tones(90)]):
        check(monkeypatch, lambda samples=samples: pipeline(chain, samples), {FUSED})


@pytest.mark.parametrize("threads", [1, 3])
def test_uniform_batches(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    samples = [noisy_tones(2000, seed)[:, None] for seed in range(9)]
    check(monkeypatch, lambda: pipeline(CHAINS["normalized"], samples, threads), {FUSED})


def test_values_that_are_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [noisy_tones(3000, seed) for seed in range(3)]
    samples[0][1500], samples[1][7], samples[2][:] = np.nan, np.inf, 0
    check(monkeypatch, lambda: pipeline(CHAINS["normalized"], samples), {FUSED})


@pytest.mark.parametrize("name", ["filter bank", "decibels", "normalized", "normalized, time first"])
@pytest.mark.usefixtures("oracle")
def test_dali(name: str) -> None:
    assert_same_as_dali(lambda lib, x: [CHAINS[name](lib, x)], RECORDINGS[3:], rtol=1e-4, atol=1e-4)


NOT_FUSED: dict[str, tuple[Chain, set[str]]] = {
    "spectra that are an output": (
        lambda lib, x: (s := spectra(lib, x), lib.fn.mel_filter_bank(s)),
        {"spectrogram", "mel_filter_bank"},
    ),
    "preserved spectra": (
        lambda lib, x: lib.fn.mel_filter_bank(spectra(lib, x, preserve=True)),
        {"spectrogram", "mel_filter_bank"},
    ),
    "bands that are an output": (lambda lib, x: (m := bands(lib, x), lib.fn.to_decibels(m)), {FUSED, "to_decibels"}),
    "a length with another algorithm": (lambda lib, x: bands(lib, x, nfft=134), {"spectrogram", "mel_filter_bank"}),
    "no filter bank": (lambda lib, x: lib.fn.to_decibels(spectra(lib, x)), {"spectrogram", "to_decibels"}),
    "decibels of decibels": (lambda lib, x: lib.fn.to_decibels(decibels(lib, x)), {FUSED, "to_decibels"}),
    "decibels of normalized values": (
        lambda lib, x: lib.fn.to_decibels(lib.fn.normalize(bands(lib, x), axes=[1], shift=9.0)),
        {FUSED, "to_decibels"},
    ),
    "normalized twice": (
        lambda lib, x: lib.fn.normalize(lib.fn.normalize(decibels(lib, x), axes=[1]), axes=[0, 1]),
        {FUSED, "normalize"},
    ),
    "columns": (lambda lib, x: lib.fn.normalize(decibels(lib, x), axes=[0]), {FUSED, "normalize"}),
    "columns, time first": (
        lambda lib, x: lib.fn.normalize(decibels(lib, x, layout="tf"), axis_names="t"),
        {FUSED, "normalize"},
    ),
    "axes by default": (lambda lib, x: lib.fn.normalize(decibels(lib, x)), {FUSED, "normalize"}),
    "a given mean": (lambda lib, x: lib.fn.normalize(decibels(lib, x), axes=[1], mean=2.0), {FUSED, "normalize"}),
    "a given deviation": (
        lambda lib, x: lib.fn.normalize(decibels(lib, x), axes=[1], stddev=lib.fn.random.uniform(range=[1.0, 2.0])),
        {FUSED, "normalize"},
    ),
    "the whole batch": (
        lambda lib, x: lib.fn.normalize(decibels(lib, x), axes=[0, 1], batch=True),
        {FUSED, "normalize"},
    ),
    "integers": (
        lambda lib, x: lib.fn.normalize(decibels(lib, x), axes=[1], scale=50.0, dtype=types.INT8),
        {FUSED, "normalize"},
    ),
}


@pytest.mark.parametrize(("chain", "operators"), NOT_FUSED.values(), ids=NOT_FUSED)
def test_other_cases_need_several_operators(monkeypatch: pytest.MonkeyPatch, chain: Chain, operators: set[str]) -> None:
    check(monkeypatch, lambda: pipeline(chain), operators)


@pytest.mark.usefixtures("gpu")
def test_the_device_computes_them_separately() -> None:
    assert FUSED not in names_in(pipeline(lambda lib, x: decibels(lib, x.gpu())))


def test_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one branch computes is one operator; the two sides of a condition are not joined."""

    @pipeline_def(batch_size=len(RECORDINGS), num_threads=2, seed=3)
    def define() -> Any:
        lib = type("lib", (), {"fn": fn})
        audio = fn.external_source(source=lambda: RECORDINGS)
        if fn.random.coin_flip():
            inside = decibels(lib, audio)
            across = spectra(lib, audio, window_step=50)
        else:
            inside = decibels(lib, audio, power=1)
            across = spectra(lib, audio, window_step=50, power=1)
        return inside, fn.mel_filter_bank(across, nfilter=20)

    check(monkeypatch, define, {FUSED, "spectrogram", "mel_filter_bank"})


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (np.zeros(0, np.float32), ShapeError, "the signal is empty"),
        (np.zeros((3, 2), np.float32), ShapeError, "audio must have one channel"),
        (np.zeros(9, np.float32), ShapeError, "too short for a window"),
        (np.zeros(300, np.int16), DTypeError, "audio must be float32"),
    ],
)
def test_errors_name_the_spectrogram(wrong: np.ndarray, kind: type[Exception], message: str) -> None:
    def chain(lib: Any, x: Any) -> Any:
        return lib.fn.normalize(decibels(lib, x, center_windows=False), axes=[1])

    samples = [wrong if n == 2 else noisy_tones(500, n).reshape(-1, *[1] * (wrong.ndim - 1)) for n in range(4)]
    if wrong.dtype == np.int16:
        samples = [wrong] * 4
    pipe = pipeline(chain, samples)
    for _ in range(2):
        with pytest.raises(kind, match=message) as caught:
            pipe.run()
        assert caught.value.operator == "fn.spectrogram"
        assert caught.value.line is not None
        assert caught.value.sample == (None if wrong.dtype == np.int16 else 2)


def recordings(chain: Callable[[Any], Any]) -> Pipeline:
    return pipeline(lambda _, x: chain(x), dtype=types.FLOAT, ndim=1)


def number(value: Any) -> Any:
    """Return an input with one number for each recording, or what is one already."""
    if not isinstance(value, (int, float)):
        return value
    numbers = [np.array(value)] * len(RECORDINGS)
    return fn.external_source(source=lambda: numbers)


def cut(x: Any, begin: Any, length: Any, **arguments: Any) -> Any:
    return fn.slice(x, number(begin), number(length), **{"axes": [0], **arguments})


def speech(x: Any, **arguments: Any) -> Any:
    begin, length = fn.nonsilent_region(x, cutoff_db=-3.0, window_length=16)
    return fn.preemphasis_filter(fn.slice(x, begin, length, axes=[0]), **arguments)


def filtered(x: Any, **arguments: Any) -> Any:
    return fn.preemphasis_filter(cut(x, 0, 1), **arguments)


SLICES: dict[str, Callable[[Any], Any]] = {
    "without silence": speech,
    "zero before": lambda x: speech(x, border="zero", preemph_coeff=0.5),
    "reflected": lambda x: speech(x, border="reflect"),
    "coefficients": lambda x: speech(x, preemph_coeff=fn.random.uniform(range=[0.0, 1.0])),
    "doubles": lambda x: speech(x, dtype=types.FLOAT64),
    "integers": lambda x: speech(fn.cast(10000 * x, dtype=types.INT16), dtype=types.INT32),
    "one number": filtered,
    "nothing": lambda x: fn.preemphasis_filter(cut(x, 1, 0)),
    "some of them": lambda x: fn.preemphasis_filter(cut(x, 0, fn.cast(fn.random.coin_flip(), dtype=types.INT64))),
    "fractions": lambda x: fn.preemphasis_filter(cut(x, 0.25, 0.5)),
    "floats": lambda x: fn.preemphasis_filter(
        cut(x, 0.0, 1.0, axes=[-1], normalized_anchor=False, normalized_shape=False)
    ),
}


@pytest.mark.parametrize("chain", SLICES.values(), ids=SLICES)
def test_slices_are_filtered_without_a_copy(monkeypatch: pytest.MonkeyPatch, chain: Callable[[Any], Any]) -> None:
    pipe = check(monkeypatch, lambda: recordings(chain), {FILTERED})
    assert "fn.slice at" in pipe.explain()


NOT_FILTERED: dict[str, Callable[[Any], Any]] = {
    "an output": lambda x: (part := cut(x, 0, 1), fn.preemphasis_filter(part)),
    "arguments": lambda x: fn.preemphasis_filter(fn.slice(x, start=[0], shape=[1], axes=[0])),
    "another type": lambda x: fn.preemphasis_filter(cut(x, 0, 1, dtype=types.FLOAT64)),
    "values outside": lambda x: fn.preemphasis_filter(cut(x, 0, 5, out_of_bounds_policy="pad")),
    "audio of unknown type": lambda x: fn.preemphasis_filter(cut(fn.external_source(source=lambda: RECORDINGS), 0, 1)),
    "two axes": lambda x: fn.preemphasis_filter(cut(fn.expand_dims(x, axes=[1]), 0, 1)),
}


@pytest.mark.parametrize("chain", NOT_FILTERED.values(), ids=NOT_FILTERED)
def test_other_slices_are_copied(monkeypatch: pytest.MonkeyPatch, chain: Callable[[Any], Any]) -> None:
    check(monkeypatch, lambda: recordings(chain), {"slice", "preemphasis_filter"})


@pytest.mark.parametrize(
    ("chain", "operator", "message"),
    [
        (lambda x: fn.preemphasis_filter(cut(x, 0, 2)), "fn.slice", "extends outside"),
        (lambda x: fn.preemphasis_filter(cut(x, 0.0, 1)), "fn.slice", "must both be integers, or both floats"),
        (lambda x: filtered(x, preemph_coeff=x), "fn.preemphasis_filter", "preemph_coeff"),
    ],
)
def test_errors_name_the_call(chain: Callable[[Any], Any], operator: str, message: str) -> None:
    pipe = recordings(chain)
    assert FILTERED in names_in(pipe)
    for _ in range(2):
        with pytest.raises(DalifyError, match=message) as caught:
            pipe.run()
        assert caught.value.operator == operator
        assert caught.value.line is not None
