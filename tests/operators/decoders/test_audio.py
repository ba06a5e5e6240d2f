"""fn.decoders.audio beside the real DALI, libsndfile and Python's wave module."""

from __future__ import annotations

import io
import struct
import wave
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import ArgumentValueError, DecodeError, DTypeError, MissingPackageError
from dalify.base.optional import LazyModule
from dalify.codecs import sound as codec
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each
from tests.helpers.sounds import assert_close, assert_sounds_like_dali, noisy_tones

soundfile = pytest.importorskip("soundfile", reason="the extra dalify[audio]")

STEREO = np.stack([noisy_tones(3000, 1), noisy_tones(3000, 2)], 1)
FORMATS = [
    ("WAV", "PCM_16"), ("WAVEX", "PCM_16"), ("WAV", "PCM_U8"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAV", "ULAW"),
    ("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("AIFF", "PCM_16"), ("AU", "PCM_16"),
]  # fmt: skip


def encoded(sound: np.ndarray, rate: int = 16000, kind: str = "WAV", subtype: str = "PCM_16") -> np.ndarray:
    file = io.BytesIO()
    soundfile.write(file, sound, rate, format=kind, subtype=subtype)
    return np.frombuffer(file.getvalue(), np.uint8)


def read_by_library(data: np.ndarray, dtype: str) -> np.ndarray:
    return soundfile.read(io.BytesIO(data.tobytes()), dtype=dtype, always_2d=True)[0]


def decode(*files: np.ndarray, **arguments: Any) -> tuple[list[np.ndarray], list[float]]:
    sounds, rates = run_dalify("decoders.audio", files, **arguments)
    assert all(rate.dtype == np.float32 and rate.shape == () for rate in rates)
    return sounds, [float(rate) for rate in rates]


@pytest.mark.parametrize(("kind", "subtype"), FORMATS)
def test_formats(kind, subtype):
    data = encoded(STEREO, 16000, kind, subtype)
    for dtype in ("float32", "int16", "int32"):
        if subtype == "FLOAT" and dtype != "float32":
            continue
        (sound,), rates = decode(data, dtype=getattr(types, {"float32": "FLOAT"}.get(dtype, dtype.upper())))
        np.testing.assert_array_equal(sound, read_by_library(data, dtype))
        assert rates == [16000]
    assert_sounds_like_dali("decoders.audio", [data], rtol=1e-6)


def test_mp3():
    """DALI decodes none."""
    if "MP3" not in soundfile.available_formats():
        pytest.skip("this libsndfile knows no MP3")
    data = encoded(STEREO, 16000, "MP3", "MPEG_LAYER_III")
    (sound,), rates = decode(data)
    assert rates == [16000]
    assert sound.shape[1] == 2
    assert len(sound) == pytest.approx(3000, abs=2500)


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_plain_wave_without_the_library(monkeypatch, channels):
    absent = LazyModule("no_such_package_of_sounds", "decoding", "dalify[audio]")
    monkeypatch.setattr(codec, "soundfile", absent)
    samples = np.random.default_rng(0).integers(-32768, 32767, (500, channels), np.int16)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(22050)
        out.writeframes(samples.astype("<i2").tobytes())
    data = np.frombuffer(file.getvalue(), np.uint8)
    shifted = np.concatenate([np.zeros(1, np.uint8), data])[1:]  # not every file lies at an even address
    np.testing.assert_array_equal(codec.decode_sound(shifted, np.dtype(np.int16))[0], samples)
    np.testing.assert_array_equal(codec.decode_sound(data, np.dtype(np.int32))[0], samples.astype(np.int32) << 16)
    found, rate = codec.decode_sound(data, np.dtype(np.float32))
    np.testing.assert_array_equal(found, samples / np.float32(32768))
    assert rate == 22050
    with pytest.raises(MissingPackageError, match=r"dalify\[audio\]"):
        codec.decode_sound(encoded(STEREO, kind="FLAC"), np.dtype(np.int16))


def test_other_chunks_of_a_wave():
    data = encoded(STEREO).tobytes()
    note = b"LIST" + struct.pack("<I", 5) + b"notes\0"  # of odd length: one byte is filled in
    moved = np.frombuffer(data[:36] + note + data[36:], np.uint8)
    np.testing.assert_array_equal(codec.decode_sound(moved, np.dtype(np.int16))[0], read_by_library(moved, "int16"))


@pytest.mark.parametrize("dtype", ["FLOAT", "INT16", "INT32"])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"downmix": True},
        {"sample_rate": 11025.0},
        {"downmix": True, "sample_rate": 22050.0, "quality": 20.0},
        {"sample_rate": Each([np.float32(8000), np.float32(0), np.float32(44100)])},
    ],
    ids=str,
)
def test_mixing_and_resampling(dtype, arguments):
    files = [encoded(STEREO), encoded(STEREO[:, :1], 8000), encoded(STEREO[:900], 44100, "FLAC")]
    sounds, rates = decode(*files, dtype=getattr(types, dtype), **arguments)
    wanted = arguments.get("sample_rate", 0.0)
    wanted = [float(value) for value in wanted.values] if isinstance(wanted, Each) else [wanted] * 3
    assert rates == [value or own for value, own in zip(wanted, (16000, 8000, 44100), strict=True)]
    for sound, file, rate, own in zip(sounds, files, rates, (16000, 8000, 44100), strict=True):
        expected = read_by_library(file, "float32").astype(np.float64)
        expected = expected.mean(1) if arguments.get("downmix") else expected
        assert sound.shape == (int(np.ceil(len(expected) * rate / own)), *expected.shape[1:])
        if rate == own:
            largest = {"FLOAT": 1, "INT16": 32767, "INT32": 2**31 - 1}[dtype]
            assert_close(sound, expected * largest, 1e-4)
    if not isinstance(arguments.get("sample_rate"), Each):  # DALI gives 0 back as the rate
        tolerance = {"rtol": 2e-6, "largest_step": 1} if dtype != "FLOAT" else {"rtol": 1e-5}
        assert_sounds_like_dali("decoders.audio", files, dtype=dtype, **tolerance, **arguments)


def test_stored_floats_become_integers():
    """DALI gives -1, 0 and 1 here."""
    data = encoded(np.array([0.0, 0.5, -1.0, 3.0]), kind="WAV", subtype="FLOAT")
    (sound,), _ = decode(data, dtype=types.INT16)
    np.testing.assert_array_equal(sound[:, 0], [0, 16384, -32768, 32767])


def test_no_samples():
    for data in (encoded(STEREO[:0]), encoded(STEREO[:0], kind="AIFF")):
        (sound,), rates = decode(data)
        assert sound.shape == (0, 2)
        assert rates == [16000]
        (mixed,), _ = decode(data, downmix=True, sample_rate=8000.0)
        assert mixed.shape == (0,)


@pytest.mark.parametrize("size", [44, 100, 1000, 1001])
def test_wave_cut_off(size):
    data = encoded(STEREO)[:size]
    (sound,), _ = decode(data)
    np.testing.assert_array_equal(sound, STEREO_READ[: (size - 44) // 4])
    assert_sounds_like_dali("decoders.audio", [data], rtol=0)


STEREO_READ = read_by_library(encoded(STEREO), "float32")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"\xff\xd8\xff\xe0 a picture", "a JPEG image"),
        (b"<html>not found</html>", "HTML"),
        (b"nonsense" * 20, "no sound, or a damaged one"),
        (encoded(STEREO)[:30].tobytes(), "no sound, or a damaged one"),
        (encoded(STEREO, kind="FLAC")[:3000].tobytes(), "damaged"),
    ],
    ids=["empty", "jpeg", "html", "nonsense", "header", "flac"],
)
def test_no_sound(data, message):
    with pytest.raises(DecodeError, match=rf"(?s){message}.*sample 1") as caught:
        decode(encoded(STEREO), np.frombuffer(data, np.uint8))
    assert "fn.decoders.audio" in str(caught.value)


def test_errors_name_the_file(tmp_path):
    (tmp_path / "speech").mkdir()
    (tmp_path / "speech" / "a.wav").write_bytes(encoded(STEREO).tobytes())
    (tmp_path / "speech" / "b.wav").write_bytes(b"no sound at all")

    @dalify.pipeline_def(batch_size=2, num_threads=1)
    def graph():
        data, _ = dalify.fn.readers.file(file_root=str(tmp_path))
        return dalify.fn.decoders.audio(data)[0]

    pipe = graph()
    with pytest.raises(DecodeError, match=r"b\.wav"):
        pipe.run()


def test_damaged_files_never_crash():
    random = np.random.default_rng(0)
    for kind, subtype in (("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("AIFF", "PCM_16")):
        whole = encoded(STEREO[:800], 16000, kind, subtype)
        for _ in range(40):
            spoiled = whole.copy()
            spoiled[random.integers(0, min(len(whole), 200), 4)] = random.integers(0, 256, 4)
            try:
                sound, _ = codec.decode_sound(spoiled, np.dtype(np.float32))
            except DecodeError:
                continue
            assert sound.ndim == 2


def test_a_stand_in_can_be_decoded():
    sound, rate = codec.decode_sound(codec.silence(), np.dtype(np.float32))
    assert rate == 16000
    assert sound.shape == (1600, 1)
    assert not sound.any()


def test_wrong_arguments():
    data = encoded(STEREO)
    with pytest.raises(DTypeError, match="INT16"):
        decode(data, dtype=types.UINT8)
    with pytest.raises(ArgumentValueError, match="quality must be from 0 to 100"):
        decode(data, quality=101.0)
    for rate in (-1.0, float("nan"), 1e12):
        with pytest.raises(ArgumentValueError, match=r"(?s)sample_rate must be from 0.*sample 0"):
            decode(data, sample_rate=rate)
    with pytest.raises(DTypeError, match="encoded files"):
        decode(STEREO)
