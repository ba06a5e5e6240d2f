"""Resamples audio with a windowed sinc, with the same results as DALI.

As in DALI, the filter is a table with 32 entries per sample and linear interpolation, and positions are computed in
float32 within blocks of 256 results. Here the table has one row per phase, so that each result is two dot products.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import saturate_cast_torch, store_joined
from dalify.kernels.arrays.grid_torch import Grid, common_unit
from dalify.kernels.arrays.joined import blocks, joined, split
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import widened

_BLOCK = 256
_AT_ONCE = 64 * _BLOCK  # results that are computed from one copied part of the input
_PHASES = 32
_TORCH_ELEMENTS = 1 << 24  # maximum size of an intermediate result on the device


def lobes_of(quality: float) -> int:
    """Return the number of sinc lobes on each side for a quality from 0 to 100: 3 for 0, 16 for 50, 64 for 100."""
    return math.floor(0.007 * quality * quality - 0.09 * quality + 3 + 0.5)


@functools.lru_cache(maxsize=32)
def _rows(lobes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the table and its differences, float32 [_PHASES + 1, 2 * lobes].

    Row j has the weights for a position j / 32 after a sample: the weights of the samples ``1 - lobes`` to ``lobes``
    relative to that sample. The differences are those to row j - 1.
    """
    count = 2 * _PHASES * lobes + 1
    places = (np.arange(count) - count // 2) / _PHASES
    # The window ends half an entry after the table, as in DALI.
    envelope = 0.5 + 0.5 * np.cos(np.pi * (np.arange(count) - count // 2) * 2 / count)
    table = np.zeros(count + 1, np.float32)
    table[:count] = np.sinc(places) * envelope
    taps = np.arange(1 - lobes, lobes + 1)
    entries = count // 2 + _PHASES * taps - np.arange(_PHASES + 1)[:, None]
    return table[entries], table[entries + 1] - table[entries]


@njit(nogil=True, cache=True)
def _places(wholes: np.ndarray, fractions: np.ndarray, first: int, step: float) -> None:
    """Fill int64 and float32 [results] with the input positions of the results from ``first`` on, as in DALI.

    ``first`` is a multiple of _BLOCK.
    """
    narrow = np.float32(step)
    for start in range(0, wholes.size, _BLOCK):
        exact = (first + start) * step
        base = math.floor(exact)
        place = np.float32(exact - base)
        for i in range(start, min(start + _BLOCK, wholes.size)):
            whole = math.floor(place)
            wholes[i] = np.int64(base) + np.int64(whole)
            fractions[i] = place - np.float32(whole)
            place += narrow


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"})
def _resample(
    out: np.ndarray,
    padded: np.ndarray,
    wholes: np.ndarray,
    fractions: np.ndarray,
    rows: np.ndarray,
    slopes: np.ndarray,
) -> None:
    """Fill out [results] from a zero-padded signal, with ``taps - 1`` zeros before it."""
    taps = rows.shape[1]
    last = padded.size - taps
    for i in range(out.size):
        fraction = fractions[i] * np.float32(_PHASES)
        row = math.ceil(fraction)
        part = padded[min(max(wholes[i] + taps // 2, 0), last) :][:taps]
        weights, slope = rows[row], slopes[row]
        total, change = np.float32(0), np.float32(0)
        for k in range(taps):
            total += part[k] * weights[k]
            change += part[k] * slope[k]
        out[i] = total + (np.float32(row) - fraction) * change


def _input_scale(source: np.dtype, target: np.dtype) -> tuple[float, float]:
    """Return factor and offset of the filter input: [0, 1] for unsigned results, else [-1, 1].

    The padding is 0 in that range, as in DALI.
    """
    if source == target:
        return 1.0, 0.0
    largest = 1.0 if source.kind == "f" else float(np.iinfo(source).max)
    if target.kind == "u":
        return (1 / largest, 0.0) if source.kind == "u" else (0.5 / largest, 0.5)
    return (2 / largest, -1.0) if source.kind == "u" else (1 / largest, 0.0)


def _output_scale(source: np.dtype, target: np.dtype) -> float:
    return 1.0 if source == target or target.kind == "f" else float(np.iinfo(target).max)


@njit(nogil=True, cache=True)
def _resample_each(
    out_at: np.ndarray,
    out_shapes: np.ndarray,
    x_at: np.ndarray,
    x_shapes: np.ndarray,
    like: np.ndarray,
    steps: np.ndarray,
    rows: np.ndarray,
    slopes: np.ndarray,
) -> None:
    """Fill float32 samples [results, channels] from [samples, channels]."""
    taps = rows.shape[1]
    wholes, fractions = np.empty(_AT_ONCE, np.int64), np.empty(_AT_ONCE, np.float32)
    row = np.empty(_AT_ONCE, np.float32)
    padded = np.empty(0, np.float32)
    for n in range(len(x_at)):
        samples, channels, results = x_shapes[n, 0], x_shapes[n, 1], out_shapes[n, 0]
        last = samples + taps  # start of the last window in a zero-padded channel
        for start in range(0, results, _AT_ONCE):
            count = min(_AT_ONCE, results - start)
            _places(wholes[:count], fractions[:count], start, steps[n])
            # The part of the padded channel that these results need, then the samples in this part.
            begin = min(max(wholes[0] + taps // 2, 0), last)
            end = min(max(wholes[count - 1] + taps // 2, 0), last) + taps
            for i in range(count):
                wholes[i] -= begin
            first = min(max(begin - (taps - 1), 0), samples)
            size = max(min(end - (taps - 1), samples) - first, 0)
            skipped = max(taps - 1 - begin, 0) if size else end - begin
            is_copied = channels > 1 or size < end - begin
            if not is_copied:
                part = array_at(x_at[n] + 4 * first, (size,), like)
            else:
                if padded.size < end - begin:
                    padded = np.empty(2 * (end - begin), np.float32)
                part = padded[: end - begin]
                for i in range(part.size):
                    part[i] = 0
            for channel in range(channels):
                if is_copied and size:
                    x = array_at(x_at[n] + 4 * (first * channels + channel), ((size - 1) * channels + 1,), like)
                    own = part[skipped : skipped + size]
                    for i in range(size):
                        own[i] = x[i * channels]
                target = array_at(out_at[n] + 4 * start, (count,), like) if channels == 1 else row[:count]
                _resample(target, part, wholes[:count], fractions[:count], rows, slopes)
                if channels > 1:
                    out = array_at(out_at[n] + 4 * (start * channels + channel), ((count - 1) * channels + 1,), like)
                    for i in range(count):
                        out[i * channels] = row[i]


def resample_samples(out: Samples, x: Samples, steps: np.ndarray, quality: float) -> None:
    """Resample audio with any number of channels.

    Args:
        out: N samples [results, channels] of an integer type up to 32 bits or float32, output, none of them empty.
        x: N samples [samples, channels], same dtypes. If the dtypes differ, full ranges are mapped to each other and
            floats are from -1 to 1; values out of range are saturated.
        steps: float64 [N], samples of ``x`` from one result to the next.
        quality: 0 to 100.
    """
    tables = _rows(lobes_of(quality))
    scale = _output_scale(x.dtype, out.dtype)
    for numbers in blocks(np.maximum(x.shapes.prod(1), out.shapes.prod(1))):
        target, source = (out, x) if len(numbers) == len(x) else (out.take(numbers), x.take(numbers))
        if x.dtype != np.float32 or _input_scale(x.dtype, out.dtype) != (1.0, 0.0):
            values = _as_float(joined(source).reshape(-1), out.dtype).astype(np.float32)
            source = split(values, source.shapes)
        if out.dtype == np.float32:
            _resample_each(*target.compiled[:2], *source.compiled, steps[numbers], *tables)
        else:
            results = np.empty(int(target.shapes.prod(1).sum()), np.float32)
            _resample_each(
                split(results, target.shapes).addresses, target.shapes, *source.compiled, steps[numbers], *tables
            )
            store_joined(target, results.astype(np.float64) * scale)


def resample_audio(out: np.ndarray, x: np.ndarray, steps: np.ndarray, quality: float) -> None:
    """Apply `resample_samples` to arrays [N, samples, channels]."""
    resample_samples(Samples.of_dense(out), Samples.of_dense(np.ascontiguousarray(x)), steps, quality)


def _as_float(x: np.ndarray, target: np.dtype) -> np.ndarray:
    factor, offset = _input_scale(x.dtype, target)
    return x if (factor, offset) == (1.0, 0.0) else x * factor + offset


def resample_samples_torch(out: DeviceSamples, x: DeviceSamples, steps: np.ndarray, quality: float) -> None:
    """`resample_samples` for samples on the device, whatever their lengths.

    Args:
        out: N samples [results, channels], output, none of them empty.
        x: N samples [samples, channels], on the same device.
        steps: float64 [N].
        quality: 0 to 100.
    """
    channels = common_unit(x, 1)
    if not channels or channels != common_unit(out, 1):  # audio of several numbers of channels
        for n, (target, source) in enumerate(zip(out.tensors(), x.tensors(), strict=True)):
            alone = DeviceSamples.of_dense(target[None]), DeviceSamples.of_dense(source[None])
            resample_samples_torch(*alone, steps[n : n + 1], quality)
        return
    names = [np.dtype(str(samples.dtype).removeprefix("torch.")) for samples in (x, out)]
    table, slopes = (uploaded(values, x.device) for values in _rows(lobes_of(quality)))
    taps = table.shape[1]
    factor, offset = _input_scale(*names)
    source = (widened(x.block) * factor + offset).float().view(-1, channels)
    rows, weights, begins = _tables(out, x, steps, taps, channels)
    grid = Grid(out.ragged(), x, 1, channels)
    base, length = (grid.of_sample(values).long() for values in (x.offsets // channels, x.shapes[:, 0]))
    base, length = (values.expand(len(rows)) for values in (base, length))
    row, weight, begin = (uploaded(values, x.device) for values in (rows, weights, begins))
    steps_of_taps = torch.arange(taps, device=x.device)
    at_once = max(1, _TORCH_ELEMENTS // (taps * channels))
    for start in range(0, len(rows), at_once):
        part = slice(start, start + at_once)
        place = begin[part, None] + steps_of_taps
        inside = (place >= 0) & (place < length[part, None])
        index = (base[part, None] + place).clamp(0, len(source) - 1)
        values = source.index_select(0, index.reshape(-1)).reshape(*index.shape, channels)
        values = torch.where(inside.unsqueeze(-1), values, 0.0)
        chosen = row[part]
        filters = table.index_select(0, chosen) + weight[part, None] * slopes.index_select(0, chosen)
        result = widened((values * filters.unsqueeze(-1)).sum(1)) * _output_scale(*names)
        saturate_cast_torch(out.block[start * channels : (start + at_once) * channels], result.reshape(-1))


def _tables(
    out: DeviceSamples, x: DeviceSamples, steps: np.ndarray, taps: int, channels: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row, weight of the differences, and first input sample of all results.

    They are in the order of the buffer of `out`, and 0 for its gaps.
    """
    total = out.block.numel() // channels
    rows, begins = np.zeros(total, np.int64), np.zeros(total, np.int64)
    weights = np.zeros(total, np.float32)
    for n, step in enumerate(steps.tolist()):
        start = int(out.offsets[n]) // channels
        count = int(out.shapes[n, 0])
        wholes, fractions = np.empty(count, np.int64), np.empty(count, np.float32)
        _places(wholes, fractions, 0, step)
        phases = fractions * np.float32(_PHASES)
        part = slice(start, start + count)
        rows[part] = np.ceil(phases)
        weights[part] = rows[part] - phases
        # Windows that begin farther outside contain only zeros as well.
        begins[part] = np.clip(wholes + taps // 2, 0, int(x.shapes[n, 0]) + taps) - (taps - 1)
    return rows, weights, begins
