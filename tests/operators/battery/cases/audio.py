"""Cases of operators: audio."""

from __future__ import annotations

import numpy as np

from tests.operators.battery import references as by
from tests.operators.battery.case import GONE, Case, Data, each, exact_case, float_case
from tests.operators.battery.changes import dtypes, options
from tests.operators.battery.data import AUDIO, SPECTRA, SPEECH

CASES: dict[str, Case] = {
    "audio_resample": float_case(
        AUDIO,
        in_rate=16000.0,
        out_rate=11025.0,
        variants={
            "scale": {"only": True, "scale": 0.5},
            "out_length": {"only": True, "out_length": 1234},
            "up": {"in_rate": 8000.0, "out_rate": 11025.0},
            **options("quality", 0.0, 10.0, 100.0),
            **dtypes("INT16", "FLOAT", "UINT8", "INT32"),
            "per sample": {"in_rate": GONE, "out_rate": GONE, "scale": each([0.5, 0.7, 1, 1, 1, 1.5])},
        },
    ),
    "mel_filter_bank": float_case(
        SPECTRA,
        nfilter=20,
        sample_rate=16000.0,
        variants={
            "htk": {"mel_formula": "htk"},
            "not normalized": {"normalize": False},
            "band": {"freq_low": 300.0, "freq_high": 6000.0},
            "default": {"only": True},
        },
        reference=by.close(by.mel_filters),
    ),
    "mfcc": float_case(
        SPECTRA,
        n_mfcc=12,
        lifter=22.0,
        variants={
            **{f"dct_type={number}": {"dct_type": number, "lifter": 0.0} for number in (1, 2, 3, 4)},
            "normalized": {"normalize": True},
            "default": {"only": True},
            "axis=1": {"axis": 1},
        },
        reference=by.close(by.cepstrum, by.SCIPY),
    ),
    "nonsilent_region": exact_case(
        SPEECH,
        cutoff_db=-30.0,
        window_length=64,
        reset_interval=256,
        variants={
            "default": {"only": True},
            "reference_power": {"reference_power": 0.01},
            "no reset": {"reset_interval": -1},
            "window": {"window_length": 256, "cutoff_db": -20.0},
        },
        waits=["copies from the device @ operators/nonsilent_region.py:_"],
    ),
    "power_spectrum": float_case(
        AUDIO,
        nfft=4096,
        variants={"power=1": {"power": 1}, "default": {"only": True}, "short": {"nfft": 1000}},
        refused={"nothing": "a signal without samples has no spectrum; DALI gives zeros"},
        reference=by.close(lambda x, nfft: (np.abs(np.fft.rfft(x, nfft)) ** 2).astype(np.float32), by.BY_NUMPY),
    ),
    "preemphasis_filter": float_case(
        AUDIO,
        preemph_coeff=each([0.9, 0.5, 0, 0.97, 0.3, 0.8]),
        variants={
            **options("border", "zero", "clamp", "reflect"),
            "default": {"only": True},
            **dtypes("FLOAT", "INT16"),
            "int16 in": {"inputs": (Data([(s * 9000).astype(np.int16) for s in AUDIO.samples]),)},
        },
        reference=by.close(by.emphasised),
    ),
    "spectrogram": float_case(
        AUDIO,
        nfft=256,
        window_length=200,
        window_step=100,
        variants={
            "tf": {"layout": "tf"},
            "power=1": {"power": 1},
            "not centered": {"center_windows": False},
            "not reflected": {"reflect_padding": False},
            "window_fn": {"window_fn": np.hanning(200).astype(np.float32).tolist()},
            "default": {"only": True},
            "odd": {"nfft": 301, "window_length": 300, "window_step": 77},
        },
        reference=by.close(by.spectrogram, by.BY_NUMPY),
    ),
    "to_decibels": float_case(
        SPECTRA,
        cutoff_db=-60.0,
        variants={"reference": {"reference": 0.5}, "multiplier": {"multiplier": 20.0}, "default": {"only": True}},
        reference=by.close(by.decibels),
    ),
}
