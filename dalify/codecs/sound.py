"""Encoded sound to samples.

Plain WAV files are samples behind a short header and are read here; libsndfile decodes everything else.
"""

from __future__ import annotations

import io
import struct
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.optional import LazyModule
from dalify.codecs.signature import Bytes, as_bytes_array

__all__ = ["decode_sound", "silence"]

soundfile: Any = LazyModule("soundfile", "decoding sound other than plain WAV files", "dalify[audio]")

_FRAMES_AT_ONCE = 1 << 22
_SILENT_FRAMES = 1600
_SILENT_RATE_HZ = 16000
_PCM, _EXTENSIBLE = 1, 0xFFFE
_FLOAT_KINDS = ("FLOAT", "DOUBLE")
_CHUNK_HEADER_BYTES = 8
# What pictures and the like begin with: told by name, because libsndfile only says that it knows no such format.
_NO_SOUNDS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x89PNG", "a PNG image"),
    (b"<", "text that begins like HTML or XML, for instance the error page of a failed download"),
    (b"version https://", "a git-lfs pointer: run 'git lfs pull'"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip-compressed data"),
)


class _File(io.BytesIO):
    """Encoded data as a file for libsndfile, which seeks in front of the beginning where headers are damaged."""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place, at the earliest to the beginning."""
        start = {io.SEEK_CUR: self.tell(), io.SEEK_END: len(self.getbuffer())}.get(whence, 0)
        return super().seek(max(0, start + offset))


class _Wave(NamedTuple):
    """A WAV file of 16-bit samples: [frames, channels] of little-endian int16, and the rate in Hz."""

    samples: np.ndarray[Any, Any]
    rate: int


def decode_sound(encoded: Any, dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Decode a sound with all its channels.

    A WAV file whose end is missing gives the samples that are there, as libsndfile does; of other formats it is an
    error.

    Args:
        encoded: the file as it is, bytes or a uint8 array.
        dtype: int16, int32 or float32. The full range of the stored samples becomes that of the type; float32 is from
            -1 to 1. Samples that are stored as floats beyond it are kept by float32 and saturated by integers.

    Returns:
        ``[frames, channels]`` and the sampling rate in Hz.

    Raises:
        DecodeError: no sound, or damaged data.
        MissingPackageError: the format needs libsndfile, and the package soundfile is not installed.
    """
    data = as_bytes_array(encoded)
    plain = _plain_wave(data)
    if plain is not None:
        return _converted(plain.samples, dtype), float(plain.rate)
    if data.size == 0:
        raise DecodeError("no sound: the data are empty (0 bytes).")
    head = data[:16].tobytes()
    for prefix, name in _NO_SOUNDS:
        if head.startswith(prefix):
            raise DecodeError(f"no sound: the data are {name}.")
    try:
        with soundfile.SoundFile(_File(data.data)) as file:
            # libsndfile does not scale floats that are read as integers.
            is_float = file.subtype in _FLOAT_KINDS and dtype.kind == "i"
            samples = _read(file, "float32" if is_float else dtype.name)
            expected, rate, kind = file.frames, float(file.samplerate), file.format
    except soundfile.SoundFileError as error:
        text = str(getattr(error, "error_string", error)).strip().rstrip(".")
        raise DecodeError(f"no sound, or a damaged one ({data.size} bytes, beginning with {head!r}): {text}.") from None
    if len(samples) < expected:
        raise DecodeError(
            f"damaged {kind}: the header tells of {expected} frames, {len(samples)} come out of {data.size} bytes."
        )
    return (_saturated(samples, dtype) if is_float else samples), rate


def _read(file: Any, dtype: str) -> np.ndarray[Any, Any]:
    """Read all frames, in parts: a damaged header may tell of any number, and memory for it is taken beforehand."""
    parts = [file.read(_FRAMES_AT_ONCE, dtype=dtype, always_2d=True)]
    while len(parts[-1]) == _FRAMES_AT_ONCE:
        parts.append(file.read(_FRAMES_AT_ONCE, dtype=dtype, always_2d=True))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def silence() -> Bytes:
    """Return an encoded tenth of a second of silence for the place of a sound that cannot be decoded."""
    size, rate = 2 * _SILENT_FRAMES, _SILENT_RATE_HZ
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, _PCM, 1, rate, 2 * rate, 2, 16, b"data", size
    )
    return np.frombuffer(head + bytes(size), np.uint8)


def _plain_wave(data: Bytes) -> _Wave | None:
    """Return the samples of a WAV file of 16-bit integers; None for all else, which libsndfile will tell apart."""
    if data[:4].tobytes() != b"RIFF" or data[8:12].tobytes() != b"WAVE":
        return None
    position, form = 12, None
    while position + _CHUNK_HEADER_BYTES <= data.size:
        name, size = struct.unpack_from("<4sI", data.data, position)
        position += _CHUNK_HEADER_BYTES
        if name == b"fmt " and size >= 16 and position + 16 <= data.size:
            form = struct.unpack_from("<HHIIHH", data.data, position)
            if form[0] == _EXTENSIBLE and size >= 26 and position + 26 <= data.size:
                form = (*struct.unpack_from("<H", data.data, position + 24), *form[1:])
        elif name == b"data":
            if form is None or form[0] != _PCM or form[5] != 16 or form[4] != 2 * form[1] or not (size and form[1]):
                return None
            frames = min(size, data.size - position) // form[4]
            samples = data[position : position + frames * form[4]].view("<i2").reshape(frames, form[1])
            return _Wave(samples, form[2])
        position += size + size % 2
    return None


def _converted(samples: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind == "f":
        return np.multiply(samples, np.float32(2**-15), dtype=np.float32)
    return samples.astype(dtype) << (8 * dtype.itemsize - 16)


def _saturated(samples: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    limits = np.iinfo(dtype)
    wide = np.nan_to_num(samples.astype(np.float64), nan=0.0) * (limits.max + 1.0)
    return np.clip(np.rint(wide), limits.min, limits.max).astype(dtype)
