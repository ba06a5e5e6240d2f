"""Decodes the WAV and FLAC files of a chunk in one compiled call.

Other formats, and unusual or damaged files, are left to `dalify.codecs.audio`, which supports every case and reports
errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import array_at, copy_bytes
from dalify.base.compiling import njit
from dalify.base.limits import current
from dalify.base.small_arrays import rows_at
from dalify.codecs.flac import PADDING_BYTES, SCRATCH_BEFORE, decode_frame, little_word, read_flac_header
from dalify.data.batch import Batch
from dalify.data.samples import Samples

__all__ = ["AudioFiles"]

Integers = np.ndarray[Any, np.dtype[np.int64]]

_BYTE = np.empty(0, np.uint8)
_OTHER, _WAVE, _WAVE_OF_FLOATS, _FLAC = range(4)
# Columns of the table. The last two: offset of the samples or frames, and maximum number of samples of a frame.
_KIND, _FRAMES, _CHANNELS, _RATE, _BITS, _START, _BLOCK = range(7)
_COLUMNS = 7
_RIFF, _WAVE_TAG, _FORMAT, _DATA, _FACT, _PEAK, _LIST, _JUNK, _PAD = (
    int.from_bytes(name, "little")
    for name in (b"RIFF", b"WAVE", b"fmt ", b"data", b"fact", b"PEAK", b"LIST", b"JUNK", b"PAD ")
)
_CHUNKS_WITHOUT_SOUND = (_LIST, _JUNK, _PAD, _PEAK)
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
# The format identifier in extensible headers, without its first two bytes.
_IDENTIFIER = np.frombuffer(b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71", np.uint8)
_MAX_CHANNELS = 8
_FRAMES_AT_ONCE = 4096
_HIGHEST_RATE = (1 << 31) - 1
# Headers are not trusted: large results that are many times as large as the file are left to the library.
_MAX_FLAC_RATIO, _SMALL_BYTES = 64, 1 << 20


class AudioFiles:
    """The headers of the audio files of a chunk.

    Args:
        encoded: the files, one-dimensional samples of bytes.
        dtype: dtype of the result: int16, int32 or float32.
        downmix: whether the result is the mean of all channels.

    Attributes:
        is_known: bool ``[N]``: whether the header is valid, supported here and within the limits.
        frames: int64 ``[N]``, number of samples per channel; this and the following are 0 if the header is not known.
        channels: int64 ``[N]``.
        rates: int64 ``[N]``, Hz.
    """

    __slots__ = ("_downmix", "_files", "_table", "channels", "frames", "is_known", "rates")

    def __init__(self, encoded: Batch, dtype: np.dtype[Any], *, downmix: bool) -> None:
        table = np.empty((len(encoded), _COLUMNS), np.int64)
        self._files = Samples.of_batch(encoded)
        _read_wave_headers(self._files.addresses, self._files.shapes, table, _BYTE)
        if not table[:, _KIND].all():  # the function is only compiled if it is needed
            _read_flac_headers(self._files.addresses, self._files.shapes, table, _BYTE)
        limits = current()
        self._table = table
        self.frames, self.channels, self.rates = table[:, _FRAMES], table[:, _CHANNELS], table[:, _RATE]
        self.is_known = (table[:, _KIND] != _OTHER) & (self.frames <= limits.max_declared_samples)
        self.is_known &= self.frames * self.channels * dtype.itemsize <= limits.max_sample_bytes
        is_copied = (self.channels == 1) | (not downmix) if dtype == np.float32 else False
        self.is_known &= (table[:, _KIND] != _WAVE_OF_FLOATS) | is_copied
        self._downmix = downmix

    def decode(self, out: Samples, chosen: Integers) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Decode some of the files with known headers.

        Args:
            out: output, ``[frames, channels]`` for each of the chosen files, of the dtype of the result or float32;
                with `downmix` ``[frames, 1]``, float32 if the file has several channels.
            chosen: indices of the files, int64 ``[M]``.

        Returns:
            bool ``[M]``: which files were decoded. The others are damaged or unusual.
        """
        is_done = np.zeros(len(chosen), np.bool_)
        files = self._files.take(chosen)
        table = rows_at(self._table, chosen)
        is_flac = table[:, _KIND] == _FLAC
        arguments = files.addresses, files.shapes, _BYTE, table, out.addresses, out.like
        arguments = *arguments, out.dtype == np.float32, self._downmix, is_done
        if not is_flac.all():
            _decode_waves(*arguments)
        if is_flac.any():
            _decode_flacs(*arguments)
        return is_done


@njit(nogil=True, inline="always")
def _half(data, place):
    return np.int64(data[place]) | np.int64(data[place + 1]) << 8


@njit(nogil=True, inline="always")
def _read_wave_header(data, row):
    """Fill a row of the table; leave it unchanged if the file is left to the library."""
    size = data.size
    if size < 12 or little_word(data, 0) != _RIFF or little_word(data, 8) != _WAVE_TAG:
        return
    place, form = np.int64(12), np.int64(-1)
    is_usual = True  # all decoders interpret the file in the same way
    while place + 8 <= size:
        name, length = little_word(data, place), little_word(data, place + 4)
        place += 8
        if name == _FORMAT and length >= 16 and place + 16 <= size:
            is_usual &= form < 0 and (length == 16 or length == 18 or length == 40)
            form = place
        elif name == _DATA:
            if form >= 0:
                _note_wave(data, row, form, place, length, is_usual)
            return
        else:
            is_usual &= name in _CHUNKS_WITHOUT_SOUND or (name == _FACT and length == 4)
            is_usual &= name != _PEAK or (form >= 0 and length == 8 + 8 * _half(data, form + 2))
        place += length + length % 2


@njit(nogil=True, inline="always")
def _note_wave(data, row, form, place, length, is_usual):
    """Fill a row of the table from the format and the offset and size of the samples."""
    kind, channels, rate = _half(data, form), _half(data, form + 2), little_word(data, form + 4)
    block, bits = _half(data, form + 12), _half(data, form + 14)
    form_length = little_word(data, form - 4)
    if kind == _EXTENSIBLE and form_length >= 26 and form + 40 <= data.size:
        kind = _half(data, form + 24)
        is_usual &= form_length == 40 and _half(data, form + 18) == bits
        if is_usual:
            for i in range(_IDENTIFIER.size):
                is_usual &= data[form + 26 + i] == _IDENTIFIER[i]
    if not 0 < channels <= _MAX_CHANNELS or length * rate * block == 0 or block * 8 != channels * bits:
        return
    left = data.size - place
    if not (kind == _PCM and bits == 16):  # 16-bit files may be truncated
        is_known = bits == 32 or (kind == _PCM and (bits == 8 or bits == 24))
        is_whole = length % block == 0 and left - length % 2 <= length <= left
        is_known &= kind in (_PCM, _FLOAT)
        if not (is_usual and is_known and is_whole) or rate > _HIGHEST_RATE:
            return
    row[_KIND] = _WAVE if kind == _PCM else _WAVE_OF_FLOATS
    row[_FRAMES], row[_CHANNELS], row[_RATE] = min(length, left) // block, channels, rate
    row[_BITS], row[_START] = bits, place


# The next two functions keep the GIL: they take less time than releasing it.
@njit(cache=True)
def _read_wave_headers(at, shapes, table, like):
    table[...] = 0
    for n in range(len(at)):
        _read_wave_header(array_at(at[n], (shapes[n, 0],), like), table[n])


@njit(cache=True)
def _read_flac_headers(at, shapes, table, like):
    header = np.zeros(6, np.int64)
    for n in range(len(at)):
        data, row = array_at(at[n], (shapes[n, 0],), like), table[n]
        if row[_KIND] != _OTHER or not read_flac_header(data, header) or header[1] > _MAX_CHANNELS:
            continue
        if header[0] * header[1] * header[3] <= 8 * max(_SMALL_BYTES, _MAX_FLAC_RATIO * data.size):
            row[_KIND], row[_FRAMES], row[_CHANNELS], row[_RATE] = _FLAC, header[0], header[1], header[2]
            row[_BITS], row[_START], row[_BLOCK] = header[3], header[4], header[5]


@njit(nogil=True, inline="always")
def _decode_wave(out, is_float, data, row, scratch, downmix):
    """Fill ``out``, ``[frames * channels]``, from integers, in blocks of frames."""
    channels, bits, total = row[_CHANNELS], row[_BITS], row[_FRAMES]
    size = bits // 8
    width = size * channels
    for first in range(0, total, _FRAMES_AT_ONCE):
        count = min(_FRAMES_AT_ONCE, total - first)
        for channel in range(channels):
            place, row_out = row[_START] + first * width + channel * size, scratch[channel]
            if bits == 16:
                for i in range(count):
                    byte = place + i * width
                    row_out[SCRATCH_BEFORE + i] = np.int16(np.uint16(data[byte]) | np.uint16(data[byte + 1]) << 8)
            elif bits == 8:
                for i in range(count):
                    row_out[SCRATCH_BEFORE + i] = np.int32(data[place + i * width]) - np.int32(128)
            elif bits == 24:
                for i in range(count):
                    byte = place + i * width
                    value = np.int64(data[byte]) | np.int64(data[byte + 1]) << 8 | np.int64(data[byte + 2]) << 16
                    row_out[SCRATCH_BEFORE + i] = (value ^ 0x800000) - 0x800000
            else:
                for i in range(count):
                    row_out[SCRATCH_BEFORE + i] = little_word(data, place + i * width)
        _put(out, is_float, scratch, first, count, channels, bits, downmix)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _put(out, is_float, scratch, first, count, channels, bits, downmix):
    """Write frames from ``first`` on: integers of ``bits`` bits, converted to the dtype of ``out``."""
    item_bits = 8 * out.itemsize
    scale = np.float32(2.0) ** np.float32(1 - bits)
    if downmix and channels > 1:
        for i in range(count):
            total = np.float32(scratch[0, SCRATCH_BEFORE + i]) * scale
            for channel in range(1, channels):
                total += np.float32(scratch[channel, SCRATCH_BEFORE + i]) * scale
            out[first + i] = total / np.float32(channels)
        return
    for channel in range(channels):
        source, place = scratch[channel], first * channels + channel
        if is_float:
            for i in range(count):
                out[place + i * channels] = np.float32(source[SCRATCH_BEFORE + i]) * scale
        elif item_bits >= bits:
            for i in range(count):
                out[place + i * channels] = np.int64(source[SCRATCH_BEFORE + i]) << (item_bits - bits)
        else:
            for i in range(count):
                out[place + i * channels] = source[SCRATCH_BEFORE + i] >> (bits - item_bits)


@njit(nogil=True, inline="always")
def _decode_flac(out, is_float, data, size, row, scratch, factors, downmix):
    """Fill ``out``, ``[frames * channels]``; return whether the file matches its header."""
    total, done, at, block = row[_FRAMES], np.int64(0), row[_START], np.int64(0)
    while done < total:
        count, at = decode_frame(data, size, at, done, block, row[_RATE], scratch, row[_BITS], factors)
        if count == 0 or done + count > total:
            return False
        _put(out, is_float, scratch, done, count, row[_CHANNELS], row[_BITS], downmix)
        block = block or count
        done += count
    return True


@njit(nogil=True, cache=True)
def _decode_waves(at, shapes, like, table, out_at, out_like, is_float, downmix, is_done):
    scratch = np.empty((_MAX_CHANNELS, SCRATCH_BEFORE + _FRAMES_AT_ONCE), np.int32)
    for n in range(len(at)):
        row = table[n]
        if row[_KIND] == _FLAC:
            continue
        out = array_at(out_at[n], (row[_FRAMES] * (1 if downmix else row[_CHANNELS]),), out_like)
        if row[_KIND] == _WAVE_OF_FLOATS:
            copy_bytes(out.ctypes.data, at[n] + row[_START], 4 * out.size)
        else:
            _decode_wave(out, is_float, array_at(at[n], (shapes[n, 0],), like), row, scratch, downmix)
        is_done[n] = True


@njit(nogil=True, cache=True)
def _decode_flacs(at, shapes, like, table, out_at, out_like, is_float, downmix, is_done):
    block, largest, most = np.int64(1), np.int64(0), np.int64(1)
    for n in range(len(at)):
        if table[n, _KIND] == _FLAC:
            most, block = max(most, table[n, _CHANNELS]), max(block, table[n, _BLOCK])
            largest = max(largest, shapes[n, 0])
    scratch, factors = np.zeros((most, SCRATCH_BEFORE + block), np.int32), np.zeros(32, np.int64)
    padded = np.empty(largest + PADDING_BYTES, np.uint8)
    for n in range(len(at)):
        row, size, channels = table[n], shapes[n, 0], table[n, _CHANNELS]
        if row[_KIND] != _FLAC:
            continue
        out = array_at(out_at[n], (row[_FRAMES] * (1 if downmix else channels),), out_like)
        copy_bytes(padded.ctypes.data, at[n], size)
        for i in range(size, size + PADDING_BYTES):
            padded[i] = 0
        is_done[n] = _decode_flac(out, is_float, padded, size, row, scratch[:channels], factors, downmix)
