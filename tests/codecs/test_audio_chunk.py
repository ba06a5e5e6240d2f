"""Audio files that are decoded in compiled code, compared with libsndfile."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest

from dalify.base.errors import DecodeError, LimitError
from dalify.base.limits import Limits, applied
from dalify.codecs.audio import decode_audio
from dalify.codecs.audio_chunk import AudioFiles
from dalify.data import Batch
from dalify.data.samples import Samples
from tests.helpers.recordings import noisy_tones

soundfile = pytest.importorskip("soundfile", reason="the extra dalify[audio]")

TYPES = [np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.float32)]
random = np.random.default_rng(5)
TONES = np.stack([noisy_tones(9000, 1), noisy_tones(9000, 2)], 1)
RECORDINGS = {
    "tones": TONES,
    "one channel": TONES[:, :1],
    "three channels": np.concatenate([TONES, TONES[:, :1]], 1),
    "noise": random.uniform(-1, 1, (9000, 2)),
    "silence": np.zeros((9000, 2)),
    "constant": np.full((9000, 1), 0.25),
    "low bits are 0": np.round(TONES * 64) / 64,
    "quiet": np.round(random.normal(0, 1, (9000, 2))) / 32768,
    "peaks in silence": np.where(random.uniform(size=(9000, 1)) < 0.001, 0.9, 0.0),
    "both alike": np.repeat(TONES[:, :1], 2, 1),
    "opposite": TONES[:, :1] * [1, -1],
    "largest differences": np.sign(np.sin(np.arange(9000) ** 1.3))[:, None] * [1, -1],
    "short": TONES[:5],
    "one sample": TONES[:1],
}


def encoded(audio: np.ndarray, kind: str, subtype: str, rate: int = 16000, **options: Any) -> np.ndarray:
    file = io.BytesIO()
    soundfile.write(file, audio, rate, format=kind, subtype=subtype, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def outcome(data: np.ndarray, dtype: np.dtype[Any], downmix: bool = False) -> np.ndarray | None:
    """Return the result of compiled code for a file; None if the library decodes the file."""
    files = AudioFiles(Batch(None, [data]), dtype, downmix=downmix)
    if not files.is_known[0]:
        return None
    out = Samples.empty(np.stack([files.frames, files.channels if not downmix else [1]], 1), dtype)
    return None if len(files.decode(out, np.array([0]))) else next(out.arrays()).copy()


def check(data: np.ndarray) -> None:
    """Check that compiled code and the library have equal results in all dtypes."""
    for dtype in TYPES:
        found = outcome(data, dtype)
        assert found is not None
        np.testing.assert_array_equal(
            found, soundfile.read(io.BytesIO(data.tobytes()), dtype=dtype.name, always_2d=True)[0]
        )


@pytest.mark.parametrize("audio", RECORDINGS.values(), ids=RECORDINGS)
@pytest.mark.parametrize("level", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
def test_flac(audio, level, subtype):
    check(encoded(audio, "FLAC", subtype, compression_level=level))


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 96000, 12345, 65535, 120000])
def test_rates(rate):
    data = encoded(TONES, "FLAC", "PCM_16", rate)
    check(data)
    assert AudioFiles(Batch(None, [data]), TYPES[0], downmix=False).rates.tolist() == [rate]


@pytest.mark.parametrize("options", [{"ch_mode": mode} for mode in ("indep", "left_side", "right_side", "mid_side")])
@pytest.mark.parametrize("level", [0, 5, 12])
def test_flac_of_another_encoder(options, level):
    av = pytest.importorskip("av", reason="the extra dalify[video]")
    file = io.BytesIO()
    with av.open(file, "w", format="flac") as container:
        stream = container.add_stream("flac", rate=16000, layout="stereo")
        stream.codec_context.options = {"compression_level": str(level), **options}
        samples = np.ascontiguousarray((TONES * 32000).astype(np.int16).reshape(1, -1))
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="stereo")
        frame.rate = 16000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    check(np.frombuffer(file.getvalue(), np.uint8))


def crc(data: bytes, polynomial: int, width: int) -> int:
    value = 0
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = (value << 1) ^ (polynomial if value >> (width - 1) else 0)
            value &= (1 << width) - 1
    return value


def bits(value: int, width: int) -> str:
    return format(value & ((1 << width) - 1), f"0{width}b") if width else ""


def written_by_hand(count: int, residuals: str, precision: int = 5, has_large_parameters: bool = True) -> np.ndarray:
    """Return a FLAC file of one frame with a predictor of order 2 (half of each), which no installed encoder writes."""
    info = bits(count, 16) * 2 + bits(0, 48) + bits(16000, 20) + bits(0, 3) + bits(15, 5) + bits(count, 36) + "0" * 128
    head = "11111111111110" + "00" + "0111" + "0000" + "0000" + "000" + "0" + bits(0, 8) + bits(count - 1, 16)
    head_bytes = int(head, 2).to_bytes(len(head) // 8, "big")
    body = "0" + bits(32 + 1, 6) + "0" + bits(100, 16) + bits(-90, 16)
    body += bits(precision - 1, 4) + bits(4, 5) + bits(8, precision) * 2
    body += ("01" if has_large_parameters else "00") + bits(1, 4) + residuals
    body += "0" * (-len(body) % 8)
    frame = head_bytes + bytes([crc(head_bytes, 0x07, 8)]) + int(body, 2).to_bytes(len(body) // 8, "big")
    stream = b"fLaC" + b"\x80\x00\x00\x22" + int(info, 2).to_bytes(34, "big")
    return np.frombuffer(stream + frame + crc(frame, 0x8005, 16).to_bytes(2, "big"), np.uint8)


def rice(values: np.ndarray, parameter: int) -> str:
    folded = [2 * value if value >= 0 else -2 * value - 1 for value in values.tolist()]
    return "".join("0" * (value >> parameter) + "1" + bits(value, parameter) for value in folded)


@pytest.mark.parametrize("has_large_parameters", [False, True])
def test_residuals_of_all_kinds(has_large_parameters):
    width, escape = (5, 31) if has_large_parameters else (4, 15)
    values = random.integers(-200, 200, 254)
    plain = bits(escape, width) + bits(10, 5) + "".join(bits(value, 10) for value in values[:126].tolist())
    empty = bits(escape, width) + bits(0, 5)
    for parameter in (0, 1, 8, 14, *([20, 30] if has_large_parameters else [])):
        coded = bits(parameter, width) + rice(values[126:], parameter)
        for residuals in (plain + coded, empty + coded, plain + empty):
            check(written_by_hand(256, residuals, has_large_parameters=has_large_parameters))


def test_wrong_frames_are_left_to_the_library():
    coded = bits(8, 5) + rice(random.integers(-200, 200, 128), 8)
    whole = written_by_hand(256, bits(8, 5) + rice(random.integers(-200, 200, 126), 8) + coded)
    assert outcome(whole, TYPES[0]) is not None
    wrong = written_by_hand(256, coded, precision=16)  # that precision is reserved
    assert outcome(wrong, TYPES[0]) is None
    for size in range(len(whole)):
        assert outcome(whole[:size], TYPES[0]) is None


@pytest.mark.parametrize("audio", [TONES, TONES[:, :1], TONES[:0], TONES[:1], RECORDINGS["noise"]], ids=len)
@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32"])
@pytest.mark.parametrize("kind", ["WAV", "WAVEX"])
def test_waves(audio, subtype, kind):
    if len(audio):
        check(encoded(audio, kind, subtype))
    else:
        assert outcome(encoded(audio, kind, subtype), TYPES[0]) is None


@pytest.mark.parametrize("kind", ["WAV", "WAVEX"])
def test_waves_of_floats(kind):
    audio = np.concatenate([TONES.astype(np.float32), [[np.nan, -np.inf], [3.5, -0.0]]]).astype(np.float32)
    data = encoded(audio, kind, "FLOAT")
    found = outcome(data, TYPES[2])
    assert found is not None
    np.testing.assert_array_equal(found.view(np.int32), audio.view(np.int32))
    assert outcome(data, TYPES[0]) is None
    assert outcome(data, TYPES[2], downmix=True) is None


@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("FLAC", "PCM_16")])
def test_channels_are_mixed(kind, subtype):
    data = encoded(RECORDINGS["three channels"], kind, subtype)
    each = soundfile.read(io.BytesIO(data.tobytes()), dtype="float32", always_2d=True)[0]
    found = outcome(data, TYPES[2], downmix=True)
    np.testing.assert_array_equal(found, ((each[:, 0] + each[:, 1] + each[:, 2]) / np.float32(3))[:, None])


def with_chunk(name: bytes, body: bytes, subtype: str) -> np.ndarray:
    data = encoded(TONES, "WAV", subtype).tobytes()
    return np.frombuffer(data[:36] + name + struct.pack("<I", len(body)) + body + data[36:], np.uint8)


def test_other_chunks():
    for subtype in ("PCM_16", "PCM_24"):
        check(with_chunk(b"LIST", b"INFOISFT\x04\x00\x00\x00None", subtype))
        assert outcome(with_chunk(b"what", b"is this?", "PCM_24"), TYPES[0]) is None


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "PCM_U8")],
)
def test_damaged_files_are_left_to_the_library_or_give_the_same(kind, subtype):
    whole = encoded(TONES[:700], kind, subtype)
    draws = np.random.default_rng(7)
    left = 0
    for _ in range(400):
        data = whole.copy()
        first = draws.choice(np.array([44, 120, len(data)]))
        data[draws.integers(0, first, draws.integers(1, 4))] = draws.integers(0, 256, 1)
        data = data[: draws.choice(np.array([len(data), draws.integers(len(data))]))]
        found = outcome(data, TYPES[0])
        if found is None:
            left += 1
        else:
            np.testing.assert_array_equal(found, decode_audio(data, TYPES[0])[0])
    assert left > 50


@pytest.mark.parametrize("place", range(20, 44, 2))
def test_numbers_of_a_header_that_are_0(place):
    data = encoded(TONES, "WAV", "PCM_24").copy()
    data[place : place + 2] = 0
    if place == 34:
        data[32:36] = 0  # no bits, in blocks of no bytes
    found = outcome(data, TYPES[0])
    assert found is None or (found == decode_audio(data, TYPES[0])[0]).all()


def test_limits():
    data = encoded(TONES, "FLAC", "PCM_16")
    with applied(Limits(max_sample_bytes=1000)):
        assert outcome(data, TYPES[0]) is None
        with pytest.raises(LimitError):
            decode_audio(data, TYPES[0])
    with applied(Limits(max_declared_samples=1000)):
        assert outcome(data, TYPES[0]) is None


def test_bytes_that_are_not_audio():
    for size in range(80):
        for first in (b"", b"RIFF", b"fLaC", b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0", b"fLaC\0\0\0\x22"):
            data = np.frombuffer((first + bytes(size))[:size], np.uint8)
            assert outcome(data, TYPES[0]) is None
            with pytest.raises(DecodeError):
                decode_audio(data, TYPES[0])
