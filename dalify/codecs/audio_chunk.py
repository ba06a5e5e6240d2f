"""Decodes the WAV and FLAC files of a chunk in one compiled call.

Other formats, and unusual or damaged files, are decoded by `dalify.codecs.audio`, which also reports errors.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from dalify.base.array_at import array_at, byte_at, copy_bytes, new_array
from dalify.base.compiling import njit
from dalify.base.limits import current
from dalify.base.small_arrays import rows_at
from dalify.codecs.flac import PADDING_BYTES, SCRATCH_BEFORE, decode_frame, little_word, read_flac_header
from dalify.data.batch import Batch
from dalify.data.samples import Samples

Integers = np.ndarray[Any, np.dtype[np.int64]]

_BYTE, _INT32, _INT64 = np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int64)
_OTHER, _WAVE, _WAVE_OF_FLOATS, _FLAC = range(4)
# Columns of the table. The last three are the offset of the samples or frames, the maximum number of samples of a
# frame, and whether decoding failed.
_KIND, _FRAMES, _CHANNELS, _RATE, _BITS, _START, _BLOCK, _FAILED = range(8)
_COLUMNS = 8
_FLAC_MARK = b"fLaC"
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
# Larger results of more than this many times the size of the file are left to libsndfile: headers may be wrong.
_MAX_FLAC_RATIO, _SMALL_BYTES = 64, 1 << 20


class AudioFiles:
    """The headers of the audio files of a chunk.

    Args:
        encoded: the files, one-dimensional samples of bytes.
        dtype: dtype of the result: int16, int32 or float32.
        downmix: whether the result is the mean of all channels.

    Attributes:
        are_known: whether all headers are valid, supported here and within the limits.
    """

    __slots__ = ("_downmix", "_files", "_has_flacs", "_has_waves", "_table", "are_known")

    def __init__(self, encoded: Batch, dtype: np.dtype[Any], *, downmix: bool) -> None:
        self._files = files = Samples.of_batch(encoded)
        addresses, shapes, limits = files.addresses, files.shapes, current()
        count = len(addresses)
        self._table = table = np.empty((count, _COLUMNS), np.int64)
        bounds = limits.max_declared_samples, limits.max_sample_bytes, dtype.itemsize
        # Files of floats are only copied; those that need a conversion are left to libsndfile.
        float_channels = (1 if downmix else _MAX_CHANNELS) if dtype == np.float32 else 0
        # The function for the format of the first file is called first; the other is only compiled if it is needed.
        mark_bytes = min(len(_FLAC_MARK), int(shapes[0, 0]))
        is_flac_first = ctypes.string_at(int(addresses[0]), mark_bytes) == _FLAC_MARK
        if is_flac_first:
            flacs = _read_flac_headers(addresses, shapes, table, True, *bounds)
            waves = _read_wave_headers(addresses, shapes, table, False, float_channels, *bounds) if flacs < count else 0
        else:
            waves = _read_wave_headers(addresses, shapes, table, True, float_channels, *bounds)
            flacs = _read_flac_headers(addresses, shapes, table, False, *bounds) if waves < count else 0
        self._has_waves, self._has_flacs, self.are_known = waves > 0, flacs > 0, waves + flacs == count
        self._downmix = downmix

    @property
    def is_known(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each file, whether its header is valid, supported here and within the limits, ``[N]``."""
        return self._table[:, _KIND] != _OTHER

    @property
    def frames(self) -> Integers:
        """Number of samples per channel, int64 ``[N]``; only valid for known headers, like the following properties."""
        return self._table[:, _FRAMES]

    @property
    def channels(self) -> Integers:
        """Number of channels, int64 ``[N]``."""
        return self._table[:, _CHANNELS]

    @property
    def rates(self) -> Integers:
        """Sampling rates in Hz, int64 ``[N]``."""
        return self._table[:, _RATE]

    @property
    def shapes(self) -> Integers:
        """Shapes of the results without resampling, int64 ``[N, 1]`` with `downmix`, otherwise ``[N, 2]``; a copy."""
        return self._table[:, _FRAMES : _FRAMES + (1 if self._downmix else 2)].copy()

    def decode(self, out: Samples, chosen: Integers | None = None) -> Integers:
        """Decode files with known headers.

        Args:
            out: output, ``[frames, channels]`` for each of the chosen files, of the dtype of the result or float32;
                with `downmix` ``[frames, 1]``, float32 if the file has several channels.
            chosen: indices of the files, int64 ``[M]``; None for all.

        Returns:
            indices of the files that were not decoded, because they are damaged or unusual, int64.
        """
        files, table = self._files, self._table
        if chosen is not None:
            files, table = files.take(chosen), rows_at(table, chosen)
        arguments = (
            files.addresses,
            files.shapes,
            table,
            out.addresses,
            out.like,
            out.dtype == np.float32,
            self._downmix,
        )
        if self._has_waves:
            _decode_waves(*arguments)
        if not (self._has_flacs and _decode_flacs(*arguments)):
            return _INT64
        failed = np.flatnonzero(table[:, _FAILED])
        return failed if chosen is None else chosen[failed]


@njit(nogil=True, inline="always")
def _half(at):
    return byte_at(at) | byte_at(at + 1) << 8


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _read_wave_header(base, size, row_at):
    """Fill a row of the table; do not change it if the file is left to libsndfile."""
    if size < 12 or little_word(base) != _RIFF or little_word(base + 8) != _WAVE_TAG:
        return
    place, form = np.int64(12), np.int64(-1)
    is_usual = True  # all decoders interpret the file in the same way
    while place + 8 <= size:
        name, length = little_word(base + place), little_word(base + place + 4)
        place += 8
        if name == _FORMAT and length >= 16 and place + 16 <= size:
            is_usual &= form < 0 and (length == 16 or length == 18 or length == 40)
            form = place
        elif name == _DATA:
            if form >= 0:
                _note_wave(base, size, row_at, form, place, length, is_usual)
            return
        else:
            is_usual &= name in _CHUNKS_WITHOUT_SOUND or (name == _FACT and length == 4)
            is_usual &= name != _PEAK or (form >= 0 and length == 8 + 8 * _half(base + form + 2))
        place += length + length % 2


@njit(nogil=True, inline="always")
def _note_wave(base, size, row_at, form, place, length, is_usual):
    """Fill a row of the table from the format and the offset and size of the samples."""
    format_at, row = base + form, array_at(row_at, (_COLUMNS,), _INT64)
    kind, channels, rate = _half(format_at), _half(format_at + 2), little_word(format_at + 4)
    block, bits = _half(format_at + 12), _half(format_at + 14)
    form_length = little_word(format_at - 4)
    if kind == _EXTENSIBLE and form_length >= 26 and form + 40 <= size:
        kind = _half(format_at + 24)
        is_usual &= form_length == 40 and _half(format_at + 18) == bits
        if is_usual:
            for i in range(_IDENTIFIER.size):
                is_usual &= byte_at(format_at + 26 + i) == _IDENTIFIER[i]
    if not 0 < channels <= _MAX_CHANNELS or length * rate * block == 0 or block * 8 != channels * bits:
        return
    left = size - place
    if not (kind == _PCM and bits == 16):  # 16-bit files may be truncated
        is_known = bits == 32 or (kind == _PCM and (bits == 8 or bits == 24))
        is_whole = length % block == 0 and left - length % 2 <= length <= left
        is_known &= kind in (_PCM, _FLOAT)
        if not (is_usual and is_known and is_whole) or rate > _HIGHEST_RATE:
            return
    row[_KIND] = _WAVE if kind == _PCM else _WAVE_OF_FLOATS
    row[_FRAMES], row[_CHANNELS], row[_RATE] = min(length, left) // block, channels, rate
    row[_BITS], row[_START] = bits, place


# This function and the next keep the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _read_wave_headers(at, shapes, table, is_first, float_channels, max_samples, max_bytes, item_bytes):
    """Fill the rows of WAV files and return their number; if `is_first`, the table is initialized."""
    known = 0
    for n in range(len(at)):
        if is_first:
            for column in range(_COLUMNS):
                table[n, column] = 0
        if table[n, _KIND] != _OTHER:
            continue
        _read_wave_header(at[n], shapes[n, 0], np.int64(table.ctypes.data) + n * 8 * _COLUMNS)
        frames, channels = table[n, _FRAMES], table[n, _CHANNELS]
        is_refused = table[n, _KIND] == _WAVE_OF_FLOATS and channels > float_channels
        if is_refused or frames > max_samples or frames * channels * item_bytes > max_bytes:
            table[n, _KIND] = _OTHER
        known += table[n, _KIND] != _OTHER
    return known


@njit(cache=True)
def _read_flac_headers(at, shapes, table, is_first, max_samples, max_bytes, item_bytes):
    """Fill the rows of FLAC files; see `_read_wave_headers`."""
    header, known = new_array((6,), _INT64), 0
    for n in range(len(at)):
        if is_first:
            for column in range(_COLUMNS):
                table[n, column] = 0
        if table[n, _KIND] != _OTHER or not read_flac_header(at[n], shapes[n, 0], np.int64(header.ctypes.data)):
            continue
        frames, channels, bits = header[0], header[1], header[3]
        is_plausible = frames * channels * bits <= 8 * max(_SMALL_BYTES, _MAX_FLAC_RATIO * shapes[n, 0])
        table[n, _FRAMES], table[n, _CHANNELS], table[n, _RATE] = frames, channels, header[2]
        table[n, _BITS], table[n, _START], table[n, _BLOCK] = bits, header[4], header[5]
        if is_plausible and frames <= max_samples and frames * channels * item_bytes <= max_bytes:
            table[n, _KIND] = _FLAC
            known += 1
    return known


@njit(nogil=True, inline="always")
def _decode_wave(out, is_float, base, row, scratch, downmix):
    """Fill ``out``, ``[frames * channels]``, from integers, in blocks of frames."""
    channels, bits, total = row[_CHANNELS], row[_BITS], row[_FRAMES]
    size = bits // 8
    width = size * channels
    for first in range(0, total, _FRAMES_AT_ONCE):
        count = min(_FRAMES_AT_ONCE, total - first)
        for channel in range(channels):
            place, row_out = base + row[_START] + first * width + channel * size, scratch[channel]
            if bits == 16:
                for i in range(count):
                    row_out[SCRATCH_BEFORE + i] = np.int16(_half(place + i * width))
            elif bits == 8:
                for i in range(count):
                    row_out[SCRATCH_BEFORE + i] = byte_at(place + i * width) - 128
            elif bits == 24:
                for i in range(count):
                    byte = place + i * width
                    value = _half(byte) | byte_at(byte + 2) << 16
                    row_out[SCRATCH_BEFORE + i] = (value ^ 0x800000) - 0x800000
            else:
                for i in range(count):
                    row_out[SCRATCH_BEFORE + i] = little_word(place + i * width)
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
def _decode_flac(out, is_float, base, size, row, scratch, factors_at, downmix):
    """Fill ``out``, ``[frames * channels]``; return whether the file matches its header."""
    total, channels, rate, bits = row[_FRAMES], row[_CHANNELS], row[_RATE], row[_BITS]
    done, at, block = np.int64(0), row[_START], np.int64(0)
    samples_at, stride = np.int64(scratch.ctypes.data), scratch.shape[1]
    while done < total:
        count, at = decode_frame(
            base, size, at, done, block, rate, samples_at, stride, channels, bits, factors_at
        )  # fmt: skip
        if count == 0 or done + count > total:
            return False
        _put(out, is_float, scratch, done, count, channels, bits, downmix)
        block = block or count
        done += count
    return True


@njit(nogil=True, cache=True)
def _decode_waves(at, shapes, table, out_at, out_like, is_float, downmix):
    """Decode the WAV files."""
    scratch = new_array((_MAX_CHANNELS, SCRATCH_BEFORE + _FRAMES_AT_ONCE), _INT32)
    for n in range(len(at)):
        row = table[n]
        if row[_KIND] == _FLAC:
            continue
        out = array_at(out_at[n], (row[_FRAMES] * (1 if downmix else row[_CHANNELS]),), out_like)
        if row[_KIND] == _WAVE_OF_FLOATS:
            copy_bytes(out_at[n], at[n] + row[_START], 4 * out.size)
        else:
            _decode_wave(out, is_float, at[n], row, scratch, downmix)


@njit(nogil=True, cache=True)
def _decode_flacs(at, shapes, table, out_at, out_like, is_float, downmix):
    """Decode the FLAC files, mark those that fail in the table, and return their number."""
    block, largest, max_channels, failed = np.int64(1), np.int64(0), np.int64(1), 0
    for n in range(len(at)):
        if table[n, _KIND] == _FLAC:
            max_channels, block = max(max_channels, table[n, _CHANNELS]), max(block, table[n, _BLOCK])
            largest = max(largest, shapes[n, 0])
    scratch, factors = new_array((max_channels, SCRATCH_BEFORE + block), _INT32), new_array((32,), _INT64)
    for channel in range(max_channels):
        for i in range(SCRATCH_BEFORE):
            scratch[channel, i] = 0
    padded = new_array((largest + PADDING_BYTES,), _BYTE)
    base = np.int64(padded.ctypes.data)
    for n in range(len(at)):
        row, size = table[n], shapes[n, 0]
        if row[_KIND] != _FLAC:
            continue
        out = array_at(out_at[n], (row[_FRAMES] * (1 if downmix else row[_CHANNELS]),), out_like)
        copy_bytes(base, at[n], size)
        for i in range(PADDING_BYTES):
            padded[size + i] = 0
        if not _decode_flac(out, is_float, base, size, row, scratch, np.int64(factors.ctypes.data), downmix):
            row[_FAILED] = 1
            failed += 1
    return failed
