"""Copies samples with strides, for example the elements that an index selects: one compiled loop over a chunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.base.small_arrays import columns_at
from dalify.data.samples import Samples

# For fewer elements along the last axis, the inner loop runs along another axis.
_LONG_RUN = 8


def copy_strided(out: Samples, x: Samples) -> None:
    """Copy samples.

    Args:
        out: samples with the shapes and the element type of `x`, output; they may be windows.
        x: samples, possibly with strides, of any sign.
    """
    source_steps = x.steps() if x.strides is None else x.strides
    target_steps = out.steps() if out.strides is None else out.strides
    _copy_each(out.addresses, target_steps, x.addresses, source_steps, x.shapes, x.dtype.itemsize)


def contiguous(x: Samples) -> Samples:
    """Return the samples without strides, copied if they have strides."""
    if x.strides is None:
        return x
    found = Samples.empty(x.shapes, x.dtype)
    copy_strided(found, x)
    return found


def join_samples(out: Samples, parts: Sequence[Samples], axis: int) -> None:
    """Concatenate samples along an axis. Empty samples are skipped, whatever their shape."""
    start = np.zeros_like(out.shapes)
    for part in parts:
        copy_strided(out.window(start, part.shapes), part)
        start[:, axis] += part.shapes[:, axis] * part.shapes.all(1)


def transpose_samples(out: Samples, x: Samples, order: Sequence[int]) -> None:
    """Fill `out` with samples whose axes are reordered; `order` has the axis of `x` for each axis of `out`."""
    copy_strided(out, Samples(x.addresses, out.shapes, x.dtype, x, columns_at(x.steps(), order)))


def take_rows(out: Samples, x: Samples, indices: np.ndarray, counts: np.ndarray) -> None:
    """Copy elements along the first axis of samples.

    Args:
        out: output; only the order of the elements matters, not the shape.
        x: samples with at least one axis.
        indices: indices of all samples, int64 [total]; all are in range.
        counts: number of indices of each sample, int64 [N].
    """
    sizes = x.shapes[:, 1:].prod(1) * x.dtype.itemsize
    _take_each(out.addresses, x.addresses, sizes, indices, counts)


@njit(nogil=True, cache=True)
def _take_each(out_at, x_at, sizes, indices, counts):
    first = 0
    for n in range(len(out_at)):
        target, source, size = out_at[n], x_at[n], sizes[n]
        if size == 4:
            for i in range(counts[n]):
                copy_bytes(target + i * 4, source + indices[first + i] * 4, 4)
        else:
            for i in range(counts[n]):
                copy_bytes(target + i * size, source + indices[first + i] * size, size)
        first += counts[n]


@njit(nogil=True, cache=True)
def _copy_run(target, source, count, target_step, source_step, itemsize):
    """Copy `count` elements; the steps are in bytes. A constant size compiles to one load and one store."""
    if itemsize == 1:
        for i in range(count):
            copy_bytes(target + i * target_step, source + i * source_step, 1)
    elif itemsize == 2:
        for i in range(count):
            copy_bytes(target + i * target_step, source + i * source_step, 2)
    elif itemsize == 4:
        for i in range(count):
            copy_bytes(target + i * target_step, source + i * source_step, 4)
    else:
        for i in range(count):
            copy_bytes(target + i * target_step, source + i * source_step, 8)


@njit(nogil=True, cache=True)
def _copy_each(out_at, out_strides, x_at, x_strides, shapes, itemsize):
    axes = shapes.shape[1]
    # Of the axes after merging, the last one first; steps are in bytes.
    extents, index = np.empty(axes + 1, np.int64), np.empty(axes + 1, np.int64)
    source_steps, target_steps = np.empty(axes + 1, np.int64), np.empty(axes + 1, np.int64)
    for n in range(len(out_at)):
        count, size = 0, np.int64(1)
        for axis in range(axes - 1, -1, -1):
            extent, step, to = shapes[n, axis], x_strides[n, axis] * itemsize, out_strides[n, axis] * itemsize
            size *= extent
            if extent == 1:
                continue
            last = count - 1
            if count and step == source_steps[last] * extents[last] and to == target_steps[last] * extents[last]:
                extents[last] *= extent
            else:
                extents[count], source_steps[count], target_steps[count] = extent, step, to
                count += 1
        if size == 0:
            continue
        if count == 0:
            extents[0], source_steps[0], target_steps[0] = 1, itemsize, itemsize
            count = 1
        inner = 0
        if extents[0] < _LONG_RUN:
            for axis in range(1, count):
                if extents[axis] >= _LONG_RUN:
                    inner = axis
                    break
        is_run = inner == 0 and source_steps[0] == itemsize and target_steps[0] == itemsize
        runs = np.int64(1)
        for axis in range(count):
            index[axis] = 0
            runs *= 1 if axis == inner else extents[axis]
        target, source = out_at[n], x_at[n]
        for _ in range(runs):
            if is_run:
                copy_bytes(target, source, extents[0] * itemsize)
            else:
                _copy_run(target, source, extents[inner], target_steps[inner], source_steps[inner], itemsize)
            axis = 1 if inner == 0 else 0
            while axis < count:
                index[axis] += 1
                target += target_steps[axis]
                source += source_steps[axis]
                if index[axis] < extents[axis]:
                    break
                target -= extents[axis] * target_steps[axis]
                source -= extents[axis] * source_steps[axis]
                index[axis] = 0
                axis += 1
                if axis == inner:
                    axis += 1
