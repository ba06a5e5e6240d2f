"""fn.decoders.audio compared with the real DALI, libsndfile and Python's wave module."""

from __future__ import annotations

import io
import multiprocessing
import os
import struct
import threading
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import ArgumentValueError, DecodeError, DTypeError, LimitError, MissingPackageError
from dalify.base.limits import Limits, applied
from dalify.base.optional import LazyModule
from dalify.codecs import audio as codec
from tests.helpers.one_operator import run_dalify
from tests.helpers.platforms import needs_linux
from tests.helpers.real_dali import Each
from tests.helpers.recordings import assert_audio_like_dali, assert_close, noisy_tones

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
    recordings, rates = run_dalify("decoders.audio", files, **arguments)
    assert all(rate.dtype == np.float32 and rate.shape == () for rate in rates)
    return recordings, [float(rate) for rate in rates]


@pytest.mark.parametrize(("kind", "subtype"), FORMATS)
def test_formats(kind, subtype):
    data = encoded(STEREO, 16000, kind, subtype)
    for dtype in ("float32", "int16", "int32"):
        if subtype == "FLOAT" and dtype != "float32":
            continue
        (sound,), rates = decode(data, dtype=getattr(types, {"float32": "FLOAT"}.get(dtype, dtype.upper())))
        np.testing.assert_array_equal(sound, read_by_library(data, dtype))
        assert rates == [16000]
    assert_audio_like_dali("decoders.audio", [data], rtol=1e-6)


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
    shifted = np.concatenate([np.zeros(1, np.uint8), data])[1:]  # not every file is at an even address
    np.testing.assert_array_equal(codec.decode_audio(shifted, np.dtype(np.int16))[0], samples)
    np.testing.assert_array_equal(codec.decode_audio(data, np.dtype(np.int32))[0], samples.astype(np.int32) << 16)
    found, rate = codec.decode_audio(data, np.dtype(np.float32))
    np.testing.assert_array_equal(found, samples / np.float32(32768))
    assert rate == 22050
    with pytest.raises(MissingPackageError, match=r"dalify\[audio\]"):
        codec.decode_audio(encoded(STEREO, kind="FLAC"), np.dtype(np.int16))


def test_other_chunks_of_a_wave():
    data = encoded(STEREO).tobytes()
    note = b"LIST" + struct.pack("<I", 5) + b"notes\0"  # of odd length: one byte is filled in
    moved = np.frombuffer(data[:36] + note + data[36:], np.uint8)
    np.testing.assert_array_equal(codec.decode_audio(moved, np.dtype(np.int16))[0], read_by_library(moved, "int16"))


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
    recordings, rates = decode(*files, dtype=getattr(types, dtype), **arguments)
    wanted = arguments.get("sample_rate", 0.0)
    wanted = [float(value) for value in wanted.values] if isinstance(wanted, Each) else [wanted] * 3
    assert rates == [value or own for value, own in zip(wanted, (16000, 8000, 44100), strict=True)]
    for sound, file, rate, own in zip(recordings, files, rates, (16000, 8000, 44100), strict=True):
        expected = read_by_library(file, "float32").astype(np.float64)
        expected = expected.mean(1) if arguments.get("downmix") else expected
        assert sound.shape == (int(np.ceil(len(expected) * rate / own)), *expected.shape[1:])
        if rate == own:
            largest = {"FLOAT": 1, "INT16": 32767, "INT32": 2**31 - 1}[dtype]
            assert_close(sound, expected * largest, 1e-4)
    if not isinstance(arguments.get("sample_rate"), Each):  # DALI gives 0 back as the rate
        tolerance = {"rtol": 2e-6, "largest_step": 1} if dtype != "FLOAT" else {"rtol": 1e-5}
        assert_audio_like_dali("decoders.audio", files, dtype=dtype, **tolerance, **arguments)


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
    assert_audio_like_dali("decoders.audio", [data], rtol=0)


STEREO_READ = read_by_library(encoded(STEREO), "float32")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"\xff\xd8\xff\xe0 a picture", "a JPEG image"),
        (b"<html>not found</html>", "HTML"),
        (b"nonsense" * 20, "not audio, or damaged"),
        (encoded(STEREO)[:30].tobytes(), "not audio, or damaged"),
        (encoded(STEREO, kind="FLAC")[:3000].tobytes(), "damaged"),
    ],
    ids=["empty", "jpeg", "html", "nonsense", "header", "flac"],
)
def test_no_audio(data, message):
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
                sound, _ = codec.decode_audio(spoiled, np.dtype(np.float32))
            except DecodeError:
                continue
            assert sound.ndim == 2


def test_a_substitute_can_be_decoded():
    sound, rate = codec.decode_audio(codec.silence(), np.dtype(np.float32))
    assert rate == 16000
    assert sound.shape == (1600, 1)
    assert not sound.any()


def test_wrong_arguments():
    data = encoded(STEREO)
    with pytest.raises(DTypeError, match="INT16"):
        decode(data, dtype=types.UINT8)
    with pytest.raises(ArgumentValueError, match="quality must be between 0 and 100"):
        decode(data, quality=101.0)
    for rate in (-1.0, float("nan"), 1e12):
        with pytest.raises(ArgumentValueError, match=r"(?s)sample_rate must be between 0.*sample 0"):
            decode(data, sample_rate=rate)
    with pytest.raises(DTypeError, match="encoded files"):
        decode(STEREO)


def with_header(place: int, code: str, *values: int) -> np.ndarray:
    """Return a WAV file of 24 bits, which libsndfile reads, with other numbers in its header."""
    data = bytearray(encoded(STEREO[:100], subtype="PCM_24").tobytes())
    struct.pack_into(code, data, place, *values)
    return np.frombuffer(bytes(data), np.uint8)


def flac_of(frames: int) -> np.ndarray:
    """Return a FLAC file whose header declares another number of samples: 36 bits, 0 for an unknown number."""
    data = bytearray(encoded(STEREO[:100], kind="FLAC").tobytes())
    data[21] = data[21] & 0xF0 | frames >> 32
    struct.pack_into(">I", data, 22, frames & 0xFFFFFFFF)
    return np.frombuffer(bytes(data), np.uint8)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (flac_of(2**36 - 1), LimitError, "68,719,476,735 samples per channel.*max_declared_samples"),
        (flac_of(2**31 - 1), LimitError, "max_sample_bytes"),
        (flac_of(0), DecodeError, "does not declare the number of samples"),
        (flac_of(10**6), DecodeError, "damaged"),
        (with_header(24, "<I", 0), DecodeError, "sampling rate of 0|damaged"),
    ],
    ids=["limit", "bytes", "unknown", "lie", "rate"],
)
def test_headers_with_wrong_sizes(data, kind, message):
    with pytest.raises(kind, match=message):
        codec.decode_audio(data, np.dtype(np.float32))


def test_a_rate_of_zero_in_a_plain_file():
    data = encoded(STEREO[:100]).copy()
    data[24:28] = 0
    with pytest.raises(DecodeError, match="sampling rate of 0 Hz"):
        codec.decode_audio(data, np.dtype(np.int16))


def test_resampling_beyond_the_limit():
    data = encoded(STEREO, 1)
    with pytest.raises(LimitError, match=r"(?s)resampled audio.*max_sample_bytes.*sample 0"):
        decode(data, sample_rate=1e9)


def test_limits_count_for_decoded_audio():
    with applied(Limits(max_sample_bytes=1000)):
        for data in (encoded(STEREO), encoded(STEREO, kind="FLAC")):
            with pytest.raises(LimitError, match="max_sample_bytes=1,000"):
                codec.decode_audio(data, np.dtype(np.int16))


@needs_linux
@pytest.mark.parametrize("size", [500, 3000])
def test_memory_files_and_file_objects_give_the_same(monkeypatch, size):
    cases = [(encoded(STEREO[:size], 16000, *form), dtype) for form in FORMATS for dtype in ("float32", "int16")]
    cases += [(data[: len(data) // 2], dtype) for data, dtype in cases]  # damaged files
    found = [_outcome(data, dtype) for data, dtype in cases]
    monkeypatch.setattr(codec, "_memory_file", lambda: None)
    for one, (data, dtype) in zip(found, cases, strict=True):
        other = _outcome(data, dtype)
        if isinstance(one, str) or isinstance(other, str):
            assert isinstance(one, str) is isinstance(other, str)
        else:
            np.testing.assert_array_equal(one, other)


def _outcome(data: np.ndarray, dtype: str) -> Any:
    try:
        return codec.decode_audio(data, np.dtype(dtype))[0]
    except DecodeError as error:
        return str(error)


GROWING = [encoded(STEREO[: 100 * n], kind="FLAC") for n in range(1, 9)]


def open_memory_files() -> int:
    links = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum("dalify-audio" in link for link in links)


def lengths(_: int) -> list[int]:
    return [len(codec.decode_audio(file, np.dtype(np.int16))[0]) for file in GROWING]


@needs_linux
def test_memory_files_of_threads_and_processes():
    """Each thread has a memory file, which is closed when the thread ends."""
    lengths(0)
    before = open_memory_files()
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lengths, range(40))) == [[100 * n for n in range(1, 9)]] * 40
    assert lengths(0) == [100 * n for n in range(1, 9)]
    with multiprocessing.get_context("fork").Pool(2) as processes:
        tasks = processes.map_async(lengths, range(20))
        assert [lengths(0) for _ in range(20)] == [[100 * n for n in range(1, 9)]] * 20
        assert tasks.get(60) == [[100 * n for n in range(1, 9)]] * 20
    assert open_memory_files() <= before


def test_no_memory_files(monkeypatch):
    def refuse(name: str) -> int:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(codec, "_local", threading.local())
    monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    data = encoded(STEREO, kind="FLAC")
    np.testing.assert_array_equal(codec.decode_audio(data, np.dtype(np.int16))[0], read_by_library(data, "int16"))


def test_integers_of_floats_in_parts(monkeypatch):
    data = encoded(np.linspace(-1.2, 1.2, 5000), kind="WAV", subtype="FLOAT")
    whole, _ = codec.decode_audio(data, np.dtype(np.int16))
    monkeypatch.setattr(codec, "_CHUNK_FRAMES", 7)
    np.testing.assert_array_equal(codec.decode_audio(data, np.dtype(np.int16))[0], whole)
