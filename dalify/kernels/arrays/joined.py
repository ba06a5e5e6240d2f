"""The elements of the samples of a chunk as one array, for one call of an element-wise NumPy function."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.data.samples import Samples
from dalify.kernels.arrays.strided import copy_strided


def blocks(sizes: np.ndarray, limit: int = 1 << 18) -> list[np.ndarray]:
    """Return the indices of samples that are computed together, so that intermediate results fit into the CPU cache.

    Args:
        sizes: elements of each sample, int64 [N].
        limit: approximate number of elements of a block; blocks contain at least one sample.
    """
    if np.add.reduce(sizes[:-1]) < limit:
        return [np.arange(len(sizes))]
    ends = np.cumsum(sizes)
    return np.split(np.arange(len(sizes)), np.flatnonzero(np.diff((ends - sizes) // limit)) + 1)


def joined(x: Samples) -> np.ndarray:
    """Return the elements of all samples: [N, size] if all have one shape, otherwise [total]. Do not modify them.

    The result may share the memory of `x`, which the caller keeps alive.
    """
    count = len(x)
    if x.dense is not None:
        return x.dense.reshape(count, -1)
    if count == 1 and x.strides is None:
        return next(x.arrays()).reshape(1, x.shapes.prod())
    values = np.empty(int(np.multiply.reduce(x.shapes, 1).sum()), x.dtype)
    if x.strides is None:
        _copy_each(_start_of(values), x.addresses, x.shapes, x.dtype.itemsize)
    else:
        copy_strided(split(values, x.shapes), x)
    return values.reshape(count, -1) if x.is_uniform and count else values


def converted(x: Samples, dtype: Any) -> Samples:
    """Return samples of another element type, converted as by ``astype``; `x` if it already has this type."""
    return x if x.dtype == dtype else split(joined(x).reshape(-1).astype(dtype), x.shapes)


def per_element(values: np.ndarray, x: Samples) -> Any:
    """Return values [N], one per sample, in a form that broadcasts to the result of `joined`."""
    if x.is_uniform:
        return values[:, None]
    return values[:1] if (values == values[0]).all() else np.repeat(values, x.shapes.prod(1))


def repeated_rows(rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the concatenated rows of [N, k], each repeated to as many elements as `sizes`, int64 [N], has for it.

    The last repetition of a row may be incomplete.
    """
    source, found = np.ascontiguousarray(rows), np.empty(int(sizes.sum()), rows.dtype)
    target_at, source_at = (array.__array_interface__["data"][0] for array in (found, source))
    _repeat_each(target_at, source_at, source.shape[1] * source.itemsize, sizes * source.itemsize)
    return found


def split(values: np.ndarray, shapes: np.ndarray) -> Samples:
    """Return adjacent samples of the given shapes, int64 [N, ndim], in the memory of `values`, [total]."""
    sizes = shapes.prod(1)
    starts = np.cumsum(sizes) - sizes
    return Samples(starts * values.itemsize + values.__array_interface__["data"][0], shapes, values.dtype, values)


def copy_samples(out: Samples, x: Samples) -> None:
    """Copy contiguous samples of the same shapes and element type."""
    _copy_each(out.addresses, x.addresses, x.shapes, x.dtype.itemsize)


def separate(out: Samples, values: np.ndarray) -> None:
    """Copy `values`, the elements of all samples, [total], to contiguous samples of the same element type."""
    _copy_each(out.addresses, _start_of(values), out.shapes, values.itemsize)


def _start_of(values: np.ndarray) -> np.ndarray:
    """Return the address of an array, int64 [1]."""
    return np.array([values.__array_interface__["data"][0]])


@njit(nogil=True, cache=True)
def _copy_each(target_at, source_at, shapes, itemsize):
    """Copy samples from addresses to addresses; a single address belongs to the first of adjacent samples."""
    target = source = np.int64(0)
    for n in range(len(shapes)):
        if n == 0 or len(target_at) > 1:
            target = target_at[n]
        if n == 0 or len(source_at) > 1:
            source = source_at[n]
        size = np.int64(itemsize)
        for extent in shapes[n]:
            size *= extent
        copy_bytes(target, source, size)
        target += size
        source += size


@njit(nogil=True, cache=True)
def _repeat_each(target_at, source_at, row_bytes, sizes):
    for n in range(len(sizes)):
        size = sizes[n]
        done = row_bytes if row_bytes < size else size
        copy_bytes(target_at, source_at, done)
        while done < size:  # each step doubles the copied part
            more = done if done < size - done else size - done
            copy_bytes(target_at + done, target_at, more)
            done += more
        target_at += size
        source_at += row_bytes
