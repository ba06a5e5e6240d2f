"""Copies samples with strides, for example the elements that an index selects: one compiled loop over a chunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.base.small_arrays import columns_at
from dalify.data.samples import Samples

__all__ = ["copy_strided", "transpose_samples"]

# For fewer elements along the last axis, the inner loop runs along another axis.
_LONG_RUN = 8


def copy_strided(out: Samples, x: Samples) -> None:
    """Copy samples with strides.

    Args:
        out: contiguous samples with the shapes and the element type of `x`, output.
        x: samples with strides, of any sign, in elements.
    """
    assert x.strides is not None, "dalify bug: contiguous samples need no copy"
    _copy_each(out.addresses, x.addresses, x.shapes, x.strides, x.dtype.itemsize)


def transpose_samples(out: Samples, x: Samples, order: Sequence[int]) -> None:
    """Fill `out` with samples whose axes are reordered; `order` has the axis of `x` for each axis of `out`."""
    copy_strided(out, Samples(x.addresses, out.shapes, x.dtype, x, columns_at(x.steps(), order)))


@njit(nogil=True, cache=True)
def _copy_run(target, source, count, target_step, source_step, itemsize):
    """Copy `count` elements; the steps are in bytes. A constant size is a load and a store."""
    if itemsize == 1:
        for i in range(count):
            copy_bytes(target + i * target_step, source + i * source_step, 1)  # pyright: ignore[reportCallIssue]
    elif itemsize == 2:
        for i in range(count):
            copy_bytes(target + i * target_step, source + i * source_step, 2)  # pyright: ignore[reportCallIssue]
    elif itemsize == 4:
        for i in range(count):
            copy_bytes(target + i * target_step, source + i * source_step, 4)  # pyright: ignore[reportCallIssue]
    else:
        for i in range(count):
            copy_bytes(target + i * target_step, source + i * source_step, 8)  # pyright: ignore[reportCallIssue]


@njit(nogil=True, cache=True)
def _copy_each(out_at, x_at, shapes, strides, itemsize):
    axes = shapes.shape[1]
    # Of the axes that are not merged, the last one first; steps are in bytes.
    extents, index = np.empty(axes + 1, np.int64), np.empty(axes + 1, np.int64)
    source_steps, target_steps = np.empty(axes + 1, np.int64), np.empty(axes + 1, np.int64)
    for n in range(len(out_at)):
        count, size = 0, np.int64(itemsize)
        for axis in range(axes - 1, -1, -1):
            extent, step = shapes[n, axis], strides[n, axis] * itemsize
            if extent != 1:
                if count and step == source_steps[count - 1] * extents[count - 1]:
                    extents[count - 1] *= extent
                else:
                    extents[count], source_steps[count], target_steps[count] = extent, step, size
                    count += 1
            size *= extent
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
        is_run = inner == 0 and source_steps[0] == itemsize
        runs = np.int64(1)
        for axis in range(count):
            index[axis] = 0
            runs *= 1 if axis == inner else extents[axis]
        target, source = out_at[n], x_at[n]
        for _ in range(runs):
            if is_run:
                copy_bytes(target, source, extents[0] * itemsize)  # pyright: ignore[reportCallIssue]
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
