"""The elements of the samples of a chunk as one array: element-wise NumPy functions then take one call for a chunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.data.samples import Samples

__all__ = ["joined", "per_element", "split", "store_joined"]


def joined(x: Samples) -> np.ndarray:
    """Return the elements of all samples: [N, size] if all have one shape, otherwise [total]. Do not modify them."""
    count = len(x)
    if x.dense is not None:
        return x.dense.reshape(count, -1)
    sizes = x.shapes.prod(1)
    values = np.empty(int(sizes.sum()), x.dtype)
    _copy_each(split(values, x.shapes).addresses, x.addresses, sizes * x.dtype.itemsize)
    return values.reshape(count, -1) if x.is_uniform and count else values


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
    """Copy the elements of all samples, in the form of `joined` and of the type of `out`, to `out`."""
    if out.dense is not None:
        out.dense.reshape(values.shape)[...] = values
    else:
        _copy_each(out.addresses, split(values.reshape(-1), out.shapes).addresses, out.shapes.prod(1) * values.itemsize)


@njit(nogil=True, cache=True)
def _copy_each(target_at, source_at, sizes):
    for n in range(len(target_at)):
        copy_bytes(target_at[n], source_at[n], sizes[n])  # pyright: ignore[reportCallIssue] -- numba gives the context
