"""Operations on single values, shared by operators: scale and shift, and lookup tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import flat_at
from dalify.base.compiling import njit
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import saturate_cast_samples, saturate_cast_torch, to_uint8
from dalify.kernels.arrays.grid_torch import Grid
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.dispatch import prefer_triton

_NATIVE = (np.uint8, np.int16, np.float32)  # other dtypes are converted before they are scaled


@njit(nogil=True, cache=True)
def _scale_shift(out_at, out_shapes, out_like, x_at, x_shapes, x_like, factor, summand, to_byte):
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        a, b = factor[n], summand[n]
        for i in range(source.size):
            value = np.float32(source[i]) * a + b
            if to_byte:
                target[i] = to_uint8(value)
            else:
                target[i] = value


@njit(nogil=True, cache=True)
def _apply_table(out: np.ndarray, x: np.ndarray, table: np.ndarray) -> None:
    for n in range(x.shape[0]):
        source, target, entries = x[n], out[n], table[n]
        for i in range(source.size):
            target[i] = entries[source[i]]


@njit(nogil=True, cache=True)
def _look_up(out: np.ndarray, x: np.ndarray, table: np.ndarray) -> None:
    last = np.uint64(table.size - 1)  # unsigned, so that negative numbers are out of range, too
    for i in range(x.size):
        out[i] = table[min(np.uint64(x[i]), last)]


def scale_shift(out: Samples, x: Samples, factor: np.ndarray, summand: np.ndarray) -> None:
    """Compute ``x * factor + summand`` in float32, rounded and saturated to the dtype of `out`.

    Args:
        out: N samples of any dtype, output.
        x: N samples of any dtype, with the shapes of `out`.
        factor: float32 [N], contiguous.
        summand: float32 [N], contiguous.
    """
    if x.dtype == np.uint8 and out.dtype == np.uint8:
        _scale_shift(*out.compiled, *x.compiled, factor, summand, True)
        return
    source = x if x.dtype in _NATIVE else x.converted(np.dtype(np.float32))
    result = out if out.dtype == np.float32 else Samples.empty(out.shapes, np.dtype(np.float32))
    _scale_shift(*result.compiled, *source.compiled, factor, summand, False)
    if result is not out:
        saturate_cast_samples(out, result)


@prefer_triton("pointwise", "scale_shift")
def scale_shift_torch(out: Any, x: Any, factor: np.ndarray, summand: np.ndarray) -> None:
    """`scale_shift` for tensors [N, ...] or `DeviceSamples`."""
    if isinstance(x, DeviceSamples) and x.dense is None:
        grid = Grid(x, x, 1)
        a, b = (grid.of_sample(np.asarray(values, np.float32)) for values in (factor, summand))
        saturate_cast_torch(out.block, x.block.float() * a + b)
        return
    if isinstance(x, DeviceSamples):
        out, x = out.dense, x.dense
    shape = (-1, *[1] * (x.ndim - 1))
    a, b = (uploaded(values, x.device, np.float32).reshape(shape) for values in (factor, summand))
    saturate_cast_torch(out, x.float() * a + b)


def apply_table(out: np.ndarray, x: np.ndarray, table: np.ndarray) -> None:
    """Compute ``out[n] = table[n][x[n]]``.

    Args:
        out: [N, ...], C-contiguous, the dtype of `table`.
        x: uint8 [N, ...], C-contiguous.
        table: [N, 256], any dtype.
    """
    count = x.shape[0]
    # As integers, fewer versions are compiled, and 16-bit floats work, which numba does not support.
    entries = np.ascontiguousarray(table).view(f"u{table.itemsize}")
    _apply_table(out.reshape(count, -1).view(entries.dtype), x.reshape(count, -1), entries)


def look_up(out: np.ndarray, x: np.ndarray, table: np.ndarray) -> None:
    """Compute ``out = table[x]``; negative and too large indices select the last entry.

    Args:
        out: any shape, C-contiguous, the dtype of `table`.
        x: integers of any type, C-contiguous, the shape of `out`.
        table: one dimension, at least one entry.
    """
    # As integers, fewer versions are compiled.
    entries = table.view(f"u{table.itemsize}")
    _look_up(out.reshape(-1).view(entries.dtype), x.reshape(-1), entries)
