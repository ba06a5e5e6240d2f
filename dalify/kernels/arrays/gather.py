"""Copies windows of arrays: crop, slice, pad, paste and flip.

Compiled loops over a chunk copy windows inside their samples, small windows that exceed them, and flips. Other windows
are copied one by one with NumPy, which is as fast for large windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.array_at import array_at, copy_bytes, new_array
from dalify.base.compiling import njit
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import (
    constants_in_range,
    saturate_cast,
    saturate_cast_torch,
    truncate_cast,
    truncate_cast_torch,
)
from dalify.kernels.arrays.joined import separate, split
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import bordered_samples_torch

if TYPE_CHECKING:
    from torch import Tensor

# Elements are copied as integers of their size.
_UNITS = {size: np.empty(0, f"u{size}") for size in (1, 2, 4, 8)}
# Chunks with more elements are converted sample by sample, without an intermediate copy.
_MAX_CONVERTED = 1 << 18


def _overlap(start: np.ndarray, size: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, Any, bool]:
    """Return the part of a window inside the source, as slices of both, and whether it is the whole window."""
    inside, source = [], []
    is_whole = True
    for origin, extent, available in zip(start.tolist(), size, shape, strict=True):
        first = min(max(-origin, 0), extent)
        last = max(min(available - origin, extent), first)
        is_whole = is_whole and first == 0 and last == extent
        inside.append(slice(first, last))
        # An empty slice if nothing is inside: origin + first may be negative or beyond the end.
        source.append(slice(origin + first, origin + last) if last > first else slice(0, 0))
    return tuple(inside), tuple(source), is_whole


def channel_fill(fill_values: Sequence[float], layout: str, dtype: DALIDataType | None) -> np.ndarray:
    """Return one fill value or one per channel, in a form that broadcasts to a sample with a layout.

    Args:
        fill_values: the user's values.
        layout: layout of the sample.
        dtype: element type of the result, not None; see `fill_in_range`.
    """
    assert dtype is not None, "dalify bug: a kernel without the type of its result"
    found = constants_in_range(fill_values, dtype.numpy)
    if found.size == 1:
        return found.reshape(())
    return found.reshape([-1 if letter == "C" else 1 for letter in layout])


def copy_window(out: np.ndarray, x: np.ndarray, start: np.ndarray, *, fill_values: np.ndarray | float = 0) -> None:
    """Copy a window of each sample, with the extents of `out`.

    Args:
        out: output [N, ...], any dtype; see `truncate_cast`.
        x: [N, ...] with the same number of dimensions.
        start: int [N, ndim]: start of the windows, which may exceed `x`.
        fill_values: value outside `x`, which broadcasts to a sample of `out`.
    """
    starts = np.asarray(start)
    if len(starts) > 1 and (starts == starts[0]).all():  # one copy for all
        out, x, starts = out[None], x[None], np.concatenate([[0], starts[0]])[None]
    value: np.ndarray | None = None
    for target, source, own in zip(out, x, starts, strict=True):
        inside, place, is_whole = _overlap(own, target.shape, source.shape)
        truncate_cast(target[inside], source[place])
        if not is_whole:
            value = _native(fill_values, out.dtype, out.shape[1:]) if value is None else value
            _fill_outside(target, inside, value)


def copy_windows(out: Samples, x: Samples, start: np.ndarray, *, fill_values: np.ndarray | float = 0) -> None:
    """Copy a window of each sample of a chunk, with the extents of `out`.

    Args:
        out: output; see `copy_window`.
        x: samples with the same number of dimensions.
        start: int64 [N, ndim]: start of the windows, which may exceed `x`.
        fill_values: value outside `x`; see `copy_window`.
    """
    is_copy = out.dtype == x.dtype and x.ndim > 0
    if is_copy and _copy_all(out.addresses, out.shapes, x.addresses, x.shapes, start, x.dtype.itemsize):
        return
    if not is_copy and x.ndim and _convert_all(out, x, start):
        return
    value = _fill_of_axis(np.asarray(fill_values), out) if out.dtype == x.dtype else None
    if value is not None:
        _copy_filled(out.addresses, out.shapes, x.addresses, x.shapes, start, *value)
        return
    for n, (target, source) in enumerate(zip(out.arrays(), x.arrays(), strict=True)):
        copy_window(target[None], source[None], start[n : n + 1], fill_values=fill_values)


def _convert_all(out: Samples, x: Samples, start: np.ndarray) -> bool:
    """Convert windows of few elements to another type; return False if a window is not inside its sample."""
    size = int(np.multiply.reduce(out.shapes, 1).sum())
    if size > _MAX_CONVERTED:
        return False
    values = np.empty(size, x.dtype)
    windows = split(values, out.shapes)
    if not _copy_all(windows.addresses, out.shapes, x.addresses, x.shapes, start, x.dtype.itemsize):
        return False
    if out.dense is not None:
        truncate_cast(out.dense, values.reshape(out.dense.shape))
    else:
        converted = np.empty(size, out.dtype)
        truncate_cast(converted, values)
        separate(out, converted)
    return True


def pad_samples(out: Samples, x: Samples, fill_value: np.ndarray) -> None:
    """Pad samples at the end of each axis.

    Args:
        out: output.
        x: samples with the same element type and number of dimensions, not larger than those of `out`.
        fill_value: padding of each sample, [N], of the element type.
    """
    if out.ndim == 0:
        out, x = out.with_axis(0), x.with_axis(0)
    fill_value = fill_value.view(_UNITS[fill_value.itemsize].dtype)
    _pad_each(out.addresses, out.shapes, x.addresses, x.shapes, fill_value)


@njit(nogil=True, cache=True)
def _pad_each(out_at, out_shapes, x_at, x_shapes, fill_value):
    axes = out_shapes.shape[1]
    index = np.zeros(axes, np.int64)
    for n in range(len(out_at)):
        # The last padded axis and the axes after it form a run.
        last = axes - 1
        run, own = out_shapes[n, last], x_shapes[n, last]
        while last > 0 and run == own:
            last -= 1
            run, own = run * out_shapes[n, last], own * x_shapes[n, last]
        rows = np.int64(1)
        for axis in range(last):
            rows *= out_shapes[n, axis]
            index[axis] = 0
        out, value = array_at(out_at[n], (rows * run,), fill_value), fill_value[n]
        at, source = np.int64(0), x_at[n]
        for _ in range(rows):
            end, is_inside = at + run, True
            for axis in range(last):
                is_inside &= index[axis] < x_shapes[n, axis]
            if is_inside:
                copy_bytes(out_at[n] + at * fill_value.itemsize, source, own * fill_value.itemsize)
                source += own * fill_value.itemsize
                at += own
            out[at:end] = value
            at = end
            axis = last - 1
            while axis >= 0:
                index[axis] += 1
                if index[axis] < out_shapes[n, axis]:
                    break
                index[axis] = 0
                axis -= 1


def _fill_of_axis(fill_values: np.ndarray, out: Samples) -> tuple[np.ndarray, int] | None:
    """Return fill values as unsigned integers of the size of the elements, and the axis along which they vary.

    None if they vary along several axes, or do not match the extents.
    """
    shape = (1,) * (out.ndim - fill_values.ndim) + fill_values.shape
    varying = [axis for axis, extent in enumerate(shape) if extent != 1]
    if out.ndim == 0 or len(varying) > 1 or any((out.shapes[:, axis] != fill_values.size).any() for axis in varying):
        return None
    values = np.empty(fill_values.size, out.dtype)
    saturate_cast(values, fill_values.reshape(-1))
    return values.view(_UNITS[out.dtype.itemsize].dtype), varying[0] if varying else 0


@njit(nogil=True, cache=True)
def fill_run(out, first, size, fill_values, channel, units):
    """Fill ``out[first : first + size]`` with the values of the channels, from `channel` on, `units` times each."""
    if fill_values.size == 1:
        out[first : first + size] = fill_values[0]
        return
    period = fill_values.size * units
    at, end = first, min(first + size, first + period)
    while at < end:
        last = min(at + units, end)
        out[at:last] = fill_values[channel]
        channel = channel + 1 if channel + 1 < fill_values.size else 0
        at = last
    done, address = min(period, size), out.ctypes.data + first * out.itemsize
    while done < size:
        part = min(done, size - done)
        copy_bytes(address + done * out.itemsize, address, part * out.itemsize)
        done += part


@njit(nogil=True, cache=True)
def _copy_filled(out_at, out_shapes, x_at, x_shapes, start, fill_values, fill_axis):
    """Copy the part of each window that is inside its source, by contiguous runs, and fill the rest."""
    axes = out_shapes.shape[1]
    index, extents = new_array((axes,), out_shapes), new_array((axes,), out_shapes)
    out_start, x_start = new_array((axes,), out_shapes), new_array((axes,), out_shapes)
    for n in range(len(out_at)):
        size, units = np.int64(1), np.int64(1)
        for axis in range(axes):
            extent = out_shapes[n, axis]
            size *= extent
            units *= extent if axis > fill_axis else 1
            first = min(max(-start[n, axis], 0), extent)
            extents[axis] = max(min(x_shapes[n, axis] - start[n, axis], extent) - first, 0)
            out_start[axis], x_start[axis], index[axis] = first, start[n, axis] + first, 0
        # The last axis with an extent that differs and the axes after it form a row.
        last, step = axes - 1, np.int64(1)
        while last > 0 and extents[last] == out_shapes[n, last] and extents[last] == x_shapes[n, last]:
            step *= extents[last]
            last -= 1
        row, before, inside = out_shapes[n, last] * step, out_start[last] * step, extents[last] * step
        after_channel = out_start[last] + extents[last] if fill_axis == last else np.int64(0)
        out, item_bytes = array_at(out_at[n], (size,), fill_values), np.int64(fill_values.itemsize)
        for begin in range(0, size, max(row, 1)):
            source, is_inside = np.int64(0), inside > 0
            for axis in range(last):
                place = index[axis] - out_start[axis]
                is_inside &= 0 <= place < extents[axis]
                source = source * x_shapes[n, axis] + x_start[axis] + place
            channel = index[fill_axis] if fill_axis < last else np.int64(0)
            if is_inside:
                source = (source * x_shapes[n, last] + x_start[last]) * step
                at = begin + before
                fill_run(out, begin, before, fill_values, channel, units)
                copy_bytes(out_at[n] + at * item_bytes, x_at[n] + source * item_bytes, inside * item_bytes)
                at += inside
                fill_run(out, at, begin + row - at, fill_values, channel + after_channel, units)
            else:
                fill_run(out, begin, row, fill_values, channel, units)
            axis = last - 1
            while axis >= 0:
                index[axis] += 1
                if index[axis] < out_shapes[n, axis]:
                    break
                index[axis] = 0
                axis -= 1


@njit(nogil=True, cache=True)
def _copy_all(out_at, out_shapes, x_at, x_shapes, start, itemsize):
    """Copy windows by contiguous runs; return False and copy nothing if a window exceeds its sample."""
    axes = out_shapes.shape[1]
    for n in range(len(out_at)):
        for axis in range(axes):
            if start[n, axis] < 0 or start[n, axis] + out_shapes[n, axis] > x_shapes[n, axis]:
                return False
    index = new_array((axes,), out_shapes)
    steps = new_array((axes,), out_shapes)  # bytes from one element of an axis to the next
    for n in range(len(out_at)):
        run = np.int64(itemsize)
        last = axes  # the axes from `last` on form a run
        while last > 0:
            last -= 1
            run *= out_shapes[n, last]
            if out_shapes[n, last] != x_shapes[n, last]:
                break
        size, step, at = np.int64(itemsize), np.int64(itemsize), x_at[n]
        for axis in range(axes - 1, -1, -1):
            size *= out_shapes[n, axis]
            steps[axis] = step
            at += start[n, axis] * step
            step *= x_shapes[n, axis]
            index[axis] = 0
        target, end = out_at[n], out_at[n] + size
        while target < end:
            copy_bytes(target, at, run)
            target += run
            axis = last - 1
            while axis >= 0:
                index[axis] += 1
                at += steps[axis]
                if index[axis] < out_shapes[n, axis]:
                    break
                at -= out_shapes[n, axis] * steps[axis]
                index[axis] = 0
                axis -= 1
    return True


def _native(fill_values: np.ndarray | float, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return a fill value with the dtype and number of dimensions of the output.

    It is repeated to a whole row if channels are the last axis: NumPy copies single pixels twenty times as slowly.
    """
    wanted = np.asarray(fill_values)
    wanted = wanted.reshape((1,) * (len(shape) - wanted.ndim) + wanted.shape)
    value = np.empty(wanted.shape, dtype)
    saturate_cast(value, wanted)
    if len(shape) >= 2 and value.shape[-1] > 1 and value.shape[-2] == 1:
        value = np.repeat(value, shape[-2], axis=-2)
    return value


def _fill_outside(target: np.ndarray, inside: tuple[slice, ...], value: np.ndarray) -> None:
    """Fill a sample except for the part `inside`: before and after it, axis by axis."""
    window: list[slice] = [slice(None)] * target.ndim
    for axis, part in enumerate(inside):
        for gap in (slice(0, part.start), slice(part.stop, target.shape[axis])):
            if gap.start < gap.stop:
                window[axis] = gap
                own = tuple(
                    slice(None) if extent == 1 else place for extent, place in zip(value.shape, window, strict=True)
                )
                target[tuple(window)] = value[own]
        window[axis] = part


def copy_window_torch(out: Tensor, x: Tensor, start: np.ndarray, *, fill_values: np.ndarray | float = 0) -> None:
    """`copy_window` for torch tensors on any device; one copy if all windows are equal."""
    starts = np.asarray(start)
    if len(starts) and (starts == starts[0]).all():
        batch = np.concatenate([[0], starts[0]])
        _copy_torch(out, x, batch, fill_values)
        return
    for n, own in enumerate(starts):
        _copy_torch(out[n], x[n], own, fill_values)


def _copy_torch(out: Tensor, x: Tensor, start: np.ndarray, fill_values: np.ndarray | float) -> None:
    inside, place, is_whole = _overlap(start, tuple(out.shape), tuple(x.shape))
    if not is_whole:
        value = uploaded(fill_values, out.device)
        saturate_cast_torch(out, value.expand(out.shape))
    truncate_cast_torch(out[inside], x[place])


def _reflect(at: np.ndarray, extent: int) -> np.ndarray:
    place = at % (2 * extent)
    return np.minimum(place, 2 * extent - 1 - place)


def _reflect_101(at: np.ndarray, extent: int) -> np.ndarray:
    period = max(1, 2 * extent - 2)
    place = at % period
    return np.minimum(place, period - place)


def _edge(at: np.ndarray, extent: int) -> np.ndarray:
    return np.clip(at, 0, extent - 1)


# Name of a border -> function of indices and an extent, which returns the indices of the elements to read.
BORDERS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "edge": _edge,
    "clamp": _edge,
    "reflect": _reflect,
    "reflect_1001": _reflect,
    "reflect_101": _reflect_101,
    "wrap": lambda at, extent: at % extent,
}


def copy_bordered_window(out: Any, x: Any, start: np.ndarray, border: str) -> None:
    """Copy a window of each sample; outside the sample, its elements are repeated.

    Args:
        out: [N, ...], output; array, tensor, `Samples` or `DeviceSamples`.
        x: [N, ...] with the same type and number of dimensions, not empty.
        start: int [N, ndim]: start of the windows.
        border: one of `BORDERS`.
    """
    if isinstance(x, DeviceSamples):
        bordered_samples_torch(out, x, start, border)
        return
    if isinstance(x, Samples):
        for n, (target, source) in enumerate(zip(out.arrays(), x.arrays(), strict=True)):
            copy_bordered_window(target[None], source[None], start[n : n + 1], border)
        return
    for n, starts in enumerate(start.tolist()):
        part = x[n]
        for axis, (first, size) in enumerate(zip(starts, out.shape[1:], strict=True)):
            extent = part.shape[axis]
            if first == 0 and size == extent:
                continue
            places = BORDERS[border](np.arange(first, first + size), extent)
            if isinstance(part, np.ndarray):
                part = part.take(places, axis)
            else:
                part = part.index_select(axis, uploaded(places, part.device))
        if isinstance(part, np.ndarray):
            truncate_cast(out[n], part)
        else:
            truncate_cast_torch(out[n], part)


def flip_axes(out: Samples, x: Samples, flags: dict[int, np.ndarray]) -> None:
    """Reverse axes of each sample.

    Args:
        out: output with the shapes and dtype of `x`.
        x: N samples.
        flags: for axes of a sample, [N]; non-zero reverses the axis.
    """
    rows = np.concatenate(list(flags.values())).reshape(len(flags), len(x))
    _flip_all(out.addresses, x.addresses, x.shapes, _axes(tuple(flags)), rows, _UNITS[x.dtype.itemsize])


@lru_cache(64)
def _axes(axes: tuple[int, ...]) -> np.ndarray:
    return np.array(axes, np.int64)


@njit(nogil=True, cache=True)
def _flip_all(out_at, x_at, shapes, axes, flags, like):
    """Copy samples; the `axes`, [k], are reversed if their `flags`, [k, N], are not 0.

    `like` is an array of integers of the size of the elements.
    """
    last = axes[0]
    for k in range(axes.size):
        last = axes[k] if axes[k] > last else last
    is_reversed = new_array((last + 1,), flags)
    for n in range(len(out_at)):
        for axis in range(last + 1):
            is_reversed[axis] = 0
        for k in range(axes.size):
            is_reversed[axes[k]] = flags[k, n]
        units, rows = np.int64(1), np.int64(1)
        for axis in range(last + 1, shapes.shape[1]):
            units *= shapes[n, axis]
        for axis in range(last):
            rows *= shapes[n, axis]
        size = shapes[n, last] * units
        size_bytes = size * like.itemsize
        out, x = array_at(out_at[n], (rows, size), like), array_at(x_at[n], (rows, size), like)
        for i in range(rows):
            rest, row, step = i, np.int64(0), np.int64(1)
            for axis in range(last - 1, -1, -1):
                extent = shapes[n, axis]
                place = rest % extent
                rest //= extent
                row += (extent - 1 - place if is_reversed[axis] else place) * step
                step *= extent
            if is_reversed[last]:
                _reverse_pixels(out[i], x[row], units)
            else:
                copy_bytes(out_at[n] + i * size_bytes, x_at[n] + row * size_bytes, size_bytes)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _reverse_pixels(out, x, units):
    """Reverse a row of pixels of `units` elements."""
    if units == 1:
        last = np.uintp(x.size - 1)
        for j in range(x.size):
            out[j] = x[last - np.uintp(j)]
    elif units == 3:
        for j in range(0, x.size, 3):
            to, at = np.uintp(j), np.uintp(x.size - 3 - j)
            out[to] = x[at]
            out[to + np.uintp(1)] = x[at + np.uintp(1)]
            out[to + np.uintp(2)] = x[at + np.uintp(2)]
    elif units == 4:
        for j in range(0, x.size, 4):
            to, at = np.uintp(j), np.uintp(x.size - 4 - j)
            out[to] = x[at]
            out[to + np.uintp(1)] = x[at + np.uintp(1)]
            out[to + np.uintp(2)] = x[at + np.uintp(2)]
            out[to + np.uintp(3)] = x[at + np.uintp(3)]
    elif x.size:
        for j in range(0, x.size, units):
            for k in range(units):
                out[np.uintp(j + k)] = x[np.uintp(x.size - units - j + k)]
