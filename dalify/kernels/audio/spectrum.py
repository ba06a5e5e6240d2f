"""Spectrograms of audio, and power spectra along an axis of any data; `fourier` has the transforms."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dalify.base.array_at import array_at, new_array
from dalify.base.compiling import njit
from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.base.small_arrays import equal_rows
from dalify.base.wording import counted
from dalify.data.samples import Samples
from dalify.kernels.arrays.padding_torch import inside_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import widened
from dalify.kernels.audio.fourier import LANES, spectrum_of_lanes, transform_of, weighted_transpose
from dalify.kernels.audio.mel import Bank, add_bands

_SINGLE = np.empty(0, np.float32)
_ROW_BYTES = 4 * LANES
_NO_BANK = Bank(np.empty(0, np.int32), _SINGLE, _SINGLE)
_OTHER_FRAMES = 256  # frames that NumPy transforms at once: a few hundred kilobytes


def frame_count(length: int, window_length: int, window_step: int, center_windows: bool) -> int:
    """Return the number of windows of a signal.

    Centered windows are at all multiples of the step within the signal. Others are inside the signal; if it is shorter
    than a window by less than a step, its only window is zero-padded, as in DALI.

    Args:
        length: samples of the signal.
        window_length: samples of a window.
        window_step: samples from one window to the next.
        center_windows: whether windows extend beyond both ends by half their length.

    Raises:
        ShapeError: the signal is empty or too short for one window.
    """
    if length == 0:
        raise ShapeError("the signal is empty: it has no spectrum.")
    if center_windows:
        return length // window_step + 1
    missing = window_length - length
    if missing >= window_step:
        raise ShapeError(
            f"the signal of {counted(length, 'sample')} is too short for a window of {window_length}.",
            hint="Pad it with fn.pad, or use center_windows=True.",
        )
    return 1 if missing > 0 else -missing // window_step + 1


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def fill_shapes(out_shapes: Any, shapes: Any, window: int, window_step: int, bins: int, time: int) -> bool:
    """Fill the shapes of the spectrograms of a chunk.

    Args:
        out_shapes: output, int64 ``[N, 2]``.
        shapes: shapes of the signals, int64 ``[N, ndim]``.
        window: samples of a window; 0 for windows that extend beyond both ends.
        window_step: samples from one window to the next.
        bins: number of frequencies.
        time: axis of the windows in the result, 0 or 1.

    Returns:
        False if a signal is shorter than a window, empty, or not along one axis.
    """
    for n in range(shapes.shape[0]):
        length, longest = np.int64(1), np.int64(0)
        for axis in range(shapes.shape[1]):
            length *= shapes[n, axis]
            longest = max(longest, shapes[n, axis])
        if length < max(window, 1) or longest < length:
            return False
        out_shapes[n, time], out_shapes[n, 1 - time] = (length - window) // window_step + 1, bins
    return True


@njit(nogil=True, inline="always")
def _buffers_of(length, bands):
    """Return memory for two buffers of a transform, its result, sums in bands, and alignment."""
    return new_array(((2 * length + length // 2 + 2 + bands) * LANES,), _SINGLE)


@njit(nogil=True, inline="always")
def _first_row(memory):
    """Return the first address in an array that is aligned to the size of a row."""
    return (np.int64(memory.ctypes.data) + _ROW_BYTES - 1) & -_ROW_BYTES


@njit(nogil=True, inline="always")
def _value(x: np.ndarray, index: int, reflect_padding: bool) -> Any:
    """Return a sample of a signal; beyond its ends 0, or a sample by reflection at the outermost samples."""
    length = x.size
    if 0 <= index < length:
        return x[index]
    if not reflect_padding:
        return np.float32(0)
    if length == 1:
        return x[0]
    period = 2 * (length - 1)
    index = abs(index) % period
    return x[index if index < period - index else period - index]


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _cut_frames(rows_at, length, x_at, x_size, first, window_step, count, window_at, size, reflect_padding):
    """Fill rows [length, LANES] with windowed frames that start at ``first``, ``first + window_step``, …, one per lane.

    Lanes beyond ``count`` have arbitrary contents.
    """
    rows, x = array_at(rows_at, (length, LANES), _SINGLE), array_at(x_at, (x_size,), _SINGLE)
    window = array_at(window_at, (size,), _SINGLE)
    if first >= 0 and first + (LANES - 1) * window_step + size <= x_size:
        whole = size - size % LANES
        for n in range(0, whole, LANES):
            source, weights, target = x_at + 4 * (first + n), window_at + 4 * n, rows_at + _ROW_BYTES * n
            weighted_transpose(np.uintp(source), np.uintp(4 * window_step), np.uintp(weights), np.uintp(target))
        for n in range(whole, size):
            for lane in range(LANES):
                rows[n, lane] = x[first + lane * window_step + n] * window[n]
    else:
        for n in range(size):
            for lane in range(count, LANES):
                rows[n, lane] = 0
        for lane in range(count):
            start = first + lane * window_step
            for n in range(size):
                rows[n, lane] = _value(x, start + n, reflect_padding) * window[n]
    for n in range(size, length):
        for lane in range(LANES):
            rows[n, lane] = 0


@njit(nogil=True, cache=True)
def _spectrogram_by_lanes(
    out_at,
    out_shapes,
    x_at,
    x_shapes,
    window,
    window_step,
    offset,
    reflect_padding,
    is_magnitude,
    has_frames_first,
    steps,
    twiddles,
    unpacking,
    length,
    bands,
    falling_filter,
    falling,
    rising,
):
    """Fill [bins, frames], or [frames, bins]; with `bands`, only the sums of the spectra in the bands are stored."""
    memory, bins = _buffers_of(length, bands), length // 2 + 1
    results = bands if bands else bins
    for n in range(len(x_at)):
        rows_at = _first_row(memory)
        spare_at, spectrum_at = rows_at + length * _ROW_BYTES, rows_at + 2 * length * _ROW_BYTES
        found_at = spectrum_at + bins * _ROW_BYTES if bands else spectrum_at
        found = array_at(found_at, (results, LANES), _SINGLE)
        size = np.int64(1)
        for axis in range(x_shapes.shape[1]):
            size *= x_shapes[n, axis]
        out = array_at(out_at[n], (out_shapes[n, 0], out_shapes[n, 1]), _SINGLE)
        frames = out_shapes[n, 0] if has_frames_first else out_shapes[n, 1]
        for frame in range(0, frames, LANES):
            count = frames - frame if frames - frame < LANES else LANES
            first, window_at = frame * window_step + offset, np.int64(window.ctypes.data)
            _cut_frames(
                rows_at, length, x_at[n], size, first, window_step, count, window_at, window.size, reflect_padding
            )  # fmt: skip
            spectrum_of_lanes(spectrum_at, rows_at, spare_at, length // 2, steps, twiddles, unpacking, is_magnitude)
            if bands:
                add_bands(found_at, spectrum_at, bands, bins, np.int64(LANES), falling_filter, falling, rising)
            if has_frames_first:
                for lane in range(count):
                    for k in range(results):
                        out[frame + lane, k] = found[k, lane]
            elif count == LANES:
                for k in range(results):
                    target = array_at(out_at[n] + 4 * (k * frames + frame), (LANES,), _SINGLE)
                    for lane in range(LANES):
                        target[lane] = found[k, lane]
            else:
                for k in range(results):
                    for lane in range(count):
                        out[k, frame + lane] = found[k, lane]


@njit(nogil=True, cache=True)
def _frames(
    x: np.ndarray, first: int, count: int, window_step: int, window: np.ndarray, reflect_padding: bool
) -> np.ndarray:
    """Return windowed frames [count, window length]."""
    frames = np.empty((count, window.size), np.float32)
    for frame in range(count):
        for n in range(window.size):
            frames[frame, n] = _value(x, first + frame * window_step + n, reflect_padding) * window[n]
    return frames


def spectrogram(
    out: Samples,
    x: Samples,
    window: np.ndarray,
    *,
    window_step: int,
    length: int,
    center_windows: bool,
    reflect_padding: bool,
    power: int,
    has_frames_first: bool,
    bank: Bank | None = None,
) -> None:
    """Compute the spectra of windows of signals.

    Args:
        out: N samples float32 [bins, frames], or [frames, bins] with ``has_frames_first``, output; there are
            ``length // 2 + 1`` bins.
        x: N signals, float32, not empty.
        window: float32 [window length], window function; not longer than ``length``.
        window_step: samples from one window to the next.
        length: length of the transform; windows are zero-padded.
        center_windows: whether windows start half their length earlier.
        reflect_padding: whether the signal is reflected at its first and last sample; else it is padded with 0.
        power: 2 for squared magnitudes, 1 for magnitudes.
        has_frames_first: order of the axes of ``out``.
        bank: filter bank; ``out`` then has its bands instead of bins. Only for lengths that `transform_of` supports.
    """
    offset = -(window.size // 2) if center_windows else 0
    reflect_padding = reflect_padding and center_windows
    plan = transform_of(length)
    if plan is not None:
        options = window, window_step, offset, reflect_padding, power == 1, has_frames_first
        samples = out.addresses, out.shapes, x.addresses, x.shapes
        bands = 0 if bank is None else out.shapes.item(0, int(has_frames_first))
        _spectrogram_by_lanes(*samples, *options, *plan, length, bands, *(bank or _NO_BANK))
        return
    assert bank is None, "dalify bug: bands of spectra that NumPy computes"
    for target, values in zip(out.arrays(), x.arrays(), strict=True):
        sample, signal = target.T if has_frames_first else target, values.reshape(-1)
        for first in range(0, sample.shape[1], _OTHER_FRAMES):
            count = min(_OTHER_FRAMES, sample.shape[1] - first)
            frames = _frames(signal, first * window_step + offset, count, window_step, window, reflect_padding)
            sample[:, first : first + count] = _powers(np.fft.rfft(frames, length), power).T


def _powers(spectrum: Any, power: int) -> np.ndarray:
    return np.abs(spectrum) if power == 1 else spectrum.real**2 + spectrum.imag**2


def spectrogram_torch(
    out: torch.Tensor,
    x: torch.Tensor,
    window: np.ndarray,
    *,
    window_step: int,
    length: int,
    center_windows: bool,
    reflect_padding: bool,
    power: int,
    has_frames_first: bool,
    lengths: np.ndarray,
) -> None:
    """`spectrogram` for torch tensors on any device: signals [N, T] with the `lengths`, int64 [N]."""
    frames = out.shape[1 if has_frames_first else 2]
    offset = -(window.size // 2) if center_windows else 0
    samples = uploaded(lengths[:1] if (lengths == lengths[0]).all() else lengths, x.device)[:, None]
    places = offset + torch.arange((frames - 1) * window_step + window.size, device=x.device)[None]
    inside = (places >= 0) & (places < samples)
    if center_windows and reflect_padding:
        period = (2 * (samples - 1)).clamp(min=1)
        places = places.abs() % period
        places = torch.minimum(places, period - places)
        inside = None
    places = places.clamp(0, x.shape[1] - 1).expand(len(samples), -1)
    padded = x[:, places[0]] if len(places) == 1 else x.gather(1, places)
    if inside is not None:
        padded = padded.masked_fill(~inside, 0)  # not a product: infinity times 0 is NaN
    cut = padded.unfold(1, window.size, window_step) * uploaded(window, x.device)
    spectrum = _powers_torch(torch.fft.rfft(cut, length), power)
    out.copy_(spectrum if has_frames_first else spectrum.transpose(1, 2))


def _powers_torch(spectrum: torch.Tensor, power: int) -> torch.Tensor:
    return spectrum.abs() if power == 1 else spectrum.real.square() + spectrum.imag.square()


@njit(nogil=True, cache=True)
def _lane_distance(at, steps, sizes):
    """Return the distance of signals in bytes; 0 unless there are sixteen with equal distances, sizes and steps."""
    distance = at[1] - at[0] if len(at) == LANES else np.int64(0)
    for lane in range(1, len(at)):
        if at[lane] - at[lane - 1] != distance or steps[lane] != steps[0] or sizes[lane] != sizes[0]:
            return np.int64(0)
    return distance


@njit(nogil=True, cache=True)
def _spectra_by_lanes(
    out_at, out_steps, bins_of, at, steps, sizes, like, is_magnitude, radices, twiddles, unpacking, length, window
):
    """Fill the spectra of signals, which may be in different samples; see `_Signals`. The window contains ones."""
    bins, memory = length // 2 + 1, _buffers_of(length, 0)
    for first in range(0, len(at), LANES):
        rows_at = _first_row(memory)
        spare_at, spectrum_at = rows_at + length * _ROW_BYTES, rows_at + 2 * length * _ROW_BYTES
        rows, spectrum = array_at(rows_at, (length, LANES), like), array_at(spectrum_at, (bins, LANES), like)
        end = min(first + LANES, len(at))
        distance = _lane_distance(at[first:end], steps[first:end], sizes[first:end])
        done = 0
        if distance > 0 and steps[first] == 1:
            size = min(sizes[first], length)
            done = size - size % LANES
            for n in range(0, done, LANES):
                weights, target = window.ctypes.data, rows_at + _ROW_BYTES * n
                weighted_transpose(np.uintp(at[first] + 4 * n), np.uintp(distance), np.uintp(weights), np.uintp(target))
        elif distance == 4:
            done = min(sizes[first], length)
            for n in range(done):
                source = array_at(at[first] + 4 * n * steps[first], (LANES,), like)
                for lane in range(LANES):
                    rows[n, lane] = source[lane]
        rows[done:] = 0
        for lane in range(end - first):
            step, size = steps[first + lane], min(sizes[first + lane], length)
            x = array_at(at[first + lane], ((size - 1) * step + 1,), like)
            for n in range(done, size):
                rows[n, lane] = x[n * step]
        spectrum_of_lanes(spectrum_at, rows_at, spare_at, length // 2, radices, twiddles, unpacking, is_magnitude)
        if _lane_distance(out_at[first:end], out_steps[first:end], bins_of[first:end]) == 4:
            for k in range(bins):
                target = array_at(out_at[first] + 4 * k * out_steps[first], (LANES,), like)
                for lane in range(LANES):
                    target[lane] = spectrum[k, lane]
            continue
        for lane in range(end - first):
            step = out_steps[first + lane]
            out = array_at(out_at[first + lane], ((bins - 1) * step + 1,), like)
            if step == 1:
                for k in range(bins):
                    out[k] = spectrum[k, lane]
            else:
                for k in range(bins):
                    out[k * step] = spectrum[k, lane]


@njit(nogil=True, cache=True)
def _move_signals(rows, at, steps, sizes, like, is_read):
    """Copy signals to rows, or rows to signals."""
    for i in range(len(at)):
        step = steps[i]
        signal = array_at(at[i], ((sizes[i] - 1) * step + 1,), like)
        for n in range(sizes[i]):
            if is_read:
                rows[i, n] = signal[n * step]
            else:
                signal[n * step] = rows[i, n]


class _Signals(NamedTuple):
    """Signals along an axis of samples.

    Attributes:
        at: address of the first element of each signal, int64 [signals].
        steps: distances of successive elements, in elements.
        sizes: lengths.
    """

    at: np.ndarray
    steps: np.ndarray
    sizes: np.ndarray

    @staticmethod
    def of(x: Samples, axis: int) -> _Signals:
        parts, steps = x.shapes[:, :axis].prod(1), x.shapes[:, axis + 1 :].prod(1)
        found = np.empty((3, int((parts * steps).sum())), np.int64)
        _list_signals(found, x.addresses, parts, x.extents(axis).copy(), steps)
        return _Signals(*found)

    def part(self, first: int) -> _Signals:
        """Return the signals from `first` on that NumPy transforms at once."""
        return _Signals(*(values[first : first + _OTHER_FRAMES] for values in self))


@njit(nogil=True, cache=True)
def _list_signals(found, x_at, parts, sizes, steps):
    i = 0
    for n in range(len(x_at)):
        for part in range(parts[n]):
            for k in range(steps[n]):
                found[0, i] = x_at[n] + 4 * (part * sizes[n] * steps[n] + k)
                found[1, i] = steps[n]
                found[2, i] = sizes[n]
                i += 1


def power_spectrum(out: Samples, x: Samples, axis: int, *, length: int | None, power: int) -> None:
    """Compute the spectra of all signals along an axis.

    Args:
        out: float32, output with the shapes of `x`, with ``length // 2 + 1`` bins along the axis.
        x: float32, not empty.
        axis: axis of a sample.
        length: length of the transform; longer signals are truncated, shorter ones are zero-padded. None: the length of
            each signal.
        power: 2 for squared magnitudes, 1 for magnitudes.
    """
    lengths = x.extents(axis) if length is None else np.full(len(x), length)
    for numbers in equal_rows(lengths[:, None]):
        number = int(lengths[numbers[0]])
        signals, results = _Signals.of(x.take(numbers), axis), _Signals.of(out.take(numbers), axis)
        plan = transform_of(number)
        if plan is not None:
            ones = np.ones(LANES, np.float32)
            _spectra_by_lanes(*results, *signals, x.like, power == 1, *plan, number, ones)
            continue
        for first in range(0, len(signals.at), _OTHER_FRAMES):
            at, steps, sizes = signals.part(first)
            rows = np.zeros((len(at), number), np.float32)
            _move_signals(rows, at, steps, np.minimum(sizes, number), x.like, True)
            spectra = _powers(np.fft.rfft(rows, number), power)
            _move_signals(spectra, *results.part(first), x.like, False)


def power_spectrum_torch(
    out: torch.Tensor, x: torch.Tensor, axis: int, *, length: int | None, power: int, extents: np.ndarray
) -> None:
    """`power_spectrum` for torch tensors on any device, of signals of different lengths.

    Args:
        out: as in `power_spectrum`; bins after the bins of a signal may have any values.
        x: signals, padded to one length.
        axis: as in `power_spectrum`.
        length: as in `power_spectrum`; None: the length of each signal.
        power: as in `power_spectrum`.
        extents: shapes of the signals without padding, int64 [N, ndim].
    """
    inside = inside_torch(x, extents, (axis - 1,))
    if inside is not None:
        x = x.masked_fill(~inside, 0)
    signals = x.movedim(axis, -1)
    if length is None and inside is not None:
        spectrum = _own_spectra_torch(signals, extents[:, axis - 1], out.shape[axis])
    else:
        spectrum = torch.fft.rfft(signals, length)
    out.copy_(_powers_torch(spectrum, power).movedim(-1, axis))


def _own_spectra_torch(x: torch.Tensor, lengths: np.ndarray, bins: int) -> torch.Tensor:
    """Return spectra of signals of different lengths, up to a phase, by Bluestein's algorithm.

    With ``2 k n = k * k + n * n - (k - n) ** 2``, the transform of a signal is the convolution of its product with a
    chirp and the conjugate chirp. So all signals are transformed with one length, and only the chirps differ. Computed
    in float64, because three transforms have larger rounding errors than one.

    Args:
        x: signals, 0 after their ends, [N, ..., T].
        lengths: of the signals, int64 [N].
        bins: number of bins.
    """
    samples = x.shape[-1]
    size = 1 << (samples + bins - 2).bit_length()
    place = torch.arange(size, device=x.device)
    distance = torch.where(place < bins, place, size - place)
    periods = uploaded(lengths, x.device).reshape(-1, *[1] * (x.ndim - 1))
    # The square as a remainder, so that the angle is also exact for long signals.
    angles = widened(distance.square() % (2 * periods)) * math.pi / periods
    chirp = torch.polar(torch.ones_like(angles), angles)
    own = widened(place[:samples].square() % (2 * periods)) * math.pi / periods
    products = torch.polar(widened(x), -own.expand(x.shape))
    return torch.fft.ifft(torch.fft.fft(products, size) * torch.fft.fft(chirp))[..., :bins]
