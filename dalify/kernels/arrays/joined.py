"""The elements of the samples of a chunk as one array: element-wise NumPy functions then take one call for a chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import saturate_cast

__all__ = ["blocks", "converted", "copy_each", "in_float32", "joined", "per_element", "split", "store_joined"]


def blocks(sizes: np.ndarray, limit: int = 1 << 18) -> list[np.ndarray]:
    """Return the numbers of the samples that are computed together, so that intermediate results fit into the cache.

    Args:
        sizes: elements of each sample, int64 [N].
        limit: elements of a block; a larger sample is a block of its own.
    """
    ends = np.cumsum(sizes)
    number = (ends - sizes) // limit
    if not len(sizes) or number[-1] == 0:
        return [np.arange(len(sizes))]
    return np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(number)) + 1)


def joined(x: Samples) -> np.ndarray:
    """Return the elements of all samples: [N, size] if all have one shape, otherwise [total]. Do not modify them."""
    x, count = x.contiguous(), len(x)
    if x.dense is not None:
        return x.dense.reshape(count, -1)
    if count == 1:
        return next(x.arrays()).reshape(1, -1)
    sizes = x.shapes.prod(1)
    values = np.empty(int(sizes.sum()), x.dtype)
    copy_each(split(values, x.shapes).addresses, x.addresses, sizes * x.dtype.itemsize)
    return values.reshape(count, -1) if x.is_uniform and count else values


def converted(x: Samples, dtype: Any) -> Samples:
    """Return samples of another element type, converted as by ``astype``; the same ones if they have it already."""
    return x if x.dtype == dtype else split(joined(x).reshape(-1).astype(dtype), x.shapes)


def in_float32(out: Samples, x: Samples, fill: Callable[[Samples, Samples, np.ndarray], None]) -> None:
    """Call a function that needs float32, for as many samples at a time as fit into the cache.

    Args:
        out: N samples of any element type; the results are rounded and saturated for integers.
        x: N samples of any element type.
        fill: function of results, inputs, both float32, and the numbers of the samples.
    """
    sizes = out.shapes.prod(1)
    for numbers in blocks(sizes):
        target, source = out.take(numbers), converted(x.take(numbers), np.dtype(np.float32))
        if out.dtype == np.float32:
            fill(target, source, numbers)
        else:
            values = np.empty(int(sizes[numbers].sum()), np.float32)
            fill(split(values, target.shapes), source, numbers)
            store_joined(target, values)


def per_element(values: np.ndarray, x: Samples) -> Any:
    """Return one value per sample, [N], in a form that broadcasts to the result of `joined`."""
    if x.is_uniform:
        return values[:, None]
    return values[:1] if (values == values[0]).all() else np.repeat(values, x.shapes.prod(1))


def split(values: np.ndarray, shapes: np.ndarray) -> Samples:
    """Return samples of the given shapes, int64 [N, ndim], that share the memory of their elements, [total]."""
    sizes = shapes.prod(1)
    starts = np.cumsum(sizes) - sizes
    return Samples(starts * values.itemsize + values.__array_interface__["data"][0], shapes, values.dtype, values)


def store_joined(out: Samples, values: np.ndarray) -> None:
    """Store the elements of all samples, in the form of `joined`; they are rounded and saturated for integers."""
    if out.dense is not None or len(out) == 1:
        whole = next(out.arrays()) if out.dense is None else out.dense
        saturate_cast(whole.reshape(values.shape), values)
        return
    target = np.empty(values.size, out.dtype)
    saturate_cast(target, values.reshape(-1))
    copy_each(out.addresses, split(target, out.shapes).addresses, out.shapes.prod(1) * out.dtype.itemsize)


@njit(nogil=True, cache=True)
def copy_each(target_at, source_at, sizes):
    """Copy memory between addresses, int64 [N]; sizes are in bytes."""
    for n in range(len(target_at)):
        copy_bytes(target_at[n], source_at[n], sizes[n])  # pyright: ignore[reportCallIssue] -- numba gives the context
