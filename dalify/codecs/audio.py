"""Decodes audio: WAV files with 16-bit integers here, all other formats with libsndfile."""

from __future__ import annotations

import io
import os
import struct
import threading
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.fork_hook import Owner
from dalify.base.limits import check_count, check_shape
from dalify.base.optional import LazyModule
from dalify.base.wording import counted
from dalify.codecs.image_format import Bytes, as_bytes_array

soundfile: Any = LazyModule("soundfile", "decoding audio other than plain WAV files", "dalify[audio]")

_CHUNK_BYTES = 1 << 28  # maximum size of temporary memory
_CHUNK_FRAMES = 1 << 22
_FRAMES_UNKNOWN = (1 << 63) - 1  # reported by libsndfile if the header does not declare the number
_KEPT_BYTES = 1 << 22
_SILENT_FRAMES = 1600
_SILENT_RATE_HZ = 16000
_PCM, _EXTENSIBLE = 1, 0xFFFE
_FLOAT_KINDS = ("FLOAT", "DOUBLE")
_CHUNK_HEADER_BYTES = 8
# Signatures of other formats, to name them in errors: libsndfile only reports an unknown format.
_OTHER_FORMATS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x89PNG", "a PNG image"),
    (b"<", "text that looks like HTML or XML, for example the error page of a failed download"),
    (b"version https://", "a git-lfs pointer: run 'git lfs pull'"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip-compressed data"),
)


class _VirtualFile(io.BytesIO):
    """Encoded data as a file object for libsndfile, where `_MemoryFile` is not available.

    libsndfile calls Python for each read, so threads wait for the GIL.
    """

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to a position, clamped to the start of the data: libsndfile seeks before it if headers are damaged."""
        start = {io.SEEK_CUR: self.tell(), io.SEEK_END: len(self.getbuffer())}.get(whence, 0)
        return super().seek(max(0, start + offset))


class _MemoryFile:
    """Encoded data as an anonymous file, which libsndfile reads by its descriptor, without Python.

    Linux only. Each thread keeps one, because reusing memory pages takes half as long as allocating them.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("dalify-audio")
        self._owner = Owner()

    def write(self, data: Bytes) -> int:
        """Replace the contents of the file and return its descriptor, at position 0."""
        os.ftruncate(self.descriptor, data.size)
        written = 0
        while written < data.size:  # a call writes at most 2 GiB
            written += os.pwrite(self.descriptor, data.data[written:], written)
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        return self.descriptor

    def release(self, size_bytes: int) -> None:
        """Release the memory of large contents."""
        if size_bytes > _KEPT_BYTES:
            os.ftruncate(self.descriptor, 0)

    def is_own(self) -> bool:
        """Whether this process created the file: a forked process shares it with its parent."""
        return self._owner.is_this_process

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


_local = threading.local()


def _memory_file() -> _MemoryFile | None:
    """Return this thread's file; None if the platform does not support such files or allows no more."""
    file: _MemoryFile | None = getattr(_local, "file", None)
    if file is None or not file.is_own():
        if not hasattr(os, "memfd_create"):
            return None
        try:
            file = _local.file = _MemoryFile()
        except OSError:
            return None
    return file


class _Wave(NamedTuple):
    """A WAV file of 16-bit samples: [frames, channels] of little-endian int16, and the rate in Hz."""

    samples: np.ndarray[Any, Any]
    rate: int


def decode_audio(encoded: Any, dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Decode audio with all its channels.

    Truncated WAV files are decoded as far as they go, as in libsndfile; truncated files of other formats are errors.

    Args:
        encoded: the encoded file, bytes or a uint8 array.
        dtype: int16, int32 or float32. The full range of the stored samples becomes the full range of an integer type,
            or [-1, 1] for float32. Stored floats out of range are kept for float32 and saturated for integers.

    Returns:
        ``[frames, channels]`` and the sampling rate in Hz, which is positive.

    Raises:
        DecodeError: the data is not audio or is damaged.
        LimitError: there are more frames or bytes than the limits allow.
        MissingPackageError: the format needs libsndfile, and the package soundfile is not installed.
    """
    data = as_bytes_array(encoded)
    plain = _plain_wave(data)
    if plain is not None:
        frames, channels = plain.samples.shape
        _check(frames, channels, plain.rate, dtype)
        return _converted(plain.samples, dtype), float(plain.rate)
    if data.size == 0:
        raise DecodeError("not audio: the data is empty (0 bytes).")
    head = data[:16].tobytes()
    for prefix, name in _OTHER_FORMATS:
        if head.startswith(prefix):
            raise DecodeError(f"not audio: the data is {name}.")
    file = _memory_file()
    try:
        if file is None:
            return _decoded(_VirtualFile(data.data), data.size, dtype)
        return _decoded(file.write(data), data.size, dtype)
    except soundfile.SoundFileError as error:
        text = str(getattr(error, "error_string", error)).strip().rstrip(".")
        raise DecodeError(f"not audio, or damaged ({data.size} bytes, starting with {head!r}): {text}.") from None
    finally:
        if file is not None:
            file.release(data.size)


def _decoded(opened: Any, size_bytes: int, dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Decode a file object or descriptor with libsndfile."""
    with soundfile.SoundFile(opened, closefd=False) as file:
        expected, rate, kind = file.frames, file.samplerate, file.format
        if expected == _FRAMES_UNKNOWN:
            raise DecodeError(f"the header of the {kind} file does not declare the number of samples.")
        _check(expected, file.channels, rate, dtype)
        # libsndfile does not scale floats when it reads them as integers.
        samples = _read(file, dtype, is_scaled=file.subtype in _FLOAT_KINDS and dtype.kind == "i")
    if len(samples) < expected:
        raise DecodeError(
            f"damaged {kind}: the header declares {counted(expected, 'frame')}, {size_bytes} bytes contain "
            f"{len(samples)}."
        )
    return samples, float(rate)


def _check(frames: int, channels: int, rate: int, dtype: np.dtype[Any]) -> None:
    """Check the values that a header declares."""
    if rate <= 0:
        raise DecodeError(f"damaged audio: the header declares a sampling rate of {rate} Hz.")
    check_count(frames, f"the header declares {counted(frames, 'sample')} per channel")
    check_shape((frames, channels), dtype.itemsize, "decoded audio")


def _read(file: Any, dtype: np.dtype[Any], is_scaled: bool) -> np.ndarray[Any, Any]:
    """Read all frames in chunks, so that memory is not used for frames that only a damaged header declares.

    Args:
        file: the open file.
        dtype: dtype of the result.
        is_scaled: whether the file contains floats that are converted to integers.
    """
    samples = np.empty((file.frames, file.channels), dtype)
    count = max(1, min(_CHUNK_FRAMES, file.frames, _CHUNK_BYTES // (file.channels * dtype.itemsize)))
    floats = np.empty((count, file.channels), np.float32) if is_scaled else None
    for start in range(0, file.frames, count):
        part = samples[start : start + count]
        found = file.read(out=part if floats is None else floats[: len(part)])
        if floats is not None:
            _saturate(part[: len(found)], found)
        if len(found) < len(part):
            return samples[: start + len(found)]
    return samples


def silence() -> Bytes:
    """Return 0.1 s of encoded silence to substitute for audio that cannot be decoded."""
    size, rate = 2 * _SILENT_FRAMES, _SILENT_RATE_HZ
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, _PCM, 1, rate, 2 * rate, 2, 16, b"data", size
    )
    return np.frombuffer(head + bytes(size), np.uint8)


def _plain_wave(data: Bytes) -> _Wave | None:
    """Return the samples of a WAV file with 16-bit integers; None for all other data."""
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


def _saturate(out: np.ndarray[Any, Any], samples: np.ndarray[Any, Any]) -> None:
    limits = np.iinfo(out.dtype)
    wide = np.nan_to_num(samples.astype(np.float64), nan=0.0) * (limits.max + 1.0)
    out[...] = np.clip(np.rint(wide), limits.min, limits.max)
